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
		req, err := http.NewRequest(http.MethodPost, base+"/mcp", strings.NewReader("{}"))
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
			t.Errorf("token %q: %d %s, want 401 %s", tt.token, res.StatusCode, got, tt.want)
		}
	}
	// A page elsewhere may read the document, and nothing else.
	for _, tt := range []struct {
		path   string
		status int
	}{{"/.well-known/oauth-protected-resource/mcp", 200}, {"/.well-known/oauth-protected-resource", 200}, {"/healthz", 403}} {
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
