// Package slack is the Slack bot: a [bots.Platform] on slack-go. Requests, events,
// interactions and frames have slack-go's types. The loop that reads Socket Mode is nize's own
// (socket.go has the reason).
//
// # How an event is processed
//
//	frame ─ decode ─ Inbox.Accept (durable, once) ─ acknowledge ─ lane of its thread
//	lane  ─ identity and access ─ command, or bots.Handler.Message ─ Inbox.Done
//
// Nothing is acknowledged before it is stored, so Slack redelivers what a crash lost.
// Deduplication keys (the event id; channel and ts for messages that address nize) turn
// several deliveries into one answer. At startup, stored items that are not done are
// processed. Presses take the same path, except those that open a dialog, because their
// trigger expires after three seconds.
//
// The package comment of posting describes how an answer is sent.
//
// # Packages
//
// This package has the bot, the two ways to receive (Socket Mode and HTTP), and what an
// event, a command or a press does. Its subpackages:
//
//	wire         requests to Slack: pacing, retries, raw API calls, errors, tokens, links
//	incoming     decodes and checks what Slack sends; masks pasted keys
//	view         messages, cards, dialogs and the App Home as blocks; reads dialogs
//	people       users, channel members, user groups, departures
//	posting      output: messages, streamed texts, cards, lines of tools, presence
//	attachments  context of a message: files, earlier and forwarded messages
//	home         the App Home, drawn when it is opened and used
//	manifest     the app manifest for Slack
//
// wire, incoming, view and people don't depend on a bot; posting and attachments build on
// them, home on posting. bots/outbox keeps the places of messages.
package slack

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/outbox"
	"nize/bots/queue"
	"nize/bots/slack/attachments"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/wire"
	"nize/store"
)

// Names of the tokens of a [store.Bot].
const (
	BotToken      = "bot_token"
	AppToken      = "app_token"
	SigningSecret = "signing_secret"
)

// Modes of receiving events (store.Bot.Mode).
const (
	SocketMode = "socket"
	HTTPMode   = "http"
)

// Store is the part of the store that the bot uses. One database implements all of it.
type Store struct {
	Inbox       store.Inbox
	Threads     account.Threads
	People      people.Store
	Posts       posting.Store
	Attachments attachments.Store
}

// Options configure a Bot. Fields whose zero value is documented are optional.
type Options struct {
	Store     Store
	Approver  bots.Approver
	Calls     bots.Calls
	Config    store.Config // slack.api_url
	Commands  *bots.Commands
	Transport http.RoundTripper
	Log       *slog.Logger
	// Schema returns the input schema of a tool, for the form that edits its arguments; if
	// nil, arguments are edited as JSON.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	// Fits returns what is wrong with the values of a card's form while the form is
	// still open; nil checks them once it is closed.
	Fits func(c store.Call, values json.RawMessage) error

	// Keeper provides the content of the App Home; if nil, there is no Home.
	Keeper bots.Keeper
	// Begins returns the agent and the model for a person's new conversation if the channel
	// doesn't set them; if nil, the defaults apply.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	// MayBegin returns ErrRefused if the caller may not start another conversation; nil
	// means no limit.
	MayBegin func(ctx context.Context, by store.Caller) error

	// Admit decides which of the people admitted by Slack may use nize; nil admits all.
	Admit people.AdmitFunc

	Now  func() time.Time // nil means time.Now
	Pace time.Duration    // pause between two pieces of a stream; 0 is 700 ms
	// testOnlyWait replaces the waits for Slack's limits.
	testOnlyWait func(ctx context.Context, d time.Duration) error
}

// Bot is nize on Slack: a [bots.Platform] that may have no account until an operator adds
// one.
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
	_ outbox.Mentioner      = (*Bot)(nil)
	_ outbox.ImagePoster    = (*Bot)(nil)
	_ bots.Batcher          = (*Bot)(nil)
	_ bots.Announcer        = (*Bot)(nil)
	_ bots.Sweeper          = (*Bot)(nil)
	_ bots.Receiver         = (*Bot)(nil)
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
		o.Pace = 700 * time.Millisecond
	}
	if o.testOnlyWait == nil {
		o.testOnlyWait = queue.Sleep
	}
	b := &Bot{o: o}
	b.Holder = account.New(account.Options[*live]{Surface: store.OnSlack, Title: "Slack", Now: o.Now, Open: func(a store.Bot, h bots.Handler) *live { return newLive(b, a, h) }})
	return b
}

func (o *Options) wire() wire.Options {
	return wire.Options{Transport: o.Transport, URL: o.Config.Get("", "slack.api_url"), Wait: o.testOnlyWait}
}
