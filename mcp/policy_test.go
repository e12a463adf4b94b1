package mcp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/store"
)

// decides returns the rule that decided a Why.
func decides(rules []policy.RuleResult) (d policy.RuleResult) {
	for _, r := range rules {
		if r.Decides {
			return r
		}
	}
	return d
}

// TestWhy compares the result of Why with the behavior of the gateway.
func TestWhy(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	if err := h.db.PutAgent(ctx, h.root, store.Agent{ID: "narrow", AllowedTools: []string{"box:look"}}); err != nil {
		t.Fatal(err)
	}
	scoped := h.member
	scoped.Scopes = []string{"tools:box:look"}
	for name, c := range map[string]struct {
		change  func(*store.Server)
		who     store.Caller
		scope   store.Scope
		rule    string
		command string
	}{
		"all may":          {nil, h.member, store.Scope{}, "", ""},
		"disabled":         {func(s *store.Server) { s.Disabled = true }, h.member, store.Scope{}, "server", "nizectl servers enable box"},
		"not shared":       {func(s *store.Server) { s.Visibility = nil }, h.member, store.Scope{}, "sharing", "nizectl servers share box --with user:" + h.member.User},
		"others see it":    {func(s *store.Server) { s.Visibility = []string{"user:" + h.root.User} }, h.member, store.Scope{}, "sharing", "nizectl servers share box --with user:" + h.root.User + " --with user:" + h.member.User},
		"admins see all":   {func(s *store.Server) { s.Visibility = nil }, h.root, store.Scope{}, "", ""},
		"the agent":        {nil, h.member, store.Scope{Agent: "narrow"}, "agent", "nizectl agents set narrow --allow box:look --allow box:write"},
		"the token":        {nil, scoped, store.Scope{}, "token", "nizectl tokens create NAME --overwrite --scope tools:box:look --scope tools:box:write"},
		"conversation":     {nil, h.member, store.Scope{Servers: []string{"other"}}, "conversation", "nizectl chat --server box"},
		"the first of two": {func(s *store.Server) { s.Disabled, s.Visibility = true, nil }, h.member, store.Scope{}, "server", "nizectl servers enable box"},
	} {
		s, err := h.db.GetServer(ctx, "box")
		if err != nil {
			t.Fatal(err)
		}
		s.Disabled, s.Visibility = false, []string{"all"}
		if c.change != nil {
			c.change(&s)
		}
		if _, err := h.db.PutServer(ctx, h.root, s, s.Revision); err != nil {
			t.Fatal(err)
		}
		if err := h.gateway.Catalog.Refresh(ctx, "box"); err != nil {
			t.Fatal(err)
		}
		w, err := h.gateway.Policy.Explain(ctx, h.root, c.who, c.scope, "box:write")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := decides(w.Rules)
		if d.Rule != c.rule || d.Command != c.command || w.Usable != (c.rule == "") || len(w.Rules) != 9 || (w.Approval != nil) != w.Usable {
			t.Errorf("%s: %+v", name, w)
		}
		_, err = h.gateway.Discovery.Describe(ctx, c.who, c.scope, "box:write")
		if (err == nil) != w.Usable {
			t.Errorf("%s: Why says usable %v, the gateway %v", name, w.Usable, err)
		}
	}
}

// TestWhyHides: Why reveals nothing about tools that a member can't see.
func TestWhyHides(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Visibility = nil })
	_, hidden := h.gateway.Policy.Explain(t.Context(), h.member, h.member, store.Scope{}, "box:write")
	_, absent := h.gateway.Policy.Explain(t.Context(), h.member, h.member, store.Scope{}, "box:wrote")
	if !errors.Is(hidden, store.ErrNotFound) || !errors.Is(absent, store.ErrNotFound) ||
		strings.Replace(hidden.Error(), "write", "wrote", 1) != absent.Error() {
		t.Errorf("hidden: %v; absent: %v", hidden, absent)
	}
	if _, err := h.gateway.Policy.Explain(t.Context(), h.root, h.member, store.Scope{}, "box:wrote"); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "box:write") {
		t.Errorf("an admin's slip: %v", err)
	}
}

// TestWhyAsks: the approval rules, in their order, agree with an actual call.
func TestWhyAsks(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	grant := store.Grant{ID: store.NewID(time.Now()), User: h.member.User, Tool: "box:write", Pin: "pin-1"}
	for _, c := range []struct {
		name     string
		set      func()
		rule     string
		asks     bool
		decision string
	}{
		{"auto", func() {}, "mode", true, "it may change something"},
		{"a standing yes", func() {
			if err := h.db.PutGrant(ctx, h.member, grant); err != nil {
				t.Fatal(err)
			}
		}, "grant", false, ""},
		{"the mode all", func() { h.config.set("approvals.mode", "all") }, "mode", true, "the mode all of the system asks"},
		{"the mode none", func() { h.config.set("approvals.mode", "none") }, "", false, ""},
		{"the list", func() {
			h.config.set("approvals.mode", "whitelist")
			h.config.set("approvals.list", "box:w*")
		}, "mode", true, "the mode whitelist of the system asks"},
	} {
		c.set()
		w, err := h.gateway.Policy.Explain(ctx, h.root, h.member, store.Scope{}, "box:write")
		if err != nil {
			t.Fatal(err)
		}
		if a := w.Approval; a.Asks != c.asks || decides(a.Rules).Rule != c.rule || a.Reason != c.decision || len(a.Rules) != 6 {
			t.Errorf("%s: %+v", c.name, a)
		}
		if got := h.call(h.member, "box:write", `{"what":"x"}`); (got.State == store.Pending) != c.asks {
			t.Errorf("%s: the call is %s", c.name, got.State)
		}
	}
}

// TestUnmet: a search without results is counted, unless it was narrowed, and the person
// who searched is not recorded.
func TestUnmet(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	for _, q := range []index.Query{
		{Text: "knit a jumper", TopK: 5, MinScore: .05},
		{Text: "knit jumpers please", TopK: 5, MinScore: .05},
		{Text: "knit a hat", TopK: 5, MinScore: .9},
		{Text: "knit a scarf", TopK: 5, MinScore: .05, Domain: "wool"},
		{Text: "write something down", TopK: 5, MinScore: .05},
	} {
		if _, err := h.gateway.Discovery.Search(ctx, h.member, store.Scope{}, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.gateway.Discovery.Search(ctx, h.member, store.Scope{Thread: "t"}, index.Query{Text: "knit a sock", TopK: 5}); err != nil {
		t.Fatal(err)
	}
	if err := h.db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	list, err := h.db.ListUnmetRequests(ctx)
	if err != nil || len(list) != 1 || list[0].Text != "knit a jumper" || list[0].Count != 2 {
		t.Errorf("unmet requests %+v, %v", list, err)
	}
}
