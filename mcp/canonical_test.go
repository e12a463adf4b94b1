package mcp_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"nize/mcp"
	"nize/store"
)

// addition is a hook that adds a member to the arguments of a call.
type addition struct{}

func (addition) Ref() store.HookRef { return store.HookRef{Name: "addition"} }

func (addition) Before(_ context.Context, inv *mcp.Invocation) error {
	if inv.Point == mcp.AroundCall {
		inv.Args = json.RawMessage(`{"what": "y", "n": 1}`)
	}
	return nil
}

func (addition) After(context.Context, *mcp.Invocation, *store.Result) error { return nil }

// TestArgumentsAreMadeCanonicalOnce: however a call arrives, its arguments are made
// canonical once, and once more if a hook changes them; its digest is that of the
// canonical arguments.
func TestArgumentsAreMadeCanonicalOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		tool  string
		meta  bool
		stays bool
		hook  bool
		want  int64
	}{
		{"a person's call", "box:look", false, false, false, 1},
		{"a program's call", "box:look", false, true, false, 1},
		{"a program's call by execute_tool", "box:look", true, true, false, 1},
		{"a call that waits", "box:write", true, false, false, 1},
		{"a call that a hook changes", "box:look", false, true, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newFixture(t, nil)
			if test.hook {
				h.stop()
				h.extra = append(h.extra, addition{})
				h.open("second")
				h.run()
			}
			var n atomic.Int64
			h.gateway.CountCanonical(func() { n.Add(1) })
			by := h.root
			req := store.Request{Tool: test.tool, Args: json.RawMessage(`{"what": "x", "n": 2}`)}
			req.ByMeta = test.meta
			var c *store.Call
			var err error
			if test.stays {
				by.Surface = store.OnMCP
				c, err = h.gateway.Execute(t.Context(), by, req, nil)
			} else {
				c, err = h.gateway.Call(t.Context(), by, req)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n.Load() != test.want || c.Digest == "" || c.ComputeDigest() != c.Digest {
				t.Errorf("%d canonicalisations, want %d; digest %s of %s", n.Load(), test.want, c.Digest, c.Args)
			}
		})
	}
}
