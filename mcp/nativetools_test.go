package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nize/mcp/index"
	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/store"
)

// TestNativeIsNamed: a native tool exists for callers whose agent, token or request names
// it, and is unknown to all others.
func TestNativeIsNamed(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	r := native.New(native.Options{
		TeamOf: func(context.Context, store.Caller, string) (string, error) { return "", nil },
		Publish: func(s *store.Server, tools []*policy.Tool) {
			h.gateway.SetOwn(s, tools)
			if err := h.index.Replace(ctx, *s, []store.Tool{tools[0].Tool}); err != nil {
				t.Error(err)
			}
		},
	})
	tool := native.Tool{Name: "peek", Description: "Peeks into a crate.", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: store.Annotations{ReadOnly: &yes}, Untrusted: true,
		Run: func(context.Context, native.Context, json.RawMessage) (native.Result, error) {
			return native.Text("hay"), nil
		}}
	if err := r.Put(tool); err != nil {
		t.Fatal(err)
	}
	for id, allowed := range map[string][]string{"plain": nil, "star": {"*"}, "named": {"native:peek", "box:*"}, "all": {"native:*"}} {
		if err := h.db.PutAgent(ctx, h.root, store.Agent{ID: id, AllowedTools: allowed}); err != nil {
			t.Fatal(err)
		}
	}
	cli, bearer := h.root, func(scopes ...string) store.Caller {
		by := h.member
		by.Surface, by.Token, by.Scopes = store.OnMCP, "t", scopes
		return by
	}
	cli.Surface = store.OnCLI
	for name, one := range map[string]struct {
		by    store.Caller
		scope store.Scope
		want  bool
	}{
		"no agent":                  {h.member, store.Scope{}, false},
		"an agent without a list":   {h.root, store.Scope{Agent: "plain"}, false},
		"an agent with all servers": {h.root, store.Scope{Agent: "star"}, false},
		"an agent that names it":    {h.member, store.Scope{Agent: "named"}, true},
		"an agent that names all":   {h.member, store.Scope{Agent: "all"}, true},
		"a plain token":             {bearer(), store.Scope{}, false},
		"a token for all":           {bearer("tools:*", "expose:meta"), store.Scope{}, false},
		"a token that exposes all":  {bearer("expose:all", "expose:meta"), store.Scope{}, true},
		"a token for all servers":   {bearer("expose:all", "tools:*"), store.Scope{}, false},
		"a token by bare name":      {bearer("expose:peek"), store.Scope{}, true},
		"a token by another name":   {bearer("expose:poke"), store.Scope{}, false},
		"a token that names it":     {bearer("tools:native:peek"), store.Scope{}, true},
		"a token that exposes it":   {bearer("expose:native"), store.Scope{}, true},
		"a token by pattern":        {bearer("expose:native:p*"), store.Scope{}, true},
		"a token for a server":      {bearer("expose:native", "tools:box:*"), store.Scope{}, false},
		"a request that names it":   {h.member, store.Scope{Tools: []string{"native:peek"}}, true},
		"the command line":          {cli, store.Scope{}, true},
	} {
		found, err := h.gateway.Discovery.Search(ctx, one.by, one.scope, index.Query{Text: "peek into a crate"})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(found.Hits, func(hit store.Hit) bool { return hit.Tool.ID() == "native:peek" }); got != one.want {
			t.Errorf("%s: found %v", name, got)
		}
		_, err = h.gateway.Discovery.Describe(ctx, one.by, one.scope, "native:peek")
		if (err == nil) != one.want {
			t.Errorf("%s: described: %v", name, err)
		}
		if err != nil && one.by.User == h.member.User && one.by.Token == "" && !strings.Contains(err.Error(), `tool "native:peek" not found`) {
			t.Errorf("%s: a member is told %v", name, err)
		}
		if err != nil && name == "an agent without a list" && !strings.Contains(err.Error(), "nizectl agents set plain --allow '*' --allow native:peek") {
			t.Errorf("an admin is told %v", err)
		}
	}
	// Its result taints the conversation, so the next change needs approval.
	if err := h.db.PutThread(ctx, h.root, store.Thread{ID: "th1", User: h.member.User}); err != nil {
		t.Fatal(err)
	}
	c, err := h.gateway.Call(ctx, h.member, store.Request{Tool: "native:peek", Thread: "th1", Agent: "named"})
	if err != nil || c.State != store.Done || !c.Taints {
		t.Fatalf("%+v, %v", c, err)
	}
	h.config.set("approvals.mode", "none")
	c, err = h.gateway.Call(ctx, h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`), Thread: "th1", Agent: "named"})
	if err != nil || c.State != store.Pending || c.Reason.String() != "the conversation has read untrusted text" {
		t.Errorf("%+v, %v", c, err)
	}
	// A waiting call ends if the agent's list no longer names its tool.
	if err := h.db.PutAgent(ctx, h.root, store.Agent{ID: "named", AllowedTools: []string{"native:peek"}, Approval: "all"}); err != nil {
		t.Fatal(err)
	}
	if c, err = h.gateway.Call(ctx, h.member, store.Request{Tool: "native:peek", Agent: "named"}); err != nil || c.State != store.Pending {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := h.db.PutAgent(ctx, h.root, store.Agent{ID: "named", AllowedTools: []string{"box:*"}}); err != nil {
		t.Fatal(err)
	}
	if why, err := h.gateway.Policy.Stale(ctx, *c); err != nil || !strings.Contains(why.String(), "may no longer use native:peek") {
		t.Errorf("stale: %s", why)
	}
}
