package mcp

import (
	"sync"
	"time"
)

// tasks are what goes on in the background while Run does: calls that the worker
// runs, timers of calls that wait, and what is learned.
type tasks struct {
	running sync.WaitGroup

	mu      sync.Mutex
	timers  map[string]*time.Timer // by call id: for the reminder, then the expiry
	stopped bool                   // Run is ending: nothing but an approved call starts any more
}

// run does f in the background, unless Run is ending.
func (t *tasks) run(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.running.Go(f)
	}
}

// setTimer does f for a call later, in the place of what was to be done for it.
func (t *tasks) setTimer(id string, after time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
	}
	if t.stopped {
		return
	}
	t.timers[id] = time.AfterFunc(max(0, after), func() { t.run(f) })
}

func (t *tasks) stopTimer(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
		delete(t.timers, id)
	}
}

// stop stops all timers, and that anything more starts.
func (t *tasks) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for id, timer := range t.timers {
		timer.Stop()
		delete(t.timers, id)
	}
}
