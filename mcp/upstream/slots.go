package upstream

import (
	"container/list"
	"context"
	"sync"
)

// slots bounds how many calls of a server run at once. Callers that have to wait are
// queued by person: a free slot goes to each waiting person in turn, and to one
// person's calls in the order in which they came. So a person who queues a hundred
// calls delays another one's first call by at most one of theirs.
type slots struct {
	mu     sync.Mutex // guards what follows
	most   int
	used   int                   // more than most after that was lowered
	queues map[string]*list.List // of chan struct{}, by person; none is empty
	turns  list.List             // the persons of queues, next first
}

func newSlots(most int) *slots { return &slots{most: most, queues: map[string]*list.List{}} }

// resize changes how many may run. Calls under way go on.
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
	case <-granted: // also if ctx has ended: the call says so
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
	case <-granted: // at the same moment: it goes to the next one
		s.used--
		s.grantLocked()
	default:
		s.removeLocked(person, place)
	}
	return ctx.Err()
}

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.grantLocked()
}

// grantLocked hands out what is free. It needs s.mu.
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

// removeLocked takes a waiting call out. It needs s.mu.
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

// count returns how many may run, run, and wait.
func (s *slots) count() (most, used, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		waiting += queue.Len()
	}
	return s.most, s.used, waiting
}
