// Package follow passes events to readers that may be slower than their source.
//
// Each reader has a [Queue]. A source adds events and never waits. An event may replace an
// older one that its reader has not taken yet, so that what changes often is read once. If
// too much waits for a reader, its queue is dropped, and the reader must read the state
// again ([ErrBehind]).
package follow

import (
	"context"
	"errors"
	"slices"
	"sync"
)

var (
	// ErrBehind is returned if a reader must read the state again, because it was too slow.
	ErrBehind = errors.New("too slow: read again")
	// ErrEnded is returned after the last event.
	ErrEnded = errors.New("the events have ended")
)

// Options configure a [Queue]. Its fields are optional.
type Options[E any] struct {
	// Replaces reports whether a new event replaces an older one. If inPlace is true, it
	// takes the older one's position, else the last.
	Replaces func(older, newer E) (replaces, inPlace bool)
	// Size returns the size of an event.
	Size func(E) int
	// MostEvents and MostSize limit what may wait; 0 is no limit.
	MostEvents, MostSize int
}

// Queue holds the events that wait for one reader. Any goroutine may add events; one reads
// them.
type Queue[E any] struct {
	opt Options[E]

	mu     sync.Mutex // guards the fields below
	items  []item[E]
	size   int
	behind bool
	ended  bool
	news   chan struct{} // capacity 1: something has changed since the reader looked
}

type item[E any] struct {
	event E
	size  int
}

// NewQueue returns a queue with its first events, to which the limits don't apply.
func NewQueue[E any](opt Options[E], first ...E) *Queue[E] {
	q := &Queue[E]{opt: opt, news: make(chan struct{}, 1)}
	for _, e := range first {
		q.items = append(q.items, item[E]{event: e})
	}
	return q
}

// Add adds an event. It does nothing if the reader must read the state again.
func (q *Queue[E]) Add(e E) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.behind || q.ended {
		return
	}
	one := item[E]{event: e}
	if q.opt.Size != nil {
		one.size = q.opt.Size(e)
	}
	q.size += one.size
	if !q.replaceLocked(one) {
		q.items = append(q.items, one)
	}
	if over(len(q.items), q.opt.MostEvents) || over(q.size, q.opt.MostSize) {
		q.dropLocked()
	}
}

// replaceLocked puts an event in the position of the one that it replaces. It returns false
// if there is none, or if it was only removed.
func (q *Queue[E]) replaceLocked(one item[E]) (placed bool) {
	if q.opt.Replaces == nil {
		return false
	}
	for i, older := range slices.Backward(q.items) { // the newest is the likeliest
		replaces, inPlace := q.opt.Replaces(older.event, one.event)
		if !replaces {
			continue
		}
		q.size -= older.size
		if inPlace {
			q.items[i] = one
		} else {
			q.items = slices.Delete(q.items, i, i+1)
		}
		return inPlace
	}
	return false
}

func over(n, most int) bool { return most > 0 && n > most }

func (q *Queue[E]) dropLocked() { q.behind, q.items, q.size = true, nil, 0 }

// Drop makes the reader read the state again.
func (q *Queue[E]) Drop() {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropLocked()
}

// Reset empties the queue: its reader has read the state. A source that could add events
// which the state contains already must be locked out meanwhile.
func (q *Queue[E]) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.behind, q.items, q.size = false, nil, 0
}

// End ends the events. Those that wait can still be taken.
func (q *Queue[E]) End() {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
}

func (q *Queue[E]) wake() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// Next waits for the next event. Its error is ErrBehind until the queue is reset, ErrEnded,
// or the cause of ctx's end.
func (q *Queue[E]) Next(ctx context.Context) (e E, err error) {
	for {
		e, ok, err := q.Take()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-q.news:
		case <-ctx.Done():
			return e, context.Cause(ctx)
		}
	}
}

// Take returns the next event without waiting; ok is false if there is none. Its error is
// ErrBehind or ErrEnded.
func (q *Queue[E]) Take() (e E, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.behind:
		return e, false, ErrBehind
	case len(q.items) > 0:
		one := q.items[0]
		q.items, q.size = q.items[1:], q.size-one.size
		return one.event, true, nil
	case q.ended:
		return e, false, ErrEnded
	}
	return e, false, nil
}
