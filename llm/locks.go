package llm

import (
	"context"
	"sync"
)

// Locks serializes the work on each thread. Its zero value is ready to use.
type Locks struct {
	mu    sync.Mutex // guards locks
	locks map[string]*threadLock
}

// threadLock serializes the work on one thread.
type threadLock struct {
	token   chan struct{} // capacity 1: a successful send takes the lock
	waiting int           // workers that hold the lock or wait for it; guarded by Locks.mu
}

// Lock locks a thread; leave unlocks it. Its only error is the cause of ctx's end.
func (l *Locks) Lock(ctx context.Context, thread string) (leave func(), err error) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*threadLock{}
	}
	lock := l.locks[thread]
	if lock == nil {
		lock = &threadLock{token: make(chan struct{}, 1)}
		l.locks[thread] = lock
	}
	lock.waiting++
	l.mu.Unlock()
	out := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lock.waiting--; lock.waiting == 0 {
			delete(l.locks, thread)
		}
	}
	select {
	case lock.token <- struct{}{}:
		return func() { <-lock.token; out() }, nil
	case <-ctx.Done():
		out()
		return nil, context.Cause(ctx)
	}
}
