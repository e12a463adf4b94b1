package views

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/mcp/policy"
	"nize/store"
)

// fakeGateway is the gateway and the server behind it.
type fakeGateway struct {
	*fixture
	state  store.State // in which calls come back
	called []store.Request
	read   []store.Request
}

func (d *fakeGateway) CallByParams(_ context.Context, by store.Caller, req store.Request, params json.RawMessage) (*store.Call, error) {
	req.Args = params
	d.called = append(d.called, req)
	return d.answer(by, req), nil
}

func (d *fakeGateway) answer(by store.Caller, req store.Request) *store.Call {
	server, tool, _ := store.SplitToolID(req.Tool)
	c := store.Call{ID: fmt.Sprint("n", len(d.called)+len(d.read)), Server: server, Tool: tool, Thread: req.Thread, By: by.User, State: d.state, Asked: req.Asked}
	if d.state.Final() {
		c.Result = &store.Result{Raw: json.RawMessage(`{"content":[]}`)}
	}
	d.calls[c.ID] = c
	return &c
}

// reader is the same for resources.
type reader struct{ *fakeGateway }

func (r reader) Read(_ context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	r.read = append(r.read, req)
	return r.answer(by, req), nil
}

// newFakeGateway has a call "f" of Ann's in a conversation, whose view asks.
func newFakeGateway(t *testing.T) *fakeGateway {
	d := &fakeGateway{fixture: newFixture(t), state: store.Done}
	for id, meta := range map[string]string{
		"far:show": `{"ui":{"resourceUri":"ui://far/show"}}`, "far:both": ``, "far:app": `{"ui":{"visibility":["app"]}}`, "far:model": `{"ui":{"visibility":["model"]}}`,
		"near:both": ``, "far:resource:memo:1": `{}`, "near:resource:memo:2": `{}`,
	} {
		d.put(id, meta)
	}
	d.calls["f"] = store.Call{ID: "f", Server: "far", Tool: "show", By: "ann", Thread: "t", Agent: "a", State: store.Done, Args: json.RawMessage(`{}`), Result: &store.Result{Raw: json.RawMessage(`{"content":[]}`)}}
	d.Gateway, d.Resources = d, reader{d}
	d.listed = []*policy.Tool{d.tools["far:app"], d.tools["far:model"], d.tools["far:resource:memo:1"]}
	d.fixture.read = func(_ store.Call, uri string) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":["` + uri + `"]}`), nil
	}
	return d
}

// ask is a request of the view of f, answered in one line.
func (d *fakeGateway) ask(t *testing.T, method, params string) string {
	t.Helper()
	out, err := d.Ask(t.Context(), ann, AskRequest{Call: "f", Method: method, Params: json.RawMessage(params)})
	switch {
	case err != nil:
		t.Fatal(err)
	case out.Error != nil:
		return fmt.Sprint(out.Error.Code)
	case out.Pending != "":
		return "waits"
	}
	return string(out.Result)
}

// TestRequests is what a view may ask for: what is of its server and for views.
func TestRequests(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"both"}`, `{"content":[]}`},
		{"tools/call", `{"name":"app","arguments":{"x":1}}`, `{"content":[]}`},
		{"tools/call", `{"name":"model"}`, "-32602"},
		{"tools/call", `{"name":"near:both"}`, "-32602"},
		{"tools/call", `{"name":"../near:both"}`, "-32602"},
		{"tools/call", `{"name":"resource:memo:1"}`, "-32602"},
		{"tools/call", `{"name":"none"}`, "-32602"},
		{"tools/call", `{"name":7}`, "-32602"},
		{"tools/call", `[]`, "-32602"},
		{"tools/list", ``, `{"tools":[{"name":"app","inputSchema":{"type":"object"}}]}`},
		{"resources/read", `{"uri":"memo:1"}`, `{"content":[]}`},
		{"resources/read", `{"uri":"memo:2"}`, "-32602"},
		{"resources/read", `{"uri":"file:///etc/passwd"}`, "-32602"},
		{"resources/read", `{"uri":"ui://far/other"}`, `{"contents":["ui://far/other"]}`},
		{"ui/open-link", `{"url":"https://a.example/secret"}`, "{}"},
		{"ui/message", `{}`, "{}"},
		{"ui/initialize", `{}`, "-32601"}, // the page answers it
		{"sampling/createMessage", `{}`, "-32601"},
		{"__proto__", `{}`, "-32601"},
	} {
		d := newFakeGateway(t)
		if got := d.ask(t, c.method, c.params); got != c.want {
			t.Errorf("%s %s: %s", c.method, c.params, got)
		}
		if len(d.events) != 1 || strings.Contains(string(d.events[0].Data), "secret") {
			t.Errorf("%s %s: events %+v", c.method, c.params, d.events)
		}
		for _, req := range append(d.called, d.read...) {
			if req.View != "far:show" || req.Thread != "t" || req.Agent != "a" || req.Approval != "" || !strings.HasPrefix(req.Tool, "far:") {
				t.Errorf("%s was asked for as %+v", c.method, req)
			}
		}
	}
	d := newFakeGateway(t)
	if _, err := d.Ask(t.Context(), ben, AskRequest{Call: "f", Method: "tools/call", Params: json.RawMessage(`{"name":"both"}`)}); err == nil || len(d.called) != 0 {
		t.Errorf("somebody else's view: %v", err)
	}
}

// TestNoted: what the page answers or refuses by itself nize writes down and does not
// do; of each method so many in a minute and then that more came, which hides no other.
func TestNoted(t *testing.T) {
	d := newFakeGateway(t)
	tell := func(method string) {
		t.Helper()
		out, err := d.Ask(t.Context(), ann, AskRequest{Call: "f", Method: method, Answer: "ok", Params: json.RawMessage(`{"name":"both"}`)})
		if err != nil || out.Error != nil || len(d.called) != 0 {
			t.Fatalf("%s: %+v, %v, %d calls", method, out, err, len(d.called))
		}
	}
	last := func(want string, events int) {
		t.Helper()
		if e := d.events[len(d.events)-1]; len(d.events) != events || string(e.Data) != want || e.Kind != "view.request" || e.Subject != "f" || e.Tool != "far:show" {
			t.Errorf("%d events, the last %s %s %s", len(d.events), e.Kind, e.Subject, e.Data)
		}
	}
	tell("tools/call")
	last(`{"answer":"ok","method":"tools/call"}`, 1)
	for i := range maxNoted + 10 {
		tell("ping")
		tell(fmt.Sprint("made up ", i))
	}
	d.ask(t, "tools/list", "")
	last(`{"method":"tools/list"}`, 1+2*(maxNoted+1)+1)
	d.events = d.events[:2*maxNoted+2] // and then came the same of made up ones
	last(`{"method":"ping","more":"more came in this minute"}`, 2*maxNoted+2)
	tell("ping")
	last(`{"method":"ping","more":"more came in this minute"}`, 2*maxNoted+2)
	d.now = d.now.Add(time.Minute)
	tell("ping")
	last(`{"answer":"ok","method":"ping"}`, 2*maxNoted+3)
}

// TestCallsThatWait: a view hears how a call ended that waited for a yes, of its own
// ones, and has few of them at once and not many in a minute.
func TestCallsThatWait(t *testing.T) {
	d := newFakeGateway(t)
	d.state = store.Pending
	for range maxOpen {
		if got := d.ask(t, "tools/call", `{"name":"both"}`); got != "waits" {
			t.Fatal(got)
		}
	}
	if got := d.ask(t, "tools/call", `{"name":"both"}`); got != "-32000" || len(d.called) != maxOpen {
		t.Errorf("one more that waits: %s, %d calls", got, len(d.called))
	}
	outcome := func(id string) (Answer, error) {
		return d.Outcome(t.Context(), ann, OutcomeRequest{Call: "f", ID: id})
	}
	if out, err := outcome("n1"); err != nil || out.Pending != "n1" {
		t.Errorf("%+v, %v", out, err)
	}
	c := d.calls["n1"]
	c.State, c.Successor = store.Cancelled, "n9"
	d.calls["n1"] = c
	c.ID, c.State, c.Successor, c.Result = "n9", store.Done, "", &store.Result{Raw: json.RawMessage(`{"content":["edited"]}`)}
	d.calls["n9"] = c
	if out, err := outcome("n1"); err != nil || string(out.Result) != `{"content":["edited"]}` {
		t.Errorf("an edited call: %+v, %v", out, err)
	}
	c.ID, c.View = "other", "far:both"
	d.calls["other"] = c
	for _, id := range []string{"other", "c", "none"} {
		if out, err := outcome(id); err == nil {
			t.Errorf("the call %s of something else: %+v", id, out)
		}
	}

	d = newFakeGateway(t)
	for range maxCalls {
		if got := d.ask(t, "tools/call", `{"name":"both"}`); got != `{"content":[]}` {
			t.Fatal(got)
		}
	}
	if got := d.ask(t, "tools/call", `{"name":"both"}`); got != "-32000" {
		t.Errorf("one more in the minute: %s", got)
	}
	d.now = d.now.Add(time.Minute)
	if got := d.ask(t, "tools/call", `{"name":"both"}`); got != `{"content":[]}` {
		t.Errorf("a minute later: %s", got)
	}
}

// TestTellsTheModel: a view tells the model text and an object, as output of its tool,
// which is as private and untrusted as the call's result.
func TestTellsTheModel(t *testing.T) {
	long := strings.Repeat("x", maxKept)
	for params, want := range map[string]string{
		`{"content":[{"type":"text","text":"page 2"},{"type":"text","text":"of 3"}],"structuredContent":{"page":2}}`: "page 2\nof 3\n" + `{"page":2}`,
		`{"content":{"type":"text","text":"one, with sk-abcdefghijklmnopqrst"}}`:                                     store.RedactText("one, with sk-abcdefghijklmnopqrst"),
		`{"content":[{"type":"text","text":"` + long + `"}]}`:                                                        long,
		`{}`: "",
		`{"content":[{"type":"text","text":"` + long + `y"}]}`:      "-32602",
		`{"content":[{"type":"image","data":"","mimeType":"x/y"}]}`: "-32602",
		`{"content":"page 2"}`:      "-32602",
		`{"structuredContent":[1]}`: "-32602",
	} {
		d := newFakeGateway(t)
		c := d.calls["f"]
		c.Taints, c.Private = true, true
		d.calls["f"] = c
		got := d.ask(t, "ui/update-model-context", params)
		if len(d.told) == 1 && got == "{}" {
			if o := d.told[0]; o.Call != "f" || o.Tool != "far:show" || o.User != "ann" || !o.Private || !o.Untrusted {
				t.Errorf("told as %+v", o)
			}
			got = d.told[0].Text
		}
		if got != want || len(d.events) != 1 || strings.Contains(string(d.events[0].Data), "page") {
			t.Errorf("%.80s: %.80s, events %+v", params, got, d.events)
		}
	}
	d := newFakeGateway(t)
	d.tools["far:show"].Record.UntrustedOutput = true
	if d.ask(t, "ui/update-model-context", `{"structuredContent":{}}`); len(d.told) != 1 || d.told[0].Private || !d.told[0].Untrusted {
		t.Errorf("of a server whose output is untrusted: %+v", d.told)
	}
}

// TestKeeps: what a view keeps is there when its viewer opens it again.
func TestKeeps(t *testing.T) {
	d := newFakeGateway(t)
	c := d.calls["c"]
	c.Thread = "t"
	d.calls["c"] = c
	ask := func(state string) Answer {
		out, err := d.Ask(t.Context(), ann, AskRequest{Call: "c", Method: "nize/set-widget-state", Params: json.RawMessage(`{"state":` + state + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	opened := func() string {
		f, err := d.Open(t.Context(), ann, OpenRequest{Call: "c"})
		if err != nil {
			t.Fatal(err)
		}
		return d.fetch(f.Ticket, "iframe").Body.String()
	}
	if page := opened(); !strings.Contains(page, `"widgetState":null`) {
		t.Error("a view that kept nothing:", page)
	}
	if out := ask(`{"page":2}`); out.Error != nil || !strings.Contains(opened(), `"widgetState":{"page":2}`) {
		t.Errorf("%+v, kept %s", out, d.state)
	}
	if f, err := d.OpenFor(t.Context(), ben, ann, OpenRequest{Call: "c"}); err != nil || !strings.Contains(d.fetch(f.Ticket, "iframe").Body.String(), `"widgetState":null`) {
		t.Errorf("somebody else finds what it keeps: %v", err)
	}
	if out := ask(`"` + strings.Repeat("x", maxKept) + `"`); out.Error == nil || !strings.Contains(opened(), `"widgetState":{"page":2}`) {
		t.Errorf("too large: %+v", out)
	}
}
