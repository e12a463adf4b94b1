package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// TestPrecedence: the strictest rule wins, in the order of askRules.
func TestPrecedence(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	h.group("crew", h.member)
	for _, a := range []store.Agent{
		{ID: "loose", Approval: "none"}, {ID: "strict", Approval: "all"},
		{ID: "shared", Approval: "none", Who: []string{"group:crew"}}, {ID: "plain"},
	} {
		if err := h.db.PutAgent(ctx, h.root, a); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		mode, list, never string
		server            store.Approval
		by                store.Caller
		agent             string
		request           store.Approval
		tool              string
		asks              bool
	}{
		{mode: "auto", by: h.member, tool: "write", asks: true},
		{mode: "auto", by: h.member, tool: "look"},
		{mode: "none", by: h.member, tool: "write"},
		{mode: "all", by: h.member, tool: "look", asks: true},
		{mode: "all", server: store.ApproveNever, by: h.root, agent: "loose", tool: "look", asks: true},
		{mode: "whitelist", list: "box:write", by: h.member, tool: "look"},
		{mode: "whitelist", list: "box:write", by: h.member, server: store.ApproveNever, tool: "write", asks: true},
		{mode: "blacklist", list: "box:write", by: h.member, tool: "look", asks: true},
		{mode: "blacklist", list: "box:write", by: h.member, tool: "write"},
		{mode: "none", server: store.ApproveAlways, by: h.member, tool: "look", asks: true},
		{mode: "auto", server: store.ApproveNever, by: h.member, tool: "write"},
		{mode: "none", agent: "strict", by: h.root, tool: "look", asks: true},
		{mode: "auto", agent: "loose", by: h.root, tool: "write"},
		{mode: "auto", agent: "loose", by: h.member, tool: "write", asks: true},
		{mode: "auto", agent: "shared", by: h.member, tool: "write"},
		{mode: "auto", agent: "plain", by: h.root, tool: "write", asks: true},
		{mode: "whitelist", list: "box:*", agent: "loose", by: h.root, tool: "write", asks: true},
		{mode: "auto", request: store.ApproveNever, by: h.member, tool: "write", asks: true},
		{mode: "auto", request: store.ApproveNever, never: "true", by: h.member, tool: "write"},
		{mode: "all", request: store.ApproveNever, never: "true", by: h.member, tool: "write", asks: true},
		{mode: "none", request: store.ApproveAlways, by: h.member, tool: "look", asks: true},
	} {
		h.config.set("approvals.mode", c.mode)
		h.config.set("approvals.list", c.list)
		h.config.set("approvals.allow_request_never", c.never)
		h.change(func(s *store.Server) { s.Approval = c.server })
		got, err := h.gateway.Call(ctx, c.by, store.Request{Tool: "box:" + c.tool, Args: json.RawMessage(`{"what":"x"}`), Agent: c.agent, Approval: c.request})
		if err != nil {
			t.Fatal(err)
		}
		if (got.State == store.Pending) != c.asks {
			t.Errorf("%d: %+v: the call is %s (%s)", i, c, got.State, got.Reason)
		}
		if got.Waiting() {
			if _, err := h.press(c.by, got, store.Cancel); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTaint: in a tainted conversation, every call that may change something needs
// approval, regardless of the mode and of standing approvals, and no new standing approval
// can be given there.
func TestTaint(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.UntrustedOutput = true })
	h.thread("t")
	h.config.set("approvals.mode", "none")
	if _, err := h.gateway.Policy.AddGrant(t.Context(), h.member, store.Grant{Tool: "box:write"}); err != nil {
		t.Fatal(err)
	}
	if c := h.callIn("t", h.member, `{"what":"x"}`); c.State != store.Done {
		t.Fatalf("before: %s", c.State)
	}
	c := h.callIn("t", h.member, `{"what":"x"}`)
	if c.State != store.Pending || len(c.Warnings) != 1 {
		t.Fatalf("after: %s, warnings %q", c.State, c.Warnings)
	}
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || card.Always {
		t.Errorf("the card offers always: %v", err)
	}
	if _, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Approve, Always: true}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("always: %v", err)
	}
}

// TestGrants: a standing approval replaces the one that mode auto requires, while it
// matches the call and has not expired.
func TestGrants(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	ann := h.person("ann")
	h.channel.set(nil, []string{ann.User})
	h.thread("in")
	asks := func(thread string, by store.Caller, args string) bool {
		c := h.callIn(thread, by, args)
		if c.Waiting() {
			if _, err := h.press(by, c, store.Cancel); err != nil {
				t.Fatal(err)
			}
			return true
		}
		return false
	}
	add := func(by store.Caller, g store.Grant) store.Grant {
		t.Helper()
		g.Tool = "box:write"
		made, err := h.gateway.Policy.AddGrant(ctx, by, g)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	end := func(g store.Grant) {
		if err := h.db.DeleteGrant(ctx, h.root, g.ID); err != nil {
			t.Fatal(err)
		}
	}
	g := add(h.member, store.Grant{Pattern: json.RawMessage(`{"what":"note*"}`)})
	for args, want := range map[string]bool{`{"what":"note 1"}`: false, `{"what":"secret"}`: true} {
		if asks("", h.member, args) != want {
			t.Errorf("with a pattern, %s", args)
		}
	}
	if !asks("", ann, `{"what":"note 1"}`) {
		t.Error("mia's answer holds for ann")
	}
	h.config.set("approvals.grant_destructive", "false")
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes for a tool that may destroy something")
	}
	h.config.set("approvals.grant_destructive", "true")
	h.approvers("admins")
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes of somebody who may not approve any more")
	}
	h.approvers("")
	h.putTools("pin-2")
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes for another definition")
	}
	end(g)

	g = add(h.root, store.Grant{Scope: store.ForEveryone, Expires: time.Now().Add(time.Hour)})
	if asks("", ann, `{"what":"x"}`) {
		t.Error("everywhere does not hold for ann")
	}
	h.ahead.Store(int64(time.Hour))
	if !asks("", ann, `{"what":"x"}`) {
		t.Error("it holds after its end")
	}
	h.ahead.Store(0)
	end(g)
	h.group("ops", ann, h.member, h.root)
	g = add(h.root, store.Grant{Scope: store.ForEveryone})
	h.approvers("2 of group:ops")
	if !asks("", ann, `{"what":"x"}`) {
		t.Error("one person's standing yes stands in for two")
	}
	h.approvers("")
	end(g)

	c := h.callIn("in", ann, `{"what":"x"}`) // a channel's admin, in the channel
	if _, err := h.gateway.Decide(ctx, ann, c.ID, store.Decision{Verb: store.Approve, Always: true, For: store.ForChannel}); err != nil {
		t.Fatal(err)
	}
	h.wait(c.ID)
	if asks("in", h.member, `{"what":"x"}`) || !asks("", h.member, `{"what":"x"}`) {
		t.Error("a channel's standing yes")
	}
	h.channel.set(nil, nil)
	if !asks("in", h.member, `{"what":"x"}`) {
		t.Error("it holds though its giver no longer administers the channel")
	}
	add(h.root, store.Grant{Scope: store.ForEveryone, Deny: true})
	if _, err := h.gateway.Call(ctx, h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)}); !errors.Is(err, store.ErrRefused) || strings.Contains(err.Error(), "revoke") { // a member can't revoke it
		t.Errorf("denied everywhere: %v", err)
	}
}

// TestGrantsRefused: invalid grants are not stored.
func TestGrantsRefused(t *testing.T) {
	h := newFixture(t, nil)
	ann := h.person("ann")
	h.group("ops", ann, h.member)
	for name, c := range map[string]struct {
		policy string
		by     store.Caller
		g      store.Grant
		want   error
	}{
		"an unknown tool":    {"", h.member, store.Grant{Tool: "box:nothing"}, store.ErrNotFound},
		"everywhere":         {"", h.member, store.Grant{Scope: store.ForEveryone}, store.ErrRefused},
		"no channel":         {"", h.root, store.Grant{Scope: store.ForChannel}, store.ErrInvalid},
		"another scope":      {"", h.root, store.Grant{Scope: "world"}, store.ErrInvalid},
		"the past":           {"", h.member, store.Grant{Expires: time.Now().Add(-time.Hour)}, store.ErrInvalid},
		"no pattern":         {"", h.member, store.Grant{Pattern: json.RawMessage(`[1]`)}, store.ErrInvalid},
		"a no with pattern":  {"", h.member, store.Grant{Deny: true, Pattern: json.RawMessage(`{"what":"x"}`)}, store.ErrInvalid},
		"for admins to say":  {"admins", h.member, store.Grant{}, store.ErrRefused},
		"for two to say":     {"2 of group:ops", h.member, store.Grant{}, store.ErrRefused},
		"not for themselves": {"group:ops not requester", h.member, store.Grant{}, store.ErrRefused},
	} {
		h.approvers(c.policy)
		if c.g.Tool == "" {
			c.g.Tool = "box:write"
		}
		if _, err := h.gateway.Policy.AddGrant(t.Context(), c.by, c.g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := h.db.ListGrants(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("stored: %+v, %v", list, err)
	}
}

// TestAlwaysNarrow: a standing approval given with a press applies to the chosen arguments
// and duration, and is stored only if it matches the call.
func TestAlwaysNarrow(t *testing.T) {
	h := newFixture(t, nil)
	press := func(args string, d store.Decision) error {
		c := h.call(h.member, "box:write", args)
		d.Verb, d.Always, d.Digest = store.Approve, true, c.Digest
		_, err := h.gateway.Decide(t.Context(), h.member, c.ID, d)
		if err == nil {
			h.wait(c.ID)
		} else if _, err := h.press(h.member, c, store.Cancel); err != nil {
			t.Fatal(err)
		}
		return err
	}
	runs := func(args string) bool {
		c := h.call(h.member, "box:write", args)
		if c.Waiting() {
			if _, err := h.press(h.member, c, store.Cancel); err != nil {
				t.Fatal(err)
			}
		}
		return c.State == store.Done
	}
	revoke := func() {
		list, err := h.db.ListGrants(t.Context(), "")
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if strings.Contains(string(list[0].Pattern)+list[0].Exact, "the letter") {
			t.Errorf("the arguments stand in the grant: %+v", list[0])
		}
		if err := h.db.DeleteGrant(t.Context(), h.member, list[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, wrong := range []store.Decision{
		{Pattern: json.RawMessage(`{"what":"y*"}`)}, {Pattern: json.RawMessage(`[`)}, {Until: time.Now().Add(-time.Minute)},
	} {
		if err := press(`{"what":"x"}`, wrong); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := press(`{"what":"the letter","n":1}`, store.Decision{Exact: true}); err != nil {
		t.Fatal(err)
	}
	if !runs(`{ "n": 1, "what": "the letter" }`) || runs(`{"what":"the letter","n":2}`) || runs(`{"what":"the letter"}`) {
		t.Error("exactly these arguments")
	}
	revoke()
	if err := press(`{"what":"a1"}`, store.Decision{Pattern: json.RawMessage(`{"what":"a*"}`), Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if !runs(`{"what":"a2"}`) || runs(`{"what":"b"}`) {
		t.Error("a pattern")
	}
	h.ahead.Store(int64(2 * time.Hour))
	if runs(`{"what":"a2"}`) {
		t.Error("it holds after its end")
	}
	revoke()
}

// TestAlwaysAtOnce: a standing answer is stored together with the decision that created it,
// so that a crash can't separate them.
func TestAlwaysAtOnce(t *testing.T) {
	h := newFixture(t, nil)
	for i, verb := range []store.Verb{store.Approve, store.Deny} {
		c := h.call(h.member, "box:write", fmt.Sprintf(`{"what":"%d"}`, i))
		after := h.db.Last()
		decided := make(chan error, 1)
		go func() {
			_, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: verb, Always: true, Exact: verb == store.Approve})
			decided <- err
		}()
		for change, err := range h.db.Watch(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			if change.Kind == "call" && change.ID == c.ID {
				break
			}
		}
		if list, err := h.db.ListGrants(t.Context(), h.member.User); err != nil || len(list) != i+1 {
			t.Errorf("%s is decided, and %d standing answers are kept, %v", verb, len(list), err)
		}
		if err := <-decided; err != nil {
			t.Fatal(err)
		}
		h.wait(c.ID)
		if _, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"y"}`)}); verb == store.Deny && !errors.Is(err, store.ErrRefused) {
			t.Errorf("denied for good, and %v", err)
		}
	}
}

// TestConversationGrants: a standing approval for a conversation, given on a card in it,
// applies only to calls there that its giver may approve.
func TestConversationGrants(t *testing.T) {
	type call struct {
		who, thread, args string
	}
	for name, c := range map[string]struct {
		policy string
		giver  string // of mia's call in the thread "here"
		given  store.Decision
		refuse error // of the decision
		change func(h *fixture)
		runs   []call
		asks   []call
	}{
		"the requester's": {
			giver: "mia", runs: []call{{"mia", "here", `{"what":"x"}`}, {"mia", "here", `{"what":"y"}`}},
			asks: []call{{"mia", "there", `{"what":"x"}`}, {"mia", "", `{"what":"x"}`}, {"ann", "here", `{"what":"x"}`}},
		},
		"an approver's": {
			policy: "admins", giver: "root", runs: []call{{"mia", "here", `{"what":"y"}`}, {"ann", "here", `{"what":"x"}`}},
			asks: []call{{"mia", "there", `{"what":"x"}`}, {"ann", "", `{"what":"x"}`}},
		},
		"a named approver's": {
			policy: "group:ops not requester", giver: "ann", runs: []call{{"mia", "here", `{"what":"y"}`}},
			asks: []call{{"ann", "here", `{"what":"y"}`}, {"mia", "there", `{"what":"y"}`}},
		},
		"with these arguments": {
			giver: "mia", given: store.Decision{Exact: true}, runs: []call{{"mia", "here", `{"what":"x"}`}}, asks: []call{{"mia", "here", `{"what":"y"}`}},
		},
		"with a pattern": {
			giver: "mia", given: store.Decision{Pattern: json.RawMessage(`{"what":"x*"}`)}, runs: []call{{"mia", "here", `{"what":"xy"}`}}, asks: []call{{"mia", "here", `{"what":"y"}`}},
		},
		"past its end": {
			giver: "mia", given: store.Decision{Until: time.Now().Add(time.Hour)}, change: func(h *fixture) { h.ahead.Store(int64(2 * time.Hour)) },
			asks: []call{{"mia", "here", `{"what":"x"}`}},
		},
		"of another definition": {
			giver: "mia", change: func(h *fixture) { h.putTools("pin-2") }, asks: []call{{"mia", "here", `{"what":"x"}`}},
		},
		"of who may not approve any more": {
			giver: "mia", change: func(h *fixture) { h.approvers("admins") }, asks: []call{{"mia", "here", `{"what":"x"}`}},
		},
		"of one for two": {
			giver: "mia", change: func(h *fixture) { h.approvers("2 of group:ops") }, asks: []call{{"mia", "here", `{"what":"x"}`}},
		},
		"of tools that destroy": {
			giver: "mia", change: func(h *fixture) { h.config.set("approvals.grant_destructive", "false") }, asks: []call{{"mia", "here", `{"what":"x"}`}},
		},
		"a no":           {giver: "mia", given: store.Decision{Verb: store.Deny}, refuse: store.ErrInvalid},
		"of one of two":  {policy: "2 of group:ops", giver: "mia", refuse: store.ErrRefused},
		"already over":   {giver: "mia", given: store.Decision{Until: time.Now().Add(-time.Hour)}, refuse: store.ErrInvalid},
		"another's args": {giver: "mia", given: store.Decision{Pattern: json.RawMessage(`{"what":"y"}`)}, refuse: store.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, nil)
			people := map[string]store.Caller{"mia": h.member, "ann": h.person("ann"), "root": h.root}
			h.group("ops", people["ann"], people["mia"])
			h.approvers(c.policy)
			h.thread("here")
			h.thread("there")
			first := h.callIn("here", h.member, `{"what":"x"}`)
			d := c.given
			d.Always, d.For, d.Digest = true, store.ForConversation, first.Digest
			if d.Verb == "" {
				d.Verb = store.Approve
			}
			_, err := h.gateway.Decide(t.Context(), people[c.giver], first.ID, d)
			list, listErr := h.db.ListGrants(t.Context(), "")
			if listErr != nil {
				t.Fatal(listErr)
			}
			if c.refuse != nil {
				if !errors.Is(err, c.refuse) || len(list) != 0 {
					t.Errorf("%v, and %d are kept", err, len(list))
				}
				return
			}
			if err != nil || len(list) != 1 || list[0].Thread != "here" || list[0].Owner() != store.ConversationGrants("here") {
				t.Fatalf("%v: %+v", err, list)
			}
			h.wait(first.ID)
			if c.change != nil {
				c.change(h)
			}
			for _, waits := range []bool{false, true} {
				calls := c.runs
				if waits {
					calls = c.asks
				}
				for _, one := range calls {
					got := h.callIn(one.thread, people[one.who], one.args)
					if got.Waiting() != waits {
						t.Errorf("%s in %q with %s: waits %v", one.who, one.thread, one.args, got.Waiting())
					}
					if got.Waiting() {
						if _, err := h.press(people[one.who], got, store.Cancel); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		})
	}
	h := newFixture(t, nil)
	outside := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.gateway.Decide(t.Context(), h.member, outside.ID, store.Decision{Verb: store.Approve, Always: true, For: store.ForConversation, Digest: outside.Digest}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("of a call outside a conversation: %v", err)
	}
	if _, err := h.gateway.Policy.AddGrant(t.Context(), h.root, store.Grant{Tool: "box:write", Scope: store.ForConversation, Thread: "here"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("without a card: %v", err)
	}
}
