package bots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
	"nize/store/backoff"
	"nize/store/outage"
)

// sayTries is how often a message is given to the agent before its author learns that it
// was not accepted.
const sayTries = 4

// maxCalls limits how many unfinished calls of a thread a step reads.
const maxCalls = 1000

// maxWaiting is more calls than can wait (approvals.max_waiting).
const maxWaiting = 1 << 20

// step does the next thing in the thread and reports whether there is more to do now. Only
// one step of a thread runs at a time.
func (t *thread) step(ctx context.Context) bool {
	th, err := t.c.o.Threads.GetThread(ctx, t.id)
	if err != nil {
		t.orphaned(ctx, err)
		return false
	}
	sc := t.c.screenFor(ctx, th)
	if sc == nil {
		return false
	}
	if !t.showMissed(ctx, sc) {
		return false // the next step or the next start retries
	}
	if stop := t.takeStop(); stop != nil {
		t.sayUpTo(ctx, sc, stop.upTo)
		t.stopTurn(ctx, sc, stop.by)
		t.showCardsAndState(ctx, sc)
		return true
	}
	it, ok := t.nextMessage()
	if ok && t.dropReplaced(ctx, it) {
		return true
	}
	if ok && t.holdsForBatch(ctx, sc, th) { // until a minute has passed
		if !th.Open {
			sc.ShowState(outbox.Working) // show that the message was received
			return false
		}
		ok = false // continue what was asked before
	}
	if ok {
		// Even while calls wait: the agent knows their owner and cancels them or queues the
		// message.
		end, ok := t.c.begin(t, it.in.By.User)
		if !ok {
			t.tellWaits(sc, it.id)
			return false // until a slot is free
		}
		defer end()
		sc.ShowState(outbox.Working)
		if t.sayNext(ctx, sc, it) {
			t.sayBatch(ctx, sc)
			t.answers = append(t.answers, t.c.o.Now())
			if !t.runTurn(ctx, sc) {
				return false
			}
			t.tellHeld(ctx, sc, it.in)
		}
		if _, more := t.nextMessage(); more {
			return true
		}
		return t.showCardsAndState(ctx, sc)
	}
	t.c.mu.Lock()
	anew := t.anew
	t.c.mu.Unlock()
	if th.Open && !t.failed || anew {
		calls, err := t.c.unfinished(ctx, t.id)
		if err == nil && len(calls) == 0 {
			t.findAsker(ctx, sc)
			end, ok := t.c.begin(t, t.askerOf())
			if !ok {
				return false // until a slot is free
			}
			defer end()
			t.c.mu.Lock()
			t.anew = false
			t.c.mu.Unlock()
			sc.ShowState(outbox.Working)
			if !t.runTurn(ctx, sc) {
				return false
			}
		}
	}
	return t.showCardsAndState(ctx, sc) // otherwise the feed wakes us
}

// showCardsAndState shows the waiting cards and the thread's state. It reports whether the
// agent has more to do: a call may have ended since it last checked, and followers of the
// thread take Idle as the end of the turn.
func (t *thread) showCardsAndState(ctx context.Context, sc *outbox.Screen) (more bool) {
	th, err := t.c.o.Threads.GetThread(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading a thread", err)
		return false
	}
	if !th.Open || t.failed {
		t.waits = nil
		sc.ShowState(outbox.Idle)
		t.upToDate(ctx, sc, th)
		return false
	}
	calls, err := t.c.unfinished(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading the calls of a thread", err)
		return false
	}
	if len(calls) > 0 {
		t.rested = 0
	} else {
		turns, err := t.c.o.Threads.Turns(ctx, t.id)
		if err != nil {
			t.c.logUnlessEnded(ctx, "reading a conversation", err)
			return false
		}
		if len(turns) != t.rested {
			t.rested = len(turns)
			return true
		}
	}
	state := outbox.Idle // nothing runs or waits: the agent is done
	var waits []string
	for _, call := range slices.Backward(calls) { // they are sorted newest first
		if call.State == store.Pending {
			sc.Card(call.ID) // repeating it is cheap
			waits = append(waits, call.ID)
		}
		switch {
		case call.Waiting():
			state = outbox.Waiting
		case state == outbox.Idle:
			state = outbox.Working
		}
	}
	t.updateCopies(waits)
	sc.ShowState(state)
	t.upToDate(ctx, sc, th)
	return false
}

// updateCopies updates the copies of cards if the set of waiting calls changed: a card says
// how many calls of its step can be approved together.
func (t *thread) updateCopies(waits []string) {
	was := t.waits
	t.waits = waits
	if slices.Equal(was, waits) || len(was)+len(waits) < 2 {
		return
	}
	for _, id := range waits {
		if t.c.copies.Has(id) {
			t.c.copies.Bring(id)
		}
	}
}

// nextMessage returns the oldest waiting message.
func (t *thread) nextMessage() (item, bool) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if len(t.queue) == 0 {
		return item{}, false
	}
	return t.queue[0], true
}

// takeStop returns and clears the stop requested since the last step, if any.
func (t *thread) takeStop() *stopRequest {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	stop := t.stop
	t.stop = nil
	return stop
}

// sayUpTo gives the agent the messages that were queued when the stop was requested, so
// that the stop ends them too.
func (t *thread) sayUpTo(ctx context.Context, sc *outbox.Screen, id string) {
	t.c.mu.Lock()
	n := slices.IndexFunc(t.queue, func(it item) bool { return it.id == id }) + 1
	t.c.mu.Unlock()
	for range n {
		if it, ok := t.nextMessage(); ok {
			t.sayNext(ctx, sc, it)
		}
	}
}

// orphaned handles a thread that can't be read.
func (t *thread) orphaned(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrNotFound) {
		t.c.logUnlessEnded(ctx, "reading a thread", err)
		return
	}
	for { // the thread was deleted: drop its messages
		it, ok := t.nextMessage()
		if !ok {
			return
		}
		t.c.done(ctx, it.id)
		t.dropMessage(it.id)
	}
}

func (t *thread) dropMessage(id string) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if len(t.queue) > 0 && t.queue[0].id == id {
		t.queue = t.queue[1:]
	}
}

func (c *Conversation) unfinished(ctx context.Context, thread string) ([]store.Call, error) {
	return c.o.Calls.ListCalls(ctx, store.CallQuery{
		Thread: thread, Limit: maxCalls,
		States: []store.State{store.Planned, store.Pending, store.Running},
	})
}

// unlessFull returns the message for an error that is not the user's fault, or the one
// about a full disk, because an admin has to free space.
func unlessFull(key phrases.Key, err error) phrases.Key {
	if errors.Is(err, store.ErrDiskFull) {
		return phrases.DiskFull
	}
	return key
}

// cancelAll cancels the waiting calls. If one can't be cancelled, that is logged; it
// expires by itself.
func (c *Conversation) cancelAll(ctx context.Context, calls []store.Call, by store.Caller) {
	for _, call := range calls {
		if !call.Waiting() {
			continue
		}
		_, err := c.o.Approver.Decide(ctx, by, call.ID, store.Decision{
			Verb: store.Cancel, By: by.User, Name: by.Name, Surface: by.Surface,
			At: c.o.Now(), Digest: call.Digest, Reason: store.Textf("the turn was stopped"), Auto: true,
		})
		if err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) {
			c.logUnlessEnded(ctx, "cancelling a waiting call", err)
		}
	}
}

// sayNext gives the message to the agent and marks it done once that is durable. It returns
// false if there is nothing to work on.
func (t *thread) sayNext(ctx context.Context, sc *outbox.Screen, it item) bool {
	turn, err := t.c.say(ctx, it.in)
	if err != nil && (ctx.Err() != nil || outage.Is(err)) {
		return false // still in the inbox: the next step or the next start takes it
	}
	t.c.done(ctx, it.id)
	t.dropMessage(it.id)
	t.failed = false
	if err != nil {
		t.c.o.Log.Error("a message could not be taken", "thread", t.id, "item", it.id, "err", err)
		sc.Error(sc.Words().Say(unlessFull(phrases.TurnUnsaid, err)))
		return false
	}
	asker := store.Asker{User: it.in.By.User, Identity: it.in.By.Identity, At: turn.At} // the same value that findAsker reads after a restart
	t.c.mu.Lock()
	t.asker = asker
	t.c.mu.Unlock()
	sc.SetAsker(asker)
	t.rewritten(it.in)
	return true
}

// tellHeld informs the author of a message that it waits for a call of theirs that others
// decide. The web page shows this before the message is sent.
func (t *thread) tellHeld(ctx context.Context, sc *outbox.Screen, in store.Inbound) {
	if in.By.Surface == store.OnWeb {
		return
	}
	calls, err := t.c.unfinished(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading the calls of a thread", err)
		return
	}
	turns, err := t.c.o.Threads.Turns(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading a conversation", err)
		return
	}
	said := slices.IndexFunc(turns, func(o store.Turn) bool { return o.Role == store.FromUser && o.Key == in.Key })
	for _, c := range calls {
		before := said >= 0 && slices.ContainsFunc(turns[:said], func(o store.Turn) bool {
			return slices.ContainsFunc(o.Calls, func(tc store.ToolCall) bool { return tc.ID == c.ID })
		})
		if before && c.Waiting() && c.By == in.By.User {
			sc.Notice(sc.Words().Say(phrases.TurnHeld, Escape(c.ToolID())))
			return
		}
	}
}

// dropReplaced drops a message if the queue contains its replacement.
func (t *thread) dropReplaced(ctx context.Context, it item) bool {
	t.c.mu.Lock()
	replaced := slices.ContainsFunc(t.queue, func(o item) bool { return o.in.Instead == it.in.Key && o.in.By.User == it.in.By.User })
	t.c.mu.Unlock()
	if replaced {
		t.c.done(ctx, it.id)
		t.dropMessage(it.id)
	}
	return replaced
}

// rewritten informs the platform about a stored message that replaced another or has files.
func (t *thread) rewritten(in store.Inbound) {
	if p, ok := t.c.platforms[in.By.Surface].(Rewriter); ok && (in.Instead != "" || len(in.Files) > 0) {
		p.Rewritten(in.Thread)
	}
}

// say calls Agent.Say and retries transient errors.
func (c *Conversation) say(ctx context.Context, in store.Inbound) (turn store.Turn, err error) {
	pause := backoff.Exponential{First: 250 * time.Millisecond}
	for try := 1; ; try++ {
		err = queue.Guard(func() (err error) {
			turn, err = c.o.Agent.Say(ctx, in.By, in)
			return err
		})
		var broken *queue.PanicError
		lasting := errors.As(err, &broken) || errors.Is(err, store.ErrNotFound) ||
			errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrRefused)
		if err == nil || lasting || try == sayTries || queue.Sleep(ctx, pause.After(try)) != nil {
			return turn, err
		}
	}
}

// runTurn lets the agent work until it answered or waits. It returns false if the database
// is unavailable, whose return the feed reports, or if another nized owns it by now.
func (t *thread) runTurn(ctx context.Context, sc *outbox.Screen) bool {
	turnCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.c.mu.Lock()
	stopped := t.stop != nil
	if !stopped {
		t.cancel = cancel
	}
	t.c.mu.Unlock()
	if stopped {
		return true // the next step handles the stop
	}
	t.findAsker(ctx, sc)
	show := newTurnView(t.c, sc, t.c.whole(ctx, t.id))
	err := queue.Guard(func() error { return t.c.o.Agent.Work(turnCtx, t.id, show.tell) })
	failed, noticed := show.end()
	t.failed, t.noticed = failed, noticed
	t.c.mu.Lock()
	t.cancel = nil
	t.c.mu.Unlock()
	if err == nil || ctx.Err() != nil || context.Cause(turnCtx) == errStopped {
		return true
	}
	if outage.Is(err) {
		t.c.o.Log.Warn("a turn goes on when the database answers again", "thread", t.id, "err", err)
		return false
	}
	t.failed = true
	t.c.o.Log.Error("a turn could not go on", "thread", t.id, "err", err)
	if !failed {
		sc.Error(sc.Words().Say(unlessFull(phrases.TurnFailed, err)))
	}
	return true
}

// findAsker reads whose message is being answered, if a restart lost it.
func (t *thread) findAsker(ctx context.Context, sc *outbox.Screen) {
	t.c.mu.Lock()
	known := t.asker.User != ""
	t.c.mu.Unlock()
	if known {
		return
	}
	turns, err := t.c.o.Threads.Turns(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading who is answered", err)
		return
	}
	for _, turn := range slices.Backward(turns) {
		if turn.Role == store.FromUser {
			asker := store.Asker{User: turn.By.User, Identity: turn.By.Identity, At: turn.At}
			t.c.mu.Lock()
			t.asker = asker
			t.c.mu.Unlock()
			sc.SetAsker(asker)
			return
		}
	}
}

// askerOf returns the user whose message is being answered.
func (t *thread) askerOf() string {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.asker.User
}

// stopTurn ends the turn of a thread for good: it cancels waiting calls and appends a
// notice, so that no restart continues the turn. A call that already runs is left to
// finish.
func (t *thread) stopTurn(ctx context.Context, sc *outbox.Screen, by store.Caller) {
	calls, err := t.c.unfinished(ctx, t.id)
	stored := ""
	if err == nil {
		t.c.cancelAll(ctx, calls, by)
		stored, err = t.c.closeTurn(ctx, t.id, by, phrases.For("").Say(phrases.TurnStopped)) // models read this text, so it is not translated
	}
	t.failed = false
	if err != nil {
		t.c.logUnlessEnded(ctx, "stopping a turn", err)
		sc.Error(sc.Words().Say(unlessFull(phrases.TurnFailed, err)))
		return
	}
	if !t.noticed { // the agent has not posted a notice itself
		sc.Say(store.Message{ID: stored, Kind: store.NoticeMessage, Text: sc.Words().Say(phrases.TurnStopped)})
	}
	t.noticed = false
}

// closeTurn appends nize's closing notice if the thread is still open, and returns the id
// of that turn. Queued messages of other people stay unanswered, and the thread stays open
// for them.
func (c *Conversation) closeTurn(ctx context.Context, id string, by store.Caller, text string) (stored string, err error) {
	for range 10 { // retry if another writer appends at the same time
		th, err := c.o.Threads.GetThread(ctx, id)
		if err != nil || !th.Open {
			return "", err
		}
		turns, err := c.o.Threads.Turns(ctx, id)
		if err != nil {
			return "", err
		}
		re, rest := stoppedTurn(turns)
		err = c.o.Threads.Append(ctx, by, store.Turn{
			Thread: id, N: len(turns), Role: store.FromNize, Text: text, Final: true, Re: re, At: c.o.Now(),
		}, rest)
		switch {
		case err == nil:
			return store.TurnID(id, len(turns)), nil
		case !errors.Is(err, store.ErrExists):
			return "", err
		}
	}
	return "", fmt.Errorf("closing a turn: %w", store.ErrConflict)
}

// stoppedTurn returns the last message of the turn that a stop ends: the first unanswered
// one and those of the same author that directly follow. rest reports whether messages of
// other people follow.
func stoppedTurn(turns []store.Turn) (re int, rest bool) {
	answered := -1
	for _, turn := range turns {
		if turn.Role == store.FromModel && len(turn.Calls) == 0 || turn.Final {
			answered = max(answered, turn.Re)
		}
	}
	author := ""
	for _, turn := range turns {
		switch {
		case turn.Role != store.FromUser || turn.N <= answered:
		case author == "" || turn.By.User == author:
			author, re = turn.By.User, turn.N
		default:
			return re, true
		}
	}
	return max(re, answered, 0), false
}

// logUnlessEnded logs err unless it only reports the end of Run.
func (c *Conversation) logUnlessEnded(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		c.o.Log.Error(what, "err", err)
	}
}
