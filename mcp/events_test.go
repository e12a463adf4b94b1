package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// events are those of a kind about a call.
func (h *fixture) events(kind, call string) []store.Event {
	h.t.Helper()
	if err := h.db.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	all, err := h.db.Events(h.t.Context(), store.EventQuery{Kind: kind, Limit: 10_000})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []store.Event
	for _, e := range all {
		if e.Subject == call {
			out = append(out, e)
		}
	}
	return out
}

// TestAuditNamesEditor: the audit trail names the person who edited a call, not its
// requester.
func TestAuditNamesEditor(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Approvers = "admins" })
	old := h.call(h.member, "box:write", `{"what":"wrong"}`)
	c, err := h.gateway.Decide(t.Context(), h.root, old.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":"right"}`), Digest: old.Digest})
	if err != nil {
		t.Fatal(err)
	}
	h.wait(c.ID)
	if c.By != h.member.User {
		t.Errorf("the edited call runs for %s", c.By)
	}
	for kind, call := range map[string]string{"call.edit": old.ID, "call.pending": c.ID} {
		if e := h.events(kind, call); len(e) != 1 || e[0].User != h.root.User {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

// TestEditThatCannotWait: an edit over a limit, or one without possible approvers, is
// refused to its editor, and the original call goes on waiting.
func TestEditThatCannotWait(t *testing.T) {
	h := newFixture(t, nil)
	old := h.call(h.member, "box:write", `{"what":"x"}`)
	long, err := json.Marshal(map[string]string{"what": strings.Repeat("y", 70<<10)})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := h.gateway.Decide(t.Context(), h.member, old.ID, store.Decision{Verb: store.Edit, Args: long}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "approvals.max_arguments") {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := h.db.GetCall(t.Context(), old.ID); err != nil || !c.Waiting() {
		t.Fatalf("the call is %s (%s), %v", c.State, c.Reason, err)
	}
	if n := h.refusals(old.ID); n != 1 {
		t.Errorf("%d refusals in the audit", n)
	}
	if _, err := h.press(h.member, old, store.Approve); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(old.ID); c.State != store.Done || h.runner.runs.Load() != 1 {
		t.Errorf("%s after %d runs", c.State, h.runner.runs.Load())
	}
}

// TestApprovedTooLongAgo: a call that was approved just before nized was killed does not
// run after a start days later.
func TestApprovedTooLongAgo(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	h.stop()
	h.open("killed")
	if _, err := h.db.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.ahead.Store(int64(48 * time.Hour))
	h.open("second")
	h.run()
	if got := h.wait(c.ID); got.State != store.Expired || h.runner.runs.Load() != 0 {
		t.Errorf("%s (%s) after %d runs", got.State, got.Reason, h.runner.runs.Load())
	}
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || card.RepeatVerb != store.Again {
		t.Errorf("the card offers %q, %v", card.RepeatVerb, err)
	}
}

// onMCP is the member as a client with a token.
func (h *fixture) onMCP() store.Caller {
	h.t.Helper()
	token, err := h.db.CreateToken(h.t.Context(), h.member, store.Token{Name: "t", User: h.member.User, Audience: "mcp", Prefix: "nize_ab", Hash: [32]byte{1}, Expires: time.Now().Add(time.Hour)}, false)
	if err != nil {
		h.t.Fatal(err)
	}
	by := h.member
	by.Surface, by.Token = store.OnMCP, token.ID
	return by
}

// TestSameCallAtOnce: concurrent identical calls of one token become one call with one
// card.
func TestSameCallAtOnce(t *testing.T) {
	h := newFixture(t, nil)
	by := h.onMCP()
	for round := range 5 {
		ids := make(chan string, 16)
		begin := make(chan struct{})
		for range cap(ids) {
			go func() {
				<-begin
				c, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(fmt.Sprintf(`{"what":"%d"}`, round))})
				if err != nil {
					t.Error(err)
					ids <- ""
					return
				}
				ids <- c.ID
			}()
		}
		close(begin)
		first := <-ids
		for range cap(ids) - 1 {
			if id := <-ids; id != first {
				t.Errorf("round %d: calls %s and %s", round, first, id)
			}
		}
	}
	if waiting, err := h.db.ListCalls(t.Context(), store.CallQuery{Waiting: true}); err != nil || len(waiting) != 5 {
		t.Errorf("%d calls wait, %v", len(waiting), err)
	}
}

// TestJoinsAfterRestart: an identical call of the same token joins one that has waited
// since before a restart, with or without arguments, so that two cards of the same call
// can't both be approved.
func TestJoinsAfterRestart(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.mode", "all")
	free := store.Tool{Server: "box", Name: "go", Description: "Go.", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p"}
	if _, err := h.db.PutTools(t.Context(), h.root, "box", []store.Tool{free}); err != nil {
		t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	by := h.onMCP()
	for _, args := range []string{"", `{"n":1}`} {
		first, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:go", Args: json.RawMessage(args)})
		if err != nil || !first.Waiting() {
			t.Fatalf("%+v, %v", first, err)
		}
		h.stop()
		h.open("second" + args)
		h.run()
		ctx, cancel := context.WithCancel(t.Context())
		joined := make(chan *store.Call, 1)
		on := make(chan struct{}, 100)
		go func() {
			c, err := h.gateway.Execute(ctx, by, store.Request{Tool: "box:go", Args: json.RawMessage(args)}, func(_, _ float64, _ string) { on <- struct{}{} })
			if err != nil {
				t.Errorf("the second: %v", err)
			}
			joined <- c
		}()
		<-on
		if _, err := h.press(h.member, first, store.Approve); err != nil {
			t.Error(err)
		}
		select {
		case c := <-joined:
			if c == nil || c.ID != first.ID || c.State != store.Done {
				t.Errorf("with %q: %+v", args, c)
			}
		case <-time.After(time.Minute):
			t.Errorf("with %q the second call waits for another yes", args)
		}
		cancel()
	}
}

// TestEditIsNoBlindYes: an edit counts as its editor's approval only of what they saw and
// wrote. If the tool changed since the card, or the new arguments cause a warning, a new
// card asks for approval.
func TestEditIsNoBlindYes(t *testing.T) {
	h := newFixture(t, nil)
	edit := func(old *store.Call, args string) *store.Call {
		t.Helper()
		c, err := h.gateway.Decide(t.Context(), h.member, old.ID, store.Decision{Verb: store.Edit, Digest: old.Digest, Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	warned := edit(h.call(h.member, "box:write", `{"what":"pay"}`), `{"what":"p\u0430y"}`)
	if !warned.Waiting() || len(warned.Warnings) != 1 {
		t.Errorf("new arguments that look like others: %s, %q", warned.State, warned.Warnings)
	}
	again := edit(warned, ` { "what" : "p\u0430y", "n":1 }`) // the warning was already on the card
	if h.wait(again.ID).State != store.Done {
		t.Errorf("after the warning was shown: %s", again.State)
	}
	old := h.call(h.member, "box:write", `{"what":"x"}`)
	h.putTools("pin-2")
	changed := edit(old, `{"what":"y"}`)
	if !changed.Waiting() || changed.Pin != "pin-2" {
		t.Errorf("another definition: %s, %s", changed.State, changed.Pin)
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
	if _, err := h.press(h.member, changed, store.Approve); err != nil || h.wait(changed.ID).State != store.Done {
		t.Errorf("a press on its card: %v", err)
	}
}
