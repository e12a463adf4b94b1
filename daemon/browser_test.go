package daemon_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/eventstream"
)

// signIn signs a browser in as somebody, by nizectl login.
func (b *browser) signIn(c *api.Client, user string) page {
	b.t.Helper()
	made, err := api.StartLogin.Call(b.t.Context(), c, api.StartLoginRequest{User: user})
	if err != nil {
		b.t.Fatal(err)
	}
	_, secret, _ := strings.Cut(made.URL.Reveal(), "#")
	p := b.get("/login")
	if p.status == http.StatusSeeOther {
		p = b.get(p.location)
	}
	return b.post("/login", form, url.Values{"form": {formOf(p)}, "secret": {secret}}.Encode())
}

// ask posts JSON as nize's own page does.
func (b *browser) ask(path, body string) page {
	b.t.Helper()
	return b.post("/app/v1/"+path, inJSON, body, "Sec-Fetch-Site", "same-origin")
}

// patchJSON changes something as nize's own page does.
func (b *browser) patchJSON(path, body string) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPatch, b.base+"/app/v1/"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", inJSON)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(req)
}

// pageEvent is one event of a page's stream.
type pageEvent struct {
	name string
	data struct {
		State    string
		IDs      []string
		ID, Text string
		Kind     string
		Final    bool
		Thread   *store.Thread
		Messages []struct {
			ID, Kind, Text string
			Card           *store.Card
		}
		Card  *store.Card
		Cards []store.Card
		Words struct{ Args string }
	}
}

// follow opens the stream of a conversation.
func (b *browser) follow(ctx context.Context, thread string) (status int, events chan pageEvent) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/app/v1/events?thread="+thread, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	events = make(chan pageEvent, 1000) // no test needs so many
	done := make(chan struct{})
	b.t.Cleanup(func() {
		res.Body.Close()
		<-done
	})
	go func() {
		defer close(done)
		defer close(events)
		stream := eventstream.NewReader(res.Body, 1<<20)
		for {
			one, err := stream.Next()
			if err != nil {
				return
			}
			e := pageEvent{name: one.Name}
			if json.Unmarshal(one.Data, &e.data) == nil {
				events <- e
			}
		}
	}()
	return res.StatusCode, events
}

// until waits for an event.
func until(t *testing.T, events chan pageEvent, what string, ok func(pageEvent) bool) pageEvent {
	t.Helper()
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("the stream ended before %s", what)
			}
			if ok(e) {
				return e
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing tells of %s", what)
		}
	}
}

// TestPageResultFiles: each file that a call returned is a download under a clean name, for
// who made the call.
func TestPageResultFiles(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "report", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"two files"},{"type":"resource","resource":{"uri":"f:/a/Q3%2f..","blob":"AAEC"}},{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="}]}`)
	}}}})
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	call, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "box:report", Args: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	b, mia := newBrowser(t, r), newBrowser(t, r)
	b.signIn(r.Client, "")
	mia.signIn(r.Client, "mia")
	at := "/app/v1/calls/" + call.ID
	if p := b.get(at); !strings.Contains(p.body, `"output":[{"text":"two files"},{"type":"application/octet-stream","size":3,"name":"file.bin","file":1},{"type":"audio/wav","size":4,"name":"file.wav","file":2}]`) {
		t.Errorf("the call: %s", p.body)
	}
	for file, want := range map[string]string{"1": "\x00\x01\x02", "2": "RIFF"} {
		if p := b.get(at + "/result?file=" + file); p.status != http.StatusOK || p.body != want || p.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("file %s: %d %q", file, p.status, p.body)
		}
		if p := mia.get(at + "/result?file=" + file); p.status != http.StatusNotFound {
			t.Errorf("file %s for somebody else: %d", file, p.status)
		}
	}
	for _, file := range []string{"3", "-1"} {
		if p := b.get(at + "/result?file=" + file); p.status != http.StatusNotFound {
			t.Errorf("file %s: %d", file, p.status)
		}
	}
}

// TestPage: a person signs in, asks, decides by the card that they saw, and sees how
// it ends in every tab; nobody else finds any of it, and no other site's page can ask.
func TestPage(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	toolbox := toolbox(t)
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox, Args: []string{"--notes", filepath.Join(t.TempDir(), "notes.json")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	b, mia := newBrowser(t, r), newBrowser(t, r)

	// Signed out: the page is there, and nothing in it.
	if p := b.get("/"); p.status != http.StatusFound || p.location != "/app/" {
		t.Errorf("the front: %d %s", p.status, p.location)
	}
	for _, path := range []string{"/app/", "/app/c/01K9Z3NDEKTSV4RRFFQ69G5FAX", "/app/approvals", "/app/usage", "/app/settings"} {
		if p := b.get(path); p.status != http.StatusOK || !strings.Contains(p.header.Get("Content-Security-Policy"), "trusted-types 'none'") {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if p := b.get("/usage"); p.status != http.StatusFound || p.location != "/app/usage" {
		t.Errorf("/usage: %d %s", p.status, p.location)
	}
	for _, path := range []string{"me", "chat/threads", "approvals", "events", "config", "usage", "agents", "models", "servers"} {
		if p := b.get("/app/v1/" + path); p.status != http.StatusUnauthorized || !strings.Contains(p.body, `"type":"signed_out"`) {
			t.Errorf("%s, signed out: %d %s", path, p.status, p.body)
		}
	}
	at, _ := url.Parse(b.base)
	b.Jar.SetCookies(at, []*http.Cookie{{Name: "nize-next", Value: "/app/approvals", Path: "/"}})
	mia.Jar.SetCookies(at, []*http.Cookie{{Name: "nize-next", Value: "//evil.example/app/", Path: "/"}})
	if p := b.signIn(r.Client, ""); p.status != http.StatusSeeOther || p.location != "/app/approvals" {
		t.Fatalf("signing in: %d %s", p.status, p.location)
	}
	if p := mia.signIn(r.Client, "mia"); p.location != "/app/" {
		t.Fatalf("signing in leads to %s", p.location)
	}
	if p := mia.get("/app/v1/me"); !strings.Contains(p.body, `"name":"mia","role":"member"`) {
		t.Errorf("me: %s", p.body)
	}

	// What no page of nize's sends is refused, and what is not on the list is not there.
	for _, test := range []struct {
		kind    string
		headers []string
		want    int
	}{
		{inJSON, nil, http.StatusForbidden},
		{inJSON, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{inJSON, []string{"Sec-Fetch-Site", "same-site", "Origin", b.base}, http.StatusForbidden},
		{"text/plain", []string{"Sec-Fetch-Site", "same-origin"}, http.StatusUnsupportedMediaType},
		{inJSON, []string{"Origin", b.base}, http.StatusOK},
		{inJSON, []string{"Sec-Fetch-Site", "same-origin"}, http.StatusOK},
	} {
		if p := b.post("/app/v1/chat/threads", test.kind, "{}", test.headers...); p.status != test.want {
			t.Errorf("%s %q: %d, want %d", test.kind, test.headers, p.status, test.want)
		}
	}
	for _, path := range []string{"servers", "users", "settings", "grants", "backup", "bots", "agents", "models/x", "servers/x"} {
		if p := b.ask(path, "{}"); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}

	// Providers, names of models and servers are looked into by admins alone.
	for _, path := range []string{"providers", "providers/x/test", "providers/x/enable", "models/x/default", "servers/toolbox/trust"} {
		if p := mia.ask(path, "{}"); p.status != http.StatusForbidden || !strings.Contains(p.body, "only admins may do this") {
			t.Errorf("%s as a member: %d %s", path, p.status, p.body)
		}
	}
	if p := mia.get("/app/v1/house/servers/toolbox"); p.status != http.StatusNotFound {
		t.Errorf("a server looked into by a member: %d %s", p.status, p.body)
	}
	key := "sk-" + strings.Repeat("q", 20)
	if p := b.ask("providers", `{"name":"acme","kind":"openai-compatible","base_url":"http://127.0.0.1:1/v1","key":"`+key+`"}`); p.status != http.StatusOK || strings.Contains(p.body, key) {
		t.Errorf("adding a provider: %d %s", p.status, p.body)
	}
	for _, path := range []string{"/app/v1/providers", "/app/v1/house/servers/toolbox", "/app/v1/models"} {
		if p := b.get(path); p.status != http.StatusOK || strings.Contains(p.body, key) {
			t.Errorf("%s: %d %s", path, p.status, p.body)
		}
	}

	if p := b.get("/app/v1/tools/search?q=convert+a+time"); p.status != http.StatusOK || !strings.Contains(p.body, `"toolbox:`) {
		t.Errorf("searching tools: %d %s", p.status, p.body)
	}
	if p := mia.get("/app/v1/tools/search?q=convert+a+time"); p.status != http.StatusOK || strings.Contains(p.body, "toolbox") {
		t.Errorf("searching tools that one may not know: %d %s", p.status, p.body)
	}

	// Two tabs, a message that is sent twice, a card.
	var th store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", `{"zone":"Asia/Tokyo"}`).body), &th); err != nil || th.Address.Surface != store.OnWeb {
		t.Fatalf("a new conversation: %+v, %v", th, err)
	}
	_, one := b.follow(ctx, th.ID)
	_, two := b.follow(ctx, th.ID)
	_, none := b.follow(ctx, "")
	until(t, one, "the beginning", func(e pageEvent) bool { return e.name == "thread" && e.data.Thread != nil })
	until(t, two, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	for range 2 {
		if p := b.ask("chat/threads/"+th.ID+"/messages", `{"key":"k1","text":"What time is it in Tokyo?"}`); p.status != http.StatusOK {
			t.Fatalf("a message: %d %s", p.status, p.body)
		}
	}
	until(t, two, "what was said", func(e pageEvent) bool {
		return e.name == "message" && e.data.Kind == "person" && e.data.Text == "What time is it in Tokyo?"
	})
	shown := until(t, two, "the card", func(e pageEvent) bool { return e.name == "message" && e.data.Card != nil })
	card := shown.data.Card
	if card.State != store.Pending || !strings.Contains(shown.data.Words.Args, `"place": "Tokyo"`) {
		t.Fatalf("the card: %+v", shown)
	}
	waits := func(e pageEvent) bool { return e.name == "waiting" && slices.Contains(e.data.IDs, card.Call) }
	until(t, none, "that it waits", waits)
	var list api.List[store.Card]
	if err := json.Unmarshal([]byte(b.get("/app/v1/approvals").body), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("what waits: %+v, %v", list, err)
	}

	// Somebody else finds none of it.
	for _, path := range []string{"chat/threads/" + th.ID, "approvals/" + card.Call, "calls/" + card.Call, "calls/" + card.Call + "/result", "events?thread=" + th.ID, "chat/threads/" + th.ID + "/link"} {
		if p := mia.get("/app/v1/" + path); p.status != http.StatusNotFound {
			t.Errorf("%s for somebody else: %d", path, p.status)
		}
	}
	for path, body := range map[string]string{"chat/threads/" + th.ID + "/messages": `{"key":"k","text":"hi"}`, "chat/threads/" + th.ID + "/stop": "{}", "chat/threads/" + th.ID + "/forget": "{}", "chat/threads/" + th.ID + "/share": `{"turn":1}`, "approvals/" + card.Call: `{"verb":"approve","digest":"` + card.Digest + `"}`} {
		if p := mia.ask(path, body); p.status != http.StatusNotFound {
			t.Errorf("%s by somebody else: %d %s", path, p.status, p.body)
		}
	}

	if p := mia.patchJSON("chat/threads/"+th.ID, `{"title":"hers"}`); p.status != http.StatusNotFound {
		t.Errorf("changed by somebody else: %d %s", p.status, p.body)
	}

	// A decision is about what stood on the screen, once.
	decide := func(verb, digest string) page {
		return b.ask("approvals/"+card.Call, fmt.Sprintf(`{"verb":%q,"digest":%q}`, verb, digest))
	}
	if p := decide("approve", ""); p.status != http.StatusBadRequest {
		t.Errorf("without a digest: %d %s", p.status, p.body)
	}
	for _, cards := range []string{`{}`, `{"` + card.Call + `":"` + strings.Repeat("0", 64) + `"}`, `{"` + card.Call + `":"` + card.Digest + `","01K9Z3NDEKTSV4RRFFQ69G5FAX":"x"}`} {
		if p := b.ask("approvals/"+card.Call, `{"verb":"run_all","digest":"`+card.Digest+`","cards":`+cards+`}`); p.status != http.StatusBadRequest && p.status != http.StatusNotFound {
			t.Errorf("run_all with the cards %s: %d %s", cards, p.status, p.body)
		}
	}
	if p := b.get("/app/v1/approvals/" + card.Call); !strings.Contains(p.body, `"schema":"{\n`) || !strings.Contains(p.body, `"value":"everywhere"`) {
		t.Errorf("the card with what its dialogs need: %s", p.body)
	}
	if p := b.ask("approvals/"+card.Call, `{"verb":"edit","digest":"`+card.Digest+`","args":{"place":7,"plac":"x"}}`); p.status != http.StatusBadRequest || !strings.Contains(p.body, `"fields":[{"at":["plac"],"message":"is not a parameter, did you mean /place?"},{"at":["place"],"message":"must be a string, received 7"}]`) {
		t.Errorf("arguments that don't fit: %d %s", p.status, p.body)
	}
	if p := decide("approve", strings.Repeat("0", 64)); p.status != http.StatusConflict || !strings.Contains(p.body, `"digest":"`+card.Digest) {
		t.Errorf("by another digest: %d %s", p.status, p.body)
	}
	if p := decide("approve", card.Digest); p.status != http.StatusOK {
		t.Fatalf("a yes: %d %s", p.status, p.body)
	}
	for _, tab := range []chan pageEvent{one, two} {
		until(t, tab, "how it ended", func(e pageEvent) bool {
			return e.name == "message" && e.data.Card != nil && e.data.Card.State == store.Done
		})
		until(t, tab, "the end", func(e pageEvent) bool { return e.name == "state" && e.data.State == "idle" })
	}
	if p := decide("deny", card.Digest); p.status != http.StatusConflict || !strings.Contains(p.body, `"state":"done"`) {
		t.Errorf("a second decision: %d %s", p.status, p.body)
	}
	until(t, none, "that nothing waits", func(e pageEvent) bool { return e.name == "waiting" && len(e.data.IDs) == 0 })

	// Who comes later sees the whole, each thing once.
	_, late := b.follow(ctx, th.ID)
	whole := until(t, late, "the whole", func(e pageEvent) bool { return e.name == "thread" })
	kinds := map[string]int{}
	for _, m := range whole.data.Messages {
		kinds[m.Kind]++
	}
	if kinds["person"] != 1 || kinds["card"] != 1 || kinds["text"] != 2 {
		t.Errorf("the whole has %v", kinds)
	}
	if p := b.get("/app/v1/calls/" + card.Call); !strings.Contains(p.body, `"args_text":"{\n  \"place\": \"Tokyo\"\n}"`) || !strings.Contains(p.body, "Asia/Tokyo") {
		t.Errorf("the call: %s", p.body)
	}

	if p := b.get("/app/v1/calls/" + card.Call + "/result"); p.header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(p.body, "Asia/Tokyo") {
		t.Errorf("the file of the result: %s %s", p.header.Get("Content-Type"), p.body)
	}

	// Eight streams are enough for anybody, and signing out ends them.
	for range 4 {
		if status, _ := b.follow(ctx, ""); status != http.StatusOK {
			t.Fatalf("a stream: %d", status)
		}
	}
	if p := b.get("/app/v1/events"); p.status != http.StatusServiceUnavailable {
		t.Errorf("a ninth stream: %d", p.status)
	}
	out := b.get("/login")
	if p := b.post("/login/end", form, url.Values{"form": {formOf(out)}}.Encode()); p.status != http.StatusSeeOther {
		t.Fatalf("signing out: %d %s", p.status, p.body)
	}
	for range late { // until it ends
	}

	// A session has 300 requests a minute.
	var last int
	for range 301 {
		last = mia.get("/app/v1/me").status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after too many requests: %d", last)
	}

	// Switched off, nothing is there.
	r.set(t, "web.enabled", "false")
	for _, path := range []string{"/app/", "/app/v1/me", "/app/phrases/en.json"} {
		if p := b.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s while it is off: %d", path, p.status)
		}
	}
	if p := b.get("/"); p.status != http.StatusOK {
		t.Errorf("the front while it is off: %d", p.status)
	}
}

// TestPageInstead: a message that gives way to another one while it waits for its turn is
// gone at once, in each tab and for who comes later.
func TestPageInstead(t *testing.T) {
	asked, release := make(chan struct{}, 100), make(chan struct{}) // asked: no turn asks so often
	defer close(release)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // so that its end is seen
		if req.Method == http.MethodPost {
			asked <- struct{}{}
			<-release
		}
		w.WriteHeader(http.StatusBadRequest) // it is not asked again
	}))
	t.Cleanup(model.Close)
	r := open(t, t.TempDir(), map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"})
	ctx := t.Context()
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "mute", Kind: "openai-compatible", BaseURL: model.URL + "/v1", Key: api.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "smart", Target: "mute/m"}); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, r)
	b.signIn(r.Client, "")
	var th store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", "{}").body), &th); err != nil {
		t.Fatal(err)
	}
	_, events := b.follow(ctx, th.ID)
	until(t, events, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	say := func(body string) {
		t.Helper()
		if p := b.ask("chat/threads/"+th.ID+"/messages", body); p.status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, p.status, p.body)
		}
	}
	say(`{"key":"k1","text":"What time is it in Tokyo?"}`)
	<-asked
	said := func(key string) string { return "said/" + th.ID + ":" + key }
	say(`{"key":"k2","text":"And in Rome?"}`) // which waits for its turn
	say(`{"key":"k3","text":"And in Oslo?","instead":"k2"}`)
	until(t, events, "that it is gone", func(e pageEvent) bool { return e.name == "gone" && e.data.ID == said("k2") })
	until(t, events, "what is said instead", func(e pageEvent) bool { return e.name == "message" && e.data.ID == said("k3") })
	_, late := b.follow(ctx, th.ID)
	var people []string
	for _, m := range until(t, late, "the whole", func(e pageEvent) bool { return e.name == "thread" }).data.Messages {
		if m.Kind == "person" {
			people = append(people, m.ID)
		}
	}
	if !slices.Equal(people, []string{said("k1"), said("k3")}) {
		t.Errorf("who comes later sees %v", people)
	}
}

// TestPagePastedSecret: a key that somebody pastes is masked before it is stored or told
// to any tab, and they are told; what is too long is not taken.
func TestPagePastedSecret(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	b.signIn(r.Client, "")
	var th store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", "{}").body), &th); err != nil {
		t.Fatal(err)
	}
	_, events := b.follow(t.Context(), th.ID)
	until(t, events, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	at := "chat/threads/" + th.ID + "/messages"
	for text, want := range map[string]int{strings.Repeat("x", 64<<10+1): http.StatusBadRequest, "": http.StatusBadRequest, "my key is sk-abcdefghijklmnop1234": http.StatusOK} {
		if p := b.ask(at, fmt.Sprintf(`{"key":"k%d","text":%q}`, len(text), text)); p.status != want {
			t.Errorf("a message of %d bytes: %d %s", len(text), p.status, p.body)
		}
	}
	told := map[string]string{}
	until(t, events, "that it was masked", func(e pageEvent) bool {
		if e.name == "message" {
			told[e.data.Kind] = e.data.Text
		}
		return strings.Contains(told["notice"], "secret key") && told["person"] != ""
	})
	if !strings.HasPrefix(told["person"], "my key is ") || strings.Contains(told["person"], "abcdefghijklmnop") {
		t.Errorf("a tab is told %q", told["person"])
	}
	kept, err := os.ReadFile(filepath.Join(r.dir, "nize.db"))
	if err != nil || bytes.Contains(kept, []byte("abcdefghijklmnop")) {
		t.Errorf("the database has it (%v)", err)
	}
}

// TestPageAndSlack: a conversation that is held on Slack is read on its person's page
// and goes on there; one decision is seen in both, whoever made it.
func TestPageAndSlack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asked, posted := s.ask(slacktest.Ben, "note")
	b := browserAt(t, s.Client)
	b.signIn(s.Client, s.userOf(slacktest.Ben).ID)
	var threads api.List[store.Thread]
	if err := json.Unmarshal([]byte(b.get("/app/v1/chat/threads").body), &threads); err != nil || len(threads.Items) != 1 || threads.Items[0].Address.Surface != store.OnSlack {
		t.Fatalf("the conversations: %+v, %v", threads, err)
	}
	id := threads.Items[0].ID
	if p := b.ask("chat/threads/"+id+"/messages", `{"key":"k","text":"hi"}`); p.status != http.StatusConflict {
		t.Errorf("going on elsewhere: %d %s", p.status, p.body)
	}
	_, events := b.follow(t.Context(), id)
	stands := func(n int, state store.State) store.Card {
		t.Helper()
		var found store.Card
		until(t, events, fmt.Sprintf("call %d that is %s", n, state), func(e pageEvent) bool {
			at := 0
			for _, m := range e.data.Messages {
				if m.Card != nil {
					found = *m.Card
					at++
				}
			}
			return at == n && found.State == state
		})
		return found
	}
	c := stands(1, store.Pending)
	if p := b.ask("approvals/"+c.Call, `{"verb":"approve","digest":"`+c.Digest+`"}`); p.status != http.StatusOK {
		t.Fatalf("a yes on the page: %d %s", p.status, p.body)
	}
	card(s.killable, s.fake, asked, "done")
	stands(1, store.Done)
	s.reply(slacktest.Ben, asked, "please #note")
	stands(2, store.Pending)
	s.until("the second card stands", func() bool {
		for _, m := range s.thread(asked)() {
			if m.TS != posted.TS && strings.Contains(string(m.Blocks), "call-cancel") {
				s.press(slacktest.Ben, m, "cancel")
				return true
			}
		}
		return false
	})
	stands(2, store.Cancelled)
	if n := s.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// TestPageConversations: a long conversation is read a page at a time, whole and
// without repeats; the list comes in pages and is searched by title; what is changed,
// and what can't be; forgetting ends the streams.
func TestPageConversations(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, nil)
	ctx := t.Context()
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	db := databasetest.OpenIn(t, dir)
	by := store.Caller{User: th.User, Name: "root", Role: store.Admin, Surface: store.OnWeb}
	th = store.Thread{ID: store.NewID(time.Now()), User: th.User, Address: store.Address{Surface: store.OnWeb}}
	if err := db.PutThread(ctx, by, th); err != nil {
		t.Fatal(err)
	}
	const said = 130 // questions, each with two steps, of which one asked for many calls
	n := 0
	add := func(turn store.Turn) {
		t.Helper()
		turn.Thread, turn.N = th.ID, n
		n++
		if err := db.Append(ctx, by, turn, false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range said {
		add(store.Turn{Role: store.FromUser, By: by, Text: fmt.Sprint("question ", i)})
		calls := []store.ToolCall{{ID: fmt.Sprint("L", i, "-0"), Name: "discover_tools"}}
		for j := 1; i == 100 && j < 70; j++ {
			calls = append(calls, store.ToolCall{ID: fmt.Sprint("L", i, "-", j), Name: "discover_tools"})
		}
		add(store.Turn{Role: store.FromModel, Calls: calls})
		for _, c := range calls {
			add(store.Turn{Role: store.FromTool, CallID: c.ID, Text: "found"})
		}
		add(store.Turn{Role: store.FromModel, Text: fmt.Sprint("answer ", i)})
	}
	for i := range 60 {
		other := store.Thread{ID: store.NewID(time.Now()), User: th.User, Title: fmt.Sprintf("Number %d of the Übung", i), Address: store.Address{Surface: store.OnWeb}}
		if err := db.PutThread(ctx, by, other); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, dir, nil)
	b, mia := newBrowser(t, r), newBrowser(t, r)
	b.signIn(r.Client, "")
	mia.signIn(r.Client, "mia")
	read := func(path string, into any) {
		t.Helper()
		if p := b.get("/app/v1/" + path); p.status != http.StatusOK || json.Unmarshal([]byte(p.body), into) != nil {
			t.Fatalf("%s: %d %s", path, p.status, p.body)
		}
	}
	type part struct {
		Messages []struct {
			ID, Kind, Text string
			Tool           *store.ToolLine
		}
		From int
		More bool
	}
	seen, pages, kinds := map[string]bool{}, 0, map[string]int{}
	for before := 0; ; pages++ {
		var p part
		read(fmt.Sprintf("chat/threads/%s?before=%d", th.ID, before), &p)
		if before = p.From; len(p.Messages) == 0 || len(p.Messages) > 121 {
			t.Fatalf("a page of %d messages", len(p.Messages))
		}
		for _, m := range p.Messages {
			if kinds[m.Kind]++; seen[m.ID] || m.Tool != nil && m.Tool.State != store.Done {
				t.Errorf("a second time, or not as it ended: %+v", m)
			}
			seen[m.ID] = true
		}
		if !p.More {
			break
		}
	}
	if kinds["person"] != said || kinds["text"] != said || kinds["tool"] != said+69 || pages < 8 {
		t.Errorf("in %d pages: %v", pages, kinds)
	}

	// The list, in pages and searched.
	type listed struct {
		Items []store.Thread
		More  bool
	}
	var first, rest, found listed
	read("chat/threads", &first)
	read("chat/threads?before="+url.QueryEscape(first.Items[len(first.Items)-1].Updated.Format(time.RFC3339Nano)), &rest)
	read("chat/threads?q="+url.QueryEscape("übung 57"), &found)
	if len(first.Items) != 50 || !first.More || len(rest.Items) != 12 || rest.More || len(found.Items) != 1 {
		t.Errorf("%d (%v), then %d (%v); found %+v", len(first.Items), first.More, len(rest.Items), rest.More, found.Items)
	}

	// Changed by its person, within what they may use.
	at := "chat/threads/" + th.ID
	if p := b.patchJSON(at, `{"title":"  Two\n words ","streaming":"off","servers":[]}`); p.status != http.StatusOK || !strings.Contains(p.body, `"title":"Two words","named":true`) || !strings.Contains(p.body, `"streaming":"off"`) {
		t.Errorf("changed: %d %s", p.status, p.body)
	}
	for _, body := range []string{`{"agent":"none"}`, `{"model":"none"}`, `{"servers":["none"]}`} {
		if p := b.patchJSON(at, body); p.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", body, p.status, p.body)
		}
	}
	if p := b.patchJSON(at, `{"streaming":"maybe"}`); p.status != http.StatusBadRequest {
		t.Errorf("streaming: %d", p.status)
	}
	if p := mia.get("/app/v1/servers"); p.status != http.StatusOK || p.body != `{"items":[]}`+"\n" {
		t.Errorf("a member's servers: %d %s", p.status, p.body)
	}

	// Forgotten, it is gone from every tab.
	_, events := b.follow(ctx, th.ID)
	until(t, events, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	if p := b.ask(at+"/forget", "{}"); p.status != http.StatusOK || !strings.Contains(p.body, `"conversations":1`) {
		t.Fatalf("forgotten: %d %s", p.status, p.body)
	}
	for range events { // until it ends
	}
	if p := b.get("/app/v1/" + at); p.status != http.StatusNotFound {
		t.Errorf("read afterwards: %d", p.status)
	}

	// When nized stops, each tab is told so.
	_, events = b.follow(ctx, "")
	until(t, events, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	r.stop()
	until(t, events, "that nized stops", func(e pageEvent) bool { return e.name == "bye" })
}

// TestPageFiles: files are put into a conversation and go with a message, are what
// their bytes say, are shown to its person alone, and are bounded.
func TestPageFiles(t *testing.T) {
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	b, mia := newBrowser(t, r), newBrowser(t, r)
	b.signIn(r.Client, "")
	mia.signIn(r.Client, "mia")
	var th store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", "{}").body), &th); err != nil {
		t.Fatal(err)
	}
	at := "chat/threads/" + th.ID
	put := func(b *browser, kind, content string) page {
		return b.post("/app/v1/"+at+"/files", kind, content, "Sec-Fetch-Site", "same-origin")
	}
	const bytes = "application/octet-stream"
	picture, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	for what, got := range map[string]struct{ status, want int }{
		"by somebody else": {put(mia, bytes, "x").status, http.StatusNotFound},
		"as a form":        {put(b, "multipart/form-data; boundary=x", "x").status, http.StatusUnsupportedMediaType},
		"as JSON":          {put(b, inJSON, "{}").status, http.StatusUnsupportedMediaType},
		"empty":            {put(b, bytes, "").status, http.StatusBadRequest},
		"too large":        {put(b, bytes, strings.Repeat("x", store.MaxFile+1)).status, http.StatusBadRequest},
		"of another site":  {b.post("/app/v1/"+at+"/files", bytes, "x", "Sec-Fetch-Site", "cross-site").status, http.StatusForbidden},
	} {
		if got.status != got.want {
			t.Errorf("%s: %d, want %d", what, got.status, got.want)
		}
	}
	var ids []string
	for _, content := range []string{string(picture), "the words of a file", "\x00\x01no text"} {
		var f struct{ ID string }
		if p := put(b, bytes, content); p.status != http.StatusOK || json.Unmarshal([]byte(p.body), &f) != nil {
			t.Fatalf("a file: %d %s", p.status, p.body)
		}
		ids = append(ids, f.ID)
	}
	_, events := b.follow(ctx, th.ID)
	until(t, events, "the beginning", func(e pageEvent) bool { return e.name == "thread" })
	if p := b.ask(at+"/messages", `{"key":"k","files":[{"id":"../x","name":"x"}]}`); p.status != http.StatusBadRequest {
		t.Errorf("a bad id: %d", p.status)
	}
	said := fmt.Sprintf(`{"key":"k","text":"","files":[{"id":%q,"name":"a.png"},{"id":%q,"name":"notes\u202e.txt"},{"id":%q,"name":"c"},{"id":"01K9Z3NDEKTSV4RRFFQ69G5FAX","name":"d"}]}`, ids[0], ids[1], ids[2])
	if p := b.ask(at+"/messages", said); p.status != http.StatusOK {
		t.Fatalf("a message: %d %s", p.status, p.body)
	}
	until(t, events, "the end", func(e pageEvent) bool { return (e.name == "state" || e.name == "thread") && e.data.State == "idle" })
	var c struct {
		Messages []struct {
			Kind  string
			Files []struct{ ID, Name, Kind, Note, Turn string }
		}
	}
	if err := json.Unmarshal([]byte(b.get("/app/v1/"+at).body), &c); err != nil || len(c.Messages) == 0 || len(c.Messages[0].Files) != 4 {
		t.Fatalf("the conversation: %+v, %v", c, err)
	}
	var kinds []string
	for _, f := range c.Messages[0].Files {
		kinds = append(kinds, f.Kind)
		if (f.Note != "") != (f.Kind == "unread") || strings.Contains(f.Name, "\u202e") || f.Turn != th.ID+"/0" {
			t.Errorf("a file: %+v", f)
		}
	}
	if !slices.Equal(kinds, []string{"image", "text", "unread", "unread"}) {
		t.Errorf("the files are %q", kinds)
	}
	show := "/app/v1/" + at + "/files/" + ids[0] + "?turn=0"
	if p := b.get(show); !strings.Contains(p.body, base64.StdEncoding.EncodeToString(picture)) {
		t.Errorf("the picture: %d %s", p.status, p.body)
	}
	for path, b := range map[string]*browser{show: mia, "/app/v1/" + at + "/files/" + ids[0] + "?turn=1": b, "/app/v1/" + at + "/files/" + ids[1] + "?turn=0": b} {
		if p := b.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}

// TestPageShare: a private answer in a channel is read on its person's page, and shared
// from there; where the conversation is held is known.
func TestPageShare(t *testing.T) {
	s := newScene(t)
	s.vault()
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.offered(slacktest.Ben)
	b, mia := browserAt(t, s.Client), browserAt(t, s.Client)
	b.signIn(s.Client, s.userOf(slacktest.Ben).ID)
	var threads api.List[store.Thread]
	if err := json.Unmarshal([]byte(b.get("/app/v1/chat/threads").body), &threads); err != nil || len(threads.Items) != 1 {
		t.Fatalf("the conversations: %+v, %v", threads, err)
	}
	at := "chat/threads/" + threads.Items[0].ID
	offered := func() (turn int) {
		t.Helper()
		var c struct {
			Messages []struct {
				Text  string
				Share int
			}
		}
		if err := json.Unmarshal([]byte(b.get("/app/v1/"+at).body), &c); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Messages {
			if m.Share > 0 && strings.Contains(m.Text, "red rubies") {
				turn = m.Share
			}
		}
		return turn
	}
	turn := offered()
	if turn == 0 {
		t.Fatal("the answer can't be shared")
	}
	if p := b.get("/app/v1/" + at + "/link"); !strings.Contains(p.body, "/archives/"+slacktest.General+"/") {
		t.Errorf("the link: %d %s", p.status, p.body)
	}
	other, err := api.AddUser.Call(t.Context(), s.Client, api.AddUserRequest{Name: "mia", Role: store.Member})
	if err != nil {
		t.Fatal(err)
	}
	mia.signIn(s.Client, other.ID)
	share := fmt.Sprintf(`{"turn":%d}`, turn)
	if p := mia.ask(at+"/share", share); p.status != http.StatusNotFound {
		t.Errorf("shared by somebody else: %d %s", p.status, p.body)
	}
	for range 2 { // pressed twice
		if p := b.ask(at+"/share", share); p.status != http.StatusOK {
			t.Fatalf("shared: %d %s", p.status, p.body)
		}
	}
	if n := strings.Count(s.public(root), "It holds red rubies."); n == 0 || offered() != 0 {
		t.Errorf("it stands there %d times; offered still: %d", n, offered())
	}
}
