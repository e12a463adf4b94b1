package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"nize/daemon/api"
)

// TestChallenge: who is refused at /mcp is told where to find out how to sign
// in, under the very address that was asked.
func TestChallenge(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir(), nil)
	st, err := api.GetStatus.Call(t.Context(), d.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + st.Listen
	for _, tt := range []struct{ token, want string }{
		{"", `Bearer resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp", scope="mcp"`},
		{"nize_wrong", `Bearer resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp", scope="mcp", error="invalid_token"`},
	} {
		for _, path := range []string{"/mcp", "/mcp/"} {
			req, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if tt.token != "" {
				req.Header.Set("Authorization", "Bearer "+tt.token)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != http.StatusUnauthorized || got != tt.want {
				t.Errorf("%s with token %q: %d %s, want 401 %s", path, tt.token, res.StatusCode, got, tt.want)
			}
		}
	}
	// A page elsewhere may read the document, and nothing else.
	for _, tt := range []struct {
		path   string
		status int
	}{{"/.well-known/oauth-protected-resource/mcp", 200}, {"/.well-known/oauth-protected-resource/mcp/", 200}, {"/.well-known/oauth-protected-resource", 200}, {"/metrics", 403}} {
		req, err := http.NewRequest(http.MethodGet, base+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://elsewhere.example")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != tt.status {
			t.Errorf("%s: %d %v, want %d", tt.path, res.StatusCode, err, tt.status)
		}
		if tt.status != http.StatusOK {
			continue
		}
		var doc struct{ Resource string }
		if err := json.Unmarshal(body, &doc); err != nil || doc.Resource != base+"/mcp" || res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %s %v %v", tt.path, body, res.Header, err)
		}
	}
}

// TestMCPWithALastSlash: /mcp/ is /mcp, and nothing below it is.
func TestMCPWithALastSlash(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir(), nil)
	st, err := api.GetStatus.Call(t.Context(), d.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), d.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, path, session, body string) *http.Response {
		req, err := http.NewRequest(method, "http://"+st.Listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		req.Header.Set("Content-Type", "application/json")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	post := func(path, session, body string) *http.Response { return send(http.MethodPost, path, session, body) }
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for path, want := range map[string]int{"/mcp": 200, "/mcp/": 200, "/mcp/?x=1": 200, "/mcp/x": 404, "/mcp/mcp": 404, "/MCP/": 404} {
		res := post(path, "", hello)
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		if session := res.Header.Get("Mcp-Session-Id"); session != "" {
			if res := send(http.MethodDelete, "/mcp/", session, ""); res.StatusCode != http.StatusNoContent {
				t.Errorf("ending a session of %s: %d", path, res.StatusCode)
			}
		}
	}
	// A session that began at one of them goes on at the other.
	session := post("/mcp/", "", hello).Header.Get("Mcp-Session-Id")
	if res := post("/mcp", session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); session == "" || res.StatusCode != 200 {
		t.Errorf("session %q at /mcp: %d", session, res.StatusCode)
	}
	send(http.MethodDelete, "/mcp", session, "")
	if res := post("/mcp/", "none", `{"jsonrpc":"2.0","id":2,"method":"ping"}`); res.StatusCode != http.StatusNotFound {
		t.Errorf("a session that is none: %d", res.StatusCode)
	}
}
