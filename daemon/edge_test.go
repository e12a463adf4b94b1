package daemon_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// rawConn is a connection to the HTTP listener of which a test says each byte.
type rawConn struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
	at string
}

func (r *testDaemon) raw(t *testing.T, at string) *rawConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &rawConn{t, c, bufio.NewReader(c), at}
}

func (c *rawConn) send(method, path, body string, headers ...string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n%s", method, path, c.at, strings.Join(headers, "\r\n"), body); err != nil {
		c.t.Fatal(err)
	}
}

// status reads an answer, whole.
func (c *rawConn) status() (int, error) {
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func (r *testDaemon) listens(t *testing.T) (at string) {
	t.Helper()
	st, err := api.GetStatus.Call(t.Context(), r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return st.Listen
}

// tokenFor makes a token of a member's.
func (r *testDaemon) tokenFor(t *testing.T, name, audience string) string {
	t.Helper()
	if _, err := api.AddUser.Call(t.Context(), r.Client, api.AddUserRequest{Name: name, Role: store.Member}); err != nil && !strings.Contains(err.Error(), "exists") {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), r.Client, api.CreateTokenRequest{Name: name + "-" + audience, User: name, Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret.Reveal()
}

// TestBodyThatNeverComes: whatever a request asks for, and whoever sends it, its
// connection ends if its body does not come.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), map[string]string{"NIZE_HTTP_BODY_TIMEOUT": "1s"})
	at := r.listens(t)
	forMCP, forAPI := r.tokenFor(t, "ann", store.ForMCP), r.tokenFor(t, "ann", store.ForAPI)
	const isJSON, ofMCP = "Content-Type: application/json", "Accept: application/json, text/event-stream"
	for _, c := range []struct {
		method, path string
		headers      []string
	}{
		{"POST", "/mcp", []string{isJSON, ofMCP}},
		{"POST", "/mcp", []string{isJSON, ofMCP, "Authorization: Bearer " + forMCP}},
		{"POST", "/mcp", []string{isJSON, ofMCP, "Authorization: Bearer " + forMCP, "MCP-Protocol-Version: 2026-07-28"}},
		{"POST", "/mcp", []string{isJSON, ofMCP, "Authorization: Bearer " + forMCP, "Mcp-Session-Id: x", "MCP-Protocol-Version: 2025-11-25"}},
		{"DELETE", "/mcp", nil},
		{"POST", "/auth/mcp-tokens", []string{isJSON}},
		{"POST", "/auth/mcp-tokens", []string{isJSON, "Authorization: Bearer " + forAPI}},
		{"POST", "/api/chat", []string{isJSON}},
		{"POST", "/api/chat", []string{isJSON, "Authorization: Bearer " + forAPI}},
		{"POST", "/oauth/register", []string{isJSON}},
		{"POST", "/oauth/token", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"POST", "/oauth/revoke", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"POST", "/login", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"POST", "/login/end", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"POST", "/connect/x", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{"POST", "/slack/events", []string{isJSON}},
		{"POST", "/app/api/conversations", []string{isJSON}},
		{"GET", "/healthz", nil},
		{"GET", "/metrics", nil},
		{"GET", "/login", nil},
		{"POST", "/no-such-thing", nil},
	} {
		for _, length := range []string{"Content-Length: 100", "Content-Length: 100000000", "Transfer-Encoding: chunked"} {
			conn := r.raw(t, at)
			conn.send(c.method, c.path, "", append([]string{length}, c.headers...)...)
			t.Run(c.method+c.path, func(t *testing.T) {
				t.Parallel()
				status, err := conn.status()
				if err != nil {
					t.Errorf("%v: no answer: %v", c.headers, err)
				}
				if _, err := io.Copy(io.Discard, conn.in); err != nil && !strings.Contains(err.Error(), "reset") {
					t.Errorf("%v, after %d: %v", c.headers, status, err)
				}
			})
		}
	}
}

// TestCrowdedListener: neither a stranger's connections nor those of one member keep
// others from being served, at the control socket neither; and status counts them.
func TestCrowdedListener(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), map[string]string{"NIZE_HTTP_MAX_CONNECTIONS": "100", "NIZE_HTTP_BODY_TIMEOUT": "1h"})
	at := r.listens(t)
	ann, mallory := r.tokenFor(t, "ann", store.ForAPI), r.tokenFor(t, "mallory", store.ForAPI)
	list := func(c *rawConn) {
		t.Helper()
		c.send("GET", "/auth/mcp-tokens", "", "Authorization: Bearer "+ann)
		if status, err := c.status(); status != http.StatusOK {
			t.Errorf("ann: %d %v", status, err)
		}
	}
	kept := r.raw(t, at)
	list(kept)
	for n := range 400 {
		c := r.raw(t, at)
		switch n % 4 {
		case 0:
			c.send("POST", "/mcp", "", "Content-Length: 5")
		case 1:
			c.send("POST", "/oauth/token", "", "Content-Length: 5", "Content-Type: application/x-www-form-urlencoded")
		case 2:
			c.send("POST", "/auth/mcp-tokens", "", "Content-Length: 5", "Authorization: Bearer "+mallory)
		}
	}
	list(kept)
	list(r.raw(t, at))
	c := r.raw(t, at)
	c.send("GET", "/healthz", "")
	if status, err := c.status(); status != http.StatusOK {
		t.Errorf("/healthz: %d %v", status, err)
	}
	st, err := api.GetStatus.Call(t.Context(), r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if n := st.Connections; n.Most != 100 || n.MostUnauthenticated != 16 || n.Open > 60 || n.Unauthenticated > 16 || n.Ended < 300 {
		t.Errorf("%+v", n)
	}
	found, err := api.Doctor.Call(t.Context(), r.Client, api.DoctorRequest{})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, f := range found.Findings {
		if f.Check == "connections" {
			told = f.Text.String()
		}
	}
	if !strings.Contains(told, "up to 100 connections: 16 unauthenticated") && !strings.Contains(told, "were refused") {
		t.Errorf("doctor: %q", told)
	}
}
