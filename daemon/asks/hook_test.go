package asks

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestFailClosed: whatever fails behind the hook's path is a denial with the reason, in an
// answer that is a success. What succeeds, and every other path, is left as it is.
func TestFailClosed(t *testing.T) {
	fails := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			http.Error(w, text, status)
		}
	}
	for name, c := range map[string]struct {
		method, path string
		next         http.HandlerFunc
		status       int
		want         string // in the answer
		denied       bool
	}{
		"no database":       {"POST", HookPath, fails(503, "the database is gone"), 200, "the database is gone", true},
		"too large":         {"POST", HookPath, fails(413, strings.Repeat("x", 10_000)), 200, "xxx", true},
		"a redirect":        {"POST", HookPath, fails(307, ""), 200, "can't decide", true},
		"nothing":           {"POST", HookPath, func(http.ResponseWriter, *http.Request) {}, 200, "can't decide", true},
		"a panic":           {"POST", HookPath, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 200, "can't decide", true},
		"a slash behind":    {"POST", HookPath + "/", fails(404, "not found"), 200, "not found", true},
		"two slashes":       {"POST", "/" + HookPath, fails(404, "not found"), 200, "not found", true},
		"a step skipped":    {"POST", HookPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, "", false},
		"a decision":        {"POST", HookPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, 200, "{}", false},
		"another path":      {"POST", "/hooks/claude-codex", fails(503, "gone"), 503, "gone", false},
		"another operation": {"GET", HookPath, fails(405, "no"), 405, "no", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(FailClosed(c.next))
			defer s.Close()
			req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.want) {
				t.Errorf("%s, %v: %s", resp.Status, err, body)
			}
			var got struct {
				Specific struct {
					Decision string `json:"permissionDecision"`
				} `json:"hookSpecificOutput"`
			}
			_ = json.Unmarshal(body, &got) // other answers have no decision
			if denied := got.Specific.Decision == "deny"; denied != c.denied || denied && (resp.Header.Get("Location") != "" || len(body) > 4000) {
				t.Errorf("denied: %t, %v", denied, resp.Header)
			}
		})
	}
}
