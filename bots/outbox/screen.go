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
	// MaxText is how much of one answer is shown.
	MaxText = 1 << 20
	// maxShown is how many messages of a thread are remembered for editing.
	maxShown = 512
	// resends is how often what a platform refused is sent again by itself: for
	// about a day, since the pauses grow to a minute.
	resends = 1500
	// maxPauses is how often the pause between two of them doubles.
	maxPauses = 6
)

// Options are what screens work with.
type Options struct {
	Places  store.Places // where messages stand is remembered there; nil forgets it at the end
	Backlog interface {  // what chats lack is noted there; nil notes nothing
		RecordShown(ctx context.Context, thread string, next int) error
	}
	Cards Cards
	Calls interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
	}
	People interface { // nil: nobody can be reached in private
		GetUser(ctx context.Context, id string) (store.User, error)
	}
	// Start runs something in the background, until what it is given ends; false
	// if nothing may run now.
	Start func(func(context.Context)) bool
	Now   func() time.Time
	Pace  time.Duration // least time between two updates of one thread
	Log   *slog.Logger
}

// Screen is what a thread looks like on its platform. Changes are put in and
// sent by one goroutine, which ends when there is nothing to send; what
// changes several times meanwhile is sent once, as it is then.
type Screen struct {
	o        *Options
	Platform Platform
	ledger   *ledger
	Thread   string
	To       store.Address

	mu        sync.Mutex   // guards what follows
	locale    string       // of the thread, which a person may change
	asker     *store.Asker // of what is put from now on
	unreached []string     // people who can't be reached in private, in this turn
	shown     map[string]*shown
	state     State    // that was queued last
	order     []string // of shown, for forgetting
	queue     []string // ids that changed and states, in order
	late      []string // ids whose last sending failed: sent again after a pause, or with the next change
	sending   bool

	poke    chan struct{} // holds 1: something changed, so a pause ends
	resumed bool          // an earlier run showed something here, also a state
	drafts  drafts
	mention mention
	headed  store.Address // the mark of the text that mentions who asked, see headMark
}

// shown is one message on a screen.
type shown struct {
	want   store.Message
	card   string // the call, if want is its card and has to be read first
	stored string // the name of its place once it is a stored turn, of a text
	noted  string // the name under which its place is noted, of a text
	failed bool   // the last sending did
	queued bool
	looked bool // for a place that was noted before a restart
	posted bool
	at     store.Address
	sent   store.Message
	stands chan struct{} // closed when want stands there; nil while nobody waits
}

func NewScreen(o *Options, p Platform, th store.Thread) *Screen {
	l := &ledger{places: o.Places, platform: p, thread: th.ID, log: o.Log}
	return &Screen{o: o, ledger: l, drafts: drafts{ledger: l}, Platform: p, Thread: th.ID, To: th.Address, locale: th.Locale, shown: map[string]*shown{}, poke: make(chan struct{}, 1)}
}

// Words are nize's own, in the language of the thread.
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

// Knows says whether a message of that id was put before.
func (s *Screen) Knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[id] != nil
}

// Idle says whether nothing is being sent and nothing can change any more.
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

// Notice shows nize's own words.
func (s *Screen) Notice(text string) { s.Say(store.Message{Kind: store.NoticeMessage, Text: text}) }

// Error shows why a turn could not go on.
func (s *Screen) Error(text string) { s.Say(store.Message{Kind: store.ErrorMessage, Text: text}) }

// Say shows words that never change. The id is that of the turn in which they
// are stored, "" where they are not.
func (s *Screen) Say(m store.Message) {
	m.ID, m.Final = cmp.Or(m.ID, store.NewID(s.o.Now())), true
	s.Put(m)
}

// Card shows a call as it is when it is sent.
func (s *Screen) Card(call string) {
	s.change(call, func(e *shown) { e.card = call })
}

// Put shows m, or replaces what its id showed.
func (s *Screen) Put(m store.Message) { s.PutStored(m, "") }

// PutStored is put of a text that is the turn of that name now, if it is one.
func (s *Screen) PutStored(m store.Message, stored string) {
	s.change(m.ID, func(e *shown) {
		m.Turn = cmp.Or(stored, e.want.Turn)
		m.For = cmp.Or(e.want.For, m.For, s.asker)
		m.Mention = m.Mention || e.want.Mention || e.want.ID == "" && s.headsLocked(m)
		e.want, e.stored = m, cmp.Or(stored, e.stored)
	})
}

// SetAsker says whose message is answered by what is put from now on.
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
		case o == nil && strings.Contains(old, " "): // no message
			s.queue = append(s.queue, old)
		}
	}
	s.late = nil
	s.beginUnlock()
}

// What else than ids stands in a queue.
const (
	statePrefix = "state "    // a state
	againPrefix = "restate "  // one that could not be shown, unless another came
	doneMark    = "caughtup " // up to which turn everything was put before
)

// ShowState queues a change of the thread's state behind what was queued before
// it. No state is left out: who follows the thread counts on each.
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

// CaughtUp notes that the chat has every turn before next, once it has what was
// put up to now.
func (s *Screen) CaughtUp(next int) {
	s.mu.Lock()
	s.queue = append(s.queue, doneMark+strconv.Itoa(next))
	s.beginUnlock()
}

// beginUnlock unlocks s.mu, which is held, and sees that the queue is sent.
func (s *Screen) beginUnlock() {
	begin := !s.sending
	s.sending = true
	s.mu.Unlock()
	select {
	case s.poke <- struct{}{}:
	default:
	}
	if begin && !s.o.Start(s.send) { // without Run nothing is sent; the queue stays
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

// Resume takes up what an earlier run showed, and returns the names of what is
// known to stand there.
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

// asked is whose message is being answered.
func (s *Screen) asked() *store.Asker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asker
}
