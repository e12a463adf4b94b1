package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// How what was put on a screen gets to the platform.

// send brings the platform up to date until nothing is left to send.
func (s *Screen) send(ctx context.Context) {
	for tries := 0; ; {
		batch, late := s.batch(ctx, tries < resends)
		if len(batch) == 0 {
			return
		}
		if late {
			tries++
			s.rest(ctx, s.o.Pace*time.Duration(10<<min(tries, maxPauses+1))) // 1 s, 2 s, 4 s … at the usual pace
		} else {
			tries = 0
		}
		for _, id := range batch {
			s.sendEntry(ctx, id)
		}
		_ = queue.Sleep(ctx, s.o.Pace) // when ctx has ended, so does the loop
	}
}

// rest waits until d has passed or something changes.
func (s *Screen) rest(ctx context.Context, d time.Duration) {
	select {
	case <-s.poke: // of what is being sent
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.poke:
	case <-ctx.Done():
	}
}

// sendEntry sends one entry of the queue.
func (s *Screen) sendEntry(ctx context.Context, entry string) {
	what, rest, _ := strings.Cut(entry, " ")
	switch what + " " {
	case statePrefix:
		if State(rest) == Waiting {
			s.unmark(ctx)
		}
		s.sendState(ctx, State(rest))
	case againPrefix:
		s.mu.Lock()
		now := s.state
		s.mu.Unlock()
		if now == State(rest) {
			s.sendState(ctx, now)
		}
	case doneMark:
		s.sendDone(ctx, entry, rest)
	default:
		s.sendOne(ctx, entry)
	}
}

// sendDone notes that the chat has everything, unless something of it failed.
func (s *Screen) sendDone(ctx context.Context, entry, next string) {
	n, _ := strconv.Atoi(next) // caughtUp wrote it
	s.mu.Lock()
	wait := len(s.late) > 0
	for _, e := range s.shown {
		wait = wait || e.failed || e.queued
	}
	s.mu.Unlock()
	var err error
	if !wait {
		if err = s.drafts.dropDrafts(ctx, s.asked()); err == nil {
			err = s.o.Backlog.RecordShown(ctx, s.Thread, n)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("noting what a chat shows", "thread", s.Thread, "err", err)
	}
	if wait || err != nil {
		s.delay(entry)
	}
}

// delay sends an entry later.
func (s *Screen) delay(entry string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) < maxShown && !slices.Contains(s.late, entry) {
		s.late = append(s.late, entry)
	}
}

// batch takes what is to be sent next: what changed, else what failed before.
// With nothing in it the sender has ended.
func (s *Screen) batch(ctx context.Context, again bool) (ids []string, late bool) {
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
func (s *Screen) sendOne(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.shown[id]
	if e == nil { // forgotten while it was late
		s.mu.Unlock()
		return
	}
	e.queued = false
	now, asker := *e, s.asker
	s.mu.Unlock()
	var m store.Message
	err := queue.Guard(func() (err error) {
		m, err = s.deliver(ctx, &now, asker)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	e.looked, e.noted, e.posted, e.at = now.looked, now.noted, now.posted, now.at // also where it failed: it stands where it stood
	failed := e.failed
	e.failed = err != nil
	if err == nil || errors.Is(err, errUnreached) { // the latter: as far as it goes
		e.sent = m
		if err == nil && e.stands != nil && !e.queued {
			close(e.stands)
			e.stands = nil
		}
		return
	}
	if ctx.Err() == nil {
		level := slog.LevelError
		if failed {
			level = slog.LevelDebug // it was told
		}
		s.o.Log.Log(ctx, level, "showing a message", "surface", string(s.Platform.Surface()), "message", id, "err", err)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrInvalid) {
		e.sent = e.want // the place is gone, or no place for it: it stays unshown
		return
	}
	if len(s.late) < maxShown && !slices.Contains(s.late, id) {
		s.late = append(s.late, id)
	}
}

// deliver brings one message to where it stands, or posts it. What it learns
// is in e, also when it fails.
func (s *Screen) deliver(ctx context.Context, e *shown, asker *store.Asker) (m store.Message, err error) {
	m = e.want
	if e.card != "" {
		if m, err = s.readCard(ctx, e.card); err != nil {
			return m, err
		}
		m.For = asker
		if m.Only, err = s.cardFor(ctx, *m.Card); err != nil {
			return m, err
		}
	}
	text := m.Kind == store.TextMessage
	if !text {
		if err := s.drafts.dropDrafts(ctx, s.asked()); err != nil {
			return m, err
		}
	}
	if !e.posted && !e.looked {
		if text {
			e.noted, e.at, e.posted, err = s.drafts.placeText(ctx, e.stored, m)
		} else {
			e.at, e.posted, err = s.ledger.placed(ctx, m.ID, m)
		}
		if err != nil {
			return m, err
		}
		e.looked = true
	}
	if e.posted && (s.misplaced(m, e.at) || m.Only == "" && e.at.Channel != s.To.Channel) {
		e.posted = false         // it goes on where it belongs
		if e.noted != e.stored { // half of it is no use where it does not
			if err := s.drafts.dropDraft(ctx, s.asked(), e.noted, e.at); err != nil {
				return m, err
			}
			e.noted = ""
		}
	}
	if e.posted && reflect.DeepEqual(m, e.sent) {
		return m, nil
	}
	if e.posted {
		err = s.Platform.Update(ctx, e.at, m)
	}
	if !e.posted || errors.Is(err, store.ErrNotFound) { // the latter: somebody deleted it there
		e.posted = false
		name := m.ID
		if text {
			name = cmp.Or(e.stored, e.noted, draftPrefix+m.ID)
		}
		e.at, err = s.post(ctx, name, m)
		e.posted = s.stands(e.at, err)
		switch draft := draftPrefix + m.ID; {
		case text && e.posted && err != nil && name == e.stored:
			s.ledger.movePlace(ctx, name, draft, e.at) // it is no more than that yet
			e.noted = draft
		case e.posted && e.noted != "" && e.noted != name:
			s.ledger.movePlace(ctx, e.noted, name, e.at)
			e.noted = name
		case e.posted || e.noted == "":
			e.noted = name
		}
	}
	if err == nil && text && m.Final && e.noted != "" && e.noted != e.stored {
		s.ledger.movePlace(ctx, e.noted, e.stored, e.at) // no draft any more
		e.noted = e.stored
	}
	return m, err
}

// stands says whether a post left a message, or a part of one. Of a beginning
// that may turn into something else a platform shows nothing yet.
func (s *Screen) stands(at store.Address, err error) bool {
	if s.ledger.finds() {
		return at.Message != "" && !errors.Is(err, errUnreached)
	}
	return err == nil
}

// sendState shows a state; one that could not be shown is not forgotten.
func (s *Screen) sendState(ctx context.Context, state State) {
	err := queue.Guard(func() error { return s.Platform.(Presence).Present(ctx, s.To, state) })
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		s.o.Log.Warn("showing a thread's state", "surface", string(s.Platform.Surface()), "err", err)
	}
	s.delay(againPrefix + string(state))
}

func (s *Screen) readCard(ctx context.Context, call string) (store.Message, error) {
	card, err := s.o.Cards.Card(ctx, call)
	if err != nil {
		return store.Message{}, err
	}
	return store.Message{ID: call, Kind: store.CardMessage, Card: &card, Final: card.State.Final()}, nil
}
