package page_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nize/bots/chattest"
	"nize/bots/chattest/page"
	"nize/bots/slack/slacktest"
	slackpage "nize/bots/slack/slacktest/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type browser struct {
	t      *testing.T
	slack  *slacktest.Server
	client *http.Client
	key    string
}

func open(t *testing.T) *browser {
	t.Helper()
	slack := slacktest.New(slacktest.Options{})
	pipe := chattest.NewPipe()
	p := &page.Page{Platform: slackpage.Platform{Server: slack}, Key: "sesame"}
	if err := slack.StartWith(pipe, p.Handler()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	if got, want := p.Address(slack.URL()), slack.URL()+"/#sesame"; got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
	return &browser{t: t, slack: slack, key: "sesame", client: &http.Client{Transport: &http.Transport{DialContext: pipe.Dial, DisableKeepAlives: true}}}
}

// do makes a request; change may spoil it.
func (b *browser) do(method, path, body string, change func(*http.Request)) (int, string, http.Header) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.slack.URL()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Key", b.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Header
}

func TestOnlyWhoKnowsTheKeyAndTheHost(t *testing.T) {
	b := open(t)
	say := `{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"hello"}`
	for name, spoil := range map[string]func(*http.Request){
		"no key":       func(r *http.Request) { r.Header.Del("X-Key") },
		"another key":  func(r *http.Request) { r.Header.Set("X-Key", "sesam") },
		"another host": func(r *http.Request) { r.Host = "evil.example:80" },
		"a rebound ip": func(r *http.Request) { r.Host = "10.0.0.1" },
		"another site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"another port": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:2") },
		"a null site":  func(r *http.Request) { r.Header.Set("Origin", "null") },
		"cross-site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same site":    func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		if status, body, _ := b.do("POST", "/dev/act", say, spoil); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if _, body, _ := b.do("POST", "/dev/act", say, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }); !strings.Contains(body, "a deed is JSON") {
		t.Errorf("a form: %s", body)
	}
	if n := len(b.slack.Messages(slacktest.General)); n != 0 {
		t.Fatalf("%d messages were said", n)
	}
	if status, body, _ := b.do("POST", "/dev/act", say, nil); status != 200 || strings.Contains(body, "error") || len(b.slack.Messages(slacktest.General)) != 1 {
		t.Errorf("with the key: %d %s", status, body)
	}
	for _, path := range []string{"/", "/page.js", "/base.css", "/page.css"} {
		status, body, header := b.do("GET", path, "", nil)
		if csp := header.Get("Content-Security-Policy"); status != 200 || !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d, policy %q", path, status, csp)
		}
		if strings.Contains(body, "https://") || strings.Contains(body, "innerHTML") || strings.Contains(body, " style=") {
			t.Errorf("%s names something outside, or makes markup", path)
		}
	}
}

func TestDeeds(t *testing.T) {
	b := open(t)
	for _, row := range []struct{ deed, says string }{
		{`{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"  "}`, "nothing to say"},
		{`{"do":"say","user":"U0ANN","channel":"C0GENERAL","thread":"1.1","text":"/nize help"}`, "/nize is not supported in threads. Sorry!"},
		{`{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"/nize help"}`, "did not acknowledge"},
		{`{"do":"say","user":"U0GUEST","channel":"C0SECRET","text":"x"}`, "is in no channel"},
		{`{"do":"press","user":"U0ANN","channel":"C0GENERAL","ts":"1.1","action":"a"}`, "sees no message"},
		{`{"do":"submit","user":"U0ANN","view":"V1"}`, "no open view"},
		{`{"do":"fly"}`, "nobody can do"},
		{`{"does":"say"}`, "reading what was done"},
	} {
		if _, body, _ := b.do("POST", "/dev/act", row.deed, nil); !strings.Contains(body, row.says) {
			t.Errorf("%s: got %s, want %q", row.deed, body, row.says)
		}
	}
	b.do("POST", "/dev/act", `{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"@nize <b>"}`, nil)
	if got := b.slack.Messages(slacktest.General); len(got) != 1 || got[0].Text != "<@U0NIZE> &lt;b&gt;" {
		t.Errorf("said %+v", got)
	}
	if _, body, _ := b.do("POST", "/dev/act", `{"do":"dm","user":"U0BEN"}`, nil); !strings.Contains(body, b.slack.DMChannel(slacktest.Ben)) {
		t.Errorf("the direct conversation: %s", body)
	}
}

func TestAStateWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		type state struct {
			Revision int `json:"revision"`
			Messages []struct {
				Text string `json:"text"`
			} `json:"messages"`
		}
		get := func(query string) (s state) {
			_, body, _ := b.do("GET", "/dev/state?"+query, "", nil)
			if err := json.Unmarshal([]byte(body), &s); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			return s
		}
		first := get("user=U0ANN&channel=C0GENERAL&since=-1")
		since := "&since=" + string(mustJSON(t, first.Revision))
		began := time.Now()
		time.AfterFunc(5*time.Second, func() {
			if _, err := b.slack.Say(slacktest.Ann, slacktest.General, "news"); err != nil {
				t.Error(err)
			}
		})
		next := get("user=U0ANN&channel=C0GENERAL" + since)
		if took := time.Since(began); took != 5*time.Second || len(next.Messages) != 1 {
			t.Errorf("after %v the page got %+v", took, next)
		}
		// A guest who is not in the channel sees nothing of it.
		if _, err := b.slack.Say(slacktest.Ann, slacktest.Secret, "psst"); err != nil {
			t.Fatal(err)
		}
		if got := get("user=U0GUEST&channel=C0SECRET&since=-1"); len(got.Messages) != 0 {
			t.Errorf("the guest reads %+v", got.Messages)
		}
		began = time.Now()
		got := get("user=U0ANN&channel=C0GENERAL&since=" + string(mustJSON(t, b.slack.Revision())))
		if took := time.Since(began); took != 20*time.Second || got.Revision != b.slack.Revision() {
			t.Errorf("nothing happened, and the page waited %v", took)
		}
	})
}

func mustJSON(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A file goes with a message, or alone, and stands below it.
func TestAttached(t *testing.T) {
	b := open(t)
	for i, text := range []string{"look", ""} {
		say := `{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"` + text + `","files":[{"name":"a.txt","content":"aGVsbG8="}]}`
		if status, body, _ := b.do("POST", "/dev/act", say, nil); status != 200 || strings.Contains(body, "error") {
			t.Fatalf("%d %s", status, body)
		}
		m := b.slack.Messages(slacktest.General)[i]
		if m.Text != text || len(m.Files) != 1 || string(m.Files[0].Content) != "hello" {
			t.Errorf("it stands as %+v", m)
		}
	}
}

// The commands that Slack itself has let people in and out, and a message tells
// of it.
func TestMembership(t *testing.T) {
	b := open(t)
	for _, row := range []struct{ user, channel, line, says string }{
		{"U0ANN", "C0RANDOM", "/invite @nize @guest", "{}"},
		{"U0ANN", "C0RANDOM", "/invite @guest", "guest is in this channel already"},
		{"U0ANN", "C0RANDOM", "/invite @nobody", "nobody is called @nobody here"},
		{"U0ANN", "C0RANDOM", "/invite", "say who: /invite @ben"},
		{"U0ANN", "C0RANDOM", "/remove @cho", "{}"},
		{"U0ANN", "C0RANDOM", "/remove @cho", "cho is not in this channel"},
		{"U0CHO", "C0RANDOM", "/invite @ben", "none of yours"},
		{"U0CHO", "C0GENERAL", "/join #random", `"channel":"C0RANDOM"`},
		{"U0CHO", "C0GENERAL", "/join #secret", "name a public channel"},
		{"U0BEN", "C0RANDOM", "/leave", `"channel":"D0`},
	} {
		deed := string(mustJSON(t, page.Deed{Do: "say", User: row.user, Channel: row.channel, Text: row.line}))
		if _, body, _ := b.do("POST", "/dev/act", deed, nil); !strings.Contains(body, row.says) {
			t.Errorf("%s says %q: %s", row.user, row.line, body)
		}
	}
	var said []string
	for _, m := range b.slack.Messages("C0RANDOM") {
		said = append(said, m.Text)
	}
	want := "<@" + slacktest.Bot + "> has joined the channel, <@U0GUEST> has joined the channel, <@U0CHO> has left the channel, <@U0CHO> has joined the channel, <@U0BEN> has left the channel"
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("the channel has %s", got)
	}
	_, body, _ := b.do("GET", "/dev/state?user=U0ANN&channel=C0RANDOM", "", nil)
	for _, part := range []string{`"quiet":true`, `"line":"/invite"`, `"groups":["ops"]`} {
		if !strings.Contains(body, part) {
			t.Errorf("the state lacks %s: %s", part, body)
		}
	}
}

// A suggested line stands in the composer until somebody has sent it.
func TestSuggest(t *testing.T) {
	slack := slacktest.New(slacktest.Options{})
	pipe := chattest.NewPipe()
	p := &page.Page{Platform: slackpage.Platform{Server: slack}, Key: "sesame"}
	if err := slack.StartWith(pipe, p.Handler()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	b := &browser{t: t, slack: slack, key: "sesame", client: &http.Client{Transport: &http.Transport{DialContext: pipe.Dial, DisableKeepAlives: true}}}
	draft := func(want string) {
		t.Helper()
		if _, body, _ := b.do("GET", "/dev/state?user=U0ANN&channel=C0GENERAL", "", nil); !strings.Contains(body, `"draft":"`+want+`"`) {
			t.Errorf("the draft is not %q: %s", want, body)
		}
	}
	draft("")
	p.Suggest("hello there")
	draft("hello there")
	b.do("POST", "/dev/act", `{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":"another"}`, nil)
	draft("hello there")
	b.do("POST", "/dev/act", `{"do":"say","user":"U0ANN","channel":"C0GENERAL","text":" hello there "}`, nil)
	draft("")
}
