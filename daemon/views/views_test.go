package views

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/store"
)

// fixture is a gateway with calls and tools, and what is told of it.
type fixture struct {
	*Views
	calls  map[string]store.Call
	tools  map[string]*policy.Tool
	denied error
	listed []*policy.Tool
	at     string // the origin of views
	now    time.Time
	events []store.Event
	told   []store.ViewContext
	state  json.RawMessage
	read   func(c store.Call, uri string) (json.RawMessage, error)
	reader store.Caller // with whose credential it was read last
	log    strings.Builder
}

func (h *fixture) GetCall(_ context.Context, _ store.Caller, req api.CallRequest) (store.Call, error) {
	c, ok := h.calls[req.ID]
	if !ok {
		return c, fmt.Errorf("call %s: %w", req.ID, store.ErrNotFound)
	}
	return c, nil
}

func (h *fixture) Get(id string) (*policy.Tool, bool) {
	t, ok := h.tools[id]
	return t, ok
}

func (h *fixture) ToolIDs(context.Context) ([]string, error) { return nil, nil }

func (h *fixture) Usable(context.Context, store.Caller, store.Call) error { return h.denied }

func (h *fixture) Listed(context.Context, store.Caller, store.Call) ([]*policy.Tool, error) {
	return h.listed, nil
}

func (h *fixture) AddEvent(_ store.Caller, e store.Event) { h.events = append(h.events, e) }

func (h *fixture) PutViewContext(_ context.Context, thread string, told store.ViewContext) error {
	if thread != "t" {
		return store.ErrNotFound
	}
	h.told = append(h.told, told)
	return nil
}

func (h *fixture) PutViewState(_ context.Context, _, call, user string, state json.RawMessage) error {
	h.state = json.RawMessage(call + user + string(state))
	return nil
}

func (h *fixture) GetViewState(_ context.Context, call, user string) (json.RawMessage, error) {
	if state, ok := strings.CutPrefix(string(h.state), call+user); ok {
		return json.RawMessage(state), nil
	}
	return nil, store.ErrNotFound
}

var ann, ben = store.Caller{User: "ann", Surface: store.OnWeb}, store.Caller{User: "ben", Role: store.Admin, Surface: store.OnWeb}

// newFixture has a call "c" of Ann's that is done, of a tool with a template.
func newFixture(t *testing.T) *fixture {
	h := &fixture{calls: map[string]store.Call{}, tools: map[string]*policy.Tool{}, now: time.Now()}
	h.put("native:chart", "")
	h.calls["c"] = store.Call{ID: "c", Server: "native", Tool: "chart", By: "ann", State: store.Done, Args: json.RawMessage(`{"q":"in"}`),
		Result: &store.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":{"text":"</script><script>steal()</script>"}}`)}}
	h.Views = New(Options{
		Config: store.DefaultsOf(Settings),
		Calls:  h, Tools: h, Rights: h, Kept: h, Events: h, Now: func() time.Time { return h.now }, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
		Widgets: func() string { return h.at },
		Resource: func(_ context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error) {
			h.reader = by
			return h.read(c, uri)
		},
		Template: func(name string) string { return map[string]string{"chart": "<p>x<script>draw()</script>"}[name] },
	})
	return h
}

func (h *fixture) put(id, meta string) {
	server, name, _ := store.SplitToolID(id)
	h.tools[id] = policy.NewTool(store.Tool{Server: server, Name: name, Meta: json.RawMessage(meta), State: store.ToolAccepted, Pin: "p", Accepted: "p", InputSchema: json.RawMessage(`{"type":"object"}`)}, &store.Server{Name: server})
}

// fetch asks for a frame by its ticket.
func (h *fixture) fetch(ticket, dest string) *httptest.ResponseRecorder {
	return h.fetchAt(ticket, dest, "")
}

// fetchAt does so at the host of a server's views.
func (h *fixture) fetchAt(ticket, dest, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/app/frames/"+ticket, nil)
	r.Header.Set("Sec-Fetch-Dest", dest)
	w := httptest.NewRecorder()
	h.Serve(w, r, ticket, host)
	return w
}

// TestOpen: a view is opened by who may read the result, and fetched once.
func TestOpen(t *testing.T) {
	h := newFixture(t)
	f, err := h.Open(t.Context(), ann, OpenRequest{Call: "c", Theme: "dark", Locale: "zh-Hans,en;q=0.5", Page: "http://nize.example"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Server != "native" || f.Tool.Name != "chart" || string(f.Arguments) != `{"q":"in"}` || len(f.Ticket) != 43 {
		t.Errorf("the frame: %+v", f)
	}
	if len(h.events) != 1 || h.events[0].Kind != "view.open" || h.events[0].Subject != "c" || !strings.Contains(string(h.events[0].Data), `"sha256":"`) {
		t.Errorf("events: %+v", h.events)
	}
	if got := h.fetch(f.Ticket, "document"); got.Code != http.StatusNotFound {
		t.Errorf("as a page of its own: %d", got.Code)
	}
	got := h.fetch(f.Ticket, "iframe")
	head := got.Header()
	if csp := head.Get("Content-Security-Policy"); got.Code != 200 || !strings.HasPrefix(csp, "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'nonce-") || !strings.HasSuffix(csp, "frame-ancestors http://nize.example") {
		t.Errorf("%d, %s", got.Code, csp)
	}
	if head.Get("Cache-Control") != "no-store" || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Referrer-Policy") != "no-referrer" || head.Get("Connection-Allowlist") != "()" {
		t.Errorf("headers: %v", head)
	}
	page := got.Body.String()
	if !strings.Contains(page, `"theme":"dark","locale":"zh-CN","toolInput":{"q":"in"},"toolOutput":{"text":"\u003c/script\u003e`) || strings.Contains(page, "<script>") || strings.Count(page, "</script>") != 3 {
		t.Errorf("the page: %s", page)
	}
	if got := h.fetch(f.Ticket, "iframe"); got.Code != http.StatusNotFound {
		t.Errorf("a second time: %d", got.Code)
	}
	if f, err = h.Open(t.Context(), ann, OpenRequest{Call: "c"}); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(ticketTime)
	if got := h.fetch(f.Ticket, "iframe"); got.Code != http.StatusNotFound {
		t.Errorf("too late: %d", got.Code)
	}
}

// Of views that are opened at once each has its ticket.
func TestTicketsAtOnce(t *testing.T) {
	h := newFixture(t)
	h.Now = time.Now
	for range 2000 {
		var tickets [5]string
		var wg sync.WaitGroup
		for i := range tickets {
			wg.Go(func() { tickets[i], _ = h.hold(page{html: []byte("x")}) })
		}
		wg.Wait()
		for _, ticket := range tickets {
			if w := h.fetch(ticket, "iframe"); w.Code != http.StatusOK {
				t.Fatalf("one is answered %d", w.Code)
			}
		}
	}
}

// TestServersView: a server's view is read for who looks, from that server and as its
// tool was accepted, and gets what it declares of what was accepted.
func TestServersView(t *testing.T) {
	h := newFixture(t)
	h.put("far:show", `{"ui":{"resourceUri":"ui://far/show"},"nize/view":{"resource":["https://a.x","https://b.x"],"clipboard":true}}`)
	c := store.Call{ID: "f", Server: "far", Tool: "show", By: "ann", State: store.Failed, Args: json.RawMessage(`{}`), Result: &store.Result{IsError: true, Raw: json.RawMessage(`{"isError":true,"content":[]}`)}}
	h.calls["f"] = c
	for kind, want := range map[string]string{"text/html;profile=mcp-app": "<p>view", "text/html+skybridge": "", "text/plain": ""} {
		h.read = func(c store.Call, uri string) (json.RawMessage, error) {
			if c.Server != "far" || c.Pin != "p" || uri != "ui://far/show" {
				t.Errorf("%s of %s, %q was read", uri, c.ToolID(), c.Pin)
			}
			return json.RawMessage(`{"contents":[{"mimeType":"` + kind + `","text":"<p>view","_meta":{"ui":{"csp":{"resourceDomains":["https://b.x","https://c.x"]}}}}]}`), nil
		}
		f, err := h.Open(t.Context(), ann, OpenRequest{Call: "f"})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", kind, err)
		}
		if h.reader.User != "ann" {
			t.Errorf("it was read for %s", h.reader.User)
		}
		if err != nil {
			if said := h.log.String(); !strings.Contains(said, `msg="a view is left out" tool=far:show call=f err="it is of the type \"`+kind+`\" instead of`) {
				t.Errorf("the log says %q", said)
			}
			continue
		}
		if f, err := h.OpenFor(t.Context(), ben, ann, OpenRequest{Call: "f"}); err != nil || h.reader.User != "ann" || len(h.fetch(f.Ticket, "iframe").Body.String()) == 0 {
			t.Errorf("for who has a link it was read for %s, %v", h.reader.User, err)
		}
		h.events = h.events[:1]
		if raw, _ := json.Marshal(f.Granted); string(raw) != `{"csp":{"resourceDomains":["https://b.x"]},"permissions":{}}` {
			t.Errorf("granted: %s", raw)
		}
		got := h.fetch(f.Ticket, "iframe")
		if csp := got.Header().Get("Content-Security-Policy"); !strings.HasSuffix(got.Body.String(), "</script>\n"+want) || got.Header().Get("Connection-Allowlist") != `("https://b.x")` || !strings.Contains(csp, "script-src 'unsafe-inline' https://b.x; ") {
			t.Errorf("%s, under %s", got.Body, csp)
		}
	}
	sum := sha256.Sum256([]byte("<p>view"))
	if len(h.events) != 1 || !strings.Contains(string(h.events[0].Data), hex.EncodeToString(sum[:])) {
		t.Errorf("events: %+v", h.events)
	}
}

// TestHosts: with an origin of their own, the views of a server are at its host alone.
func TestHosts(t *testing.T) {
	h := newFixture(t)
	h.at = "https://*.apps.example"
	f, err := h.Open(t.Context(), ann, OpenRequest{Call: "c", Page: "https://nize.example"})
	sum := sha256.Sum256([]byte("native"))
	host := hex.EncodeToString(sum[:])[:32]
	if err != nil || f.Origin != "https://"+host+".apps.example" {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, other := range []string{"", hostOf("far")} {
		if got := h.fetchAt(f.Ticket, "iframe", other); got.Code != http.StatusNotFound {
			t.Errorf("at %q: %d", other, got.Code)
		}
	}
	got := h.fetchAt(f.Ticket, "iframe", host)
	if csp := got.Header().Get("Content-Security-Policy"); got.Code != 200 || !strings.HasPrefix(csp, "sandbox allow-scripts allow-forms allow-same-origin; default-src 'none'; ") || !strings.HasSuffix(csp, "frame-ancestors https://nize.example") {
		t.Errorf("%d, %s", got.Code, csp)
	}
	h.at = ""
	if f, err = h.Open(t.Context(), ann, OpenRequest{Call: "c"}); err != nil || f.Origin != "" {
		t.Fatalf("%+v, %v", f, err)
	}
	if got := h.fetchAt(f.Ticket, "iframe", host); got.Code != http.StatusNotFound {
		t.Errorf("a view without an origin, at a host: %d", got.Code)
	}
	if got := h.fetch(f.Ticket, "iframe"); !strings.HasSuffix(got.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("for no page: %v", got.Header())
	}
}

// TestRunning: the view of a server's tool is there while its call runs, without a
// result; before that there is none yet, and then its page hears how the call ended.
func TestRunning(t *testing.T) {
	h := newFixture(t)
	h.put("far:show", `{"ui":{"resourceUri":"ui://far/show"}}`)
	h.read = func(store.Call, string) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":[{"mimeType":"text/html;profile=mcp-app","text":"<p>view"}]}`), nil
	}
	raw := &store.Result{Raw: json.RawMessage(`{"content":["x"]}`)}
	for _, c := range []struct {
		server, tool string
		state        store.State
		result       *store.Result
		opens        error
		ended        string
	}{
		{"far", "show", store.Planned, nil, store.ErrConflict, "waits"},
		{"far", "show", store.Pending, nil, store.ErrConflict, "waits"},
		{"far", "show", store.Running, nil, nil, "waits"},
		{"far", "show", store.Done, raw, nil, `{"content":["x"]}`},
		{"far", "show", store.Failed, &store.Result{Error: &store.CallError{Message: store.Plain("no answer")}}, store.ErrNotFound, "-32000 no answer"},
		{"far", "show", store.Lost, nil, store.ErrNotFound, "-32000 outcome unknown: so it is"},
		{"far", "show", store.Expired, nil, store.ErrNotFound, "-32000 expired: so it is"},
		{"native", "chart", store.Running, nil, store.ErrNotFound, "waits"},
	} {
		h.calls["f"] = store.Call{ID: "f", Server: c.server, Tool: c.tool, By: "ann", State: c.state, Args: json.RawMessage(`{"q":1}`), Result: c.result, Reason: store.Plain("so it is")}
		f, err := h.Open(t.Context(), ann, OpenRequest{Call: "f"})
		if !errors.Is(err, c.opens) || err == nil && (string(f.Arguments) != `{"q":1}` || (len(f.Result) > 0) != c.state.Final()) {
			t.Errorf("%s %s: %+v, %v", c.tool, c.state, f, err)
		}
		out, err := h.Outcome(t.Context(), ann, OutcomeRequest{Call: "f", ID: "f"})
		got := string(out.Result)
		switch {
		case out.Pending != "":
			got = "waits"
		case out.Error != nil:
			got = fmt.Sprint(out.Error.Code, " ", out.Error.Message)
		}
		if err != nil || got != c.ended {
			t.Errorf("%s %s ended with %s, %v", c.tool, c.state, got, err)
		}
		if _, err := h.Outcome(t.Context(), ben, OutcomeRequest{Call: "f", ID: "f"}); err == nil {
			t.Error("for somebody else")
		}
	}
}

// TestNoView is what has none, or none for this reader.
func TestNoView(t *testing.T) {
	for name, change := range map[string]func(h *fixture, c *store.Call) store.Caller{
		"an admin, of another's call": func(*fixture, *store.Call) store.Caller { return ben },
		"a call that waits":           func(_ *fixture, c *store.Call) store.Caller { c.State = store.Pending; return ann },
		"a call without a result":     func(_ *fixture, c *store.Call) store.Caller { c.Result = nil; return ann },
		"a tool without a view": func(h *fixture, c *store.Call) store.Caller {
			h.put("native:plain", "")
			c.Tool = "plain"
			return ann
		},
		"a server's tool of that name": func(h *fixture, c *store.Call) store.Caller {
			h.put("other:chart", "")
			c.Server = "other"
			return ann
		},
		"a tool that is held": func(h *fixture, _ *store.Call) store.Caller {
			h.tools["native:chart"].State = store.ToolQuarantined
			return ann
		},
		"a tool that is gone": func(h *fixture, _ *store.Call) store.Caller { delete(h.tools, "native:chart"); return ann },
		"a tool that they may not use": func(h *fixture, _ *store.Call) store.Caller {
			h.denied = errors.New("not for you")
			return ann
		},
	} {
		h := newFixture(t)
		c := h.calls["c"]
		by := change(h, &c)
		h.calls["c"] = c
		if f, err := h.Open(t.Context(), by, OpenRequest{Call: "c"}); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
		if len(h.events) != 0 || len(h.tickets) != 0 {
			t.Errorf("%s left something", name)
		}
	}
}

// TestTicketsPerPerson: views that a person opens and never fetches push out their
// own alone; with all the room in use whoever has the most makes way for somebody
// who has less, and what is refused names the setting.
func TestTicketsPerPerson(t *testing.T) {
	v := New(Options{Config: store.DefaultsOf(Settings), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	hold := func(who string, size int) (string, error) { return v.hold(page{html: make([]byte, size), holder: who}) }
	has := func(who string) (n int) {
		for _, p := range v.tickets {
			if p.holder == who {
				n++
			}
		}
		return n
	}
	ben, err := hold("ben", 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := hold("ann", 4<<20); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := v.tickets[ben]; !ok || has("ann") != 4 {
		t.Errorf("ben's is kept: %t; ann has %d, want 4", ok, has("ann"))
	}
	for i := range 50 {
		for range 4 {
			_, err := hold(fmt.Sprint("user", i), 4<<20)
			var refused *store.CallError
			if err != nil && (!errors.As(err, &refused) || refused.Code != store.CodeRateLimited || !strings.Contains(err.Error(), "limits.views")) {
				t.Fatal(err)
			}
		}
	}
	if one, err := hold("cho", 1<<20); err != nil || v.tickets[one].holder != "cho" {
		t.Errorf("somebody who has none: %v", err)
	}
	total := 0
	for _, p := range v.tickets {
		total += len(p.html)
	}
	if total > 64<<20 {
		t.Errorf("%d bytes are held", total)
	}
	if _, err := hold("dan", 17<<20); err == nil || !strings.Contains(err.Error(), "limits.user.views") {
		t.Errorf("one that is too large: %v", err)
	}
}
