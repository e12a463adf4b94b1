// Package discord is the Discord bot: a [bots.Bot] on discordgo's types and requests and on
// its own gateway loop.
//
// # How an event is processed
//
//	frame ─ decode ─ Inbox.Accept (durable, once) ─ counts as received ─ lane of its thread
//	lane  ─ identity and access ─ command, or bots.Handler.Message ─ Inbox.Done
//
// No event counts as received before it is stored: a broken link resumes after the last
// stored event, and messages missed without a session are fetched (catchup.go).
// Deduplication keys, the ids of messages and interactions, turn several deliveries into
// one answer. An interaction must be answered within three seconds, however long its work
// takes: see response.go.
//
// # Addresses
//
// nize works in one guild. A mention in a channel opens a thread, which has the id of the
// message. A thread is a conversation, and so is a person's direct channel. An address has
// the channel and the thread in it; for a direct channel both are the same.
//
// # Packages
//
//	wire      requests to Discord, limits, errors, the gateway
//	incoming  decodes and checks what Discord sends; masks pasted keys
//	people    members, roles, channels and their admins, departures
//	view      messages, cards and dialogs; reads dialogs
//	posting   output: texts that grow by edits, cards, lines of tools
//	invite    the URL that adds the bot to a guild
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

// Token is the name of the only token of a [store.Bot].
const Token = "bot_token"

// Modes of receiving messages (store.Bot.Mode).
const (
	AllMessages = "gateway"  // all of them
	Mentions    = "mentions" // messages that mention it, without the privileged intent
)

// Store is the part of the store that the bot uses. One database implements all of it.
type Store struct {
	Inbox   store.Inbox
	Threads Threads
	People  people.Store
	Posts   posting.Store
	Files   Files
}

// Threads stores conversations and finds those of a channel.
type Threads interface {
	account.Threads
	ListThreads(ctx context.Context, user string, limit int) ([]store.Thread, error)
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
}

// Files stores pictures from messages.
type Files interface {
	PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error
}

// Options configure a Bot. Fields whose zero value is documented are optional.
type Options struct {
	Store     Store
	Approver  bots.Approver
	Calls     bots.Calls
	Config    store.Config // discord.api_url, discord.access, discord.commands
	Commands  *bots.Commands
	Transport http.RoundTripper
	Log       *slog.Logger
	// Schema returns the input schema of a tool, for the form that edits its arguments; if
	// nil, arguments are edited as JSON.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	// Fits validates the values of a card's form while the dialog is open, so that its
	// author can correct them. If Fits is nil, they are validated after submission.
	Fits func(c store.Call, values json.RawMessage) error
	// Keeper takes credentials and knows the names that are completed; nil does
	// neither.
	Keeper bots.Keeper
	// Begins returns the agent and the model for a person's new conversation if the channel
	// doesn't set them; if nil, the defaults apply.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	// MayBegin returns ErrRefused if the caller may not start another conversation; nil
	// means no limit.
	MayBegin func(ctx context.Context, by store.Caller) error

	Now  func() time.Time // nil means time.Now
	Pace time.Duration    // pause between two edits of a text; 0 is 1.2 s
	// testOnlyWait replaces the waits for Discord's limits.
	testOnlyWait func(ctx context.Context, d time.Duration) error
}

// Bot is nize on Discord. It has no account until an operator adds one.
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

// New returns a Bot without an account; [Bot.Use] sets it.
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
