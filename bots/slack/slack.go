// Package slack is the Slack half of a conversation: a [bots.Platform] on
// slack-go for the Web API and on a websocket of its own for Socket Mode.
//
// # How an event travels
//
//	frame ─ decode ─ Inbox.Accept (durable, once) ─ acknowledge ─ lane of its thread
//	lane  ─ who is it, may they ─ command, or bots.Handler.Message ─ Inbox.Done
//
// Nothing is acknowledged before it is stored, so Slack sends again what a
// crash lost, and dedupe keys (event id; channel and ts for what addresses
// nize) make three deliveries one answer. A start takes up what is stored and
// not done. Presses go the same way; what opens a dialog does not, since its
// trigger is dead after three seconds.
//
// How an answer travels is in the package comment of posting.
//
// # Rooms
//
// This folder has the bot, the ways in, and what an event, a command or a press
// leads to. Below it, each in a folder:
//
//	wire         requests to Slack: pacing, trying again, raw API calls, errors, tokens, links
//	incoming     what Slack sends, decoded and checked; pasted keys masked
//	view         messages, cards, dialogs and the App Home as blocks; dialogs read back
//	people       who is who, who is in a channel, user groups, who left
//	posting      what goes out: messages, streamed texts, cards, lines of tools, presence
//	attachments  what comes with a message: files, earlier and forwarded messages
//	home         the App Home, drawn when it is opened and used
//	manifest     the app as Slack must have it
//
// wire, incoming, view and people know no bot; posting and attachments build on
// them, home on posting. Which message stands where is bots/outbox.
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

// Ways in which events come (store.Bot.Mode).
const (
	SocketMode = "socket"
	HTTPMode   = "http"
)

// Store is what the bot keeps, by what it is for. One database has all of it.
type Store struct {
	Inbox       store.Inbox
	Threads     account.Threads
	People      people.Store
	Posts       posting.Store
	Attachments attachments.Store
}

// Options are what a Bot works with. What nil, or 0, is explained of may be left
// out.
type Options struct {
	Store     Store
	Approver  bots.Approver
	Calls     bots.Calls
	Config    store.Config // slack.api_url
	Commands  *bots.Commands
	Transport http.RoundTripper
	Log       *slog.Logger
	// Schema returns the input schema of a tool, for the form that edits its
	// arguments; nil edits JSON.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	// Fits says what is wrong with arguments for a tool, while the form that
	// edits them is still open; nil looks at them once it is closed.
	Fits func(tool string, args json.RawMessage) error

	// Keeper knows what the App Home shows; nil draws none.
	Keeper bots.Keeper
	// Begins completes with which agent and model a conversation of somebody's
	// begins where its channel leaves that to them; nil leaves it to the system.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	// MayBegin returns ErrRefused if the caller may not start another conversation; nil
	// lets everybody.
	MayBegin func(ctx context.Context, by store.Caller) error

	// Admit says who may talk to nize of those whom Slack lets in; nil is all.
	Admit people.AdmitFunc

	Now  func() time.Time // nil is time.Now
	Pace time.Duration    // between two pieces of a stream; 0 is 700 ms
	// testOnlyWait replaces waiting for Slack's limits.
	testOnlyWait func(ctx context.Context, d time.Duration) error
}

// Bot is nize on Slack: a [bots.Platform] that may be without an account for
// as long as nobody gave it one.
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

// New returns a Bot without an account; [Bot.Use] gives it one.
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
