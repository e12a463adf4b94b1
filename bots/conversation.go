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

// Bounds on what comes in.
const (
	// MaxMessage is how many bytes a person's message may have.
	MaxMessage = 64 << 10
	// MaxQueued is how many messages may wait in one thread.
	MaxQueued = 100
	// maxThreads is how many threads are remembered while nothing happens in
	// them; forgetting one costs at most a card that is posted again instead of
	// being edited.
	maxThreads = 4096
)

// Calls reads calls; [store.Calls] has it.
type Calls interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
}

// Options are what a Conversation works with. Everything up to Log is needed.
type Options struct {
	Agent    Agent
	Approver Approver
	Inbox    store.Inbox
	Threads  store.Threads
	Calls    Calls
	Feed     store.Feed
	Places   store.Places    // where messages stand is remembered there; nil forgets it at the end
	Backlog  store.Backlog   // what chats lack is known there; nil forgets it at the end
	Audience outbox.Audience // to whom cards are sent in private; nil sends them to nobody
	Channels Channels        // the languages of channels; nil speaks each thread's own
	Plans    MessageCounter  // counts messages of people who have a plan; nil counts none
	Privacy  Sharing         // lets people share what is theirs; nil lets nobody
	Trail    Trail           // hears what was refused; nil hears nothing
	// MayAdd returns ErrRefused if a person's conversations are as large as they may be;
	// nil lets everybody go on.
	MayAdd func(ctx context.Context, by store.Caller) error
	// ViewLink is the address of the view of a call's result, "" where it has none;
	// nil has none at all.
	ViewLink  func(store.Call) string
	Platforms []Platform // one for a surface; threads of other surfaces are left alone
	Log       *slog.Logger

	Config store.Config     // limits.user.*; nil limits nobody
	Now    func() time.Time // nil is time.Now
	Pace   time.Duration    // least time between two updates of one thread; 0 is 50 ms
	AtOnce int              // threads that are worked on at the same time; 0 is 64
}

// Conversation is the [Handler]: the event core between platforms and agent.
// Lock order: Conversation.mu before screen.mu.
type Conversation struct {
	o         Options
	platforms map[store.Surface]Platform
	outbox    *outbox.Options
	copies    *outbox.Copies
	heldBack  *queue.Queue[string] // threads whose messages wait to be answered together
	wg        sync.WaitGroup

	mu      sync.Mutex // guards what follows and the fields of every thread
	life    context.Context
	threads map[string]*thread
	paces   map[string]*pace // by user
	ready   []*thread        // scheduled, not taken by a worker yet
	workers int
}

// thread is what the worker remembers of a conversation between steps. All of
// it can be lost: the truth is in the store.
type thread struct {
	c         *Conversation
	id        string
	queue     []item
	scheduled bool                    // in ready, or a worker has it
	dirty     bool                    // something happened since the last step began
	cancel    context.CancelCauseFunc // of the Work that runs
	behind    *int                    // from that turn on the chat may lack what is stored
	stop      *stopRequest            // what a person asked for since the last step
	anew      bool                    // a call that was made again has ended: its turn, though answered, goes on
	parked    bool                    // the next turn waits for another one of its person's
	asker     store.Asker             // who wrote the last message that was said
	screen    *outbox.Screen

	// Only the step touches these.
	told    string      // the message whose author was told that it waits
	failed  bool        // Work could not go on; only a new message tries again
	noticed bool        // the last Work ended with a notice
	waits   []string    // the calls that waited when the last step ended
	rested  int         // how many turns there were when nothing ran and the agent was asked once more
	answers []time.Time // when the turns of the last minute began
	counted bool        // answers has those of an earlier run
	batch   bool        // the messages that wait are answered together
}

// stopRequest is a stop: it ends what was asked for before it, also what waits
// in the queue still.
type stopRequest struct {
	by   store.Caller
	upTo string // the newest message that waited then, "" for none
}

type item struct {
	id string
	in store.Inbound
}

var _ Handler = (*Conversation)(nil)

// errStopped is the cause of a turn's end by [Conversation.Stop].
var errStopped = errors.New("stopped by a person")

// New returns a Conversation; [Conversation.Run] makes it work.
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

// Message implements [Handler]. Keys are masked: they never reach the
// store. ErrInvalid: no text, no key, too long; ErrNotFound: no such thread;
// ErrRefused: too many messages wait there, or the person wrote too many.
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
			// In the language as it is now: a step under way may have read another.
			words := phrases.For(c.spoken(ctx, th))
			sc.Say(store.Message{Kind: store.NoticeMessage, Text: words.Say(phrases.SecretMasked), Only: in.By.User}) // to its author alone
		}
	}
	return true, nil
}

// enqueue gives an accepted message to its thread, once: Run and Message may
// both see it while Run begins.
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
		c.copies.Bring(call) // the card that was pressed may be one that lags behind
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

// Stop implements [Handler]. Who started the thread, who wrote last, and
// admins may stop it; ErrRefused for others. Stopping what doesn't run is fine.
func (c *Conversation) Stop(ctx context.Context, by store.Caller, id string) error {
	// A message leaves the queue after the thread was opened for it, so the queue
	// is looked at first: one that is being taken is seen in either place.
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

// Run works until ctx ends, and waits for every goroutine that it started. The
// cause of ctx's end reaches Agent.Work: llm.Agent leaves a turn to the next
// start when it is llm.ErrShutdown, and stops it for good at any other. An
// error means that the store's feed or first reading failed.
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
		// We were slower than the feed's window: the records tell the same.
		after = c.o.Feed.Last()
		if err := c.load(ctx); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	return nil
}

// screenFor returns the screen of a thread, nil where no platform of ours
// shows it.
func (c *Conversation) screenFor(ctx context.Context, th store.Thread) *outbox.Screen {
	p := c.platforms[th.Address.Surface]
	if _, program := project.IDOf(th.User); p == nil || program { // a program's rounds are nobody else's to answer
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
