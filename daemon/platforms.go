package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/discord"
	"nize/bots/slack"
	"nize/daemon/commands"
	"nize/daemon/people"
	"nize/daemon/settings"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/toolschema"
)

// platform is a built-in chat platform.
type platform struct {
	at store.Surface
	// checkChannel returns an error that describes the form of channel ids if id is not
	// one.
	checkChannel func(id string) error
	// open creates the bot, which connects to its account when Run begins.
	open func(d *Daemon, words *bots.Commands, home *commands.Home) bots.Bot
}

// platforms lists all of them.
var platforms = []platform{
	{store.OnSlack, slack.CheckChannel, (*Daemon).newSlack},
	{store.OnDiscord, discord.CheckChannel, (*Daemon).newDiscord},
}

func (d *Daemon) newSlack(words *bots.Commands, home *commands.Home) bots.Bot {
	return slack.New(slack.Options{
		Store:    slack.Store{Inbox: d.db, Threads: d.db, People: d.db, Posts: d.db, Attachments: d.db},
		Approver: d.gateway, Calls: d.db, Config: d.config, Commands: words, Transport: d.transport,
		Log: d.log.With("component", "slack"), Now: d.now, Schema: d.inputSchema, Fits: d.gateway.CheckForm, Begins: d.ops.settings.Defaults.Of, MayBegin: d.mayBegin, Admit: (&people.Access{Config: d.config, Groups: d.groups}).Admits, Keeper: home,
	})
}

func (d *Daemon) newDiscord(words *bots.Commands, home *commands.Home) bots.Bot {
	return discord.New(discord.Options{
		Store:    discord.Store{Inbox: d.db, Threads: d.db, People: d.db, Posts: d.db, Files: d.db},
		Approver: d.gateway, Calls: d.db, Config: d.config, Commands: words, Transport: d.transport,
		Log: d.log.With("component", "discord"), Now: d.now, Schema: d.inputSchema, Fits: d.gateway.CheckForm, Begins: d.ops.settings.Defaults.Of, MayBegin: d.mayBegin, Keeper: home,
	})
}

// mayBegin returns ErrRefused if the caller's quota doesn't allow another conversation;
// mayAdd if it doesn't allow another message.
func (d *Daemon) mayBegin(ctx context.Context, by store.Caller) error {
	return d.db.CheckThreads(ctx, by.User, store.ThreadQuotaOf(d.config), true)
}

func (d *Daemon) mayAdd(ctx context.Context, by store.Caller) error {
	return d.db.CheckThreads(ctx, by.User, store.ThreadQuotaOf(d.config), false)
}

// isChannel returns a function that reports whether a text names a channel as NAME:CHANNEL.
func isChannel(list []platform) settings.IsChannel {
	return func(text string) bool {
		name, id, _ := strings.Cut(text, ":")
		return slices.ContainsFunc(list, func(p platform) bool { return string(p.at) == name && p.checkChannel(id) == nil })
	}
}

// inputSchema returns a tool's input schema, for the form that edits a call.
func (d *Daemon) inputSchema(ctx context.Context, id string) (json.RawMessage, error) {
	t, err := d.db.GetTool(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading tool %s: %w", id, err)
	}
	return toolschema.Valid(t.InputSchema), nil
}

// audience decides who gets cards in private messages.
type audience struct {
	store.Users
	calls  store.Calls
	policy *policy.Engine
}

// Approvers implements [outbox.Audience].
func (a audience) Approvers(ctx context.Context, call string) ([]store.User, error) {
	c, err := a.calls.GetCall(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", call, err)
	}
	return a.policy.OtherApprovers(ctx, c)
}

// Sees implements [outbox.Audience].
func (a audience) Sees(ctx context.Context, by store.Caller, c store.Call) bool {
	return a.policy.Sees(ctx, by, c)
}

// claimable reports whether a surface has no admin yet: the claim code on the command line
// is for the first one.
func (d *Daemon) claimable(at store.Surface) bool {
	users, err := d.db.ListUsers(d.closing)
	if err != nil {
		d.log.Warn("reading who is an admin", "err", err)
		return false
	}
	return !slices.ContainsFunc(users, func(u store.User) bool {
		return u.CanAdminister() && slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, string(at)+":") })
	})
}

// baseURL returns the URL at which MCP clients reach the HTTP listener; known is true if an
// admin set it.
func (d *Daemon) baseURL() (url string, known bool) {
	switch base := d.layers.Get("public_url"); {
	case base != "":
		return base, true
	case d.cert != nil:
		return "https://" + d.addr(), false
	}
	return "http://" + d.addr(), false
}

// browserOrigin returns the origin for browsers: the public address, or this machine's own
// if the browser runs on it.
func browserOrigin(d *Daemon) func() (origin string, public bool) {
	return func() (string, bool) {
		base, public := d.baseURL()
		if ip := net.ParseIP(d.host); !public && ip != nil && ip.IsUnspecified() {
			return strings.Replace(base, d.addr(), net.JoinHostPort("127.0.0.1", d.port), 1), false
		}
		return base, public
	}
}
