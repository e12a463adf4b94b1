package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nize/store"
)

// trail returns the full text of the audit trail.
func (h *fixture) trail() string {
	h.t.Helper()
	if err := h.db.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	events, err := h.db.Events(h.t.Context(), store.EventQuery{Limit: 10_000})
	if err != nil {
		h.t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range events {
		all.Write(e.Data)
	}
	return all.String()
}

// A call is private if its server is marked private or it uses a credential of its
// requester. Neither its card nor the audit trail shows the result.
func TestPrivateCalls(t *testing.T) {
	h := newFixture(t, nil)
	said := func(n int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"the balance is %d"}]}`, n))
	}
	h.runner.raw = said(42)
	text := func(c *store.Call) (private bool, card string) {
		t.Helper()
		shown, err := h.gateway.Card(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Private && shown.Private, shown.Outcome.String()
	}
	open := h.call(h.member, "box:look", `{"what":"a"}`)
	if err := h.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if private, outcome := text(open); private || !strings.Contains(outcome, "42") {
		t.Errorf("a call like others: private %v, %q", private, outcome)
	}

	h.change(func(s *store.Server) { s.Private = true })
	marked := h.call(h.member, "box:look", `{"what":"b"}`)
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: store.Plain("no account of Zork")}
	failed := h.call(h.member, "box:look", `{"what":"c"}`)
	if err := h.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*store.Call{marked, failed} {
		if private, outcome := text(c); !private || strings.ContainsAny(outcome, "47") {
			t.Errorf("of a private server: private %v, %q", private, outcome)
		}
	}
	if failed.State != store.Failed || !strings.Contains(failed.Result.Text(), "of Zork") {
		t.Errorf("its requester reads %+v", failed)
	}
	h.runner.fail, h.runner.raw = nil, said(43)
	again := h.call(h.member, "nize:read_result", `{"call":"`+marked.ID+`"}`)
	if !again.Private || !strings.Contains(again.Result.Text(), "42") {
		t.Errorf("read on in a private result: %+v", again)
	}

	// The server is marked while the call waits: the result is private all the same.
	h.change(func(s *store.Server) { s.Private = false })
	waits := h.callIn("", h.member, `{"what":"x"}`)
	h.change(func(s *store.Server) { s.Private = true })
	if _, err := h.press(h.member, waits, store.Approve); err != nil {
		t.Fatal(err)
	}
	if done := h.wait(waits.ID); done.State != store.Done || !done.Private {
		t.Errorf("marked while it waited: %+v", done)
	}
	h.change(func(s *store.Server) { s.Private = false })

	// The requester's own credential.
	h.change(func(s *store.Server) { s.Env = map[string]store.Value{"KEY": {SecretKey: "KEY"}} })
	shared := store.CredentialKey{Scope: "system", Service: "box", Name: "KEY"}
	own := store.CredentialKey{Scope: "user", Owner: h.member.User, Service: "box", Name: "KEY"}
	for key, want := range map[store.CredentialKey]bool{shared: false, own: true} {
		if h.runner.raw = said(42); want {
			h.runner.raw = said(43)
		}
		if err := h.db.PutCredential(t.Context(), h.root, store.Credential{CredentialKey: key, Secret: store.NewSecret("s")}); err != nil {
			t.Fatal(err)
		}
		if got := h.call(h.member, "box:look", `{"what":"d"}`).Private; got != want {
			t.Errorf("with the credential of %q: private %v", key.Scope, got)
		}
		if got, err := h.gateway.Policy.ReturnsPrivately(t.Context(), h.member, "box:look"); err != nil || got != want {
			t.Errorf("what is told: %v, %v", got, err)
		}
		if err := h.db.DeleteCredential(t.Context(), h.root, key); err != nil {
			t.Fatal(err)
		}
	}

	// A call proposed in a private turn, and its replacement.
	h.change(func(s *store.Server) { s.Env = nil })
	c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"y"}`), Asked: store.Asked{InPrivateTurn: true}})
	if err != nil || !c.Private || !c.InPrivateTurn {
		t.Fatalf("%+v, %v", c, err)
	}
	edited, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":"z"}`), Digest: c.Digest})
	if err != nil || !edited.Private || !edited.InPrivateTurn {
		t.Errorf("%+v, %v", edited, err)
	}
	for _, secret := range []string{"balance is 43", "of Zork"} {
		if strings.Contains(h.trail(), secret) {
			t.Errorf("the trail tells %q", secret)
		}
	}
	if !strings.Contains(h.trail(), "balance is 42") { // of the first call
		t.Error("the trail does not tell of what is not private")
	}
}
