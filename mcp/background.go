package mcp

import (
	"sync"
	"time"
)

// taskGroup is what goes on in the background while the gateway's Run does: calls that
// the worker runs, timers of calls that wait, and what is learned. The zero
// value is ready.
type taskGroup struct {
	Running sync.WaitGroup

	mu      sync.Mutex
	timers  map[string]*time.Timer // by call id: for the reminder, then the expiry
	stopped bool                   // Run is ending: nothing but an approved call starts any more
}

// Run does f in the background, unless Run is ending.
func (t *taskGroup) Run(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.Running.Go(f)
	}
}

// SetTimer does f for a call later, in the place of what was to be done for it.
func (t *taskGroup) SetTimer(id string, after time.Duration, f func()) {
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
func (t *taskGroup) StopTimer(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
		delete(t.timers, id)
	}
}

// Stop stops all timers, and that anything more starts.
func (t *taskGroup) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for id, timer := range t.timers {
		timer.Stop()
		delete(t.timers, id)
	}
}
