package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/store"
)

// Each call that is turned away leaves one event with who, what and why.
func TestRejectedCallsLeaveEvents(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	scoped := h.member
	scoped.Scopes, scoped.Surface = []string{"tools:box:look"}, store.OnMCP
	for _, c := range []struct {
		by         store.Caller
		tool, args string
	}{
		{h.member, "box:nothing", `{}`},
		{h.member, "box:look", `{"n":1}`},
		{scoped, "box:write", `{"what":"x"}`},
	} {
		if _, err := h.gateway.Call(ctx, c.by, store.Request{Tool: c.tool, Args: json.RawMessage(c.args)}); err == nil {
			t.Errorf("%s was called", c.tool)
		}
	}
	if err := h.db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	list, err := h.db.Events(ctx, store.EventQuery{Limit: 100, Forward: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		if e.Kind == "call.rejected" {
			got = append(got, string(e.Outcome)+" "+e.Tool+" "+e.UserName+" "+string(e.Surface))
		}
	}
	want := "not_found box:nothing mia terminal, invalid_arguments box:look mia terminal, not_found box:write mia mcp"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
}
