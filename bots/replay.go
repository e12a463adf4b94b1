package bots

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/store"
)

// After a restart or an outage of the platform, nize posts what was stored but not shown.
// The store knows the affected conversations ([store.Backlog]), and each posted message has
// a name under which its place was recorded.

// loadBehind marks the conversations that may lack messages.
func (c *Conversation) loadBehind(ctx context.Context) error {
	if c.o.Backlog == nil {
		return nil
	}
	behind, err := c.o.Backlog.LaggingThreads(ctx)
	if err != nil {
		return fmt.Errorf("reading what chats lack: %w", err)
	}
	for id, from := range behind {
		c.wake(id, func(t *thread) { t.behind = &from })
	}
	return nil
}

// showMissed posts what the chat may lack of a conversation, except messages whose place is
// known. It returns false if the conversation could not be read.
func (t *thread) showMissed(ctx context.Context, sc *outbox.Screen) bool {
	t.c.mu.Lock()
	from := t.behind
	t.behind = nil
	t.c.mu.Unlock()
	if from == nil {
		return true
	}
	err := t.c.showAgain(ctx, sc, *from)
	if err == nil {
		return true
	}
	t.c.logUnlessEnded(ctx, "showing what the chat lacks", err)
	t.c.mu.Lock()
	t.behind = from
	t.c.mu.Unlock()
	return false
}

// showAgain posts, in order, everything from turn from on that has no place yet, and the
// cards in their current state.
func (c *Conversation) showAgain(ctx context.Context, sc *outbox.Screen, from int) error {
	turns, err := c.o.Threads.Turns(ctx, sc.Thread)
	if err != nil {
		return fmt.Errorf("reading a conversation: %w", err)
	}
	placed, err := sc.Resume(ctx)
	if err != nil {
		return err
	}
	if _, lasts := sc.Platform.(outbox.Finder); !lasts || len(turns) == 0 {
		return nil // a terminal that attaches reads the conversation itself
	}
	since := turns[len(turns)-1].At
	for _, turn := range turns {
		if turn.N >= from && turn.At.Before(since) {
			since = turn.At
		}
	}
	calls, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Thread: sc.Thread, Limit: maxCalls})
	if err != nil {
		return fmt.Errorf("reading the calls of a conversation: %w", err)
	}
	slices.SortStableFunc(calls, func(a, b store.Call) int { return cmp.Compare(a.ID, b.ID) })
	cards := func(until time.Time) {
		for len(calls) > 0 && (until.IsZero() || calls[0].Created.Before(until)) {
			call := calls[0]
			calls = calls[1:]
			late := !call.Created.Before(since) || !call.Finished.IsZero() && !call.Finished.Before(since)
			if late && !call.Expires.IsZero() { // people were asked to approve it
				sc.Decided(call)
				sc.Card(call.ID)
				c.copies.Bring(call.ID)
			}
		}
	}
	for i, turn := range turns {
		if turn.N < from {
			continue
		}
		if turn.Role == store.FromTool {
			if err := (results{c.o.Calls, c.o.ViewLink}).showOf(ctx, sc, turn.CallID); err != nil {
				return err
			}
		}
		if turn.Role == store.FromModel || turn.Role == store.FromNize {
			cards(turn.At)
			if asker, ok := askerAt(turns, turn.Re); ok {
				sc.SetAsker(asker)
			}
			c.showTurn(sc, turn, placed)
			if i == len(turns)-1 && placed[store.TurnID(turn.Thread, turn.N)].Message != "" {
				sc.AnsweredBefore(turn, placed)
			}
		}
	}
	cards(time.Time{})
	return nil
}

// askerAt returns the author of the message at position n.
func askerAt(turns []store.Turn, n int) (store.Asker, bool) {
	for _, t := range turns {
		if t.N == n && t.Role == store.FromUser {
			return store.Asker{User: t.By.User, Identity: t.By.Identity, At: t.At}, true
		}
	}
	return store.Asker{}, false
}

// showTurn posts a stored turn, unless all of it has a place.
func (c *Conversation) showTurn(s *outbox.Screen, turn store.Turn, placed map[string]store.Address) {
	id := store.TurnID(turn.Thread, turn.N)
	shown := hasWords(store.WithRemark(turn.Text, turn.Said.String()))
	if placed[id].Message != "" || !shown {
		offered := placed[outbox.ShareID(turn.N)].Message != ""
		if turn.For != "" && shown && !offered && s.Shared() && turn.Role == store.FromModel && len(turn.Calls) == 0 {
			s.Put(s.Offer(turn.N, turn.For, false))
		}
		return
	}
	p := store.Progress{Kind: "turn", Turn: id, Stored: id, Text: turn.Text, Said: turn.Said, Finish: turn.Finish, Ends: len(turn.Calls) == 0, For: turn.For, Re: turn.Re}
	if turn.Role == store.FromNize {
		p.Kind = "notice"
	}
	newTurnView(c, s, true).tell(p)
}

// upToDate records that the chat is complete once everything, including the thread's state,
// is sent.
func (t *thread) upToDate(ctx context.Context, sc *outbox.Screen, th store.Thread) {
	t.c.mu.Lock()
	lacks := t.behind != nil
	t.c.mu.Unlock()
	if t.c.o.Backlog == nil || lacks || th.Address.Channel == "" {
		return
	}
	turns, err := t.c.o.Threads.Turns(ctx, t.id)
	if err != nil {
		t.c.logUnlessEnded(ctx, "reading a conversation", err)
		return
	}
	if len(turns) > 0 {
		sc.CaughtUp(turns[len(turns)-1].N + 1)
	}
}
