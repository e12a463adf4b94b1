package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/mcptest"
	"nize/mcp/view"
	"nize/store"
)

// shows is a tool whose results the view at the address shows.
func shows(name, uri string) mcptest.Tool {
	return mcptest.Tool{Name: name, Meta: json.RawMessage(`{"ui":{"resourceUri":"` + uri + `"},"nize/view":{"connect":["https://forged.example"]}}`)}
}

// TestViewsArePinned: what views declare is accepted with their tools, by an admin who
// was told; the HTML alone may change.
func TestViewsArePinned(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stateful", "modern"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, nil)
			m := mcptest.New(t, mcptest.Options{Stateless: kind == "modern", Tools: []mcptest.Tool{
				shows("plain", "ui://plain"), shows("reaches", "ui://reaches"), shows("listed", "ui://listed"), shows("both", "ui://both"), shows("missing", "ui://missing"), shows("text", "ui://text"),
			}})
			csp := func(domain string) json.RawMessage {
				return json.RawMessage(`{"ui":{"csp":{"connectDomains":["` + domain + `","http://plain.example"]}}}`)
			}
			reaches := mcptest.View{URI: "ui://reaches", MIMEType: view.MimeType, Text: "one", Meta: csp("https://a.example")}
			for _, v := range []mcptest.View{
				reaches, {URI: "ui://plain", MIMEType: view.MimeType, Text: "plain"},
				{URI: "ui://listed", MIMEType: view.MimeType, Text: "x", Listed: csp("https://list.example")},
				{URI: "ui://both", MIMEType: view.MimeType, Text: "x", Meta: json.RawMessage(`{"ui":{"csp":{}}}`), Listed: csp("https://list.example")},
				{URI: "ui://text", MIMEType: "text/html", Text: "x", Meta: csp("https://a.example")},
			} {
				m.SetView(v)
			}
			b.register(remote(m.HTTP()))
			for name, want := range map[string]string{"plain": "", "reaches": "https://a.example", "listed": "https://list.example", "both": "", "missing": "", "text": ""} {
				tool := b.tool("far:" + name)
				domains := strings.Join(view.Of(tool.Meta).Domains(), " ")
				held := tool.State == store.ToolQuarantined && slices.Contains(tool.Findings, "its view wants to reach "+want)
				if domains != want || held != (want != "") || held == (tool.State == store.ToolAccepted) {
					t.Errorf("%s is %s, reaches %q, and is said to: %q", name, tool.State, domains, tool.Findings)
				}
			}

			accepted := b.tool("far:reaches")
			if err := b.db.AcceptTool(t.Context(), admin, accepted.ID(), accepted.Pin); err != nil {
				t.Fatal(err)
			}
			state := func(want store.ToolState, when string) {
				t.Helper()
				b.sync(admin, "far")
				if got := b.tool("far:reaches"); got.State != want || want == store.ToolAccepted && got.Pin != accepted.Pin {
					t.Errorf("%s: %s %q", when, got.State, got.Findings)
				}
			}
			state(store.ToolAccepted, "accepted")
			reaches.Text = "two"
			m.SetView(reaches)
			state(store.ToolAccepted, "other HTML")
			m.RemoveView(reaches.URI)
			state(store.ToolAccepted, "a view that can't be read declares what it did")
			reaches.Meta = csp("https://b.example")
			m.SetView(reaches)
			state(store.ToolQuarantined, "another domain")
			reaches.Meta = csp("https://a.example")
			m.SetView(reaches)
			state(store.ToolAccepted, "the accepted one again")
			reaches.Meta = json.RawMessage(`{"ui":{"csp":{"connectDomains":["https://a.example"]},"permissions":{"clipboardWrite":{}}}}`)
			m.SetView(reaches)
			state(store.ToolQuarantined, "another permission")
			if got := b.tool("far:reaches").Findings; !slices.Contains(got, "its view wants to write to the clipboard") {
				t.Errorf("what is said of it: %q", got)
			}
			reaches.Meta = csp("https://a.example")
			m.SetView(reaches)
			for what, meta := range map[string]string{"another address": `{"ui":{"resourceUri":"ui://listed"}}`, "other callers": `{"ui":{"resourceUri":"ui://reaches","visibility":["app"]}}`} {
				m.SetTool(mcptest.Tool{Name: "reaches", Meta: json.RawMessage(meta)})
				state(store.ToolQuarantined, what)
				m.SetTool(shows("reaches", "ui://reaches"))
				state(store.ToolAccepted, "after "+what)
			}
			for _, said := range []string{`the view ui://text is left out: it is of the type \"text/html\"`, `the view ui://reaches declares \"http://plain.example\", which`} {
				if !strings.Contains(b.log.String(), said) {
					t.Errorf("the log does not say %s", said)
				}
			}
			reaches.Meta = csp("http://later.example")
			m.SetView(reaches)
			b.sync(admin, "far")
			if !strings.Contains(b.log.String(), "http://later.example") {
				t.Error("what a later list drops is not said")
			}
			reaches.Meta = csp("https://a.example")
			m.SetView(reaches)
			state(store.ToolAccepted, "at last")

			c := store.Call{Server: "far", Tool: "reaches", Pin: accepted.Pin}
			raw, err := b.ReadView(t.Context(), admin, c, reaches.URI)
			if err != nil || !strings.Contains(string(raw), "two") {
				t.Errorf("read: %s, %v", raw, err)
			}
			c.Pin = "another"
			if _, err = b.ReadView(t.Context(), admin, c, reaches.URI); err == nil {
				t.Error("it was read for a tool that is not as accepted")
			}
		})
	}
}

// TestViewsOfOnesOwn: a view that is read with a person's credential alone declares nothing
// when the tools are listed; what it does, an admin is asked when that person opens it first.
func TestViewsOfOnesOwn(t *testing.T) {
	t.Parallel()
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{shows("own", "ui://own")}})
	m.SetView(mcptest.View{URI: "ui://own", MIMEType: view.MimeType, Text: "mine", Meta: json.RawMessage(`{"ui":{"csp":{"connectDomains":["https://own.example"]}}}`)})
	behind, err := url.Parse(m.HTTP())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = behind.Scheme, behind.Host }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) // what is cut short is no request
		r.Body = io.NopCloser(bytes.NewReader(raw))
		var ask struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(raw, &ask) == nil && ask.Method == "resources/read" && r.Header.Get("Authorization") != "Bearer mine" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(ask.ID) + `,"error":{"code":-32002,"message":"not for you"}}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b := newBench(t, nil) // and it ends before its server
	b.secret("system", "", "TOKEN", "", "shared")
	b.secret("user", member.User, "TOKEN", "", "mine")
	b.register(withKey(front.URL + behind.Path))
	listed := b.tool("far:own")
	if listed.State != store.ToolAccepted || len(view.Of(listed.Meta).Domains()) != 0 {
		t.Fatalf("as it is listed: %s, %s", listed.State, listed.Meta)
	}
	read := func(by store.Caller) error {
		_, err := b.ReadView(t.Context(), by, store.Call{Server: "far", Tool: "own", Pin: b.tool("far:own").Accepted}, "ui://own")
		return err
	}
	if err := read(admin); err == nil || b.tool("far:own").State != store.ToolAccepted {
		t.Errorf("by who may not read it: %v, %s", err, b.tool("far:own").State)
	}
	if err := read(member); err != nil {
		t.Fatal(err)
	}
	held := b.tool("far:own")
	if held.State != store.ToolQuarantined || !slices.Contains(held.Findings, "its view wants to reach https://own.example") || held.Was == nil {
		t.Fatalf("after it was opened: %s, %q", held.State, held.Findings)
	}
	if err := read(member); err == nil {
		t.Error("it is read while it is held")
	}
	if err := b.db.AcceptTool(t.Context(), admin, held.ID(), held.Pin); err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{"accepted", "listed again"} {
		if err := read(member); err != nil {
			t.Errorf("%s: %v", again, err)
		}
		if got := b.tool("far:own"); got.State != store.ToolAccepted || got.Pin != held.Pin {
			t.Errorf("%s: %s %q", again, got.State, got.Findings)
		}
		b.good("far:own", `{}`, `{}`)
		b.sync(admin, "far")
	}
}

// TestSpoiltViews: a view that is too large for a session costs that session, once.
func TestSpoiltViews(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{shows("large", "ui://large"), echo}})
	m.SetView(mcptest.View{URI: "ui://large", MIMEType: view.MimeType, Text: strings.Repeat("x", view.MaxBytes+1)})
	b.register(remote(m.HTTP()))
	b.sync(admin, "far")
	if got := m.Calls("ui://large"); got != 1 {
		t.Errorf("it was read %d times", got)
	}
	if got := b.tool("far:large").State; got != store.ToolAccepted {
		t.Errorf("its tool is %s", got)
	}
	b.good("far:echo", `{}`, `{}`)
	if _, err := b.ReadView(t.Context(), admin, *b.call("far:large", `{}`), "ui://large"); err == nil {
		t.Error("it was read again")
	}
}

// TestViewsAreAnnounced: every server is told that nize shows views.
func TestViewsAreAnnounced(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		told := make(chan any, 100) // more than a list asks for
		s := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "1"}, nil)
		s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				if r, ok := req.(*sdk.ListToolsRequest); ok {
					told <- r.Session.InitializeParams().Capabilities.Extensions[view.Extension]
				}
				return next(ctx, method, req)
			}
		})
		s.AddTool(&sdk.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
		t.Cleanup(web.Close)
		b := newBench(t, nil) // and it ends before its server
		b.register(remote(web.URL))
		raw, err := json.Marshal(<-told)
		if err != nil || string(raw) != `{"mimeTypes":["text/html;profile=mcp-app"]}` {
			t.Errorf("stateless %v: %s, %v", stateless, raw, err)
		}
	}
}
