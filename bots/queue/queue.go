// Package queue holds keys until they are due and gives each to a function then.
//
// It is for work that comes again and may be asked for many times before it is
// done: what is asked for twice is done once, a key is never worked on twice at
// the same time, and what is asked for while it is worked on is done once more.
package queue

import (
	"context"
	"math"
	"sync"
	"time"
)

// Queue is such a queue. All methods may be called concurrently.
type Queue[K comparable] struct {
	now  func() time.Time
	poke chan struct{} // holds 1: what is due first may be another

	mu   sync.Mutex // guards what follows
	due  map[K]time.Time
	busy map[K]struct{} // keys that are worked on
}

// New returns an empty queue that tells the time by now.
func New[K comparable](now func() time.Time) *Queue[K] {
	return &Queue[K]{now: now, poke: make(chan struct{}, 1), due: map[K]time.Time{}, busy: map[K]struct{}{}}
}

// Set makes a key due at that time, whenever it was due before.
func (q *Queue[K]) Set(k K, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due[k] = due
	q.wake()
}

// Advance makes a key due at that time unless it is due earlier.
func (q *Queue[K]) Advance(k K, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if have, ok := q.due[k]; ok && !due.Before(have) {
		return
	}
	q.due[k] = due
	q.wake()
}

// Drop takes a key off. Work on it that has begun goes on.
func (q *Queue[K]) Drop(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, k)
}

// Due says when a key is due, if it is.
func (q *Queue[K]) Due(k K) (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due, ok := q.due[k]
	return due, ok
}

// Has says whether a key is due at some time or is worked on now.
func (q *Queue[K]) Has(k K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, due := q.due[k]
	_, busy := q.busy[k]
	return due || busy
}

// Run gives each key that is due to do, at most atOnce at the same time (0 is
// all), until ctx ends; then it waits for what it began. A key is taken off
// before it is worked on, so that do may set it again. One Run at a time.
func (q *Queue[K]) Run(ctx context.Context, atOnce int, do func(ctx context.Context, k K)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var fired time.Time // what the timer was set for is due when it fires, whatever now says
	for ctx.Err() == nil {
		k, at, wait := q.take(atOnce, fired)
		fired = time.Time{}
		if wait == 0 {
			if atOnce == 1 {
				do(ctx, k)
				q.end(k)
				continue
			}
			wg.Go(func() {
				defer q.end(k)
				do(ctx, k)
			})
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			fired = at
		case <-q.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// forEver is how long Run waits where nothing is due.
const forEver = time.Duration(math.MaxInt64)

// take returns the key that is due first, of those that nobody works on, when
// that is, and how long until then: 0 for one that is due now, or was at fired,
// and is taken off.
func (q *Queue[K]) take(atOnce int, fired time.Time) (first K, at time.Time, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := false
	for k, due := range q.due {
		if _, busy := q.busy[k]; !busy && (!found || due.Before(at)) {
			first, at, found = k, due, true
		}
	}
	if !found || atOnce > 0 && len(q.busy) >= atOnce {
		return first, at, forEver
	}
	if wait = at.Sub(q.now()); wait > 0 && at.After(fired) {
		return first, at, wait
	}
	delete(q.due, first)
	q.busy[first] = struct{}{}
	return first, at, 0
}

// end notes that a key is not worked on any more.
func (q *Queue[K]) end(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, k)
	q.wake()
}

func (q *Queue[K]) wake() {
	select {
	case q.poke <- struct{}{}:
	default:
	}
}
