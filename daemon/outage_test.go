package daemon_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

// wire is what leads to a PostgreSQL, until it is cut. flow is held while nothing passes.
type wire struct {
	to   string
	flow sync.RWMutex
	mu   sync.Mutex
	cut  bool
	all  []net.Conn
}

// newWire returns the address of a database that wire leads to.
func newWire(t *testing.T, database store.Secret) (*wire, store.Secret) {
	t.Helper()
	u, err := url.Parse(database.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: u.Query().Get("host") + "/.s.PGSQL." + u.Query().Get("port")}
	if u.Host != "" {
		w.to = u.Host
	}
	u.Host, u.RawQuery = ln.Addr().String(), "sslmode=disable"
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.lead(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		w.set(true)
		running.Wait()
	})
	return w, store.NewSecret(u.String())
}

func (w *wire) lead(c net.Conn) {
	defer c.Close()
	network := "tcp"
	if strings.HasPrefix(w.to, "/") {
		network = "unix"
	}
	s, err := net.Dial(network, w.to)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	cut := w.cut
	w.all = append(w.all, c, s)
	w.mu.Unlock()
	if cut {
		return
	}
	go func() {
		w.pass(s, c) // it ends with either
		_ = s.Close()
	}()
	w.pass(c, s)
}

func (w *wire) pass(to io.Writer, from io.Reader) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		w.flow.RLock()
		_, err = to.Write(b[:n])
		w.flow.RUnlock()
		if err != nil {
			return
		}
	}
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, c := range w.all {
		_ = c.Close()
	}
	w.all = nil
}

// TestOutage: while the server of the database does not answer, nobody is told that
// they are signed out or that their token is bad; afterwards what was acknowledged is
// answered, by the same process.
func TestOutage(t *testing.T) {
	t.Parallel()
	cut, database := newWire(t, postgrestest.New(t))
	r := newReplica(t, database, nil, "NIZE_APPROVALS_MODE=all")
	r.works()
	ctx := t.Context()
	token := box(t, r)
	made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "api", Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProject.Call(ctx, r.Client, api.AddProjectRequest{Name: "sales"}); err != nil {
		t.Fatal(err)
	}
	key, err := api.CreateProjectKey.Call(ctx, r.Client, api.CreateProjectKeyRequest{Project: "sales"})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, "http://" + r.addr, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if p := b.signIn(r.Client, ""); p.status != http.StatusSeeOther {
		t.Fatalf("signing in: %d %s", p.status, p.body)
	}
	send := func(method, path, body string, header ...string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, text(t, resp), resp.Header
	}
	chat := []string{"Authorization", "Bearer " + made.Secret.Reveal()}
	round := `{"model":"offline/planner","messages":[{"role":"user","content":"Hello"}]}`
	asked := map[string]func() int{
		"the page": func() int { return b.get("/app/v1/me").status },
		"a stream of the page": func() int {
			ctx, leave := context.WithCancel(ctx)
			defer leave()
			status, _ := b.follow(ctx, "")
			return status
		},
		"a chat client": func() int { status, _, _ := send("GET", "/api/models", "", chat...); return status },
		"a program": func() int {
			status, _, _ := send("POST", "/llm-exec/round", round, "X-Api-Key", key.Secret.Reveal())
			return status
		},
		"tokens": func() int { status, _, _ := send("GET", "/auth/mcp-tokens", "", chat...); return status },
		"MCP": func() int {
			status := r.ask(http.DefaultClient, "http", "POST", "/mcp", token, "box:write").StatusCode
			if status == http.StatusInternalServerError { // as the SDK says of all but bad tokens
				status = http.StatusServiceUnavailable
			}
			return status
		},
	}
	all := func(want int) {
		t.Helper()
		for what, ask := range asked {
			r.until(what, func() bool {
				status := ask()
				if status != http.StatusOK && status != http.StatusServiceUnavailable {
					t.Errorf("%s: %d", what, status)
					return true
				}
				return status == want
			})
		}
	}
	all(http.StatusOK)

	var thread store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", `{"servers":["box"]}`).body), &thread); err != nil {
		t.Fatal(err)
	}
	if p := b.ask("chat/threads/"+thread.ID+"/messages", `{"key":"1","text":"Write something down."}`); p.status != http.StatusOK {
		t.Fatalf("a message: %d %s", p.status, p.body)
	}
	cut.set(true)
	// By what was read a moment ago they are answered for a while, and pages are asked
	// only so often.
	r.until("the end of that", func() bool { return asked["a chat client"]() == http.StatusServiceUnavailable })
	all(http.StatusServiceUnavailable)
	if _, body, h := send("POST", "/llm-exec/round", round, "X-Api-Key", key.Secret.Reveal()); h.Get("Retry-After") != "1" || !strings.Contains(body, "try again later") {
		t.Errorf("a program is told %s, %v", body, h)
	}
	cut.set(false)
	all(http.StatusOK)
	_, events := b.follow(ctx, thread.ID)
	// Calls of MCP clients that left when the wire was cut may wait as well: the card
	// that counts is this conversation's.
	until(t, events, "the card of what was asked for before", func(e pageEvent) bool {
		return e.name == "thread" && len(e.data.Cards) == 1 || e.name == "message" && e.data.Kind == "card"
	})
	if n := strings.Count(r.said.String(), "nized is ready"); n != 1 {
		t.Errorf("it began %d times", n)
	}
}

// TestCutOff: a nized whose database is silent, and which still has its lock, answers
// 503 to every kind of request before the database answers again, sends nothing upstream and tells
// no setting. What it had begun is answered as well.
func TestCutOff(t *testing.T) {
	t.Parallel()
	wire, database := newWire(t, postgrestest.New(t))
	r := newReplica(t, database, nil)
	r.works()
	ctx := t.Context()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "read", Description: "Read something.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}}})
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), TrustAnnotations: true}}); err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, audience := range []string{store.ForMCP, store.ForAPI} {
		token, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: audience, Audience: audience})
		if err != nil {
			t.Fatal(err)
		}
		made[audience] = token.Secret.Reveal()
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, "http://" + r.addr, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if p := b.signIn(r.Client, ""); p.status != http.StatusSeeOther {
		t.Fatalf("signing in: %d %s", p.status, p.body)
	}
	if got := text(t, r.ask(http.DefaultClient, "http", "POST", "/mcp", made[store.ForMCP], "box:read")); up.Calls("read") != 1 {
		t.Fatalf("a call that reads: %s, sent %d times", got, up.Calls("read"))
	}
	_, events := b.follow(ctx, "")
	want := func(what string, resp *http.Response) {
		t.Helper()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %s, Retry-After %q: %s", what, resp.Status, resp.Header.Get("Retry-After"), text(t, resp))
		}
	}
	get := func(path, host string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+r.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = host; len(header) > 0 {
			req.Header.Set(header[0], header[1])
		}
		resp, err := b.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}

	code := func(err error) string {
		var e *api.Error
		_ = errors.As(err, &e)
		return cmp.Or(e, &api.Error{}).Code
	}
	wire.flow.Lock()
	held := true
	release := func() {
		if held {
			held = false
			wire.flow.Unlock()
		}
	}
	t.Cleanup(release) // before the wire ends
	_, err = api.AddProject.Call(ctx, r.Client, api.AddProjectRequest{Name: "begun"})
	if code(err) != "no_database" {
		t.Errorf("a change that is under way: %v", err)
	}
	for range events { // it ends
	}
	for _, host := range []string{"", "balancer.example.com"} {
		want("/readyz", get("/readyz", host))
		if resp := get("/healthz", host); resp.StatusCode != http.StatusOK {
			t.Errorf("/healthz of %q: %s", host, resp.Status)
		}
	}
	want("MCP", r.ask(http.DefaultClient, "http", "POST", "/mcp", made[store.ForMCP], "box:read"))
	want("the page", get("/app/v1/me", ""))
	want("the page's files", get("/app/", ""))
	want("a stream of the page", get("/app/v1/events", "", "Accept", "text/event-stream"))
	want("a chat client", get("/api/models", "", "Authorization", "Bearer "+made[store.ForAPI]))
	want("tokens", get("/auth/mcp-tokens", "", "Authorization", "Bearer "+made[store.ForAPI]))
	want("signing in", get("/login", ""))
	if _, err := api.ListSettings.Call(ctx, r.Client, api.ListSettingsRequest{}); code(err) != "no_database" {
		t.Errorf("a setting: %v", err)
	}
	if s, err := api.GetStatus.Call(ctx, r.Client, api.Empty{}); err != nil || s.Database.Reachable {
		t.Errorf("status: %+v, %v", s.Database, err)
	}
	if n := up.Calls("read"); n != 1 {
		t.Errorf("%d calls were sent", n)
	}
	release()

	r.until("it works again", func() bool { return get("/readyz", "").StatusCode == http.StatusOK })
	r.until("a call", func() bool {
		r.ask(http.DefaultClient, "http", "POST", "/mcp", made[store.ForMCP], "box:read")
		return up.Calls("read") == 2
	})
	if _, err := api.AddProject.Call(ctx, r.Client, api.AddProjectRequest{Name: "next"}); err != nil {
		t.Errorf("the next change: %v", err)
	}
	if n := strings.Count(r.said.String(), "nized is ready"); n != 1 {
		t.Errorf("it began %d times", n)
	}
}
