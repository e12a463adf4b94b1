package mcp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nize/mcp/index"
	"nize/store"
)

// editChannel changes the channel of [house.thread].
func (h *fixture) editChannel(edit func(*store.Channel)) {
	h.t.Helper()
	if _, err := h.db.EditChannel(h.t.Context(), h.root, "slack:T1:C1", edit); err != nil {
		h.t.Fatal(err)
	}
}

// TestChannelServers: a channel's server list narrows search, descriptions and calls in it
// at once, also in running conversations, and has no effect elsewhere.
func TestChannelServers(t *testing.T) {
	h := newFixture(t, nil)
	ctx, in := t.Context(), h.thread("in")
	there, place := store.Scope{Thread: in}, store.Scope{Place: "slack:T1:C1"}
	waiting := h.callIn(in, h.member, `{"what":"x"}`)
	usable := func(scope store.Scope) bool {
		t.Helper()
		_, err := h.gateway.Discovery.Describe(ctx, h.member, scope, "box:write")
		found, ferr := h.gateway.Discovery.Search(ctx, h.member, scope, index.Query{Text: "write something down", TopK: 5})
		why, werr := h.gateway.Policy.Explain(ctx, h.root, h.member, scope, "box:write")
		if ferr != nil || werr != nil {
			t.Fatal(ferr, werr)
		}
		if why.Usable != (err == nil) || why.Usable != (len(found.Hits) > 0) {
			t.Errorf("Why says %v, Describe %v, the search found %d", why.Usable, err, len(found.Hits))
		}
		return err == nil
	}
	if !usable(there) || !usable(place) {
		t.Fatal("not usable in a channel without settings")
	}
	for _, servers := range [][]string{{}, {"other"}} {
		h.editChannel(func(c *store.Channel) { c.Servers = servers })
		if usable(there) || usable(place) {
			t.Errorf("usable where the channel has %q", servers)
		}
		if !usable(store.Scope{}) {
			t.Error("not usable outside the channel")
		}
	}
	w, err := h.gateway.Policy.Explain(ctx, h.root, h.member, place, "box:write")
	if d := decides(w.Rules); err != nil || d.Rule != "channel" || d.Command != "nizectl bots channels set slack:T1:C1 --servers other,box" {
		t.Errorf("%+v, %v", d, err)
	}
	w, err = h.gateway.Policy.Explain(ctx, h.member, h.member, place, "box:write")
	if d := decides(w.Rules); err != nil || d.Rule != "channel" || strings.Contains(fmt.Sprint(w), "other") {
		t.Errorf("a member is told %+v, %v", d, err)
	}
	_, err = h.gateway.Call(ctx, h.member, store.Request{Tool: "box:write", Args: []byte(`{"what":"x"}`), Thread: in})
	var failure *store.CallError
	if !errors.As(err, &failure) || failure.Code != store.CodeRefused {
		t.Errorf("called: %v", err)
	}
	// A waiting call no longer runs, and a channel never widens access.
	if _, err := h.press(h.member, waiting, store.Approve); !errors.Is(err, store.ErrRefused) || h.runner.runs.Load() != 0 {
		t.Errorf("pressed: %v after %d runs", err, h.runner.runs.Load())
	}
	h.editChannel(func(c *store.Channel) { c.Servers = []string{"box"} })
	if !usable(there) {
		t.Error("not usable where the channel names it")
	}
	h.change(func(s *store.Server) { s.Visibility = nil })
	if usable(there) {
		t.Error("the channel widened what is shared")
	}
}

// TestChannelApprovers: the channel's policy at the time of the press applies.
func TestChannelApprovers(t *testing.T) {
	h := newFixture(t, nil)
	ann := h.person("ann")
	h.channel.set([]string{h.member.User, ann.User}, []string{ann.User})
	in := h.thread("in")
	h.editChannel(func(c *store.Channel) { c.Approvers = "channel-admins" })
	if c := h.call(h.member, "box:write", `{"what":"x"}`); c.Policy != store.ByRequester {
		t.Errorf("elsewhere %q decide", c.Policy)
	}

	// A press follows the channel's policy; a change in the meantime voids it.
	c := h.callIn(in, h.member, `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); !errors.Is(err, store.ErrRefused) || err.Error() != "only admins of the channel (ann) can decide this" || h.runner.runs.Load() != 0 {
		t.Errorf("its requester pressed: %v", err)
	}
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Errorf("the channel's admin pressed: %v", err)
	}
	if got := h.wait(c.ID); got.State != store.Done {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
	c = h.callIn(in, h.member, `{"what":"x"}`)
	h.editChannel(func(c *store.Channel) { c.Approvers = "channel" })
	if _, err := h.press(ann, c, store.Approve); !errors.Is(err, store.ErrRefused) {
		t.Errorf("pressed by a policy that changed: %v", err)
	}
}

// TestDeciders: the sources of the approval policy take precedence in a fixed order, the
// same for calls and for Why.
func TestDeciders(t *testing.T) {
	h := newFixture(t, nil)
	ann := h.person("ann")
	h.channel.set([]string{h.member.User, ann.User}, []string{ann.User})
	in := h.thread("in")
	policy := func(want store.Policy, rule string) {
		t.Helper()
		c := h.callIn(in, h.member, `{"what":"x"}`)
		if c.Policy != want {
			t.Errorf("the call's policy is %q, want %q", c.Policy, want)
		}
		for _, scope := range []store.Scope{{Thread: in}, {Place: "slack:T1:C1"}} {
			w, err := h.gateway.Policy.Explain(t.Context(), h.root, h.member, scope, "box:write")
			if err != nil {
				t.Fatal(err)
			}
			if d := decides(w.Approval.Deciders); d.Rule != rule || d.Verdict != string(want) {
				t.Errorf("Why says %+v, want the rule %s", d, rule)
			}
			if want == store.ByChannelAdmins && w.Approval.Approvers != "admins of the channel (ann)" {
				t.Errorf("Why says %q decide", w.Approval.Approvers)
			}
		}
	}
	policy("requester", "default")
	h.editChannel(func(c *store.Channel) { c.Approvers = "channel-admins" })
	policy("channel-admins", "channel")

	// A channel's policy does not apply to calls with someone's own credential.
	h.change(func(s *store.Server) { s.Env = map[string]store.Value{"K": {SecretKey: "K"}} })
	policy("admins", "credential")
	h.config.set("approvals.approvers", "admins,channel-admins")
	policy("admins,channel-admins", "setting")
	h.approvers("2 of admins,user:" + ann.User)
	policy(store.Policy("2 of admins,user:"+ann.User), "server")
}
