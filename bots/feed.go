package bots

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
	"nize/store/outage"
)

// unlessEnded returns err, or nil if ctx has ended: being stopped during startup is not a
// failure.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// load queues the backlog: unprocessed messages and unanswered threads.
func (c *Conversation) load(ctx context.Context) error {
	items, err := c.o.Inbox.Pending(ctx)
	if err != nil {
		return fmt.Errorf("reading the inbox: %w", err)
	}
	for _, stored := range items {
		if stored.Kind != "message" {
			continue
		}
		it := item{id: stored.ID}
		if err := json.Unmarshal(stored.Payload, &it.in); err != nil {
			c.o.Log.Error("inbox item is unreadable", "item", stored.ID, "err", err)
			c.done(ctx, stored.ID)
			continue
		}
		c.enqueue(it)
	}
	open, err := c.o.Threads.Open(ctx)
	if err != nil {
		return fmt.Errorf("reading open threads: %w", err)
	}
	if err := c.loadCopies(ctx); err != nil {
		return err
	}
	for _, th := range open {
		c.wake(th.ID, nil)
	}
	return nil
}

const (
	// shownLate is the maximum age of calls whose cards may be outdated after the last run.
	shownLate = 10 * time.Minute
	// maxLate limits how many such cards are checked.
	maxLate = 100
)

// catchUp updates the cards of calls that ended shortly before the last run did. That run
// may have ended between the decision and the edit, and a card must not remain pending.
func (c *Conversation) catchUp(ctx context.Context) error {
	if c.o.Places == nil {
		return nil
	}
	calls, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Limit: maxLate, States: []store.State{
		store.Done, store.Failed, store.Refused, store.Expired, store.Cancelled, store.Lost, store.Approved,
	}})
	if err != nil {
		return fmt.Errorf("reading the calls that ended last: %w", err)
	}
	for _, call := range calls {
		if c.o.Now().Sub(call.Finished) > shownLate {
			continue
		}
		if !call.Expires.IsZero() { // people were asked to approve it
			c.copies.Bring(call.ID)
		}
		if call.Thread == "" {
			continue
		}
		if _, err := c.o.Places.GetPlace(ctx, call.Thread, call.ID); err != nil {
			continue // it has no card, or the next change edits it
		}
		th, err := c.o.Threads.GetThread(ctx, call.Thread)
		if err != nil {
			continue // deleted: there is no place to show it
		}
		if sc := c.screenFor(ctx, th); sc != nil {
			sc.Card(call.ID)
			if call.Replaces != "" {
				c.wake(th.ID, func(t *thread) { t.anew = true })
			}
		}
	}
	return nil
}

// follow reads the feed until it ends and keeps *after current.
func (c *Conversation) follow(ctx context.Context, after *store.Seq) error {
	for change, err := range c.o.Feed.Watch(ctx, *after) {
		if err != nil {
			return err
		}
		*after = change.Seq
		if change.Kind == "call" && (change.State == store.Pending || c.copies.Has(change.ID)) {
			c.copies.Bring(change.ID)
		}
		switch {
		case change.Kind == outage.Recovered:
			if err := cmp.Or(c.load(ctx), c.catchUp(ctx)); err != nil {
				c.logUnlessEnded(ctx, "looking at everything again after the database did not answer", err) // an outage that occurs now reports its own end
			}
		case change.Kind == "thread":
			c.dropGone(ctx, change.Thread)
		case change.Kind == "reminder":
			c.remind(ctx, change)
		case change.Kind == "call" && change.Thread != "":
			c.changed(ctx, change)
		case change.Kind == "tools" || change.Kind == "server":
			if err := c.refreshCards(ctx, change.ID); err != nil {
				c.logUnlessEnded(ctx, "bringing the cards of a server up to date", err)
			}
		}
	}
	if ctx.Err() == nil {
		return errors.New("the feed ended")
	}
	return nil
}

// changed updates the card of a changed call, in addition to the worker's updates, and
// wakes the worker when the call is settled.
func (c *Conversation) changed(ctx context.Context, change store.Change) {
	th, err := c.o.Threads.GetThread(ctx, change.Thread)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
			c.o.Log.Error("reading the thread of a changed call", "call", change.ID, "err", err)
		}
		return
	}
	sc := c.screenFor(ctx, th)
	if sc == nil {
		return
	}
	if change.State == store.Pending || sc.Knows(change.ID) {
		sc.Card(change.ID)
	}
	anew := false
	if change.State != store.Pending {
		call, err := c.o.Calls.GetCall(ctx, change.ID)
		if err == nil && !call.Expires.IsZero() {
			sc.Card(change.ID) // a card exists only if the call once waited, possibly before a restart
		}
		anew = err == nil && call.Replaces != "" && call.State.Final()
	}
	c.wake(change.Thread, func(t *thread) { t.anew = t.anew || anew })
}

// ShowProgress shows a call's progress: a number, and the server's message. If other people
// read the conversation, the message is omitted, because it isn't known yet whether the
// result is private.
func ShowProgress(ctx context.Context, c *Conversation, call store.Call, done, total float64, message string) error {
	th, err := c.o.Threads.GetThread(ctx, call.Thread)
	if err != nil {
		return fmt.Errorf("reading the thread of a call that runs: %w", err)
	}
	sc := c.screenFor(ctx, th)
	if sc == nil {
		return nil
	}
	if sc.Shared() {
		message = ""
	}
	far := ""
	switch {
	case total > 0:
		far = fmt.Sprintf("%.0f %%", 100*min(max(done/total, 0), 1))
	case done > 0:
		far = fmt.Sprintf("%.4g", done)
	}
	line := strings.TrimSpace(far + " " + Brief(message, maxProgress))
	if line == "" {
		return nil
	}
	sc.Put(store.Message{ID: "tool/" + call.ID, Kind: store.ToolMessage, Tool: &store.ToolLine{Name: call.ToolID(), State: store.Running, Brief: store.Plain(line)}})
	return nil
}

// maxProgress limits a server's progress message, in characters.
const maxProgress = 100

// remind posts one reminder that a call still waits, in its conversation and to each person
// who has a copy of its card and has not answered.
func (c *Conversation) remind(ctx context.Context, change store.Change) {
	call, err := c.o.Calls.GetCall(ctx, change.ID)
	if err != nil || !call.Waiting() {
		return // decided in the meantime
	}
	if th, err := c.o.Threads.GetThread(ctx, change.Thread); err == nil {
		if sc := c.screenFor(ctx, th); sc != nil {
			text, only := sc.Words().Say(phrases.Reminder, Escape(call.ToolID()), Escape(call.ID)), ""
			if call.Question != nil { // others don't learn of it
				text, only = sc.Words().Say(phrases.QuestionReminder, Escape(call.ToolID()), Escape(call.ID)), call.By
			}
			sc.Put(store.Message{ID: "reminder/" + call.ID, Kind: store.NoticeMessage, Text: text, Only: only, Final: true})
		}
	} else if change.Thread != "" {
		c.logUnlessEnded(ctx, "reading the thread of a call that waits", err)
	}
	if c.o.Audience == nil || c.o.Places == nil {
		return
	}
	c.start(func(ctx context.Context) {
		text := func(card store.Card) string { return ReminderText(card, "") }
		if err := queue.Guard(func() error { return c.copies.Remind(ctx, call, text) }); err != nil {
			c.logUnlessEnded(ctx, "reminding of a card", err)
		}
	})
}

// loadCopies finds the calls whose card copies may be outdated: waiting calls, and calls
// that were running when the last run ended.
func (c *Conversation) loadCopies(ctx context.Context) error {
	if c.o.Audience == nil {
		return nil
	}
	for _, q := range []store.CallQuery{ // many may have been lost at some time, and all that wait count
		{States: []store.State{store.Pending}, Limit: maxWaiting},
		{States: []store.State{store.Running, store.Lost}, Limit: maxCalls},
	} {
		calls, err := c.o.Calls.ListCalls(ctx, q)
		if err != nil {
			return fmt.Errorf("reading calls that wait: %w", err)
		}
		for _, call := range calls {
			c.copies.Bring(call.ID)
		}
	}
	return nil
}
