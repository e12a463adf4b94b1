package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

const (
	// MaxText is the maximum length of one answer that is shown, in bytes.
	MaxText = 1 << 20
	// maxShown is how many messages of a thread are kept in memory for editing.
	maxShown = 512
	// resends is how often a refused message is retried without another change: for about a
	// day, since the pauses grow to a minute.
	resends = 1500
	// maxPauses is how often the pause between retries doubles.
	maxPauses = 6
)

// Options configure screens.
type Options struct {
	Places  store.Places // keeps the places of messages; if nil, they are lost on exit
	Backlog interface {  // records what chats lack; nil records nothing
		RecordShown(ctx context.Context, thread string, next int) error
	}
	Cards Cards
	Calls interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
	}
	People interface { // nil: private messages can't be sent
		GetUser(ctx context.Context, id string) (store.User, error)
	}
	// Start runs a function in the background until its context ends. It returns false if
	// nothing may run now.
	Start func(func(context.Context)) bool
	Now   func() time.Time
	Pace  time.Duration // minimum time between two updates of one thread
	Log   *slog.Logger
}

// Screen is the state of a thread on its platform. A single goroutine sends the changes and
// ends when none are left. If a message changes several times in the meantime, only its
// latest state is sent.
type Screen struct {
	o        *Options
	Platform Platform
	ledger   *ledger
	Thread   string
	To       store.Address

	mu        sync.Mutex   // guards the fields below
	locale    string       // the thread's language, which a person may change
	asker     *store.Asker // for messages put from now on
	unreached []string     // people who can't be reached in private during this turn
	shown     map[string]*shown
	state     State    // the last one queued
	order     []string // keys of shown, oldest first
	queue     []string // ids that changed, and states, in order
	late      []string // ids whose last sending failed: retried after a pause or with the next change
	sending   bool

	poke    chan struct{} // capacity 1: a change ends the pause
	resumed bool          // an earlier run showed a message or a state here
	drafts  drafts
	mention mention
	headed  store.Address // mark of the text that mentions the requester, see headMark
}

// shown is one message on a screen.
type shown struct {
	want   store.Message
	card   string // the call, if want is its card, which is read before sending
	stored string // for a text: the name of its place once it is a stored turn
	noted  string // for a text: the name under which its place is recorded
	failed bool   // the last sending failed
	queued bool
	looked bool // a place recorded before a restart was looked up
	posted bool
	at     store.Address
	sent   store.Message
	stands chan struct{} // closed when want is shown; nil if nothing waits for it
}

func NewScreen(o *Options, p Platform, th store.Thread) *Screen {
	l := &ledger{places: o.Places, platform: p, thread: th.ID, log: o.Log}
	return &Screen{o: o, ledger: l, drafts: drafts{ledger: l}, Platform: p, Thread: th.ID, To: th.Address, locale: th.Locale, shown: map[string]*shown{}, poke: make(chan struct{}, 1)}
}

// Words returns nize's texts in the language of the thread.
func (s *Screen) Words() phrases.Catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return phrases.For(s.locale)
}

// SetLocale changes the language.
func (s *Screen) SetLocale(locale string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locale = locale
}

// Knows reports whether a message with that id was put before.
func (s *Screen) Knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[id] != nil
}

// Idle reports whether nothing is being sent and no message can change any more.
func (s *Screen) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending || len(s.late) > 0 || s.state != Idle && s.state != "" {
		return false
	}
	for _, e := range s.shown {
		if !e.sent.Final {
			return false
		}
	}
	return true
}

// Notice shows one of nize's own texts.
func (s *Screen) Notice(text string) { s.Say(store.Message{Kind: store.NoticeMessage, Text: text}) }

// Error shows why a turn could not continue.
func (s *Screen) Error(text string) { s.Say(store.Message{Kind: store.ErrorMessage, Text: text}) }

// Say shows a text that never changes. Its id is that of the turn in which it is stored, ""
// if it is not stored.
func (s *Screen) Say(m store.Message) {
	m.ID, m.Final = cmp.Or(m.ID, store.NewID(s.o.Now())), true
	s.Put(m)
}

// Card shows a call's card in the state at the time of sending.
func (s *Screen) Card(call string) {
	s.change(call, func(e *shown) { e.card = call })
}

// Put shows m, or replaces the message with its id.
func (s *Screen) Put(m store.Message) { s.PutStored(m, "") }

// PutStored is Put of a text that is stored as the named turn, if stored is not "".
func (s *Screen) PutStored(m store.Message, stored string) {
	s.change(m.ID, func(e *shown) {
		m.Turn = cmp.Or(stored, e.want.Turn)
		m.For = cmp.Or(e.want.For, m.For, s.asker)
		m.Mention = m.Mention || e.want.Mention || e.want.ID == "" && s.headsLocked(m)
		e.want, e.stored = m, cmp.Or(stored, e.stored)
	})
}

// SetAsker sets the author of the message that the following messages answer.
func (s *Screen) SetAsker(asker store.Asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asker == nil || *s.asker != asker {
		s.mention = mention{done: s.headed.Message == markOf(&asker)}
	}
	s.asker, s.unreached = &asker, nil
}

func (s *Screen) change(id string, set func(*shown)) {
	s.mu.Lock()
	e := s.shown[id]
	if e == nil {
		s.forgetLocked()
		e = &shown{}
		s.shown[id] = e
		s.order = append(s.order, id)
	}
	set(e)
	for _, old := range append(s.late, id) {
		o := s.shown[old]
		switch {
		case o != nil && !o.queued:
			o.queued = true
			s.queue = append(s.queue, old)
		case o == nil && strings.Contains(old, " "): // an entry that is not a message
			s.queue = append(s.queue, old)
		}
	}
	s.late = nil
	s.beginUnlock()
}

// Prefixes of queue entries other than message ids.
const (
	statePrefix = "state "    // a state
	againPrefix = "restate "  // a state that could not be shown, unless a newer one exists
	doneMark    = "caughtup " // all turns before this one were put
)

// ShowState queues a change of the thread's state after everything queued before. No state
// is skipped: followers of the thread rely on seeing each one.
func (s *Screen) ShowState(state State) {
	if _, ok := s.Platform.(Presence); !ok {
		return
	}
	s.mu.Lock()
	if s.state == state || s.state == "" && state == Idle && !s.resumed {
		s.mu.Unlock()
		return
	}
	s.state = state
	if state == Waiting {
		s.mention.done = false
	}
	s.queue = append(s.queue, statePrefix+string(state))
	s.beginUnlock()
}

// CaughtUp records that the chat has every turn before next, once everything put so far is
// sent.
func (s *Screen) CaughtUp(next int) {
	s.mu.Lock()
	s.queue = append(s.queue, doneMark+strconv.Itoa(next))
	s.beginUnlock()
}

// beginUnlock unlocks s.mu, which is held, and makes sure that the queue is being sent.
func (s *Screen) beginUnlock() {
	begin := !s.sending
	s.sending = true
	s.mu.Unlock()
	select {
	case s.poke <- struct{}{}:
	default:
	}
	if begin && !s.o.Start(s.send) { // if nothing may run now, the queue is kept
		s.mu.Lock()
		s.sending = false
		s.mu.Unlock()
	}
}

// forgetLocked makes room for one more message; s.mu is held.
func (s *Screen) forgetLocked() {
	for i := 0; len(s.shown) >= maxShown && i < len(s.order); i++ {
		id := s.order[i]
		if e := s.shown[id]; !e.queued && e.sent.Final {
			delete(s.shown, id)
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			i--
		}
	}
}

// Resume loads the state that an earlier run left, and returns the recorded places by name.
func (s *Screen) Resume(ctx context.Context) (map[string]store.Address, error) {
	var places map[string]store.Address
	if s.ledger.places != nil {
		var err error
		if places, err = s.ledger.places.ListPlaces(ctx, s.Thread); err != nil {
			return nil, fmt.Errorf("reading where messages stand: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = true
	s.headed = places[headMark]
	s.drafts.take(places)
	return places, nil
}

// asked returns the author of the message that is being answered.
func (s *Screen) asked() *store.Asker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asker
}
