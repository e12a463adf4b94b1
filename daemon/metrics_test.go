package daemon_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
)

// TestMetrics: what ran is in /metrics. This machine reads it without a token, a
// proxy on it does not.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "toolbox:calculate", Args: json.RawMessage(`{"expression":"6*7"}`)}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []api.CallToolRequest{{ID: "toolbox:nonsense", Args: json.RawMessage(`{}`)}, {ID: "toolbox:calculate", Args: json.RawMessage(`{"wrong":1}`)}} {
		if _, err := api.CallTool.Call(ctx, r.Client, bad); err == nil {
			t.Errorf("%s with %s runs", bad.ID, bad.Args)
		}
	}
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia-canary", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	status, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	token := func(audience string) string {
		made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: audience, User: "mia-canary", Audience: audience})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + made.Secret.Reveal()
	}
	get := func(header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+status.Listen+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	code, text := get()
	if code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for _, want := range []string{
		`nize_calls_total{outcome="done",server="toolbox",surface="cli",tool="calculate"} 1`, `nize_call_duration_seconds_count{server="toolbox"} 1`,
		`nize_calls_rejected_total{code="not_found",surface="cli"} 1`, `nize_calls_rejected_total{code="invalid_arguments",surface="cli"} 1`,
		`nize_servers{state="ready"} 1`, `nize_server_up{server="toolbox"} 1`, `nize_approvals_waiting 0`, `nize_store_commits_total [1-9]`, `nize_store_commit_seconds_total [0-9.e-]*[1-9]`,
		`nize_index_tools [1-9]`, `nize_child_processes [1-9]`, `nize_queue_depth{queue="inbox"} 0`, `go_goroutines [1-9]`, `process_open_fds [1-9]`,
	} {
		if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(want, "{", `\{`)).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "canary") || strings.Contains(text, "6*7") {
		t.Error("a person or an argument is in the metrics")
	}
	_, port, err := net.SplitHostPort(status.Listen)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		header []string
		code   int
	}{
		{"through a proxy of this machine", []string{"X-Forwarded-For", "203.0.113.7"}, 401},
		{"through another kind of one", []string{"Via", "1.1 cache"}, 401},
		{"with a token for MCP", []string{"X-Forwarded-For", "203.0.113.7", "Authorization", token(store.ForMCP)}, 401},
		{"with nonsense", []string{"X-Forwarded-For", "203.0.113.7", "Authorization", "Bearer nize_x"}, 401},
		{"with a token for the API", []string{"X-Forwarded-For", "203.0.113.7", "Authorization", token(store.ForAPI)}, 200},
	} {
		if code, text := get(test.header...); code != test.code {
			t.Errorf("%s: %d %s", test.name, code, text)
		}
	}
	for _, test := range []struct {
		peer, host string
		want       bool
	}{
		{"127.0.0.1:5", "127.0.0.1:" + port, true}, {"[::1]:5", "localhost:" + port, true}, {"[::ffff:127.0.0.1]:5", "[::1]:" + port, true},
		{"192.0.2.1:5", "127.0.0.1:" + port, false}, {"127.0.0.1:5", "nize.example.com", false}, {"", "localhost", false},
	} {
		if got := daemon.FromThisMachine(&http.Request{RemoteAddr: test.peer, Host: test.host}); got != test.want {
			t.Errorf("from %s, for %s: %v", test.peer, test.host, got)
		}
	}
}
