package mcp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"nize/store"
)

func (h *fixture) budget(subject, tool string, limit int64) {
	h.t.Helper()
	b := store.Budget{Subject: subject, Tool: tool, Period: store.Daily, Unit: store.InCalls, Limit: limit}
	if err := h.db.PutBudget(h.t.Context(), h.root, b); err != nil {
		h.t.Fatal(err)
	}
}

// used is how much of the budgets of everybody's calls of a pattern mia has used.
func (h *fixture) used(by store.Caller, tool string) int64 {
	h.t.Helper()
	states, err := h.db.BudgetsFor(h.t.Context(), store.Reservation{Tool: tool, Spend: store.Spend{User: by.User}})
	if err != nil || len(states) != 1 {
		h.t.Fatalf("budgets %+v, %v", states, err)
	}
	return states[0].Used
}

// TestCallBudget: a call counts from the start of its execution. A call over the budget is
// refused with the time of its next chance, at the request, the press and the run.
func TestCallBudget(t *testing.T) {
	h := newFixture(t, nil)
	h.budget(store.Everybody, "box:write", 2)
	ask := func(by store.Caller) (*store.Call, error) {
		return h.gateway.Call(t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)})
	}
	must := func(c *store.Call, err error) *store.Call {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := must(ask(h.member))
	must(h.press(h.member, refused, store.Deny))
	if n := h.used(h.member, "box:write"); n != 0 {
		t.Fatalf("a denied call counted: %d", n)
	}
	if c := h.call(h.member, "box:look", `{"what":"x"}`); c.State != store.Done || h.used(h.member, "box:write") != 0 {
		t.Fatalf("another tool: %s", c.State)
	}
	var waiting []*store.Call
	for range 4 {
		waiting = append(waiting, must(ask(h.member)))
	}
	must(h.press(h.member, waiting[0], store.Approve))
	if c := h.wait(waiting[0].ID); c.State != store.Done {
		t.Fatalf("the first is %s: %s", c.State, c.Reason)
	}
	h.runner.fail = &store.CallError{Code: store.CodeTimeout, Message: store.Plain("too late")}
	must(h.press(h.member, waiting[1], store.Approve))
	if c := h.wait(waiting[1].ID); c.State != store.Failed || h.used(h.member, "box:write") != 2 {
		t.Fatalf("one that fails counts: %s, %d", c.State, h.used(h.member, "box:write"))
	}
	h.runner.fail = nil
	_, err := h.press(h.member, waiting[2], store.Approve)
	if want := "Your daily budget of 2 calls of box:write is used up. It resets on "; !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("a press beyond it: %v", err)
	}
	if c, err := h.db.GetCall(t.Context(), waiting[2].ID); err != nil || !c.Waiting() {
		t.Errorf("the call does not wait any more: %s, %v", c.State, err)
	}
	var told *store.CallError
	if _, err := ask(h.member); !errors.As(err, &told) || told.Code != store.CodeRateLimited || !told.Retryable || !strings.Contains(told.Message.String(), "It resets on ") {
		t.Errorf("a call beyond it: %v", err)
	}
	if list := h.events("call.rejected", "box:write"); len(list) != 1 || list[0].Outcome != store.State(store.CodeRateLimited) {
		t.Errorf("events of it: %+v", list)
	}
	must(ask(h.root)) // admins have budgets, too
	h.budget(store.Everybody, "box:write", 3)
	must(h.press(h.member, waiting[2], store.Approve))
	if c := h.wait(waiting[2].ID); c.State != store.Done {
		t.Errorf("with a larger budget: %s: %s", c.State, c.Reason)
	}
}

// TestCallBudgetOfAGroup: only the members of a group share its budget.
func TestCallBudgetOfAGroup(t *testing.T) {
	h := newFixture(t, nil)
	h.group("ops", h.member, h.root)
	h.budget("group:ops", "box:look", 2)
	ask := func(by store.Caller) string {
		_, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)})
		if err != nil {
			return err.Error()
		}
		return "ran"
	}
	for i, by := range []store.Caller{h.member, h.root} {
		if got := ask(by); got != "ran" {
			t.Errorf("call %d: %s", i, got)
		}
	}
	for _, by := range []store.Caller{h.member, h.root} {
		if got := ask(by); !strings.Contains(got, "The daily budget of group ops (2 calls of box:look) is used up. It resets on ") {
			t.Errorf("a third: %s", got)
		}
	}
	if _, err := h.db.EditGroup(t.Context(), h.root, "ops", nil, []string{h.root.User}); err != nil {
		t.Fatal(err)
	}
	if got := ask(h.root); got != "ran" {
		t.Errorf("who has left: %s", got)
	}
}

// TestCallBudgetRace: concurrent calls never exceed the budget, regardless of their
// surface.
func TestCallBudgetRace(t *testing.T) {
	h := newFixture(t, nil)
	h.budget("user:"+h.member.User, "box:*", 10)
	var approved []*store.Call
	for range 10 {
		approved = append(approved, h.call(h.member, "box:write", `{"what":"x"}`))
	}
	var all sync.WaitGroup
	for _, c := range approved {
		all.Go(func() { h.press(h.member, c, store.Approve) }) // some are refused at the press, others later
	}
	for range 30 {
		all.Go(func() {
			h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)})
		})
	}
	all.Wait()
	for _, c := range approved {
		if now, err := h.db.GetCall(t.Context(), c.ID); err != nil || now.Waiting() {
			continue
		}
		h.wait(c.ID)
	}
	if n := h.runner.runs.Load(); n != 10 {
		t.Errorf("%d calls ran", n)
	}
	if n := h.used(h.member, "box:look"); n != 10 {
		t.Errorf("%d are counted", n)
	}
}
