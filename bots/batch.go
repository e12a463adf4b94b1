package bots

import (
	"context"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/store"
)

// Batcher is implemented by a [Platform] whose threads several people read: if a thread
// would get more answers than the limit within a minute, further messages wait and are
// answered together.
type Batcher interface {
	// Batch returns how many answers per minute a thread at that address gets; 0 means no
	// limit.
	Batch(in store.Address) int
}

// batchTime is the span of [Batcher.Batch].
const batchTime = time.Minute

// holdsForBatch reports whether the thread's messages have to wait. If they do, it
// schedules another step for the time when an answer is allowed again.
func (t *thread) holdsForBatch(ctx context.Context, sc *outbox.Screen, th store.Thread) bool {
	b, ok := sc.Platform.(Batcher)
	if !ok {
		return false
	}
	most := b.Batch(sc.To)
	if most <= 0 {
		return false
	}
	now := t.c.o.Now()
	if !t.counted {
		t.counted = true
		if now.Sub(th.Updated) < batchTime {
			t.answers = t.c.countAnswers(ctx, t.id)
		}
	}
	for len(t.answers) > 0 && now.Sub(t.answers[0]) >= batchTime {
		t.answers = t.answers[1:]
	}
	if len(t.answers) < most {
		return false
	}
	t.batch = true
	t.c.heldBack.Advance(t.id, t.answers[0].Add(batchTime))
	return true
}

// countAnswers returns when the turns began that count against the limit, including one in
// progress. It reads them from the store, so a restart doesn't lift the limit.
func (c *Conversation) countAnswers(ctx context.Context, thread string) (began []time.Time) {
	turns, err := c.o.Threads.Turns(ctx, thread)
	if err != nil {
		c.logUnlessEnded(ctx, "counting the answers of a thread", err)
		return nil
	}
	answered := map[int]bool{} // keyed by the message's position in the thread
	for _, turn := range turns {
		if turn.Role == store.FromModel && len(turn.Calls) == 0 || turn.Final {
			answered[turn.Re] = true
		}
	}
	for _, turn := range slices.Backward(turns) {
		if turn.Role == store.FromUser {
			answered[turn.N] = true // the newest message is answered or will be
			break
		}
	}
	for _, turn := range turns {
		if turn.Role == store.FromUser && answered[turn.N] {
			began = append(began, turn.At)
		}
	}
	return began
}

// sayBatch also gives the agent the messages of the same author that waited behind the one
// just taken, so that one turn answers all of them.
func (t *thread) sayBatch(ctx context.Context, sc *outbox.Screen) {
	if !t.batch {
		return
	}
	t.batch = false
	t.c.mu.Lock()
	author := t.asker.User
	t.c.mu.Unlock()
	for {
		it, ok := t.nextMessage()
		if !ok || it.in.By.User != author || ctx.Err() != nil {
			return
		}
		t.sayNext(ctx, sc, it)
	}
}
