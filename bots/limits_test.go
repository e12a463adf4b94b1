package bots_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"nize/store"
)

// limits are the settings of a test.
func limits(turns, messages string) store.Defaults {
	return store.Defaults{"limits.user.turns": turns, "limits.user.messages": messages}
}

// streams waits until a hanging turn has sent that text.
func (o *office) streams(text string) {
	o.t.Helper()
	_, err := o.memory.See(o.ctx, func(all []store.Message) bool {
		return slices.ContainsFunc(all, func(m store.Message) bool { return m.Kind == store.TextMessage && strings.Contains(m.Text, text) })
	})
	if err != nil {
		o.t.Fatalf("waiting for %q: %v; log %s", text, err, o.log)
	}
}

// Two turns of a person run; the third waits, is reported once, and runs when one of them
// has ended. Another person's turn doesn't wait.
func TestTurnsAtOnce(t *testing.T) {
	o := newOfficeWith(t, limits("2", "0"))
	a, b, third := o.thread(), o.thread(), o.thread()
	o.say(a, "1", "slow first")
	o.say(b, "2", "slow second")
	o.streams("first")
	o.streams("second")
	o.say(third, "3", "say at last")
	o.see(store.NoticeMessage, "the limit of 2 turns at once")
	if pending, err := o.db.Pending(o.ctx); err != nil || len(pending) != 1 {
		t.Errorf("%d messages wait in the inbox, %v; want the third", len(pending), err)
	}
	if o.agent.Said("say at last") != 0 {
		t.Error("the third was taken up")
	}
	ann := o.by
	o.by = store.Caller{User: "01BOB", Name: "bob", Surface: store.OnTerminal}
	o.say(o.thread(), "4", "say something else")
	o.see(store.TextMessage, "something else")
	o.by = ann
	if err := o.Stop(o.ctx, ann, a); err != nil {
		t.Fatal(err)
	}
	o.see(store.TextMessage, "at last")
	told := 0
	shown, err := o.memory.See(o.ctx, func([]store.Message) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shown {
		if strings.Contains(m.Text, "the limit of 2 turns at once") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// A stop also ends a message that waits for its turn.
func TestStopOfAWaitingTurn(t *testing.T) {
	o := newOfficeWith(t, limits("1", "0"))
	a, b := o.thread(), o.thread()
	o.say(a, "1", "slow first")
	o.streams("first")
	o.say(b, "2", "say never")
	o.see(store.NoticeMessage, "the limit of 1 turns at once")
	if err := o.Stop(o.ctx, o.by, b); err != nil {
		t.Fatal(err)
	}
	o.see(store.NoticeMessage, "Stopped")
	if err := o.Stop(o.ctx, o.by, a); err != nil {
		t.Fatal(err)
	}
	o.say(a, "3", "say the end")
	o.see(store.TextMessage, "the end")
	if o.agent.Said("say never") != 0 {
		t.Error("what was stopped was answered")
	}
}

// However many messages arrive at once, a person gets the allowed number accepted; a
// redelivery doesn't count, and other people have their own limit.
func TestMessagesInAWhile(t *testing.T) {
	o := newOfficeWith(t, limits("0", "5/1h"))
	thread := o.thread()
	o.say(thread, "k0", "say hello")
	for range 3 { // the platform redelivers it
		if fresh, err := o.Message(o.ctx, store.Inbound{Key: "k0", Thread: thread, By: o.by, Text: "say hello"}); fresh || err != nil {
			t.Fatalf("a repeated delivery: %v, %v", fresh, err)
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = o.Message(o.ctx, store.Inbound{Key: "x" + string(rune('a'+i)), Thread: thread, By: o.by, Text: "say hello"})
		})
	}
	wg.Wait()
	taken := 0
	for _, err := range errs {
		switch {
		case err == nil:
			taken++
		case !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "5 messages within 1h,") || !strings.Contains(err.Error(), "the next is taken in"):
			t.Errorf("refused with %v", err)
		}
	}
	if taken != 4 {
		t.Errorf("%d of 20 were taken, want 4", taken)
	}
	for _, by := range []store.Caller{{User: "01BOB", Surface: store.OnTerminal}, store.System} {
		if _, err := o.Message(o.ctx, store.Inbound{Key: "other" + by.User, Thread: thread, By: by, Text: "say hello"}); err != nil {
			t.Errorf("%s is refused: %v", by.User, err)
		}
	}
}

// The admin at the socket has no limit while the default is in force.
func TestNoLimitAtTheSocket(t *testing.T) {
	for messages, want := range map[string]int{"20/5m": 25, "5/1h": 5} {
		o := newOfficeWith(t, limits("0", messages))
		o.by.Role, o.by.Surface = store.Admin, store.OnTerminal
		taken := 0
		for i := range 25 {
			if _, err := o.Message(o.ctx, store.Inbound{Key: "k" + string(rune('a'+i)), Thread: o.thread(), By: o.by, Text: "say hello"}); err == nil {
				taken++
			}
		}
		if taken != want {
			t.Errorf("%s: %d of 25 were taken, want %d", messages, taken, want)
		}
	}
}
