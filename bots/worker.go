package bots

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"nize/bots/phrases"
	"nize/store"
)

// The scheduling of workers: which thread is worked on, and when. step.go has the steps
// themselves.

// threadLocked returns the thread's entry, creating it if needed; c.mu is held.
func (c *Conversation) threadLocked(id string) *thread {
	t := c.threads[id]
	if t == nil {
		if len(c.threads) >= maxThreads {
			c.tidyLocked()
		}
		t = &thread{c: c, id: id}
		c.threads[id] = t
	}
	return t
}

// tidyLocked drops inactive threads; c.mu is held.
func (c *Conversation) tidyLocked() {
	for id, t := range c.threads {
		if !t.scheduled && t.behind == nil && !t.parked && len(t.queue) == 0 && (t.screen == nil || t.screen.Idle()) {
			delete(c.threads, id)
		}
	}
}

// dropGone drops the entry of a conversation that was erased. If a worker has it,
// tidyLocked drops it later.
func (c *Conversation) dropGone(ctx context.Context, id string) {
	c.mu.Lock()
	known := c.threads[id] != nil
	c.mu.Unlock()
	if !known {
		return
	}
	if _, err := c.o.Threads.GetThread(ctx, id); !errors.Is(err, store.ErrNotFound) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.threads[id]; t != nil && !t.scheduled && !t.parked && len(t.queue) == 0 {
		delete(c.threads, id)
	}
}

// wake records an event of a thread and makes a worker process it.
func (c *Conversation) wake(id string, note func(*thread)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threadLocked(id)
	if note != nil {
		note(t)
	}
	c.wakeLocked(t)
}

// wakeLocked makes a worker process a thread; c.mu is held.
func (c *Conversation) wakeLocked(t *thread) {
	t.dirty = true
	if !t.scheduled {
		t.scheduled = true
		c.ready = append(c.ready, t)
	}
	c.spawnLocked()
}

// spawnLocked starts workers for ready threads, if Run is running; c.mu is held.
func (c *Conversation) spawnLocked() {
	for c.life != nil && c.workers < c.o.AtOnce && len(c.ready) > 0 {
		t := c.ready[0]
		c.ready = c.ready[1:]
		c.workers++
		ctx := c.life
		c.wg.Go(func() { c.work(ctx, t) })
	}
}

// start runs f in a goroutine that Run waits for. It returns false if Run is not running.
func (c *Conversation) start(f func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == nil {
		return false
	}
	ctx := c.life
	c.wg.Go(func() { f(ctx) })
	return true
}

// work takes steps in t, then in other ready threads.
func (c *Conversation) work(ctx context.Context, t *thread) {
	for t != nil {
		c.mu.Lock()
		t.dirty = false
		c.mu.Unlock()
		again := ctx.Err() == nil && t.guardedStep(ctx)
		t = c.next(ctx, t, again)
	}
}

// next reschedules t if needed and returns the next thread to work on, or nil to end the
// worker.
func (c *Conversation) next(ctx context.Context, t *thread, again bool) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (again || t.dirty) && ctx.Err() == nil {
		c.ready = append(c.ready, t) // at the end, after the others
	} else {
		t.scheduled = false
	}
	if len(c.ready) == 0 || ctx.Err() != nil {
		c.workers--
		return nil
	}
	t = c.ready[0]
	c.ready = c.ready[1:]
	return t
}

// guardedStep takes one step; a panic ends only that turn.
func (t *thread) guardedStep(ctx context.Context) (again bool) {
	defer func() {
		if r := recover(); r != nil {
			t.c.o.Log.Error("a turn panicked", "thread", t.id, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			t.failed = true
			t.c.mu.Lock()
			t.cancel = nil
			sc := t.screen
			t.c.mu.Unlock()
			if sc != nil {
				sc.Error(sc.Words().Say(phrases.TurnFailed))
			}
			again = false
		}
	}()
	return t.step(ctx)
}
