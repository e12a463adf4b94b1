package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// rpcCall is a call of a tool as a client of 2026-07-28 sends it.
func rpcCall(tool, args string) (body string, headers []string) {
	body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return body, []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// TestInsufficientScope: a client that was signed in for some tools is told what
// it lacks for another, signs in again for that, and then has it. What its person
// may not use either is no tool.
func TestInsufficientScope(t *testing.T) {
	r := open(t, t.TempDir(), nil)
	do := func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	}
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "read", Description: "Read a thing.", Do: do}, {Name: "write", Description: "Write a thing.", Do: do}}})
	_, err := api.AddServer.Call(t.Context(), r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Approval: store.ApproveNever}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, r)
	redirect := "http://localhost:1/cb"
	client := b.register("c", redirect)
	signIn := func(scope string) string {
		t.Helper()
		got, p := b.redeem(client, redirect, b.grant(r, client, redirect, "scope", scope).Get("code"))
		if got.Access == "" {
			t.Fatalf("no token: %s", p.body)
		}
		return got.Access
	}
	call := func(token, tool, args string) page {
		body, headers := rpcCall(tool, args)
		return b.post("/mcp", inJSON, body, append(headers, "Authorization", "Bearer "+token)...)
	}
	narrow := signIn("mcp tools:box:read expose:all expose:meta")
	for name, p := range map[string]page{
		"execute_tool":    call(narrow, "execute_tool", `{"tool_id":"box:write","params":{}}`),
		"get_tool_schema": call(narrow, "get_tool_schema", `{"tool_id":"box:write"}`),
		"by its name":     call(narrow, "box__write", `{}`),
	} {
		want := `Bearer error="insufficient_scope", scope="mcp tools:box:read expose:all expose:meta tools:box:write", resource_metadata="` + b.base + `/.well-known/oauth-protected-resource/mcp"`
		if got := p.header.Get("WWW-Authenticate"); p.status != http.StatusForbidden || got != want {
			t.Errorf("%s: %d %q, want 403 %q\n%s", name, p.status, got, want, p.body)
		}
	}
	for name, p := range map[string]page{
		"what it may":      call(narrow, "execute_tool", `{"tool_id":"box:read","params":{}}`),
		"no tool":          call(narrow, "execute_tool", `{"tool_id":"box:fly","params":{}}`),
		"nothing":          call(narrow, "execute_tool", `{}`),
		"after signing in": call(signIn("mcp tools:box:read tools:box:write"), "execute_tool", `{"tool_id":"box:write","params":{}}`),
	} {
		good := strings.HasPrefix(name, "what") || strings.HasPrefix(name, "after")
		if p.status != http.StatusOK || strings.Contains(p.body, "done") != good {
			t.Errorf("%s: %d %s", name, p.status, p.body)
		}
	}
}
