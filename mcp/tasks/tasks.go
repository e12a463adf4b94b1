// Package tasks runs what goes on in the background of the gateway, and ends it
// with it.
package tasks

import (
	"sync"
	"time"
)

// Group is what goes on in the background while the gateway's Run does: calls that
// the worker runs, timers of calls that wait, and what is learned. The zero
// value is ready.
type Group struct {
	Running sync.WaitGroup

	mu      sync.Mutex
	timers  map[string]*time.Timer // by call id: for the reminder, then the expiry
	stopped bool                   // Run is ending: nothing but an approved call starts any more
}

// Run does f in the background, unless Run is ending.
func (t *Group) Run(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.Running.Go(f)
	}
}

// SetTimer does f for a call later, in the place of what was to be done for it.
func (t *Group) SetTimer(id string, after time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
	}
	if t.stopped {
		return
	}
	if t.timers == nil {
		t.timers = map[string]*time.Timer{}
	}
	t.timers[id] = time.AfterFunc(max(0, after), func() { t.Run(f) })
}

// StopTimer keeps what was to be done for a call from being done.
func (t *Group) StopTimer(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
		delete(t.timers, id)
	}
}

// Stop stops all timers, and that anything more starts.
func (t *Group) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for id, timer := range t.timers {
		timer.Stop()
		delete(t.timers, id)
	}
}
