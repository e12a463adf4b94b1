package upstream

import (
	"container/list"
	"context"
	"sync"
)

// slots limits how many calls of a server run at once. Callers that have to wait are queued
// by person: free slots go to the waiting persons in turn, and to one person's calls in
// order of arrival. So a person who queues a hundred calls delays another person's first
// call by at most one of theirs.
type slots struct {
	mu     sync.Mutex // guards the fields below
	most   int
	used   int                   // greater than most after most was lowered
	queues map[string]*list.List // of chan struct{}, by person; none is empty
	turns  list.List             // the keys of queues, next first
}

func newSlots(most int) *slots { return &slots{most: most, queues: map[string]*list.List{}} }

// resize changes how many calls may run. Running calls continue.
func (s *slots) resize(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = most
	s.grantLocked()
}

// acquire takes a slot for a person and waits for it if necessary. It returns ctx's
// error if that ends first; otherwise the caller must release the slot.
func (s *slots) acquire(ctx context.Context, person string) error {
	s.mu.Lock()
	queue := s.queues[person]
	if queue == nil {
		queue = list.New()
		s.queues[person] = queue
		s.turns.PushBack(person)
	}
	granted := make(chan struct{})
	place := queue.PushBack(granted)
	s.grantLocked()
	s.mu.Unlock()
	select {
	case <-granted: // even if ctx has ended: the call returns its error
		return nil
	default:
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted: // granted at the same moment: pass the slot on
		s.used--
		s.grantLocked()
	default:
		s.removeLocked(person, place)
	}
	return ctx.Err()
}

// release returns a slot.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.grantLocked()
}

// grantLocked grants the free slots. s.mu must be held.
func (s *slots) grantLocked() {
	for s.used < s.most && s.turns.Len() > 0 {
		turn := s.turns.Front()
		person := turn.Value.(string)
		place := s.queues[person].Front()
		s.turns.MoveToBack(turn)
		close(place.Value.(chan struct{}))
		s.used++
		s.removeLocked(person, place)
	}
}

// removeLocked removes a waiting call. s.mu must be held.
func (s *slots) removeLocked(person string, place *list.Element) {
	queue := s.queues[person]
	if queue.Remove(place); queue.Len() > 0 {
		return
	}
	delete(s.queues, person)
	for turn := s.turns.Front(); turn != nil; turn = turn.Next() {
		if turn.Value == person {
			s.turns.Remove(turn)
			return
		}
	}
}

// count returns the limit, the running calls and the waiting calls.
func (s *slots) count() (most, used, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		waiting += queue.Len()
	}
	return s.most, s.used, waiting
}
