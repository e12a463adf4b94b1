package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Doubts. A request may be carried out after its sender has died, or has waited
// long enough. What was looked for and not found is posted again, so for a while
// it may come to stand there twice: it is looked for again, and what nothing
// accounts for is taken away.

// doubtWaits are when it is looked again: the last time after the longest that a
// request may take.
var doubtWaits = []time.Duration{2 * time.Second, 8 * time.Second, 35 * time.Second}

// doubt is a message that may come to stand somewhere twice.
type doubt struct {
	at    store.Address
	id    string
	since time.Time // it was posted then at the earliest
	looks int
}

// doubtLocked begins to look; s.mu is held.
func (s *Sent) doubtLocked(at store.Address, id string, since time.Time) {
	if _, can := s.lister.(Withdrawer); !can || len(s.doubtful) > maxLost {
		return
	}
	at.Message = ""
	k := sentKey(at, id)
	s.doubtful[k] = &doubt{at: at, id: id, since: since}
	s.doubts.Set(k, s.now().Add(doubtWaits[0]))
}

// RemoveDoubles takes away what came to stand there twice, until ctx ends. A
// platform whose [Lister] is a [Withdrawer] runs it.
func (s *Sent) RemoveDoubles(ctx context.Context) {
	s.doubts.Run(ctx, 1, func(ctx context.Context, k string) {
		s.mu.Lock()
		d := s.doubtful[k]
		s.mu.Unlock()
		if d == nil {
			return
		}
		again, err := s.removeDouble(ctx, d)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("looking whether a message stands there twice", "channel", d.at.Channel, "err", err)
		}
		if !again {
			d.looks++
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.doubtful[k] != d: // it is doubted anew
		case d.looks == len(doubtWaits):
			delete(s.doubtful, k)
		default:
			s.doubts.Set(k, s.now().Add(doubtWaits[d.looks]))
		}
	})
}

// removeDouble looks once; again says that it could not be seen.
func (s *Sent) removeDouble(ctx context.Context, d *doubt) (again bool, err error) {
	list, err := s.lister.Sent(ctx, d.at, d.since, "")
	if err != nil {
		return false, err
	}
	// After the list, so that what it has and nobody posts now is accounted for.
	placed, err := s.accounted(ctx, d.at, d.id)
	if err != nil {
		return false, err
	}
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
	if len(marked) == 0 {
		spare = slices.DeleteFunc(texts, inUse)
	} else if slices.ContainsFunc(marked, inUse) { // else nobody knows which of them is
		spare = slices.DeleteFunc(marked, inUse)
	}
	s.mu.Unlock()
	if busy {
		return true, nil
	}
	for _, m := range spare {
		if err := s.lister.(Withdrawer).Withdraw(ctx, d.at, m.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		s.log.Info("a message that stood there twice is taken away", "channel", d.at.Channel, "message", m.ID)
	}
	return false, nil
}

// accounted are the messages that are noted as something: with the conversations
// that a thread and a text belong to, and with a call.
func (s *Sent) accounted(ctx context.Context, at store.Address, id string) (map[string]bool, error) {
	owner, _, _ := strings.Cut(id, "/")
	owners := []string{owner}
	th, err := s.store.FindThread(ctx, at)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("finding a conversation: %w", err)
	}
	if err == nil {
		owners = append(owners, th.ID)
	}
	known := map[string]bool{}
	for _, owner := range owners {
		places, err := s.store.ListPlaces(ctx, owner)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("reading where messages stand: %w", err)
		}
		maps.Copy(known, named(places))
	}
	return known, nil
}
