package bots

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
	"nize/store/project"
)

// Limits for incoming messages.
const (
	// MaxMessage is the maximum size of a person's message, in bytes.
	MaxMessage = 64 << 10
	// MaxQueued is the maximum number of messages that may wait in one thread.
	MaxQueued = 100
	// maxThreads is how many inactive threads are kept in memory. If one is dropped, at
	// worst a card is posted again instead of edited.
	maxThreads = 4096
)

// Calls reads calls; [store.Calls] implements it.
type Calls interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
}

// Options configure a Conversation. The fields up to Log are required.
type Options struct {
	Agent    Agent
	Approver Approver
	Inbox    store.Inbox
	Threads  store.Threads
	Calls    Calls
	Feed     store.Feed
	Places   store.Places    // keeps the places of messages; if nil, they are lost on exit
	Backlog  store.Backlog   // keeps what chats still lack; if nil, it is lost on exit
	Audience outbox.Audience // who gets cards in private; if nil, no user does
	Channels Channels        // languages of channels; if nil, each thread uses its own
	Plans    MessageCounter  // counts messages of people with a plan; if nil, none is counted
	Privacy  Sharing         // lets people share private answers; if nil, sharing is disabled
	Trail    Trail           // records refusals; nil records nothing
	// MayAdd returns ErrRefused if a person's conversations have reached their size limit;
	// nil means no limit.
	MayAdd func(ctx context.Context, by store.Caller) error
	// ViewLink returns the URL of the view of a call's result, or "" if it has none; nil if
	// no result has one.
	ViewLink  func(store.Call) string
	Platforms []Platform // one per surface; threads of other surfaces are ignored
	Log       *slog.Logger

	Config store.Config     // limits.user.*; nil means no limits
	Now    func() time.Time // nil means time.Now
	Pace   time.Duration    // minimum time between two updates of one thread; 0 is 50 ms
	AtOnce int              // maximum number of threads worked on at once; 0 is 64
}

// Conversation is the [Handler] that connects platforms and the agent. Lock order:
// Conversation.mu before screen.mu.
type Conversation struct {
	o         Options
	platforms map[store.Surface]Platform
	outbox    *outbox.Options
	copies    *outbox.Copies
	heldBack  *queue.Queue[string] // threads whose messages wait to be answered together
	wg        sync.WaitGroup

	mu      sync.Mutex // guards the following fields and the fields of every thread
	life    context.Context
	threads map[string]*thread
	paces   map[string]*pace // keyed by user
	ready   []*thread        // scheduled, not yet taken by a worker
	workers int
}

// thread is a worker's memory of a conversation between steps. All of it may be lost: the
// store is authoritative.
type thread struct {
	c         *Conversation
	id        string
	queue     []item
	scheduled bool                    // in ready, or taken by a worker
	dirty     bool                    // set by events since the last step began
	cancel    context.CancelCauseFunc // cancels the running Work
	behind    *int                    // the chat may lack stored turns from this one on
	stop      *stopRequest            // requested since the last step
	anew      bool                    // a repeated call has ended: its turn continues although it was answered
	parked    bool                    // the next turn waits until another turn of the same person ends
	asker     store.Asker             // author of the last message given to the agent
	screen    *outbox.Screen

	// Only step uses these.
	told    string      // the message whose author was informed that it waits
	failed  bool        // Work failed; only a new message retries
	noticed bool        // the last Work ended with a notice
	waits   []string    // the calls that waited when the last step ended
	rested  int         // number of turns when nothing ran and the agent was called once more
	answers []time.Time // start times of the turns of the last minute
	counted bool        // answers includes those of an earlier run
	batch   bool        // the messages that wait are answered together
}

// stopRequest asks to end the turn and the messages that were queued when it was made.
type stopRequest struct {
	by   store.Caller
	upTo string // the newest message in the queue at that time, "" for none
}

type item struct {
	id string
	in store.Inbound
}

var _ Handler = (*Conversation)(nil)

// errStopped is the cancellation cause of turns ended by [Conversation.Stop].
var errStopped = errors.New("stopped by a person")

// New returns a Conversation; call [Conversation.Run] to start it.
func New(o Options) *Conversation {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pace == 0 {
		o.Pace = 50 * time.Millisecond
	}
	if o.AtOnce == 0 {
		o.AtOnce = 64
	}
	c := &Conversation{o: o, platforms: map[store.Surface]Platform{}, threads: map[string]*thread{}, paces: map[string]*pace{}, heldBack: queue.New[string](o.Now)}
	for _, p := range o.Platforms {
		c.platforms[p.Surface()] = p
	}
	c.outbox = &outbox.Options{Places: o.Places, Backlog: o.Backlog, Cards: o.Approver, Calls: o.Calls, People: o.Audience, Start: c.start, Now: o.Now, Pace: o.Pace, Log: o.Log}
	var all []outbox.Platform
	for _, p := range o.Platforms {
		all = append(all, p)
	}
	c.copies = outbox.NewCopies(outbox.CopiesOptions{Platforms: all, Places: o.Places, Calls: o.Calls, Cards: o.Approver, Audience: o.Audience, Now: o.Now, Log: o.Log})
	return c
}

// Message implements [Handler]. API keys in the text are masked, so they never reach the
// store. It returns ErrInvalid if the text or the key is missing or the text is too long,
// ErrNotFound if there is no such thread, and ErrRefused if too many messages wait in it or
// the person wrote too many.
func (c *Conversation) Message(ctx context.Context, in store.Inbound) (bool, error) {
	switch {
	case in.Key == "" || in.Thread == "":
		return false, fmt.Errorf("%w message: key and thread are needed", store.ErrInvalid)
	case strings.TrimSpace(in.Text) == "" || !utf8.ValidString(in.Text):
		return false, fmt.Errorf("%w message: no text", store.ErrInvalid)
	case len(in.Text) > MaxMessage:
		return false, store.Errorf("%w message: %d bytes; at most %d fit", store.ErrInvalid, len(in.Text), MaxMessage)
	case !in.WithinLimits():
		return false, fmt.Errorf("%w message: more came with it than is kept", store.ErrInvalid)
	}
	th, err := c.o.Threads.GetThread(ctx, in.Thread)
	if err != nil {
		return false, fmt.Errorf("taking a message: %w", err)
	}
	c.mu.Lock()
	queued := len(c.threadLocked(in.Thread).queue)
	c.mu.Unlock()
	if queued >= MaxQueued {
		return false, store.Mark(store.Errorf("%d messages wait in this conversation already, so this one was not taken", queued), store.ErrRefused)
	}
	if c.o.MayAdd != nil && in.By.User != store.System.User {
		if err := c.o.MayAdd(ctx, in.By); err != nil {
			return false, err
		}
	}
	giveBack, err := c.mayWrite(in.By)
	if err != nil {
		return false, err
	}
	if c.o.Plans != nil && in.By.User != store.System.User {
		if err := c.o.Plans.CountMessage(ctx, in.By, th.Address, string(in.By.Surface)+":"+in.Key); err != nil {
			giveBack()
			return false, err
		}
	}
	masked := in.Mask()
	payload, err := json.Marshal(in)
	if err != nil {
		return false, fmt.Errorf("encoding a message: %w", err)
	}
	it := item{id: store.NewID(c.o.Now()), in: in}
	fresh, err := c.o.Inbox.Accept(ctx, store.Item{
		ID: it.id, Kind: "message", Payload: payload, At: c.o.Now(),
		Keys: []string{string(in.By.Surface) + ":" + in.Key},
	})
	if err != nil || !fresh {
		giveBack()
		if err != nil {
			err = fmt.Errorf("storing a message: %w", err)
		}
		return false, err
	}
	c.enqueue(it)
	if masked {
		if sc := c.screenFor(ctx, th); sc != nil {
			// Read the language again: a step in progress may have used an earlier one.
			words := phrases.For(c.spoken(ctx, th))
			sc.Say(store.Message{Kind: store.NoticeMessage, Text: words.Say(phrases.SecretMasked), Only: in.By.User}) // visible to its author only
		}
	}
	return true, nil
}

// enqueue adds an accepted message to its thread's queue, once: Run and Message may both
// deliver it while Run starts.
func (c *Conversation) enqueue(it item) {
	c.wake(it.in.Thread, func(t *thread) {
		for _, have := range t.queue {
			if have.id == it.id {
				return
			}
		}
		t.queue = append(t.queue, it)
	})
}

// Press implements [Handler].
func (c *Conversation) Press(ctx context.Context, by store.Caller, call string, d store.Decision) (store.Card, error) {
	if !store.ValidID(call) {
		return store.Card{}, store.Errorf("%w call id", store.ErrInvalid)
	}
	if d.Verb == store.RunAll {
		var err error
		if d.Calls, err = c.onScreen(ctx, by, call); err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Card{}, err
		}
	}
	show := call
	decided, err := c.o.Approver.Decide(ctx, by, call, d)
	if err == nil && decided != nil {
		show = decided.ID // an edit makes a new call
	}
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		c.copies.Bring(call) // the pressed card may be an outdated copy
	}
	card, cardErr := c.o.Approver.Card(ctx, show)
	switch {
	case err != nil && cardErr != nil:
		return store.Card{}, err
	case errors.Is(err, store.ErrExpired):
		return card, store.Mark(store.Errorf("call %s has expired", card.Call), store.ErrExpired)
	case errors.Is(err, store.ErrDecided):
		return card, store.Mark(store.Errorf("too late, call %s is %s", card.Call, stateText(card)), store.ErrDecided)
	case err != nil:
		return card, err
	case cardErr != nil:
		return store.Card{}, fmt.Errorf("reading the card after the decision: %w", cardErr)
	}
	return card, nil
}

// Stop implements [Handler]. The thread's owner, the author of the last message and admins
// may stop it; others get ErrRefused. It does nothing if no turn runs.
func (c *Conversation) Stop(ctx context.Context, by store.Caller, id string) error {
	// Check the queue first: a message leaves it only after its thread was opened, so a
	// message being taken is seen in one place or the other.
	c.mu.Lock()
	known := c.threads[id]
	queued := known != nil && len(known.queue) > 0
	c.mu.Unlock()
	th, err := c.o.Threads.GetThread(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Errorf("conversation %q %w", id, store.ErrNotFound)
	case err != nil:
		return fmt.Errorf("stopping a turn: %w", err)
	}
	c.mu.Lock()
	t := c.threadLocked(id)
	may := by.IsAdmin() || by.User == th.User || (t.asker.User != "" && by.User == t.asker.User)
	active := queued && t.scheduled || th.Open || t.cancel != nil || len(t.queue) > 0
	c.mu.Unlock()
	if !may {
		return store.Mark(store.Errorf("only its author, the conversation's owner or an admin can stop this"), store.ErrRefused)
	}
	if !active {
		return nil
	}
	c.wake(id, func(t *thread) {
		t.stop = &stopRequest{by: by}
		if n := len(t.queue); n > 0 {
			t.stop.upTo = t.queue[n-1].id
		}
		if t.cancel != nil {
			t.cancel(errStopped)
		}
	})
	return nil
}

// Run works until ctx ends and waits for every goroutine that it started. The cause of
// ctx's end is passed to Agent.Work: for llm.ErrShutdown, llm.Agent leaves a turn to the
// next start; for any other cause it stops the turn for good. Run returns an error if the
// store's feed or the first read failed.
func (c *Conversation) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer c.wg.Wait()
	defer cancel()
	after := c.o.Feed.Last()
	if err := cmp.Or(c.loadBehind(ctx), c.load(ctx)); err != nil {
		return unlessEnded(ctx, err)
	}
	c.mu.Lock()
	c.life = ctx
	c.spawnLocked()
	c.mu.Unlock()
	c.wg.Go(func() { c.copies.Run(ctx) })
	c.wg.Go(func() { c.heldBack.Run(ctx, 1, func(_ context.Context, thread string) { c.wake(thread, nil) }) })
	defer func() {
		c.mu.Lock()
		c.life = nil
		c.mu.Unlock()
	}()
	if err := c.catchUp(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	for ctx.Err() == nil {
		err := c.follow(ctx, &after)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("following the feed: %w", err)
		}
		// We fell behind the feed's window: read the state from the store instead.
		after = c.o.Feed.Last()
		if err := c.load(ctx); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	return nil
}

// screenFor returns the screen of a thread, or nil if none of our platforms shows it.
func (c *Conversation) screenFor(ctx context.Context, th store.Thread) *outbox.Screen {
	p := c.platforms[th.Address.Surface]
	if _, program := project.IDOf(th.User); p == nil || program { // a program's turns are answered only by the program
		return nil
	}
	locale := c.spoken(ctx, th)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threadLocked(th.ID)
	if t.screen == nil {
		t.screen = outbox.NewScreen(c.outbox, p, th)
	}
	t.screen.SetLocale(locale)
	return t.screen
}

func (c *Conversation) done(ctx context.Context, id string) {
	if err := c.o.Inbox.Done(ctx, id); err != nil && ctx.Err() == nil {
		c.o.Log.Error("marking a message as worked off", "item", id, "err", err)
	}
}
