package bots

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

const (
	// maxText is how much of one answer is shown.
	maxText = 1 << 20
	// maxShown is how many messages of a thread are remembered for editing.
	maxShown = 512
	// resends is how often what a platform refused is sent again by itself.
	resends = 4
)

// screen is what a thread looks like on its platform. Changes are put in and
// sent by one goroutine, which ends when there is nothing to send; what
// changes several times meanwhile is sent once, as it is then.
type screen struct {
	c        *Conversation
	platform Platform
	thread   string
	to       store.Address

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
}

// shown is one message on a screen.
type shown struct {
	want   store.Message
	card   string // the call, if want is its card and has to be read first
	queued bool
	looked bool // for a place that was noted before a restart
	posted bool
	at     store.Address
	sent   store.Message
	stands chan struct{} // closed when want stands there; nil while nobody waits
}

func newScreen(c *Conversation, p Platform, th store.Thread) *screen {
	return &screen{c: c, platform: p, thread: th.ID, to: th.Address, locale: th.Locale, shown: map[string]*shown{}}
}

// words are nize's own, in the language of the thread.
func (s *screen) words() phrases.Catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return phrases.For(s.locale)
}

// speak changes the language.
func (s *screen) speak(locale string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locale = locale
}

// knows says whether a message of that id was put before.
func (s *screen) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[id] != nil
}

// idle says whether nothing is being sent and nothing can change any more.
func (s *screen) idle() bool {
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

// notice shows nize's own words.
func (s *screen) notice(text string) {
	s.say(store.NoticeMessage, text, "")
}

// fail shows why a turn could not go on.
func (s *screen) fail(text string) { s.say(store.ErrorMessage, text, "") }

// say shows words that never change, to one person alone or to all ("").
func (s *screen) say(kind store.MessageKind, text, only string) {
	s.put(store.Message{ID: store.NewID(s.c.o.Now()), Kind: kind, Text: text, Only: only, Final: true})
}

// card shows a call as it is when it is sent.
func (s *screen) card(call string) {
	s.change(call, func(e *shown) { e.card = call })
}

// put shows m, or replaces what its id showed.
func (s *screen) put(m store.Message) {
	s.change(m.ID, func(e *shown) {
		switch {
		case e.want.For != nil:
			m.For = e.want.For
		case m.For == nil:
			m.For = s.asker
		}
		e.want = m
	})
}

// answers says whose message is answered by what is put from now on.
func (s *screen) answers(asker store.Asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asker, s.unreached = &asker, nil
}

func (s *screen) change(id string, set func(*shown)) {
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
		if o := s.shown[old]; o != nil && !o.queued {
			o.queued = true
			s.queue = append(s.queue, old)
		}
	}
	s.late = nil
	s.beginUnlock()
}

// statePrefix tells the states in a queue from ids.
const statePrefix = "state "

// present queues a change of the thread's state behind what was queued before
// it. No state is left out: who follows the thread counts on each.
func (s *screen) present(state State) {
	if _, ok := s.platform.(Presence); !ok {
		return
	}
	s.mu.Lock()
	if s.state == state || s.state == "" && state == Idle {
		s.mu.Unlock()
		return
	}
	s.state = state
	s.queue = append(s.queue, statePrefix+string(state))
	s.beginUnlock()
}

// beginUnlock unlocks s.mu, which is held, and sees that the queue is sent.
func (s *screen) beginUnlock() {
	begin := !s.sending
	s.sending = true
	s.mu.Unlock()
	if begin && !s.c.start(s.send) { // without Run nothing is sent; the queue stays
		s.mu.Lock()
		s.sending = false
		s.mu.Unlock()
	}
}

// forgetLocked makes room for one more message; s.mu is held.
func (s *screen) forgetLocked() {
	for i := 0; len(s.shown) >= maxShown && i < len(s.order); i++ {
		id := s.order[i]
		if e := s.shown[id]; !e.queued && e.sent.Final {
			delete(s.shown, id)
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			i--
		}
	}
}

// send brings the platform up to date until nothing is left to send.
func (s *screen) send(ctx context.Context) {
	for tries := 0; ; {
		batch, late := s.batch(ctx, tries < resends)
		if len(batch) == 0 {
			return
		}
		if late {
			tries++
			sleep(ctx, s.c.o.Pace*time.Duration(10<<tries)) // 1 s, 2 s, 4 s … at the usual pace
		} else {
			tries = 0
		}
		for _, id := range batch {
			if state, ok := strings.CutPrefix(id, statePrefix); ok {
				s.sendState(ctx, State(state))
			} else {
				s.sendOne(ctx, id)
			}
		}
		sleep(ctx, s.c.o.Pace)
	}
}

// batch takes what is to be sent next: what changed, else what failed before.
// With nothing in it the sender has ended.
func (s *screen) batch(ctx context.Context, again bool) (ids []string, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, s.queue = s.queue, nil
	if len(ids) == 0 && again {
		ids, s.late, late = s.late, nil, len(s.late) > 0
	}
	if len(ids) == 0 || ctx.Err() != nil {
		s.sending = false
		return nil, false
	}
	return ids, late
}

// sendOne posts or updates one message. A failure is logged here and tried
// again; the turn never hears of it.
func (s *screen) sendOne(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.shown[id]
	if e == nil { // forgotten while it was late
		s.mu.Unlock()
		return
	}
	e.queued = false
	m, card, posted, at, sent, looked, asker := e.want, e.card, e.posted, e.at, e.sent, e.looked, s.asker
	s.mu.Unlock()
	err := guard(func() (err error) {
		if card != "" {
			if m, err = s.readCard(ctx, card); err != nil {
				return err
			}
			m.For = asker
			if m.Only, err = s.beside(ctx, *m.Card); err != nil {
				return err
			}
		}
		if !posted && !looked {
			if at, posted, err = s.place(ctx, m); err != nil {
				return err
			}
			looked = true
		}
		posted = posted && !s.misplaced(m, at)
		switch {
		case posted && reflect.DeepEqual(m, sent):
			return nil
		case posted:
			if err = s.platform.Update(ctx, at, m); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			// Somebody deleted it there: it is shown anew.
		}
		posted = false
		at, err = s.post(ctx, id, m)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	e.looked, e.posted, e.at = looked, posted, at // also where it failed: it stands where it stood
	if errors.Is(err, errUnreached) {
		e.sent = m // as far as it goes
		return
	}
	if err != nil {
		if len(s.late) < maxShown {
			s.late = append(s.late, id)
		}
		if ctx.Err() == nil {
			s.c.o.Log.Error("showing a message", "surface", string(s.platform.Surface()), "message", id, "err", err)
		}
		return
	}
	e.posted, e.at, e.sent = true, at, m
	if e.stands != nil && !e.queued {
		close(e.stands)
		e.stands = nil
	}
}

// finds says whether a message that was posted, without our learning where, can
// be found again. A card must never stand there twice.
func (s *screen) finds(m store.Message) bool {
	_, ok := s.platform.(Finder)
	return ok && s.c.o.Places != nil && m.Kind == store.CardMessage
}

// place finds where a message stands that was shown before a restart.
func (s *screen) place(ctx context.Context, m store.Message) (store.Address, bool, error) {
	if s.c.o.Places == nil {
		return store.Address{}, false, nil
	}
	at, err := s.c.o.Places.GetPlace(ctx, s.thread, m.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return at, false, nil
	case err != nil:
		return at, false, fmt.Errorf("finding where a message stands: %w", err)
	case at.Message != "":
		return at, true, nil
	case !s.finds(m):
		return at, false, nil
	}
	// It was about to be posted when the last run ended.
	at, err = s.platform.(Finder).Find(ctx, at, m)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return at, false, nil
	case err != nil:
		return at, false, fmt.Errorf("looking for a message: %w", err)
	}
	s.notePlace(ctx, m.ID, at)
	return at, true, nil
}

// notePlace remembers where a message stands, also while a stop is under way:
// what is not noted is posted a second time.
func (s *screen) notePlace(ctx context.Context, id string, at store.Address) {
	if s.c.o.Places == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.c.o.Places.PutPlace(ctx, s.thread, id, at); err != nil {
		s.c.o.Log.Error("noting where a message stands", "message", id, "err", err)
	}
}

func (s *screen) sendState(ctx context.Context, state State) {
	err := guard(func() error { return s.platform.(Presence).Present(ctx, s.to, state) })
	if err != nil && ctx.Err() == nil {
		s.c.o.Log.Error("showing a thread's state", "surface", string(s.platform.Surface()), "err", err)
	}
}

func (s *screen) readCard(ctx context.Context, call string) (store.Message, error) {
	card, err := s.c.o.Approver.Card(ctx, call)
	if err != nil {
		return store.Message{}, err
	}
	return store.Message{ID: call, Kind: store.CardMessage, Card: &card, Final: card.State.Final()}, nil
}

// turnView translates the progress of one Work to messages.
type turnView struct {
	s     *screen
	whole bool // texts are shown when they are whole

	mu      sync.Mutex // guards what follows; tell comes from several goroutines
	aside   int        // the place after that of the message which is answered aside
	texts   map[string]*strings.Builder
	only    map[string]string // of texts that are private
	open    []string          // ids of texts that are not final
	failed  bool
	noticed bool
	ended   bool
}

func newTurnView(s *screen, whole bool) *turnView {
	return &turnView{s: s, whole: whole, texts: map[string]*strings.Builder{}, only: map[string]string{}}
}

// tell is given to Agent.Work.
func (v *turnView) tell(p store.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return // an agent that tells after its end is not listened to
	}
	only := v.onlyLocked(p)
	switch p.Kind {
	case "text":
		v.only[p.Turn] = only
		v.textLocked(p.Turn, p.Delta)
	case "turn":
		v.only[p.Turn] = only
		v.turnLocked(p.Turn, p.Text)
		v.offerLocked(p, only)
	case "tool":
		if p.Tool != nil {
			line := *p.Tool
			if line.Private && v.s.shared() {
				line.Brief = ""
			}
			v.s.put(store.Message{ID: "tool/" + p.ID, Kind: store.ToolMessage, Tool: &line, Final: line.State.Final()})
		}
	case "call":
		if p.Call != nil && (p.Call.Waiting() || v.s.knows(p.Call.ID)) {
			v.s.card(p.Call.ID)
		}
	case "error":
		v.failed = true
		v.s.say(store.ErrorMessage, v.s.words().Translate(p.Text), only)
	case "notice":
		v.noticed = true
		v.s.say(store.NoticeMessage, v.s.words().Translate(p.Text), only)
	}
}

func (v *turnView) textLocked(id, delta string) {
	b := v.texts[id]
	if b == nil {
		b = &strings.Builder{}
		v.texts[id] = b
		v.open = append(v.open, id)
	}
	if b.Len() > maxText {
		return
	}
	b.WriteString(v.remark(delta))
	if b.Len() > maxText {
		b.WriteString(v.s.words().Say(phrases.Cut))
	}
	if b.Len() > 0 && !v.whole {
		v.s.put(store.Message{ID: id, Kind: store.TextMessage, Text: b.String(), Only: v.only[id]})
	}
}

// remark says nize's own remark at the end of an answer, which stands behind a
// blank line in brackets, in the thread's language.
func (v *turnView) remark(text string) string {
	i := strings.LastIndex(text, "\n\n[")
	if i < 0 {
		return text
	}
	return text[:i+2] + v.s.words().Translate(text[i+2:])
}

func (v *turnView) turnLocked(id, text string) {
	streamed := v.texts[id]
	delete(v.texts, id)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + v.s.words().Say(phrases.Cut)
	}
	if text == "" && streamed != nil {
		text = streamed.String()
	}
	if text = v.remark(text); text != "" {
		v.s.put(store.Message{ID: id, Kind: store.TextMessage, Text: text, Only: v.only[id], Final: true})
	}
}

// end makes what was streamed and never stored final, and says whether the
// person was told of an error or a notice.
func (v *turnView) end() (failed, noticed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	for _, id := range v.open {
		if b := v.texts[id]; b != nil && b.Len() > 0 {
			v.s.put(store.Message{ID: id, Kind: store.TextMessage, Text: b.String(), Only: v.only[id], Final: true})
		}
	}
	return v.failed, v.noticed
}
