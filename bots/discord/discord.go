// Package discord is the Discord half of a conversation: a [bots.Bot] on
// discordgo for requests and on a gateway loop of its own.
//
// # How an event travels
//
//	frame ─ decode ─ Inbox.Accept (durable, once) ─ counts as received ─ lane of its thread
//	lane  ─ who is it, may they ─ command, or bots.Handler.Message ─ Inbox.Done
//
// Nothing counts as received before it is stored: a link that breaks is resumed
// behind the last event that is, and what came while there was no session is
// fetched (catchup.go). Dedupe keys, the ids of messages and interactions, make
// three deliveries one answer. An interaction must be answered within three
// seconds whatever else takes long: see response.go.
//
// # Where things stand
//
// nize works in one guild. A mention in a channel opens a thread, which has the id
// of the message; a thread is a conversation, and so is somebody's own channel
// with nize. An address names the channel and the thread in it; of somebody's own
// channel both are the same.
//
// # Rooms
//
//	wire      requests to Discord, limits, errors, the gateway
//	incoming  what Discord sends, decoded and checked; pasted keys masked
//	people    who is who, roles, channels and who administers them, who left
//	view      messages, cards and dialogs; dialogs read back
//	posting   what goes out: texts that grow by edits, cards, lines of tools
//	invite    the address by which the bot is let into a guild
package discord

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/people"
	"nize/bots/discord/posting"
	"nize/bots/discord/wire"
	"nize/bots/outbox"
	"nize/bots/queue"
	"nize/store"
)

// Token is the name of the one token of a [store.Bot].
const Token = "bot_token"

// Ways in which the bot is told of messages (store.Bot.Mode).
const (
	AllMessages = "gateway"  // all of them
	Mentions    = "mentions" // what mentions it, without the privileged intent
)

// Store is what the bot keeps, by what it is for. One database has all of it.
type Store struct {
	Inbox   store.Inbox
	Threads Threads
	People  people.Store
	Posts   posting.Store
	Files   Files
}

// Threads are the conversations, and the channels that they are in.
type Threads interface {
	account.Threads
	ListThreads(ctx context.Context, user string, limit int) ([]store.Thread, error)
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
}

// Files keeps pictures that came with messages.
type Files interface {
	PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error
}

// Options are what a Bot works with. What nil, or 0, is explained of is optional.
type Options struct {
	Store     Store
	Approver  bots.Approver
	Calls     bots.Calls
	Config    store.Config // discord.api_url, discord.access, discord.commands
	Commands  *bots.Commands
	Transport http.RoundTripper
	Log       *slog.Logger
	// Schema returns the input schema of a tool, for the form that edits its
	// arguments; nil edits JSON.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	// Fits says what is wrong with arguments for a tool, while its author still
	// waits; nil looks at them afterwards.
	Fits func(tool string, args json.RawMessage) error
	// Keeper takes credentials and knows the names that are completed; nil does
	// neither.
	Keeper bots.Keeper
	// Begins completes with which agent and model a conversation of somebody's
	// begins where its channel leaves that to them; nil leaves it to the system.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	// MayBegin returns ErrRefused if the caller may not start another conversation; nil
	// lets everybody.
	MayBegin func(ctx context.Context, by store.Caller) error

	Now  func() time.Time // nil is time.Now
	Pace time.Duration    // between two edits of a text; 0 is 1.2 s
	// testOnlyWait replaces waiting for Discord's limits.
	testOnlyWait func(ctx context.Context, d time.Duration) error
}

// Bot is nize on Discord, without an account for as long as nobody gave it one.
type Bot struct {
	*account.Holder[*live]
	o Options
}

var (
	_ bots.Bot              = (*Bot)(nil)
	_ outbox.Presence       = (*Bot)(nil)
	_ outbox.PrivateThreads = (*Bot)(nil)
	_ outbox.Finder         = (*Bot)(nil)
	_ outbox.Remover        = (*Bot)(nil)
	_ outbox.ImagePoster    = (*Bot)(nil)
	_ bots.Batcher          = (*Bot)(nil)
	_ bots.Announcer        = (*Bot)(nil)
	_ bots.Sweeper          = (*Bot)(nil)
	_ bots.Linker           = (*Bot)(nil)

	_ bots.ChannelDirectory = (*Bot)(nil)
	_ bots.GroupDirectory   = (*Bot)(nil)
)

// New returns a Bot without an account; [Bot.Use] gives it one.
func New(o Options) *Bot {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pace == 0 {
		o.Pace = 1200 * time.Millisecond
	}
	if o.testOnlyWait == nil {
		o.testOnlyWait = queue.Sleep
	}
	b := &Bot{o: o}
	b.Holder = account.New(account.Options[*live]{Surface: store.OnDiscord, Title: "Discord", Now: o.Now, Open: func(a store.Bot, h bots.Handler) *live { return newLive(b, a, h) }})
	return b
}

func (o *Options) wire() wire.Options {
	return wire.Options{Transport: o.Transport, URL: o.Config.Get("", "discord.api_url"), Wait: o.testOnlyWait}
}
