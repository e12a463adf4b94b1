package daemon_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/mcp/upstream/authtest"
	"nize/store"
)

// connecting is a daemon, a server behind an authorization server, and a browser.
type connecting struct {
	*testing.T
	*testDaemon
	auth *authtest.Service
	skew *atomic.Int64 // of the daemon's clock
}

func newConnecting(t *testing.T) *connecting {
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	w := &connecting{T: t, auth: authtest.New(behind.HTTP()), skew: new(atomic.Int64)}
	t.Cleanup(w.auth.Close)
	w.testDaemon = open(t, t.TempDir(), nil, func(o *daemon.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }
	})
	if _, err := api.AddServer.Call(t.Context(), w.Client, api.AddServerRequest{Server: store.Server{Name: "far", URL: w.auth.MCP}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *connecting) begin() api.LoginFlow {
	w.Helper()
	flow, err := api.LoginServer.Call(w.Context(), w.Client, api.LoginServerRequest{Name: "far"})
	if err != nil {
		w.Fatal(err)
	}
	return flow
}

func (w *connecting) state() string {
	w.Helper()
	l, err := api.GetLogin.Call(w.Context(), w.Client, api.LoginRequest{Name: "far"})
	if err != nil {
		w.Fatal(err)
	}
	return l.State
}

// browser has cookies, and follows nothing by itself.
func (w *connecting) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (w *connecting) do(b *http.Client, method, address, form string, header ...string) (status int, body string, h http.Header) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, address, strings.NewReader(form))
	if err != nil {
		w.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

var refreshTo = regexp.MustCompile(`http-equiv="refresh" content="\d+;url=([^"]+)"`)

// leave presses the page's button, and is sent to the service.
func (w *connecting) leave(b *http.Client, flow api.LoginFlow) (service string) {
	w.Helper()
	address, secret, _ := strings.Cut(flow.URL, "#")
	status, body, _ := w.do(b, "POST", address, "secret="+secret)
	next := refreshTo.FindStringSubmatch(body)
	if status != http.StatusOK || next == nil {
		w.Fatalf("the page answered %d: %s", status, body)
	}
	return html.UnescapeString(next[1])
}

// back is where the service sends the browser.
func (w *connecting) back(b *http.Client, service string) *url.URL {
	w.Helper()
	_, _, h := w.do(b, "GET", service, "")
	u, err := url.Parse(h.Get("Location"))
	if err != nil || u.Path != "/oauth/callback" {
		w.Fatalf("the service sends to %q", h.Get("Location"))
	}
	return u
}

// TestConnectEvents: who connected what, and who forgot it, is on record.
func TestConnectEvents(t *testing.T) {
	t.Parallel()
	w := newConnecting(t)
	last := newestEvent(t, w.testDaemon)
	b := w.browser()
	if status, body, _ := w.do(b, "GET", w.back(b, w.leave(b, w.begin())).String(), ""); status != http.StatusOK || !strings.Contains(body, "far is connected") {
		t.Fatalf("status %d: %s", status, body)
	}
	if w.state() != "connected" {
		t.Errorf("state %s", w.state())
	}
	if _, err := api.ForgetLogin.Call(t.Context(), w.Client, api.LoginRequest{Name: "far"}); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range peoplesEvents(t, w.testDaemon, last) {
		kinds = append(kinds, e.Kind+" "+e.Subject)
	}
	for _, want := range []string{"server.login far", "credential.put far/oauth", "credential.delete far/oauth"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("events %q lack %q", kinds, want)
		}
	}
	if w.auth.Families() != 0 {
		t.Error("what was forgotten was not revoked")
	}
}

// TestConnectAttacks: what comes back changes nothing unless it is the answer of
// the service that was asked, in the browser that was sent, once and in time.
func TestConnectAttacks(t *testing.T) {
	t.Parallel()
	w := newConnecting(t)
	unharmed := func(what string, status, want int) {
		t.Helper()
		if status != want || w.state() != "not connected" {
			t.Errorf("%s: status %d, want %d; the login is %s", what, status, want, w.state())
		}
	}
	stranger := w.browser()

	// The link: without its secret, from another site, by a second browser.
	flow, b := w.begin(), w.browser()
	page, secret, _ := strings.Cut(flow.URL, "#")
	status, body, h := w.do(stranger, "GET", page, "")
	unharmed("the page alone", status, http.StatusOK)
	if strings.Contains(body, secret) || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie") != "" {
		t.Errorf("the page: %v %s", h, body)
	}
	status, _, _ = w.do(stranger, "POST", page, "secret=guessed")
	unharmed("a guess", status, http.StatusNotFound)
	status, _, _ = w.do(stranger, "POST", page, "secret="+secret, "Origin", "https://evil.example")
	unharmed("a form of another site", status, http.StatusForbidden)
	status, _, _ = w.do(stranger, "POST", page, "secret="+secret, "Sec-Fetch-Site", "cross-site")
	unharmed("a form of another site that hides its name", status, http.StatusNotFound)
	service := w.leave(b, flow)
	status, _, _ = w.do(stranger, "POST", page, "secret="+secret)
	unharmed("a link used twice", status, http.StatusNotFound)
	if again := w.leave(b, flow); again != service {
		t.Errorf("the same browser is sent to %s, then to %s", service, again)
	}

	// The way back: without the cookie, with another state, with another's code.
	back := w.back(b, service)
	status, _, _ = w.do(stranger, "GET", back.String(), "")
	unharmed("the callback without the cookie", status, http.StatusBadRequest)
	with := func(key, value string) string {
		u := *back
		q := u.Query()
		if q.Set(key, value); value == "" {
			q.Del(key)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	for _, state := range []string{"", "other"} {
		status, _, _ = w.do(b, "GET", with("state", state), "")
		unharmed("another state", status, http.StatusBadRequest)
	}
	asked := w.auth.Count("POST /token")
	status, _, _ = w.do(b, "GET", with("iss", "https://evil.example"), "")
	unharmed("an answer of another issuer", status, http.StatusBadGateway)
	if w.auth.Count("POST /token") != asked {
		t.Error("its code was sent on")
	}
	status, _, _ = w.do(b, "GET", back.String(), "")
	unharmed("the right answer after that", status, http.StatusBadRequest)

	// An issuer that is announced and missing, and one whose error is forged.
	flow, b = w.begin(), w.browser()
	back = w.back(b, w.leave(b, flow))
	status, _, _ = w.do(b, "GET", with("iss", ""), "")
	unharmed("no issuer", status, http.StatusBadGateway)
	flow, b = w.begin(), w.browser()
	back = w.back(b, w.leave(b, flow))
	forged := strings.Replace(with("iss", "https://evil.example"), "code=", "error=FORGED&x=", 1)
	status, body, _ = w.do(b, "GET", forged, "")
	if unharmed("a forged error", status, http.StatusBadGateway); strings.Contains(body, "FORGED") {
		t.Error("the forged error was shown")
	}

	// A code of somebody else's login, put into one's own: its verifier is another.
	flow, b = w.begin(), w.browser()
	back = w.back(b, w.leave(b, flow))
	other := w.browser()
	stolen := w.back(other, w.leave(other, w.begin())).Query().Get("code")
	status, body, _ = w.do(b, "GET", with("code", stolen), "")
	unharmed("an injected code", status, http.StatusBadGateway)
	if !strings.Contains(body, "the verifier is wrong") {
		t.Errorf("an injected code: %s", body)
	}

	// Too late.
	flow, b = w.begin(), w.browser()
	back = w.back(b, w.leave(b, flow))
	w.skew.Store(int64(10*time.Minute + time.Second))
	status, _, _ = w.do(b, "GET", back.String(), "")
	unharmed("eleven minutes later", status, http.StatusBadRequest)
	status, _, _ = w.do(w.browser(), "GET", page, "")
	unharmed("a link that ended", status, http.StatusNotFound)
	w.skew.Store(0)

	// The server leads elsewhere by then.
	flow, b = w.begin(), w.browser()
	back = w.back(b, w.leave(b, flow))
	elsewhere := w.auth.MCP + "/other"
	if _, err := api.PatchServer.Call(t.Context(), w.Client, api.PatchServerRequest{Name: "far", URL: &elsewhere}); err != nil {
		t.Fatal(err)
	}
	status, _, _ = w.do(b, "GET", back.String(), "")
	unharmed("a server that was changed", status, http.StatusBadGateway)
}
