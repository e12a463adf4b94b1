package mcp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"nize/store"
)

// disable disables a user's account.
func (h *fixture) disable(by store.Caller) {
	h.t.Helper()
	u, err := h.db.GetUser(h.t.Context(), by.User)
	if err != nil {
		h.t.Fatal(err)
	}
	u.State = store.Disabled
	if err := h.db.PutUser(h.t.Context(), h.root, u); err != nil {
		h.t.Fatal(err)
	}
}

// TestTurnOfWhoLeft: a turn started over HTTP can do nothing once its author is disabled. A
// project has no account that could be disabled.
func TestTurnOfWhoLeft(t *testing.T) {
	h := newFixture(t, nil)
	member := h.person("mia")
	member.Surface = store.OnHTTP
	if _, err := h.gateway.Policy.View(t.Context(), member, store.Scope{}); err != nil {
		t.Fatal(err)
	}
	h.disable(member)
	var refused *store.CallError
	if _, err := h.gateway.Policy.View(t.Context(), member, store.Scope{}); !errors.As(err, &refused) || refused.Code != store.CodeRefused {
		t.Errorf("a disabled person may still: %v", err)
	}
	of := store.Caller{User: "project:01ARZ3NDEKTSV4RRFFQ69G5FAV", Role: store.Member, Surface: store.OnHTTP}
	if _, err := h.gateway.Policy.View(t.Context(), of, store.Scope{}); err != nil {
		t.Errorf("a project may not: %v", err)
	}
}

// TestLastApproverLeaves: a waiting call is refused with a reason as soon as its last
// possible approver is disabled, but not while the approvers are unknown.
func TestLastApproverLeaves(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob, cid, eve := h.person("ann"), h.person("bob"), h.person("cid"), h.person("eve")
	h.group("ops", bob, cid)
	h.thread("in")
	h.channel.set(nil, []string{eve.User})
	asks := func(policy string) string {
		h.approvers(policy)
		c := h.callIn("in", h.member, `{"what":"x"}`)
		if c.State != store.Pending {
			t.Fatalf("%s: %s (%s)", policy, c.State, c.Reason)
		}
		return c.ID
	}
	one, two, channel, mine := asks("user:"+ann.User), asks("2 of group:ops"), asks("channel-admins"), asks("requester")
	h.channel.breaks(true)
	h.disable(ann)
	if c := h.wait(one); c.State != store.Refused || !strings.Contains(c.Reason.String(), "nobody can approve it now") {
		t.Errorf("the only approver left: %s (%s)", c.State, c.Reason)
	}
	if _, err := h.db.EditGroup(t.Context(), h.root, "ops", nil, []string{cid.User}); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(two); c.State != store.Refused || !strings.Contains(c.Reason.String(), "only 1 of the required 2") {
		t.Errorf("one of two left: %s (%s)", c.State, c.Reason)
	}
	for name, id := range map[string]string{"of a channel that can't be looked up": channel, "of its requester": mine} {
		if c, err := h.db.GetCall(t.Context(), id); err != nil || !c.Waiting() {
			t.Errorf("the call %s is %s (%s), %v", name, c.State, c.Reason, err)
		}
	}
	h.channel.set(nil, nil)
	h.channel.breaks(false)
	h.disable(eve) // triggers a check of the waiting calls
	if c := h.wait(channel); c.State != store.Refused {
		t.Errorf("the channel's last admin left: %s (%s)", c.State, c.Reason)
	}
}

// TestTaintStays: a conversation stays tainted after the server that tainted it is removed
// or trusted, regardless of the number of later calls.
func TestTaintStays(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.UntrustedOutput = true })
	h.thread("t")
	h.config.set("approvals.mode", "none")
	if c := h.callIn("t", h.member, `{"what":"x"}`); c.State != store.Done || !c.Taints {
		t.Fatalf("before: %s, taints %v", c.State, c.Taints)
	}
	h.change(func(s *store.Server) { s.UntrustedOutput = false })
	if c := h.callIn("t", h.member, `{"what":"x"}`); c.State != store.Pending || len(c.Warnings) != 1 {
		t.Errorf("after the server is trusted: %s, %q", c.State, c.Warnings)
	}
	other := store.Server{Name: "other", Transport: store.Stdio, Command: "/bin/other", Visibility: []string{"all"}}
	if _, err := h.db.PutServer(t.Context(), h.root, other, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.PutTools(t.Context(), h.root, "other", []store.Tool{{Server: "other", Name: "do", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p"}}); err != nil {
		t.Fatal(err)
	}
	if err := h.db.DeleteServer(t.Context(), h.root, "box"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"box", "other"} {
		if err := h.gateway.Catalog.Refresh(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "other:do", Thread: "t"})
	if err != nil || c.State != store.Pending {
		t.Errorf("after the server is gone: %+v, %v", c, err)
	}
	if c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "other:do", Thread: h.thread("u")}); err != nil || c.State != store.Done {
		t.Errorf("in another conversation: %+v, %v", c, err)
	}
}

// TestMixedPresses: a hundred concurrent presses of all kinds lead to one decision and at
// most one execution, and every refusal is in the audit trail.
func TestMixedPresses(t *testing.T) {
	for round := range 8 {
		h := newFixture(t, nil)
		ann, eve := h.person("ann"), h.person("eve")
		h.approvers("user:" + ann.User + ",requester")
		c := h.call(h.member, "box:write", `{"what":"x"}`)
		decisions := []store.Decision{
			{Verb: store.Approve}, {Verb: store.Deny}, {Verb: store.Cancel}, {Verb: store.Edit, Args: json.RawMessage(`{"what":"y"}`)},
			{Verb: store.Deny, Always: true}, {Verb: store.Approve, Always: true}, {Verb: store.RunAll}, {Verb: store.Retry}, {Verb: store.Again},
			{Verb: store.Approve, Digest: strings.Repeat("0", 64)},
		}
		surfaces := []store.Surface{store.OnSlack, store.OnTerminal, store.OnCLI}
		var won, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			by, d := []store.Caller{h.member, ann, eve}[i%3], decisions[(i+round)%len(decisions)]
			by.Surface = surfaces[i%len(surfaces)]
			if d.Digest == "" {
				d.Digest = c.Digest
			}
			all.Go(func() {
				switch _, err := h.gateway.Decide(t.Context(), by, c.ID, d); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrRefused):
					refused.Add(1)
				default:
					t.Errorf("%s: %v", d.Verb, err)
				}
			})
		}
		all.Wait()
		got := h.wait(c.ID)
		if got.Successor != "" {
			got = h.wait(got.Successor)
		}
		runs := h.runner.runs.Load()
		if ran := got.State == store.Done; won.Load() != 1 || runs > 1 || ran != (runs == 1) || len(got.Decisions) > 1 {
			t.Errorf("%d presses won; %s after %d runs, decisions %+v", won.Load(), got.State, runs, got.Decisions)
		}
		if n := h.refusals(c.ID); int64(n) != refused.Load() || n != 99 {
			t.Errorf("%d refusals are in the audit, %d were told", n, refused.Load())
		}
		if _, err := h.db.VerifyEvents(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
