package bots

import (
	"context"
	"time"

	"nize/store"
)

// Batcher is what a [Platform] implements too where several people read along:
// messages of a thread that would be answered more often than that in a minute
// wait, and are answered together (SPEC 12).
type Batcher interface {
	// Batch is how many answers a minute the thread at that address gets; 0 is
	// as many as there are.
	Batch(in store.Address) int
}

// batchTime is the span of [Batcher.Batch].
const batchTime = time.Minute

// held says whether the thread's messages wait for now. It sees that the
// thread is looked at again when they need not any more.
func (c *Conversation) held(t *thread, sc *screen) bool {
	b, ok := sc.platform.(Batcher)
	if !ok {
		return false
	}
	most := b.Batch(sc.to)
	if most <= 0 {
		return false
	}
	now := c.o.Now()
	for len(t.answers) > 0 && now.Sub(t.answers[0]) >= batchTime {
		t.answers = t.answers[1:]
	}
	if len(t.answers) < most {
		return false
	}
	t.batch = true
	c.mu.Lock()
	wakes := t.waking
	t.waking = true
	c.mu.Unlock()
	if !wakes {
		left := batchTime - now.Sub(t.answers[0])
		c.start(func(ctx context.Context) {
			sleep(ctx, left)
			c.wake(t.id, func(t *thread) { t.waking = false })
		})
	}
	return true
}

// gather says what else of the same author waited together with the message
// that was just taken, so that one turn answers all of it.
func (c *Conversation) gather(ctx context.Context, t *thread, sc *screen) {
	if !t.batch {
		return
	}
	t.batch = false
	c.mu.Lock()
	author := t.asker.User
	c.mu.Unlock()
	for {
		it, ok := c.head(t)
		if !ok || it.in.By.User != author || ctx.Err() != nil {
			return
		}
		c.take(ctx, t, sc, it)
	}
}
