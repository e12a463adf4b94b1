package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/slack"
	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/daemon/monitor"
	"nize/store"
)

// claimTime is how long a code that makes an admin is good.
const claimTime = 10 * time.Minute

// chatBot is a platform with an account that comes and goes while the daemon
// runs. There is one for each name of nizectl bots.
type chatBot interface {
	bots.Platform
	// Check tries tokens out and returns their account.
	Check(ctx context.Context, bot, second store.Secret) (store.Bot, error)
	// Use works with an account from now on; nil stops.
	Use(account *store.Bot)
	Health() slack.Health
	// Sweep begins to look for people who left the platform.
	Sweep() error
}

// newSlack makes the bot on Slack; it gets its account when Run begins.
func (d *Daemon) newSlack(commands *bots.Commands) *slack.Bot {
	return slack.New(slack.Options{
		Store: d.db, Approver: d.gateway, Calls: d.db, Config: d.config, Commands: commands, Transport: d.transport,
		Log: d.log.With("component", "slack"), Now: d.now, Schema: d.inputSchema, Fits: d.gateway.CheckArguments, Begins: d.begins, Admit: d.admits, Keeper: homes{d}, Feed: d.db,
	})
}

// inputSchema is what a tool takes, for the form that edits a call of it.
func (d *Daemon) inputSchema(ctx context.Context, id string) (json.RawMessage, error) {
	t, err := d.db.GetTool(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading tool %s: %w", id, err)
	}
	return t.InputSchema, nil
}

// startBots gives every bot that is switched on its account.
func (d *Daemon) startBots(ctx context.Context) {
	for name, bot := range d.bots {
		account, err := d.db.GetBot(ctx, store.Surface(name))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			d.log.Error("the bot stays off", "bot", name, "err", err)
		case account.Enabled:
			bot.Use(&account)
		}
	}
}

// bot finds the one that a request names.
func (d *Daemon) bot(r *http.Request) (string, chatBot, error) {
	name := r.PathValue("name")
	if bot, ok := d.bots[name]; ok {
		return name, bot, nil
	}
	var names []string
	for n := range d.bots {
		names = append(names, n)
	}
	return name, nil, store.Unknown("bot", name, names)
}

func viewOfBot(account store.Bot, h slack.Health) api.BotView {
	return api.BotView{Bot: account, State: h.State, Error: h.Error, Since: h.Since, Links: h.Links, Events: h.Events, LastEvent: h.LastSeen}
}

func (d *Daemon) listBots(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	var list []api.BotView
	for name, bot := range d.bots {
		account, err := d.db.GetBot(ctx, store.Surface(name))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bot on %s: %w", name, err)
		}
		v := viewOfBot(account, bot.Health())
		if v.Sweep, err = d.lastSweep(ctx, account.Surface); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return items(list), nil
}

// botStates is what the daemon's status tells of them.
func (d *Daemon) botStates(ctx context.Context) []api.BotState {
	states := []api.BotState{}
	for name, bot := range d.bots {
		if _, err := d.db.GetBot(ctx, store.Surface(name)); err != nil {
			continue
		}
		h := bot.Health()
		states = append(states, api.BotState{Name: name, State: h.State, LastError: h.Error, Since: h.Since})
	}
	return states
}

// connectBot checks the tokens, seals them, starts the bot and makes the code
// for its first admin.
func (d *Daemon) connectBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, bot, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	req, err := decode[api.ConnectBot](r)
	if err != nil {
		return nil, err
	}
	first, second, err := tellApart(req.Tokens)
	if err != nil {
		return nil, err
	}
	account, err := bot.Check(ctx, first, second)
	switch {
	case errors.Is(err, store.ErrInvalid):
		return nil, err
	case err != nil: // the platform did not answer, or something else did
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	account.Connected = d.now()
	if err := d.db.PutBot(ctx, by, account); err != nil {
		return nil, fmt.Errorf("storing the bot: %w", err)
	}
	bot.Use(&account)
	claim, err := d.newClaim(ctx, by, name)
	if err != nil {
		return nil, err
	}
	made := api.ConnectedBot{BotView: viewOfBot(account, bot.Health()), Claim: claim}
	if account.Mode == slack.HTTPMode {
		for _, path := range slack.Paths {
			made.Endpoints = append(made.Endpoints, strings.TrimSuffix(d.layers.Get("public_url"), "/")+path)
		}
	}
	return made, nil
}

// tellApart finds the bot token among two lines.
func tellApart(tokens []api.Secret) (bot, second store.Secret, err error) {
	if len(tokens) != 2 {
		return bot, second, fmt.Errorf("%w tokens: two are needed, the bot token (xoxb-…) and the app-level token (xapp-…), one a line; got %d", store.ErrInvalid, len(tokens))
	}
	a, b := tokens[0].Secret, tokens[1].Secret
	if strings.HasPrefix(b.Reveal(), "xoxb-") {
		a, b = b, a
	}
	switch {
	case strings.HasPrefix(a.Reveal(), "xoxe") || strings.HasPrefix(b.Reveal(), "xoxe"):
		return bot, second, fmt.Errorf("%w tokens: one is of an app whose tokens rotate (xoxe…), which Slack never switches off again; make a new app from `nizectl bots slack manifest`", store.ErrInvalid)
	case !strings.HasPrefix(a.Reveal(), "xoxb-"):
		return bot, second, fmt.Errorf("%w tokens: neither begins with xoxb-; the bot token is on the app's page OAuth & Permissions", store.ErrInvalid)
	case strings.HasPrefix(b.Reveal(), "xoxb-"):
		return bot, second, fmt.Errorf("%w tokens: both are bot tokens; the other must be the app-level token (xapp-…) of the app's page Basic Information", store.ErrInvalid)
	case strings.HasPrefix(b.Reveal(), "xox"):
		return bot, second, fmt.Errorf("%w tokens: the other is neither an app-level token (xapp-…) nor a signing secret", store.ErrInvalid)
	}
	return a, b, nil
}

func (d *Daemon) newClaim(ctx context.Context, by store.Caller, name string) (api.Claim, error) {
	code := rand.Text()[:13] // 65 random bits
	claim := api.Claim{Code: code, Send: "/nize claim " + code, Expires: d.now().Add(claimTime)}
	if err := d.db.PutClaim(ctx, by, store.Surface(name), bots.HashClaim(code), claim.Expires); err != nil {
		return claim, fmt.Errorf("storing a claim code: %w", err)
	}
	return claim, nil
}

func (d *Daemon) claimBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, _, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	if _, err := d.account(ctx, name); err != nil {
		return nil, err
	}
	return d.newClaim(ctx, by, name)
}

// account reads a bot's account.
func (d *Daemon) account(ctx context.Context, name string) (store.Bot, error) {
	account, err := d.db.GetBot(ctx, store.Surface(name))
	if errors.Is(err, store.ErrNotFound) {
		return account, fmt.Errorf("the bot on %s %w: nizectl bots %s connect", name, store.ErrNotFound, name)
	}
	if err != nil {
		return account, fmt.Errorf("reading the bot on %s: %w", name, err)
	}
	return account, nil
}

func (d *Daemon) switchBot(on bool) answerFunc {
	return func(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
		name, bot, err := d.bot(r)
		if err != nil {
			return nil, err
		}
		account, err := d.account(ctx, name)
		if err != nil {
			return nil, err
		}
		if account.Enabled != on {
			account.Enabled = on
			if err := d.db.PutBot(ctx, by, account); err != nil {
				return nil, fmt.Errorf("storing the bot: %w", err)
			}
		}
		if on {
			bot.Use(&account)
		} else {
			bot.Use(nil)
		}
		return viewOfBot(account, bot.Health()), nil
	}
}

func (d *Daemon) removeBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, bot, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	if _, err := d.account(ctx, name); err != nil {
		return nil, err
	}
	if err := d.db.DeleteBot(ctx, by, store.Surface(name)); err != nil {
		return nil, fmt.Errorf("removing the bot: %w", err)
	}
	bot.Use(nil)
	return nil, nil
}

// botPatience is how long doctor and a group's first check wait for a platform.
const botPatience = 10 * time.Second

// botFacts tries the bots' tokens out again, if it shall.
func (d *Daemon) botFacts(ctx context.Context, online bool) ([]doctor.Bot, error) {
	var out []doctor.Bot
	for name, bot := range d.bots {
		account, err := d.db.GetBot(ctx, store.Surface(name))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bot on %s: %w", name, err)
		}
		h := bot.Health()
		b := doctor.Bot{Name: name, State: h.State, Error: h.Error, Disabled: !account.Enabled}
		if online && account.Enabled {
			second := account.Tokens[slack.AppToken]
			if second.IsZero() {
				second = account.Tokens[slack.SigningSecret]
			}
			asking, cancel := context.WithTimeout(ctx, botPatience)
			_, err := bot.Check(asking, account.Tokens[slack.BotToken], second)
			cancel()
			b.Asked, b.Wrong = true, monitor.ErrText(err)
		}
		out = append(out, b)
	}
	return out, nil
}
