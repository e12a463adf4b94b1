package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// Doubts. A request may be carried out after its sender died or gave up waiting. If such a
// message is not found, it is posted again, so for some time two copies may appear: nize
// looks again and removes messages that nothing accounts for. A doubt is stored before the
// second post. After a restart, stored doubts run for their full time again, because the
// earlier run may have posted until it ended.

// doubtWaits are the delays before each check. The last one is the longest time that a
// request may take.
var doubtWaits = []time.Duration{2 * time.Second, 8 * time.Second, 35 * time.Second}

// doubt is a message that may appear twice in its place.
type doubt struct {
	at     store.Address
	id     string
	since  time.Time // lower bound of the time of its post
	looks  int
	failed bool // the last check failed
}

// place returns the stored form of a doubt: its Message is since, in Unix seconds.
func (d *doubt) place() store.Address {
	at := d.at
	if !d.since.IsZero() {
		at.Message = strconv.FormatInt(d.since.Unix(), 10)
	}
	return at
}

// doubt stores a doubt and starts its checks, which continue after a restart. If it returns
// an error, the message must not be posted again.
func (s *Sent) doubt(ctx context.Context, at store.Address, id string, since time.Time) error {
	if _, can := s.lister.(Withdrawer); !can {
		return nil
	}
	at.Message, at.Surface, at.Team = "", s.Account.Surface, s.Account.Team
	d := &doubt{at: at, id: id, since: since}
	s.notes.Lock()
	defer s.notes.Unlock()
	s.mu.Lock()
	if was := s.doubtful[sentKey(at, id)]; was != nil && was.since.Before(since) {
		d.since = was.since
	}
	s.mu.Unlock()
	if err := s.store.PutPlace(ctx, store.DoubtfulPlaces, sentKey(at, id), d.place()); err != nil {
		return fmt.Errorf("noting that a message may be posted twice: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtLocked(d)
	return nil
}

// doubtLocked schedules the checks of a doubt from the beginning; s.mu is held.
func (s *Sent) doubtLocked(d *doubt) {
	k := sentKey(d.at, d.id)
	s.doubtful[k] = d
	s.doubts.Set(k, s.now().Add(doubtWaits[0]))
}

// loadDoubts loads the doubts of earlier runs.
func (s *Sent) loadDoubts(ctx context.Context) error {
	places, err := s.store.ListPlaces(ctx, store.DoubtfulPlaces)
	if err != nil {
		return fmt.Errorf("reading which messages may be posted twice: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, at := range places {
		id, ok := strings.CutPrefix(k, sentKey(at, ""))
		if !ok || at.Surface != s.Account.Surface || at.Team != s.Account.Team || s.doubtful[k] != nil {
			continue
		}
		d := &doubt{at: at, id: id}
		if n, err := strconv.ParseInt(at.Message, 10, 64); err == nil {
			d.since = time.Unix(n, 0)
		}
		d.at.Message = ""
		s.doubtLocked(d)
	}
	return nil
}

// RemoveDoubles removes messages that were posted twice, until ctx ends. A platform whose
// [Lister] is a [Withdrawer] runs it.
func (s *Sent) RemoveDoubles(ctx context.Context) {
	for err := s.loadDoubts(ctx); err != nil; err = s.loadDoubts(ctx) {
		s.log.Error("looking what stands somewhere twice", "err", err)
		if queue.Sleep(ctx, doubtWaits[0]) != nil {
			return
		}
	}
	s.doubts.Run(ctx, 1, func(ctx context.Context, k string) {
		s.mu.Lock()
		d := s.doubtful[k]
		s.mu.Unlock()
		if d == nil {
			return
		}
		again, err := s.removeDouble(ctx, d)
		if err != nil && ctx.Err() == nil {
			level := slog.LevelWarn
			if d.failed {
				level = slog.LevelDebug // already logged
			}
			s.log.Log(ctx, level, "looking whether a message stands there twice", "channel", d.at.Channel, "err", err)
		}
		d.failed = err != nil
		if !again {
			d.looks++
		}
		if d.looks == len(doubtWaits) {
			if err := s.endDoubt(ctx, k, d); err == nil {
				return
			}
			d.looks-- // so that it is checked once more
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.doubtful[k] == d { // otherwise a newer doubt has replaced it
			s.doubts.Set(k, s.now().Add(doubtWaits[d.looks]))
		}
	})
}

// endDoubt deletes a doubt unless a newer one has replaced it.
func (s *Sent) endDoubt(ctx context.Context, k string, d *doubt) error {
	s.notes.Lock()
	defer s.notes.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubtful[k] != d {
		return nil
	}
	s.mu.Unlock()
	err := s.store.MovePlace(ctx, store.DoubtfulPlaces, k, "", store.Address{})
	s.mu.Lock()
	if err == nil {
		delete(s.doubtful, k)
	}
	return err
}

// removeDouble checks once; again reports that the check was inconclusive.
func (s *Sent) removeDouble(ctx context.Context, d *doubt) (again bool, err error) {
	list, err := s.lister.Sent(ctx, d.at, d.since, "")
	if err != nil {
		return !lasts(err), err
	}
	// Read after the list, so that each listed message that is not being posted now is
	// accounted for.
	placed, intended, err := s.accounted(ctx, d.at, d.id)
	if err != nil {
		return true, err
	}
	last, onlyMarked := d.looks == len(doubtWaits)-1, carriesMark(d.id)
	notice, card := store.Message{ID: d.id, Kind: store.NoticeMessage}, store.Message{ID: d.id, Kind: store.CardMessage, Card: &store.Card{Call: d.id}}
	var marked, texts []SentMessage
	for _, m := range list {
		switch {
		case m.Is(notice) || m.Is(card):
			marked = append(marked, m)
		case m.Text:
			texts = append(texts, m)
		}
	}
	s.mu.Lock()
	busy := s.posting[threadKey(d.at)] > 0
	inUse := func(m SentMessage) bool { return s.known[m.ID] || placed[m.ID] }
	var spare []SentMessage
	switch {
	case len(marked) == 0 && !onlyMarked && (last || !intended): // otherwise it may be an earlier run's message that is still being looked for
		spare = slices.DeleteFunc(texts, inUse)
	case slices.ContainsFunc(marked, inUse):
		spare = slices.DeleteFunc(marked, inUse)
	case last && len(marked) > 0: // no record says which one is in use: the later ones are duplicates
		slices.SortFunc(marked, func(a, b SentMessage) int { return strings.Compare(a.ID, b.ID) })
		spare = marked[1:]
	}
	s.mu.Unlock()
	if busy {
		return true, nil
	}
	for _, m := range spare {
		if err := s.lister.(Withdrawer).Withdraw(ctx, d.at, m.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return !lasts(err), err
		}
		s.log.Info("a message that stood there twice is taken away", "channel", d.at.Channel, "message", m.ID)
	}
	return false, nil
}

// lasts reports whether the platform would return the same error again.
func lasts(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrInvalid)
}

// accounted returns the messages that are recorded as the place of something, in the
// conversations of the thread and of the text, and with the call. intended reports whether
// a message is recorded as about to be posted there.
func (s *Sent) accounted(ctx context.Context, at store.Address, id string) (known map[string]bool, intended bool, err error) {
	owner, _, _ := strings.Cut(id, "/")
	owners := []string{owner}
	th, err := s.store.FindThread(ctx, at)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, false, fmt.Errorf("finding a conversation: %w", err)
	}
	if err == nil {
		owners = append(owners, th.ID)
	}
	known = map[string]bool{}
	for _, owner := range owners {
		places, err := s.store.ListPlaces(ctx, owner)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, false, fmt.Errorf("reading where messages stand: %w", err)
		}
		maps.Copy(known, named(places))
		for name, p := range places {
			private := strings.HasPrefix(name, PrivatePrefix) // a place that holds many messages
			intended = intended || p.Message == "" && threadKey(p) == threadKey(at) && !private
		}
	}
	return known, intended, nil
}
