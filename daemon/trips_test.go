package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

// TestTrips counts what a call and a round ask a PostgreSQL, once nized has seen the like
// of them: as often, however many calls wait for a yes.
func TestTrips(t *testing.T) {
	wire, address, err := postgrestest.NewWire(postgrestest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	p := openProgramsIn(t, map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1", "NIZE_APPROVALS_MODE": "whitelist", "NIZE_APPROVALS_LIST": "up:wipe,coder:*", "NIZE_BUDGETS_USER_DAILY": "0", "NIZE_APPROVALS_MAX_PENDING": "1000"}, func(o *daemon.Options) { o.Database = address })
	no, yes := false, true
	do := func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	}
	up := mcptest.New(t, mcptest.Options{Name: "up", Tools: []mcptest.Tool{
		{Name: "write", Description: "Write.", Annotations: &sdk.ToolAnnotations{DestructiveHint: &no}, Do: do},
		{Name: "look", Description: "Look.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}, Do: do},
		{Name: "wipe", Description: "Wipe.", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}, Do: do},
	}})
	url := up.HTTP()
	if _, err := api.AddServer.Call(t.Context(), p.Client, api.AddServerRequest{Server: store.Server{Name: "up", URL: url, Visibility: []string{"all"}, TrustAnnotations: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(t.Context(), p.Client, api.AddServerRequest{Server: store.Server{Name: "coder", Transport: store.External}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), p.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, p.url+"/mcp", made.Secret.Reveal())
	call := func(tool string) func() {
		return func() {
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "up:" + tool, "params": map[string]any{}}})
			if err != nil || r.IsError {
				t.Fatal(err, r)
			}
		}
	}
	round := func(tool, status string, with map[string]any) func() {
		return func() {
			a, err := p.round(t.Context(), map[string]any{"model": "parrots/x", "messages": message("use " + tool + " {}"), "tools": []map[string]any{with}})
			if err != nil || a.Status != status {
				t.Fatal(err, a)
			}
		}
	}
	// A call begins and ends; a round is two questions to the model, each of which reserves
	// room and is stored with what it cost, and the call.
	most := map[string]int{"a call that changes something": 2, "a call that only reads": 0, "a round": 7, "a round with a server of its own": 7}
	waiting := 0
	for _, n := range []int{0, 10, 100, 500} {
		for ; waiting < n; waiting++ {
			if waiting%2 == 0 {
				round("wipe", "requires_approval", map[string]any{"type": "callable", "callable_id": "up:wipe"})()
				continue
			}
			if _, err := api.PostAsk.Call(t.Context(), p.Client, api.AskRequest{Source: "coder", Tool: "Bash", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, waiting))}); err != nil {
				t.Fatal(err)
			}
		}
		for what, do := range map[string]func(){"a call that changes something": call("write"), "a call that only reads": call("look"),
			"a round":                          round("write", "completed", map[string]any{"type": "callable", "callable_id": "up:write"}),
			"a round with a server of its own": round("write", "completed", map[string]any{"type": "mcp", "server_label": "own", "server_url": url, "allowed_tools": []string{"write"}, "require_approval": "never"}),
		} {
			var fewest []string
			for i := range 12 {
				wire.Take()
				do()
				if took := wire.Take(); i == 0 || len(took) < len(fewest) {
					fewest = took
				}
			}
			t.Logf("while %d wait, %s takes %d round trips", n, what, len(fewest))
			if len(fewest) > most[what] {
				t.Errorf("while %d wait, %s takes %d round trips, want at most %d:\n%s", n, what, len(fewest), most[what], strings.Join(fewest, "\n"))
			}
		}
	}
}

// TestChatInCommit: a chat client is not told that its turn has ended while the answer to
// the commit that began it is on its way, when readers of the database see its message
// already.
func TestChatInCommit(t *testing.T) {
	wire, address, err := postgrestest.NewWire(postgrestest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	p := openProgramsIn(t, map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1", "NIZE_APPROVALS_MODE": "all"}, func(o *daemon.Options) { o.Database = address })
	up := mcptest.New(t, mcptest.Options{Name: "up", Tools: []mcptest.Tool{{Name: "write", Description: "Write.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	}}}})
	if _, err := api.AddServer.Call(t.Context(), p.Client, api.AddServerRequest{Server: store.Server{Name: "up", URL: up.HTTP(), Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), p.Client, api.CreateTokenRequest{Name: "t", Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	post := func(path string, body any) (a api.ChatAnswer) {
		t.Helper()
		sent, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		r.Header.Set("Content-Type", "application/json")
		resp, err := p.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		return a
	}
	wire.SlowCommits(100 * time.Millisecond)
	conversation := ""
	for _, message := range []string{"hello", `use execute_tool {"tool_id":"up:write","params":{}}`, "and so on"} {
		a := post("/api/chat", api.ChatRequest{Message: message, Model: "parrots/x", Conversation: conversation})
		want := "completed"
		if strings.HasPrefix(message, "use ") {
			if a.Status != "requires_approval" || len(a.ProposedCalls) != 1 {
				t.Fatalf("%q came to %+v", message, a)
			}
			a = post("/api/run-tool", api.RunToolRequest{CallID: a.ProposedCalls[0].ID, Digest: a.ProposedCalls[0].Digest, Decision: "run"})
		}
		if a.Status != want || a.Message == nil || !strings.Contains(a.Message.Content, strings.Fields(message)[0]) && !strings.Contains(a.Message.Content, "done") {
			t.Fatalf("%q came to %+v: %+v", message, a, a.Message)
		}
		conversation = a.Conversation
	}
}
