// Package queue keeps keys until they are due and then calls a function for each.
//
// It is for recurring work that may be requested many times before it is done: repeated
// requests for a key are combined, work for a key never overlaps, and a request during the
// work causes another run.
package queue

import (
	"context"
	"math"
	"sync"
	"time"
)

// Queue is a set of keys with due times. All methods may be called concurrently.
type Queue[K comparable] struct {
	now  func() time.Time
	poke chan struct{} // capacity 1: the first due key may have changed

	mu   sync.Mutex // guards the fields below
	due  map[K]time.Time
	busy map[K]struct{} // keys being worked on
}

// New returns an empty queue that uses now as its clock.
func New[K comparable](now func() time.Time) *Queue[K] {
	return &Queue[K]{now: now, poke: make(chan struct{}, 1), due: map[K]time.Time{}, busy: map[K]struct{}{}}
}

// Set sets a key's due time, whatever it was before.
func (q *Queue[K]) Set(k K, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due[k] = due
	q.wake()
}

// Advance sets a key's due time unless it is due earlier.
func (q *Queue[K]) Advance(k K, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if have, ok := q.due[k]; ok && !due.Before(have) {
		return
	}
	q.due[k] = due
	q.wake()
}

// Drop removes a key. Work for it that has begun continues.
func (q *Queue[K]) Drop(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, k)
}

// Due returns when a key is due, if it is in the queue.
func (q *Queue[K]) Due(k K) (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due, ok := q.due[k]
	return due, ok
}

// Has reports whether a key is in the queue or is being worked on.
func (q *Queue[K]) Has(k K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, due := q.due[k]
	_, busy := q.busy[k]
	return due || busy
}

// Run calls do for each key that is due, at most atOnce at a time (0 is no limit), until
// ctx ends; then it waits for the running calls. A key is removed before the call, so that
// do may set it again. Only one Run may be active at a time.
func (q *Queue[K]) Run(ctx context.Context, atOnce int, do func(ctx context.Context, k K)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var fired time.Time // a key is due when its timer fires, whatever now says
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

// forEver is how long Run waits if the queue is empty.
const forEver = time.Duration(math.MaxInt64)

// take returns the first due key that is not being worked on, its due time, and how long
// until then. If that is 0, because the key is due now or was at fired, the key is removed.
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

// end records that the work for a key has ended.
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
