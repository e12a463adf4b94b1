package daemon_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// TestOpenRequestsPerPerson: streams of MCP clients, follows at the control socket and
// requests of chat clients count together for their person. A refusal names the
// setting; other people go on; and if everybody together has as many as may be, the
// person with the most loses the oldest.
func TestOpenRequestsPerPerson(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	st, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(key, value string) {
		t.Helper()
		if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	set("limits.user.requests", "2")
	tokens := map[string]map[string]string{}
	for _, name := range []string{"ann", "bob", "cid"} {
		if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		tokens[name] = map[string]string{}
		for _, audience := range []string{store.ForMCP, store.ForAPI} {
			made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "t-" + audience, User: name, Audience: audience})
			if err != nil {
				t.Fatal(err)
			}
			tokens[name][audience] = made.Secret.Reveal()
		}
	}
	send := func(method, path, token, body string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, "http://"+st.Listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	// listen opens the standing stream of a new session of an MCP client.
	listen := func(name string) *http.Response {
		t.Helper()
		token := tokens[name][store.ForMCP]
		hello := send("POST", "/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		session := hello.Header.Get("Mcp-Session-Id")
		t.Cleanup(func() { send("DELETE", "/mcp", token, "", "Mcp-Session-Id", session) })
		return send("GET", "/mcp", token, "", "Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25", "Accept", "text/event-stream")
	}
	refused := func(what string, res *http.Response, setting string) {
		t.Helper()
		if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), setting) {
			t.Errorf("%s: %d %s, want 429 with %s", what, res.StatusCode, body, setting)
		}
	}
	opened := func(what string, res *http.Response) *http.Response {
		t.Helper()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", what, res.StatusCode)
		}
		return res
	}

	oldest := opened("ann's first", listen("ann"))
	second := opened("ann's second", listen("ann"))
	refused("ann's third", listen("ann"), "limits.user.requests")
	refused("a chat client of ann's", send("POST", "/api/chat", tokens["ann"][store.ForAPI], `{"message":"Hi"}`), "limits.user.requests")
	opened("bob's", listen("bob"))

	follow := func(ctx context.Context, began chan<- struct{}) error {
		for _, err := range api.ReadAudit.Call(ctx, r.Client, api.AuditRequest{Follow: true, Limit: 1}) {
			if err != nil {
				return err
			}
			select {
			case began <- struct{}{}:
			default:
			}
		}
		return nil
	}
	ends, end := context.WithCancel(ctx)
	defer end()
	for range 2 {
		began := make(chan struct{}, 1)
		go func() { _ = follow(ends, began) }() // until the test ends
		<-began
	}
	if err := follow(ends, nil); err == nil || !strings.Contains(err.Error(), "limits.user.requests") {
		t.Errorf("a third follow at the socket: %v", err)
	}

	set("limits.requests", "5")
	opened("cid's", listen("cid"))
	if _, err := io.ReadAll(oldest.Body); err != nil { // it ends
		t.Errorf("ann's oldest: %v", err)
	}
	second.Body.Close()
}
