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
//	home         the App Home, redrawn when something changes
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
	"sync"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/queue"
	"nize/bots/slack/attachments"
	"nize/bots/slack/home"
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
	Threads     Threads
	People      People
	Posts       posting.Store
	Homes       home.Store
	Attachments attachments.Store
}

// People are the users, and what each was told.
type People interface {
	people.Store
	RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error
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
	// Feed tells when a Home that is open is to be redrawn; nil draws it when
	// it is opened and used.
	Feed store.Feed
	// Begins completes with which agent and model a conversation of somebody's
	// begins where its channel leaves that to them; nil leaves it to the system.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string)

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
	o Options

	mu        sync.Mutex // guards what follows
	account   *store.Bot
	changed   chan struct{} // closed and replaced when account changes
	live      *live         // nil while no account is used
	ready     chan struct{} // closed while live is set
	health    bots.Health
	gone      string // why the bot token does not work, "" while it does
	goneSince time.Time
}

var (
	_ bots.Bot              = (*Bot)(nil)
	_ outbox.Presence       = (*Bot)(nil)
	_ outbox.PrivateThreads = (*Bot)(nil)
	_ outbox.Finder         = (*Bot)(nil)
	_ outbox.Remover        = (*Bot)(nil)
	_ outbox.Mentioner      = (*Bot)(nil)
	_ bots.Batcher          = (*Bot)(nil)
	_ bots.Announcer        = (*Bot)(nil)
	_ bots.Sweeper          = (*Bot)(nil)
	_ bots.Receiver         = (*Bot)(nil)

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
	return &Bot{o: o, changed: make(chan struct{}), ready: make(chan struct{}), health: bots.Health{State: bots.Off, Since: o.Now()}}
}

// Surface implements [bots.Platform].
func (b *Bot) Surface() store.Surface { return store.OnSlack }

// Title implements [bots.Bot].
func (b *Bot) Title() string { return "Slack" }

// Use makes the bot work with an account from now on; nil stops it. What is asked
// of the bot afterwards never reaches the account before, and its health is not
// told any more.
func (b *Bot) Use(account *store.Bot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account = account
	if account != nil {
		b.retireLocked(bots.Connecting)
	} else {
		b.retireLocked(bots.Off)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// retireLocked ends that an account is served, if one is; b.mu is held.
func (b *Bot) retireLocked(state string) {
	if b.live == nil {
		return
	}
	b.live, b.gone = nil, ""
	b.ready = make(chan struct{})
	b.health = bots.Health{State: state, Since: b.o.Now()}
}

// Health says how the bot fares.
func (b *Bot) Health() bots.Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.health
	if b.gone != "" && h.State != bots.Off {
		h.State, h.Error, h.Since = bots.Failed, b.gone, b.goneSince
	}
	return h
}

// setHealth notes how l fares, unless another account is in use by now.
func (l *live) setHealth(change func(*bots.Health)) {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live != l {
		return
	}
	was := b.health.State
	change(&b.health)
	if b.health.State != was {
		b.health.Since = b.o.Now()
	}
}

// Run implements [bots.Platform]: it serves the account in use until ctx ends.
func (b *Bot) Run(ctx context.Context, h bots.Handler) error {
	for ctx.Err() == nil {
		b.mu.Lock()
		account, changed := b.account, b.changed
		var l *live
		if account != nil {
			l = newLive(b, *account, h)
			b.live, b.gone = l, ""
			b.health = bots.Health{State: bots.Connecting, Since: b.o.Now()}
			close(b.ready)
		}
		b.mu.Unlock()
		serving, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		if l != nil {
			wg.Go(func() { l.serve(serving) })
		}
		select {
		case <-changed: // Use has retired l
		case <-ctx.Done():
		}
		stop()
		wg.Wait()
		b.mu.Lock()
		if b.live == l {
			b.retireLocked(bots.Off)
		}
		b.mu.Unlock()
	}
	return nil
}

func (b *Bot) current() *live {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live
}

func (o *Options) wire() wire.Options {
	return wire.Options{Transport: o.Transport, URL: o.Config.Get("", "slack.api_url"), Wait: o.testOnlyWait}
}
