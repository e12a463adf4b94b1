package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// TestAsksNeedAWorkingToken: a token that is missing, wrong, for something else, revoked
// or expired asks nothing, and the hook of Claude Code is denied with the reason. A
// browser whose session has expired decides nothing.
func TestAsksNeedAWorkingToken(t *testing.T) {
	t.Parallel()
	var off atomic.Int64
	r := open(t, t.TempDir(), nil, clock(&off))
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External, Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	status, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	made := func(name, audience string, expires time.Duration) string {
		token, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: name, Audience: audience, Expires: store.Duration(expires)})
		if err != nil {
			t.Fatal(err)
		}
		return token.Secret.Reveal()
	}
	post := func(path, token, body string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+status.Listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	const ask = `{"source":"claude-code","tool":"Bash","arguments":{"command":"make deploy"}}`
	const event = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make deploy"},"tool_use_id":"t1"}`

	good := made("good", store.ForAPI, 24*365*time.Hour)
	code, answer := post("/asks", good, ask)
	var pending api.Ask
	if err := json.Unmarshal([]byte(answer), &pending); code != http.StatusOK || err != nil || pending.State != "pending" {
		t.Fatalf("%d %s", code, answer)
	}
	b := newBrowser(t, r)
	b.signIn(r.Client, "")

	expired, revoked := made("short", store.ForAPI, time.Hour), made("revoked", store.ForAPI, 24*365*time.Hour)
	if _, err := api.RevokeToken.Call(ctx, r.Client, api.RevokeTokenRequest{Name: "revoked"}); err != nil {
		t.Fatal(err)
	}
	off.Store(int64(100 * 24 * time.Hour))
	for name, token := range map[string]string{"none": "", "wrong": good[:len(good)-4] + "0000", "for MCP": made("mcp", store.ForMCP, 24*time.Hour), "revoked": revoked, "expired": expired} {
		if code, answer := post("/asks", token, ask); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, code, answer)
		}
		if code, answer := post("/hooks/claude-code", token, event); code != http.StatusOK || !strings.Contains(answer, `"permissionDecision":"deny"`) || !strings.Contains(answer, "can't decide") {
			t.Errorf("%s: the hook gets %d %s", name, code, answer)
		}
	}
	p := b.ask("approvals/"+pending.ID, fmt.Sprintf(`{"verb":"approve","digest":%q}`, pending.Digest))
	if p.status != http.StatusUnauthorized {
		t.Errorf("an expired session: %d %s", p.status, p.body)
	}
	got, err := api.GetCall.Call(ctx, r.Client, api.CallRequest{ID: pending.ID})
	if err != nil || got.State == store.Approved {
		t.Errorf("%+v, %v", got, err)
	}
	calls, err := api.ListApprovals.Call(ctx, r.Client, api.Empty{})
	if err != nil || len(calls.Items) > 1 {
		t.Errorf("%d asks wait, %v", len(calls.Items), err)
	}
}
