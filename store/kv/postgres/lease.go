package postgres

import (
	"context"
	"sync"
	"time"
)

// leaseTime is how long after an answered heartbeat an engine may answer from its cache. It
// is shorter than idleLock, after which the server lets another engine take over, and both
// count from the same heartbeat.
const leaseTime = idleLock - beat

// lease is the time in which no other engine can own the database, by this machine's
// monotonic time. A suspended machine may not count that time, so a lease also ends by the
// wall clock. A lost connection of the lock ends it at once.
type lease struct {
	mu    sync.Mutex // guards the fields below
	until time.Time
	term  context.Context // ends with the lease; the next lease has another one
	end   context.CancelFunc
	timer *time.Timer // ends it
}

// ended is the term of an engine without a lease.
var ended = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// renew extends the lease after a heartbeat that was sent at sent and has been answered.
func (l *lease) renew(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = sent.Add(leaseTime)
	left := time.Until(l.until)
	if left <= 0 {
		return // the answer came too late; the timer ends the term
	}
	if l.term == nil || l.term.Err() != nil {
		l.term, l.end = context.WithCancel(context.Background())
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.lapse)
	} else {
		l.timer.Reset(left)
	}
}

// lapse ends the lease unless it was renewed meanwhile.
func (l *lease) lapse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.holdsLocked() {
		l.end()
	}
}

// revoke ends the lease.
func (l *lease) revoke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
	if l.timer != nil {
		l.timer.Stop()
		l.end()
	}
}

func (l *lease) holdsLocked() bool {
	now := time.Now()
	return now.Before(l.until) && now.Round(0).Before(l.until.Round(0))
}

func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holdsLocked()
}

// Current reports whether this engine holds its lease, so that no other engine can own the
// database.
func (e *Engine) Current() bool {
	select {
	case <-e.taken:
		return false
	default:
		return e.lease.holds()
	}
}

// Term returns a context that ends with the lease, at the latest when another engine may
// take over.
func (e *Engine) Term() context.Context {
	e.lease.mu.Lock()
	defer e.lease.mu.Unlock()
	if e.lease.term == nil || !e.lease.holdsLocked() {
		return ended
	}
	return e.lease.term
}
