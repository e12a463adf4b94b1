package bots

import (
	"context"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/store"
)

// Batcher is what a [Platform] implements too where several people read along:
// messages of a thread that would be answered more often than that in a minute
// wait, and are answered together.
type Batcher interface {
	// Batch is how many answers a minute the thread at that address gets; 0 is
	// as many as there are.
	Batch(in store.Address) int
}

// batchTime is the span of [Batcher.Batch].
const batchTime = time.Minute

// holdsForBatch says whether the thread's messages wait for now. It sees that the
// thread is looked at again when they need not any more.
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

// countAnswers reads from what is stored when the turns of a thread began whose
// answers count, also one that is under way: a restart is no way around the
// limit.
func (c *Conversation) countAnswers(ctx context.Context, thread string) (began []time.Time) {
	turns, err := c.o.Threads.Turns(ctx, thread)
	if err != nil {
		c.logUnlessEnded(ctx, "counting the answers of a thread", err)
		return nil
	}
	answered := map[int]bool{} // the place of the message
	for _, turn := range turns {
		if turn.Role == store.FromModel && len(turn.Calls) == 0 || turn.Final {
			answered[turn.Re] = true
		}
	}
	for _, turn := range slices.Backward(turns) {
		if turn.Role == store.FromUser {
			answered[turn.N] = true // it has its answer, or will have
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

// sayBatch says what else of the same author waited together with the message
// that was just taken, so that one turn answers all of it.
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
