package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// rpcCall is a call of a tool as a client of 2026-07-28 sends it.
func rpcCall(tool, args string) (body string, headers []string) {
	body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return body, []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// TestInsufficientScope: a client that was signed in for some tools is told what
// it lacks for another, signs in again for that, and then has it. What its person
// may not use either is no tool.
func TestInsufficientScope(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	do := func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	}
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "read", Description: "Read a thing.", Do: do}, {Name: "write", Description: "Write a thing.", Do: do}}})
	_, err := api.AddServer.Call(t.Context(), r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Approval: store.ApproveNever}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, r)
	redirect := "http://localhost:1/cb"
	client := b.register("c", redirect)
	signIn := func(scope string) string {
		t.Helper()
		got, p := b.redeem(client, redirect, b.grant(r, client, redirect, "scope", scope).Get("code"))
		if got.Access == "" {
			t.Fatalf("no token: %s", p.body)
		}
		return got.Access
	}
	call := func(token, tool, args string) page {
		body, headers := rpcCall(tool, args)
		return b.post("/mcp", inJSON, body, append(headers, "Authorization", "Bearer "+token)...)
	}
	narrow := signIn("mcp tools:box:read expose:all expose:meta")
	for name, p := range map[string]page{
		"execute_tool":    call(narrow, "execute_tool", `{"tool_id":"box:write","params":{}}`),
		"get_tool_schema": call(narrow, "get_tool_schema", `{"tool_id":"box:write"}`),
		"by its name":     call(narrow, "box__write", `{}`),
	} {
		want := `Bearer error="insufficient_scope", scope="mcp tools:box:read expose:all expose:meta tools:box:write", resource_metadata="` + b.base + `/.well-known/oauth-protected-resource/mcp"`
		if got := p.header.Get("WWW-Authenticate"); p.status != http.StatusForbidden || got != want {
			t.Errorf("%s: %d %q, want 403 %q\n%s", name, p.status, got, want, p.body)
		}
	}
	for name, p := range map[string]page{
		"what it may":      call(narrow, "execute_tool", `{"tool_id":"box:read","params":{}}`),
		"no tool":          call(narrow, "execute_tool", `{"tool_id":"box:fly","params":{}}`),
		"nothing":          call(narrow, "execute_tool", `{}`),
		"after signing in": call(signIn("mcp tools:box:read tools:box:write"), "execute_tool", `{"tool_id":"box:write","params":{}}`),
	} {
		good := strings.HasPrefix(name, "what") || strings.HasPrefix(name, "after")
		if p.status != http.StatusOK || strings.Contains(p.body, "done") != good {
			t.Errorf("%s: %d %s", name, p.status, p.body)
		}
	}
}

// TestForgedPosts: each post wants the form of a page of this very browser.
func TestForgedPosts(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	const redirect = "http://localhost:1/cb"
	client := b.register("c", redirect)
	b.enter(r)
	first := b.get(authorizeURL(client, redirect))
	shown := b.get(first.location)
	sessions := b.get("/login")
	stranger := newBrowser(t, r)
	elsewhere := stranger.get(stranger.get("/login").location)
	for name, post := range map[string]struct {
		from         *browser
		path, fields string
		page         page
	}{
		"allowing":       {b, "/oauth/requests/" + strings.TrimPrefix(first.location, "/oauth/authorize?request="), "allow=yes", shown},
		"signing out":    {b, "/login/end", "what=all", sessions},
		"signing in":     {stranger, "/login", "secret=x", elsewhere},
		"typing numbers": {stranger, regexp.MustCompile(`/oauth/requests/[A-Za-z0-9_-]+`).FindString(elsewhere.body), "number=123456", elsewhere},
	} {
		good := "form=" + formOf(post.page)
		for kind, p := range map[string]page{
			"no form":         post.from.post(post.path, form, post.fields),
			"a wrong form":    post.from.post(post.path, form, post.fields+"&form="+strings.Repeat("0", 32)),
			"another's form":  post.from.post(post.path, form, post.fields+"&form="+map[bool]string{true: formOf(elsewhere), false: formOf(shown)}[post.from == b]),
			"another site":    post.from.post(post.path, form, post.fields+"&"+good, "Sec-Fetch-Site", "cross-site"),
			"a sister site":   post.from.post(post.path, form, post.fields+"&"+good, "Sec-Fetch-Site", "same-site"),
			"another origin":  post.from.post(post.path, form, post.fields+"&"+good, "Origin", "https://evil.example"),
			"no origin":       post.from.post(post.path, form, post.fields+"&"+good, "Origin", "null"),
			"another browser": newBrowser(t, r).post(post.path, form, post.fields+"&"+good),
			"as text":         post.from.post(post.path, "text/plain", post.fields+"&"+good),
		} {
			if p.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, kind, p.status)
			}
		}
	}
	if p := b.get("/login"); !strings.Contains(p.body, "You are signed in as") {
		t.Error("signed out by a forged post")
	}
	// No page can stand in a frame of another site, or run a script of one.
	for name, p := range map[string]page{"the consent": shown, "the sessions": sessions, "the code": elsewhere, "an error": b.get("/oauth/authorize")} {
		policy := p.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: %s lacks %s", name, policy, want)
			}
		}
		if strings.Contains(policy, "script-src 'unsafe") || p.header.Get("X-Content-Type-Options") != "nosniff" || p.header.Get("X-Frame-Options") != "DENY" || p.header.Get("Referrer-Policy") != "same-origin" || p.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, p.header)
		}
	}
}

// TestRefreshedAtOnce: devices that refresh with one token at the same time each
// get a living pair, and so does one whose answer was lost with the process.
func TestRefreshedAtOnce(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	r := &testDaemon{Client: k.Client, dir: k.dir}
	b := newBrowser(t, r)
	const redirect = "http://localhost:1/cb"
	client := b.register("c", redirect)
	got, _ := b.redeem(client, redirect, b.grant(r, client, redirect).Get("code"))
	var each [4]tokens
	var all sync.WaitGroup
	for i := range each {
		all.Go(func() {
			res, err := http.PostForm(b.base+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {got.Refresh}})
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if err := json.NewDecoder(res.Body).Decode(&each[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, one := range each {
		if !b.works(one.Access) || seen[one.Refresh] {
			t.Errorf("one of several at once: %q", one.Error)
		}
		seen[one.Refresh] = true
	}
	// The answer is on its way, and the process dies.
	lost, _ := b.refresh(client, each[0].Refresh)
	k.kill()
	k.start()
	b = browserAt(t, k.Client)
	again, p := b.refresh(client, each[0].Refresh)
	if !b.works(again.Access) || !b.works(lost.Access) || again.Refresh == lost.Refresh {
		t.Errorf("after the kill: %d %s", p.status, p.body)
	}
	if next, p := b.refresh(client, again.Refresh); !b.works(next.Access) {
		t.Errorf("and on: %d %s", p.status, p.body)
	}
}

// TestClockJumps: a clock that runs ahead and is set right ends nothing that
// somebody holds, and nothing that begins then.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	var off atomic.Int64
	r := open(t, t.TempDir(), nil, clock(&off))
	b := newBrowser(t, r)
	const redirect = "http://localhost:1/cb"
	client := b.register("c", redirect)
	got, _ := b.redeem(client, redirect, b.grant(r, client, redirect).Get("code"))
	off.Store(int64(20 * 24 * time.Hour))
	next, p := b.refresh(client, got.Refresh)
	if !b.works(next.Access) || b.works(got.Access) {
		t.Fatalf("20 days on: %d %s", p.status, p.body)
	}
	off.Store(-int64(24 * time.Hour))
	after, p := b.refresh(client, next.Refresh)
	if !b.works(after.Access) {
		t.Errorf("set back: %d %s", p.status, p.body)
	}
	fresh, p := b.redeem(client, redirect, b.grant(r, client, redirect).Get("code"))
	if !b.works(fresh.Access) {
		t.Errorf("signed in then: %d %s", p.status, p.body)
	}
	b.enter(r)
	if p := b.get("/login"); !strings.Contains(p.body, "You are signed in as") {
		t.Errorf("a browser then: %d", p.status)
	}
	// Nobody used it for 30 days: it is over.
	off.Store(int64(51 * 24 * time.Hour))
	if got, _ := b.refresh(client, after.Refresh); got.Error != "invalid_grant" || b.works(after.Access) {
		t.Errorf("30 days without use: %+v", got)
	}
	if p := b.get("/login"); strings.Contains(p.body, "You are signed in as") {
		t.Error("a browser that nobody used for 30 days is signed in")
	}
}

// TestNamedLikeAnother: what a registered client calls itself never stands for a
// host, on the page or in the list.
func TestNamedLikeAnother(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	const redirect = "http://localhost:1/cb"
	client := b.register("claude.ai\u202e <b>", redirect)
	_, p := b.open(authorizeURL(client, redirect))
	if !strings.Contains(p.body, "(an unverified name)") || strings.Contains(p.body, "<b>") || strings.Contains(p.body, "\u202e") {
		t.Errorf("the page: %s", p.body)
	}
	b.deny(r, p)
	b.redeem(client, redirect, b.grant(r, client, redirect).Get("code"))
	list, err := api.ListTokens.Call(t.Context(), r.Client, api.ListTokensRequest{})
	if err != nil || len(list.Items) != 1 || strings.Contains(list.Items[0].Name, ".") || !strings.HasPrefix(list.Items[0].Name, "oauth:claude-ai") {
		t.Errorf("tokens list: %+v %v", list.Items, err)
	}
}
