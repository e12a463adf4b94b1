package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// Each rejected call leaves one event with its caller, its tool and the reason.
func TestRejectedCallsLeaveEvents(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	tools, err := h.db.ListTools(ctx, "box")
	if err != nil {
		t.Fatal(err)
	}
	tools = append(tools, store.Tool{Server: "box", Name: "held", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolQuarantined, Pin: "p"})
	if _, err := h.db.PutTools(ctx, h.root, "box", tools); err != nil {
		t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(ctx, "box"); err != nil {
		t.Fatal(err)
	}
	scoped := h.member
	scoped.Scopes, scoped.Surface = []string{"tools:box:look"}, store.OnMCP
	for _, c := range []struct {
		by         store.Caller
		tool, args string
	}{
		{h.member, "box:nothing", `{}`},
		{h.member, "box:look", `{"n":1}`},
		{scoped, "box:write", `{"what":"x"}`},
		{h.member, "box:held", `{}`}, {h.root, "box:held", `{}`},
	} {
		if _, err := h.gateway.Call(ctx, c.by, store.Request{Tool: c.tool, Args: json.RawMessage(c.args)}); err == nil {
			t.Errorf("%s was called", c.tool)
		}
	}
	for _, fn := range []store.ToolCall{
		{Name: "get_tool_schema", Args: `{"tool_id":"box:nothing"}`}, {Name: "get_tool_schema", Args: `{"tool_id":"box:look"}`},
		{Name: "execute_tool", Args: `{"params":{}}`}, {Name: "execute_tool", Args: `{"tool_id":`}, {Name: "execute_tool", Args: `{"tool_id":"box:look","params":5}`}, {Name: "drop_table", Args: `{}`},
	} { // in the form that a chat uses
		if _, err := h.gateway.Meta(ctx, h.member, store.Scope{}, fn); err != nil {
			t.Fatal(err)
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
	want := "not_found box:nothing mia terminal, invalid_arguments box:look mia terminal, not_found box:write mia mcp, not_found box:held mia terminal, refused box:held root terminal" +
		", not_found box:nothing mia terminal, invalid_arguments nize:execute_tool mia terminal, invalid_arguments nize:execute_tool mia terminal" +
		", invalid_arguments box:look mia terminal, not_found nize:drop_table mia terminal"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
	if n := h.counted.Load(); n != int64(len(got)) {
		t.Errorf("%d of %d were counted", n, len(got))
	}
}

// So does each rejected request of a client, over every protocol version.
func TestRejectedOverMCP(t *testing.T) {
	f := newFront(t, nil)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		token := f.token("client-"+version, time.Hour)
		s := f.client(token, version, nil)
		for _, p := range []*sdk.CallToolParams{
			{Name: "execute_tool", Arguments: map[string]any{"params": map[string]any{}}},
			{Name: "execute_tool", Arguments: json.RawMessage(`[]`)},
			{Name: "box__look", Arguments: map[string]any{}},
			{Name: "get_tool_schema", Arguments: map[string]any{"tool_id": "box:nothing"}},
		} {
			if r, err := s.CallTool(t.Context(), p); err == nil && !r.IsError {
				t.Errorf("%s: %+v was answered", version, p)
			}
		}
		if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "box__nothing"}); err == nil {
			t.Errorf("%s: an unknown prompt was given", version)
		}
		if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "nize://box/nothing"}); err == nil {
			t.Errorf("%s: an unknown resource was given", version)
		}
	}
	f.config.set("approvals.elicitation", "true") // a client that supports elicitation takes another path
	s := f.client(f.token("asked", time.Hour), "2025-11-25", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}})
	if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"params": map[string]any{}}}); err == nil && !r.IsError {
		t.Errorf("%+v was answered", r)
	}
	for subject, want := range map[string]int{"nize:execute_tool": 5, "box__look": 2, "box:nothing": 2, "box__nothing": 2, "nize://box/nothing": 2} {
		if list := f.events("call.rejected", subject); len(list) != want {
			t.Errorf("%s: %d events, want %d", subject, len(list), want)
		}
	}
}
