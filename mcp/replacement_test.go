package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"nize/store"
)

// TestRetry: a failed call is retried only once, regardless of the number of presses. The
// press counts as approval if the presser is an eligible approver.
func TestRetry(t *testing.T) {
	h := newFixture(t, nil)
	ann := h.person("ann")
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: store.Plain("no room")}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Retry); !errors.Is(err, store.ErrDecided) {
		t.Errorf("retrying what waits: %v", err)
	}
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	failed := h.wait(c.ID)
	if failed.State != store.Failed {
		t.Fatalf("state %s", failed.State)
	}
	if _, err := h.press(ann, failed, store.Retry); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody else's retry: %v", err)
	}
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || card.RepeatVerb != store.Retry {
		t.Errorf("the card offers %q, %v", card.RepeatVerb, err)
	}
	h.runner.fail = nil
	var made atomic.Pointer[store.Call]
	var won atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			next, err := h.press(h.member, failed, store.Retry)
			switch {
			case err == nil:
				won.Add(1)
				made.Store(next)
			case !errors.Is(err, store.ErrDecided):
				t.Errorf("retry: %v", err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d retries won", won.Load())
	}
	next := h.wait(made.Load().ID)
	if next.State != store.Done || next.Replaces != c.ID || h.runner.runs.Load() != 2 {
		t.Errorf("the new call: %+v after %d runs", next, h.runner.runs.Load())
	}
	old, err := h.db.GetCall(t.Context(), c.ID)
	if err != nil || old.State != store.Failed || old.Successor != next.ID {
		t.Errorf("the old call: %+v, %v", old, err)
	}
}

func TestRetryAsks(t *testing.T) {
	h := newFixture(t, nil)
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: store.Plain("no room")}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	failed := h.wait(c.ID)
	h.putTools("pin-2")
	next, err := h.press(h.member, failed, store.Retry)
	if err != nil || !next.Waiting() || next.Pin != "pin-2" {
		t.Fatalf("%+v, %v", next, err)
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// TestRetryOfTainted: a retry does not approve a call if untrusted text, which may have
// asked for it, entered the conversation after the card was shown.
func TestRetryOfTainted(t *testing.T) {
	h := newFixture(t, nil)
	thread := h.thread("t")
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: store.Plain("no room")}
	c := h.callIn(thread, h.member, `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	failed := h.wait(c.ID)
	if _, err := h.db.EditThread(t.Context(), h.member, thread, func(th *store.Thread) { th.Tainted = true }); err != nil {
		t.Fatal(err)
	}
	next, err := h.press(h.member, failed, store.Retry)
	if err != nil || !next.Waiting() || len(next.Warnings) != 1 {
		t.Fatalf("%+v, %v", next, err)
	}
	h.runner.fail = nil
	if _, err := h.press(h.member, next, store.Approve); err != nil || h.wait(next.ID).State != store.Done {
		t.Errorf("a press on its card: %v", err)
	}
}

// TestMostWaiting: the waiting calls of one person never exceed the limit, even with
// concurrent requests.
func TestMostWaiting(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.max_pending", "5")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			c := h.call(h.member, "box:write", fmt.Sprintf(`{"what":"%d"}`, i))
			if !c.Waiting() && c.State != store.Refused {
				t.Errorf("%+v", c)
			}
		})
	}
	all.Wait()
	if waiting, err := h.db.ListCalls(t.Context(), store.CallQuery{Waiting: true}); err != nil || len(waiting) != 5 {
		t.Errorf("%d calls wait, %v", len(waiting), err)
	}
	if _, n, err := h.db.CountWaiting(t.Context(), ""); err != nil || n != 5 {
		t.Errorf("%d calls are counted, %v", n, err)
	}
	if c := h.call(h.member, "box:write", `{"what":"x"}`); c.State != store.Refused || !strings.Contains(c.Reason.String(), "approvals.max_pending") {
		t.Errorf("one more of one person: %s %s", c.State, c.Reason)
	}
	if c := h.call(h.root, "box:write", `{"what":"x"}`); !c.Waiting() {
		t.Errorf("another person's: %s %s", c.State, c.Reason)
	}
	h.config.set("approvals.max_waiting", "6")
	if c := h.call(h.root, "box:write", `{"what":"y"}`); c.State != store.Refused || !strings.Contains(c.Reason.String(), "approvals.max_waiting") {
		t.Errorf("one more of everybody: %s %s", c.State, c.Reason)
	}
}

// TestAgain: an expired call can be requested again, and the requester's own press does not
// approve it.
func TestAgain(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.expiry.requester", "1s")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	expired := h.wait(c.ID)
	for n := 0; n < 20 && expired.Reminded.IsZero(); n++ { // in case the machine stalled for half of the time
		c = h.call(h.member, "box:write", `{"what":"x"}`)
		expired = h.wait(c.ID)
	}
	if expired.State != store.Expired || expired.Reminded.IsZero() {
		t.Fatalf("state %s, reminded %s", expired.State, expired.Reminded)
	}
	h.config.set("approvals.expiry.requester", "15m")
	if _, err := h.press(h.member, expired, store.Retry); !errors.Is(err, store.ErrDecided) {
		t.Errorf("a retry of what never ran: %v", err)
	}
	next, err := h.press(h.member, expired, store.Again)
	if err != nil || !next.Waiting() || next.Replaces != c.ID {
		t.Fatalf("%+v, %v", next, err)
	}
	reminders := 0
	for change, err := range h.db.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Kind == "reminder" && change.ID == c.ID {
			reminders++
		}
		if change.ID == next.ID {
			break
		}
	}
	if reminders != 1 {
		t.Errorf("%d reminders", reminders)
	}
}

// TestLost: a call with an unknown outcome can't be retried with a press.
func TestLost(t *testing.T) {
	h := newFixture(t, nil)
	h.runner.fail = &store.CallError{Code: store.CodeUnknown, Message: store.Plain("the connection broke")}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.State != store.Lost {
		t.Fatalf("state %s", got.State)
	}
	for _, verb := range []store.Verb{store.Retry, store.Again, store.Approve, store.RunAll} {
		if _, err := h.press(h.member, c, verb); err == nil {
			t.Errorf("%s was taken", verb)
		}
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// TestRunAll: one press approves exactly those calls of one step that the person may
// approve.
func TestRunAll(t *testing.T) {
	h := newFixture(t, nil)
	h.thread("in")
	var step []*store.Call
	for i := range 3 {
		step = append(step, h.callIn("in", h.member, fmt.Sprintf(`{"what":"%d"}`, i)))
	}
	edited, err := h.gateway.Decide(t.Context(), h.root, h.callIn("in", h.root, `{"what":"root's"}`).ID, store.Decision{Verb: store.Deny})
	if err != nil || edited.State != store.Refused {
		t.Fatal(err)
	}
	roots := h.callIn("in", h.root, `{"what":"root's"}`) // of the same step, but mia may not approve it
	other, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"later"}`), Thread: "in", Step: "in/2"})
	if err != nil {
		t.Fatal(err)
	}
	if card, err := h.gateway.Card(t.Context(), step[0].ID); err != nil || card.Together != 3 {
		t.Errorf("%d wait together, %v", card.Together, err)
	}
	if _, err := h.press(h.member, step[0], store.RunAll); err != nil {
		t.Fatal(err)
	}
	for _, c := range step {
		if got := h.wait(c.ID); got.State != store.Done {
			t.Errorf("a call of the step is %s", got.State)
		}
	}
	for _, c := range []*store.Call{roots, other} {
		if got, err := h.db.GetCall(t.Context(), c.ID); err != nil || !got.Waiting() {
			t.Errorf("%s is %s, %v", got.Args, got.State, err)
		}
	}
	if n := h.runner.runs.Load(); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// TestEditVotes: an edit resets the votes and counts as its editor's approval.
func TestEditVotes(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	h.approvers("2 of group:ops")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	next, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"what":"y"}`)})
	if err != nil || !next.Waiting() || len(next.Yes()) != 0 {
		t.Fatalf("the requester's edit: %+v, %v", next, err)
	}
	last, err := h.gateway.Decide(t.Context(), bob, next.ID, store.Decision{Verb: store.Edit, Digest: next.Digest, Args: json.RawMessage(`{"what":"z"}`)})
	if err != nil || !last.Waiting() || !slices.Equal(last.Yes(), []string{bob.User}) {
		t.Fatalf("an approver's edit: %+v, %v", last, err)
	}
	if _, err := h.press(ann, last, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(last.ID); got.State != store.Done || !strings.Contains(string(got.Result.Raw), `"what":"z"`) || h.runner.runs.Load() != 1 {
		t.Errorf("%s after %d runs: %s", got.State, h.runner.runs.Load(), got.Result.Raw)
	}
}
