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

// How messages get from a screen to the platform.

// send sends changes to the platform until none are left.
func (s *Screen) send(ctx context.Context) {
	for tries := 0; ; {
		batch, late := s.batch(ctx, tries < resends)
		if len(batch) == 0 {
			return
		}
		if late {
			tries++
			s.rest(ctx, s.o.Pace*time.Duration(10<<min(tries, maxPauses+1))) // 1 s, 2 s, 4 s … at the default pace
		} else {
			tries = 0
		}
		for _, id := range batch {
			s.sendEntry(ctx, id)
		}
		_ = queue.Sleep(ctx, s.o.Pace) // if ctx has ended, the next batch is empty
	}
}

// rest waits until d has passed or something changes.
func (s *Screen) rest(ctx context.Context, d time.Duration) {
	select {
	case <-s.poke: // left by changes that this batch already contains
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

// sendDone records that the chat is complete, unless some message is pending or failed.
func (s *Screen) sendDone(ctx context.Context, entry, next string) {
	n, _ := strconv.Atoi(next) // written by CaughtUp
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

// delay moves an entry to the retries.
func (s *Screen) delay(entry string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) < maxShown && !slices.Contains(s.late, entry) {
		s.late = append(s.late, entry)
	}
}

// batch returns the entries to send next: new changes or, if there are none, earlier
// failures. If it is empty, the sender ends.
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

// sendOne posts or updates one message. It logs a failure and schedules a retry; the turn
// is not affected.
func (s *Screen) sendOne(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.shown[id]
	if e == nil { // dropped while it waited for a retry
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
	e.looked, e.noted, e.posted, e.at = now.looked, now.noted, now.posted, now.at // even after a failure, keep what is known about its place
	failed := e.failed
	e.failed = err != nil
	if err == nil || errors.Is(err, errUnreached) { // for errUnreached there is nothing more to do
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
			level = slog.LevelDebug // already logged
		}
		s.o.Log.Log(ctx, level, "showing a message", "surface", string(s.Platform.Surface()), "message", id, "err", err)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrInvalid) {
		e.sent = e.want // the place doesn't exist or refuses the message: give up
		return
	}
	if len(s.late) < maxShown && !slices.Contains(s.late, id) {
		s.late = append(s.late, id)
	}
}

// deliver posts one message or updates it at its place. It stores what it learned in e,
// even if it fails.
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
		e.posted = false         // continue it at its proper place
		if e.noted != e.stored { // remove the part left at the wrong place
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
	if !e.posted || errors.Is(err, store.ErrNotFound) { // ErrNotFound: a user deleted it there
		e.posted = false
		name := m.ID
		if text {
			name = cmp.Or(e.stored, e.noted, draftPrefix+m.ID)
		}
		e.at, err = s.post(ctx, name, m)
		e.posted = s.stands(e.at, err)
		switch draft := draftPrefix + m.ID; {
		case text && e.posted && err != nil && name == e.stored:
			s.ledger.movePlace(ctx, name, draft, e.at) // only a part was posted, so it is still a draft
			e.noted = draft
		case e.posted && e.noted != "" && e.noted != name:
			s.ledger.movePlace(ctx, e.noted, name, e.at)
			e.noted = name
		case e.posted || e.noted == "":
			e.noted = name
		}
	}
	if err == nil && text && m.Final && e.noted != "" && e.noted != e.stored {
		s.ledger.movePlace(ctx, e.noted, e.stored, e.at) // complete, so it is no longer a draft
		e.noted = e.stored
	}
	return m, err
}

// stands reports whether a post left a message or a part of one. A platform may defer a
// beginning that could still change its meaning.
func (s *Screen) stands(at store.Address, err error) bool {
	if s.ledger.finds() {
		return at.Message != "" && !errors.Is(err, errUnreached)
	}
	return err == nil
}

// sendState shows a state; if that fails, it schedules a retry.
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
