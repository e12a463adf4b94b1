package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp"
	"nize/store"
)

// front is a fixture with its MCP server on a loopback port.
type front struct {
	*fixture
	server *mcp.Server
	url    string

	templates map[string]string // of native tools
	resource  func(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error)
}

func newFront(t *testing.T, change func(*store.Server)) *front {
	t.Helper()
	f, run := openFront(t, change)
	run()
	return f
}

// openFront serves before the server's Run, which run starts.
func openFront(t *testing.T, change func(*store.Server)) (f *front, run func()) {
	t.Helper()
	f = &front{fixture: newFixture(t, change)}
	return f, f.serve()
}

// serve serves the fixture in its current state. It returns a function that starts the
// server's Run.
func (f *front) serve() (run func()) {
	t, h := f.t, f.fixture
	t.Helper()
	s := mcp.NewServer(mcp.ServerOptions{Gateway: h.gateway, Tokens: h.db, Feed: h.db, Config: h.config, Version: "test", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }, Views: mcp.Views{
		Template: func(name string) string { return f.templates[name] },
		Resource: func(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error) {
			return f.resource(ctx, by, c, uri)
		},
	}})
	db := h.db
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	run = sync.OnceFunc(func() { go func() { done <- s.Run(ctx) }() })
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		run() // in case the test ended earlier
		s.CloseStreams()
		web.Close()
		cancel()
		if err := <-done; err != nil && h.db == db { // otherwise the fixture was reopened
			t.Errorf("mcp server: %v", err)
		}
	})
	f.server, f.url = s, web.URL+"/mcp"
	return run
}

func (f *front) token(name string, life time.Duration, scopes ...string) string {
	f.t.Helper()
	secret, made := store.NewToken(time.Now())
	_, err := f.db.CreateToken(f.t.Context(), f.root, store.Token{ID: made.ID, Name: name, User: f.root.User, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Scopes: scopes, Created: time.Now(), Expires: time.Now().Add(life)}, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return secret.Reveal()
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func (f *front) client(token, version string, opt *sdk.ClientOptions) *sdk.ClientSession {
	f.t.Helper()
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opt)
	s, err := c.Connect(f.t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url, HTTPClient: &http.Client{Transport: bearer{token, transport}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		f.t.Fatalf("connecting with %s: %v", version, err)
	}
	f.t.Cleanup(func() { _ = s.Close() }) // some tests revoke its token first
	return s
}

// structured calls a tool and decodes its structured answer.
func structured[T any](t *testing.T, s *sdk.ClientSession, tool string, args any) (T, *sdk.CallToolResult) {
	t.Helper()
	var out T
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%s answered %s: %v", tool, b, err)
	}
	return out, r
}

type ran struct {
	Success  bool             `json:"success"`
	ToolName string           `json:"tool_name"`
	Result   json.RawMessage  `json:"result"`
	Error    *store.CallError `json:"error"`
}

func TestBothWires(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			s := f.client(f.token("client", time.Hour), version, nil)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if tool.OutputSchema == nil || tool.Annotations == nil {
					t.Errorf("%s has no output schema or annotations", tool.Name)
				}
			}
			if got := strings.Join(names, " "); got != "browse_tool_domain discover_tools execute_tool get_tool_schema list_tool_domains" {
				t.Errorf("tools %s", got)
			}
			found, _ := structured[struct {
				Tools []struct {
					ToolID string `json:"tool_id"`
				} `json:"tools"`
			}](t, s, "discover_tools", map[string]any{"query": "look at something"})
			if len(found.Tools) == 0 || found.Tools[0].ToolID != "box:look" {
				t.Errorf("found %+v", found)
			}
			got, r := structured[ran](t, s, "execute_tool", map[string]any{"tool_id": "box:look", "params": map[string]any{"what": "x"}})
			if !got.Success || r.IsError || len(r.Content) != 1 {
				t.Errorf("execute_tool: %+v %+v", got, r)
			}
			got, r = structured[ran](t, s, "execute_tool", map[string]any{"tool_id": "box:look", "params": map[string]any{}})
			if got.Success || !r.IsError || got.Error.Code != store.CodeInvalid {
				t.Errorf("execute_tool without an argument: %+v", got)
			}
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"}); err == nil {
				t.Error("an unknown tool was served")
			}
		})
	}
}

// TestNothingFound: a search without results names the nearest matches and the domains, but
// nothing that the caller may not use.
func TestNothingFound(t *testing.T) {
	f := newFront(t, nil)
	type answer struct {
		Tools []struct{} `json:"tools"`
		Note  string     `json:"note"`
	}
	ask := map[string]any{"query": "look at the moons of Jupiter", "min_similarity": 1}
	s := f.client(f.token("all", time.Hour), "2026-07-28", nil)
	got, r := structured[answer](t, s, "discover_tools", ask)
	if len(got.Tools) > 0 || !strings.Contains(got.Note, "box:look (") || !strings.Contains(got.Note, "Domains: box.") {
		t.Errorf("%+v", got)
	}
	if text := r.Content[0].(*sdk.TextContent).Text; !strings.HasPrefix(text, "no tool found\n") || !strings.Contains(text, "box:look") {
		t.Errorf("as text: %q", text)
	}
	s = f.client(f.token("other", time.Hour, "tools:cat:*"), "2026-07-28", nil)
	if got, _ := structured[answer](t, s, "discover_tools", ask); strings.Contains(got.Note, "box") {
		t.Errorf("to who may not use it: %q", got.Note)
	}
	// A successful search has no such note.
	s = f.client(f.token("found", time.Hour), "2026-07-28", nil)
	if got, _ := structured[answer](t, s, "discover_tools", map[string]any{"query": "look"}); len(got.Tools) == 0 || strings.Contains(got.Note, "Domains:") {
		t.Errorf("found: %+v", got)
	}
}

func TestWireKeepsBytes(t *testing.T) {
	f := newFront(t, nil)
	f.runner.raw = json.RawMessage(`{"content":[{"type":"hologram","data":1e400,"id":9007199254740993},{"type":"text","text":"<&>","x":{"y":1.0}}],"structuredContent":{"id":12345678901234567890},"_meta":{"n":9007199254740993}}`)
	token := f.token("client", time.Hour)
	body := f.post(token, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x","n":9007199254740993}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	for _, want := range []string{`"type":"hologram","data":1e400,"id":9007199254740993`, `"x":{"y":1.0}`, `"id":12345678901234567890`, `"n":9007199254740993`, `"resultType":"complete"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}

// post sends one modern request and returns the body of the answer.
func (f *front) post(token, version, body string) string {
	f.t.Helper()
	return f.send(token, version, "tools/call", "execute_tool", body)
}

func (f *front) postAs(token, method, name, body string) string {
	f.t.Helper()
	return f.send(token, "2026-07-28", method, name, body)
}

func (f *front) send(token, version, method, name, body string) string {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", version)
	req.Header.Set("Mcp-Method", method)
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.Status + "\n" + string(b)
}

func TestTokens(t *testing.T) {
	f := newFront(t, nil)
	good := f.token("good", time.Hour)
	expired := ""
	for life := 200 * time.Millisecond; expired == ""; life *= 2 { // the lifetime grows until a busy machine can store the token in time
		secret, made := store.NewToken(time.Now())
		_, err := f.db.CreateToken(t.Context(), f.root, store.Token{ID: made.ID, Name: "expired", User: f.root.User, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Created: time.Now(), Expires: time.Now().Add(life)}, false)
		switch {
		case err == nil:
			expired = secret.Reveal()
			<-time.After(life) // the token expires by the clock
		case life > time.Minute:
			t.Fatal(err)
		}
	}
	revoked := f.token("revoked", time.Hour)
	if _, err := f.db.RevokeTokens(t.Context(), f.root, f.root.User, "revoked"); err != nil {
		t.Fatal(err)
	}
	mistyped := []byte(good)
	mistyped[10] ^= 1
	for name, c := range map[string]struct{ token, want string }{
		"none":     {"", "401"},
		"mistyped": {string(mistyped), "mistyped"},
		"unknown":  {func() string { s, _ := store.NewToken(time.Now()); return s.Reveal() }(), "not known"},
		"expired":  {expired, "expired"},
		"revoked":  {revoked, "revoked"},
		"good":     {good, "200 OK"},
	} {
		body := f.post(c.token, "2025-11-25", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if !strings.Contains(body, c.want) {
			t.Errorf("%s token: %s, want %s", name, body, c.want)
		}
		if c.token != "" && name != "good" && !strings.HasPrefix(body, "401") || strings.Contains(body, c.token) && c.token != "" {
			t.Errorf("%s token: %s", name, body)
		}
	}
}

func TestTokenScope(t *testing.T) {
	f := newFront(t, nil)
	s := f.client(f.token("narrow", time.Hour, "tools:box:write"), "2025-11-25", nil)
	got, _ := structured[ran](t, s, "execute_tool", map[string]any{"tool_id": "box:look", "params": map[string]any{"what": "x"}})
	if got.Success || got.Error.Code != store.CodeNotFound || strings.Contains(got.Error.Message.String(), "box:look?") {
		t.Errorf("outside the scope: %+v", got.Error)
	}
}

// A call that needs approval waits, reports progress, and runs once after the decision.
func TestWaitsWithProgress(t *testing.T) {
	f := newFront(t, nil)
	told := make(chan string, 16)
	opt := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Message }}
	s := f.client(f.token("client", time.Hour), "2025-11-25", opt)
	answer := make(chan *sdk.CallToolResult, 2)
	call := func() {
		p := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}
		p.SetProgressToken("p")
		r, err := s.CallTool(t.Context(), p)
		if err != nil {
			t.Errorf("execute_tool: %v", err)
		}
		answer <- r
	}
	go call()
	if message := <-told; !strings.Contains(message, "nizectl approvals show") {
		t.Errorf("told %q", message)
	}
	go call() // the same call by the same token joins
	<-told
	waiting, err := f.db.ListCalls(t.Context(), store.CallQuery{Waiting: true})
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%d calls wait (%v), want 1", len(waiting), err)
	}
	if _, err := f.gateway.Decide(t.Context(), f.root, waiting[0].ID, store.Decision{Verb: store.Approve, Digest: waiting[0].Digest}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := <-answer; r == nil || r.IsError {
			t.Errorf("answer %+v", r)
		}
	}
	if n := f.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// A client that lost its connection during a session may reconnect, so its call goes on
// waiting. Its card says that nobody is waiting for the result.
func TestCallerGone(t *testing.T) {
	f := newFront(t, nil)
	left := make(chan string, 1)
	f.gateway.CallerLeft = func(call string) { left <- call }
	token, session := f.token("client", time.Hour), ""
	send := func(ctx context.Context, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		return http.DefaultClient.Do(req)
	}
	begun, err := send(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	begun.Body.Close()
	session = begun.Header.Get("Mcp-Session-Id")
	ready, err := send(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		t.Fatal(err)
	}
	ready.Body.Close()
	ctx, drop := context.WithCancel(t.Context())
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		if r, err := send(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"x"}},"_meta":{"progressToken":"p"}}}`); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}()
	var id string
	for change, err := range f.db.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Kind == "call" && change.State == store.Pending {
			id = change.ID
			break
		}
	}
	card, err := f.gateway.Card(t.Context(), id)
	if err != nil || card.Gone || card.Token != "client" {
		t.Errorf("while it waits: %+v, %v", card.CardOrigin, err)
	}
	drop()
	<-dropped
	if got := <-left; got != id {
		t.Errorf("the caller of %s left, not of %s", got, id)
	}
	if card, err = f.gateway.Card(t.Context(), id); err != nil || !card.Gone || card.State != store.Pending {
		t.Errorf("after it left: %+v, %s, %v", card.CardOrigin, card.State, err)
	}
}

// A waiting call ends if its caller leaves.
func TestCallerLeaves(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			s := f.client(f.token("client", time.Hour), version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			watch, early := context.WithCancel(t.Context())
			go func() {
				defer close(gone)
				defer early()
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}})
				if err == nil {
					t.Error("the call came back without a decision")
				}
			}()
			var id string
			for c := range f.db.Watch(watch, 0) {
				if c.Kind == "call" && c.State == store.Pending {
					id = c.ID
					break
				}
			}
			cancel()
			<-gone
			if c := f.wait(id); c.State != store.Cancelled || f.runner.runs.Load() != 0 {
				t.Errorf("the call is %s after %d runs, want cancelled after none", c.State, f.runner.runs.Load())
			}
		})
	}
}

func TestRevokingEndsStreams(t *testing.T) {
	for name, first := range map[string]bool{"while the feed is followed": true, "before it is": false} {
		t.Run(name, func(t *testing.T) { testRevokingEndsStreams(t, first) })
	}
}

// testRevokingEndsStreams starts the server first, or after the token is revoked.
func testRevokingEndsStreams(t *testing.T, first bool) {
	f, run := openFront(t, nil)
	if first {
		run()
	}
	s := f.client(f.token("client", time.Hour), "2025-11-25", nil)
	ended := make(chan error, 1)
	watch, early := context.WithCancel(t.Context())
	go func() {
		defer early()
		_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}})
		ended <- err
	}()
	for c := range f.db.Watch(watch, 0) {
		if c.Kind == "call" && c.State == store.Pending {
			break
		}
	}
	if _, err := f.db.RevokeTokens(t.Context(), f.root, "", ""); err != nil {
		t.Fatal(err)
	}
	run()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the stream of a revoked token goes on")
	}
}

// The fast path for known sessions: cancellation, other users, ended sessions, and requests
// that it passes to the SDK.
func TestShortcut(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("client", time.Hour)
	send := func(token, session, method, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, f.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	text := func(r *http.Response) string {
		t.Helper()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	begun := send(token, "", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := begun.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("no session: %s", begun.Status)
	}
	send(token, session, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	look := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x","n":9007199254740993}}}}`
	r := send(token, session, "POST", look)
	if body := text(r); r.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"id":"a"`) || !strings.Contains(body, `"n":9007199254740993`) || !strings.Contains(body, `"success":true`) {
		t.Errorf("%s %s", r.Header.Get("Content-Type"), body)
	}
	for what, body := range map[string]string{
		"progress":     `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x"}},"_meta":{"progressToken":1}}}`,
		"another tool": `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no_such"}}`,
		"a list":       `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`,
	} {
		if r := send(token, session, "POST", body); r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%s was not left to the SDK: %s %s", what, r.Status, r.Header.Get("Content-Type"))
		}
	}
	// Somebody else's session.
	secret, made := store.NewToken(time.Now())
	if _, err := f.db.CreateToken(t.Context(), f.root, store.Token{ID: made.ID, Name: "m", User: f.member.User, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Created: time.Now(), Expires: time.Now().Add(time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	if r := send(secret.Reveal(), session, "POST", look); r.StatusCode != http.StatusForbidden {
		t.Errorf("somebody else's session: %s", r.Status)
	}
	// A call that waits comes as an event stream, and is cancelled by its id.
	r = send(token, session, "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"x"}}}}`)
	if ct := r.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("a call that waits is answered as %s", ct)
	}
	send(token, session, "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if body := text(r); !strings.Contains(body, `"code":"cancelled"`) {
		t.Errorf("after the cancelling: %s", body)
	}
	if r := send(token, session, "DELETE", ""); r.StatusCode >= 300 {
		t.Errorf("ending the session: %s", r.Status)
	}
	if r := send(token, session, "POST", look); r.StatusCode != http.StatusNotFound {
		t.Errorf("an ended session: %s", r.Status)
	}
	if n := f.runner.runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

func TestAnswersAreSmall(t *testing.T) {
	f := newFront(t, nil)
	var list bytes.Buffer
	s := f.client(f.token("client", time.Hour), "2025-11-25", nil)
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&list).Encode(tools); err != nil {
		t.Fatal(err)
	}
	if list.Len() > 5000 { // the text that a model reads before anything else
		t.Errorf("tools/list has %d bytes, want at most 5000", list.Len())
	}
}
