package slacktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"nize/bots/chattest"
	"nize/bots/slack/slacktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// app is a small app on plain HTTP and a plain websocket: no library for
// Slack, so that this tests the fake and nothing else.
type app struct {
	t      *testing.T
	fake   *slacktest.Server
	http   *http.Client
	dialer websocket.Dialer

	mu     sync.Mutex
	frames []frame
	ack    func(frame) (reply string, ack bool) // nil acknowledges all
	ws     *websocket.Conn
	reader sync.WaitGroup
}

type frame struct {
	Envelope string          `json:"envelope_id"`
	Type     string          `json:"type"`
	Reason   string          `json:"reason"`
	Payload  json.RawMessage `json:"payload"`
	Attempt  int             `json:"retry_attempt"`
	Retry    string          `json:"retry_reason"`
	Num      int             `json:"num_connections"`
}

type answer struct {
	OK       bool            `json:"ok"`
	Error    string          `json:"error"`
	Needed   string          `json:"needed"`
	Provided string          `json:"provided"`
	Errors   []string        `json:"errors"`
	Channel  json.RawMessage `json:"channel"`
	TS       string          `json:"ts"`
	URL      string          `json:"url"`
	FileID   string          `json:"file_id"`
	Upload   string          `json:"upload_url"`
	Warning  string          `json:"warning"`
	MsgTS    string          `json:"message_ts"`
	View     struct {
		ID   string `json:"id"`
		Hash string `json:"hash"`
	} `json:"view"`
	User     json.RawMessage `json:"user"`
	Messages json.RawMessage `json:"messages"`
	Meta     struct {
		Cursor   string   `json:"next_cursor"`
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
	status int
	header http.Header
}

// start is for what does not hang on Slack's three seconds.
func start(t *testing.T, opt slacktest.Options) *app {
	t.Helper()
	opt.Patience = time.Minute
	return startOn(t, opt, nil)
}

// startPiped is for synctest.
func startPiped(t *testing.T, opt slacktest.Options) *app {
	return startOn(t, opt, chattest.NewPipe())
}

func startOn(t *testing.T, opt slacktest.Options, pipe *chattest.Pipe) *app {
	t.Helper()
	fake := slacktest.New(opt)
	a := &app{t: t, fake: fake}
	transport := &http.Transport{DisableKeepAlives: true}
	var on net.Listener
	if pipe != nil {
		on, transport.DialContext = pipe, pipe.Dial
		a.dialer.NetDialContext = pipe.Dial
	}
	a.http = &http.Client{Transport: transport}
	if err := fake.Start(on); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.hangUp()
		fake.Close()
	})
	return a
}

// within is a deadline that a broken test meets, and no other.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (a *app) call(method string, kv ...string) answer {
	a.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(kv); i += 2 {
		form.Set(kv[i], kv[i+1])
	}
	token := a.fake.BotToken()
	if method == "apps.connections.open" {
		token = a.fake.AppToken()
	}
	return a.post(method, token, "application/x-www-form-urlencoded", form.Encode())
}

func (a *app) post(method, token, kind, body string) answer {
	a.t.Helper()
	req, err := http.NewRequestWithContext(within(a.t), http.MethodPost, a.fake.APIURL()+method, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	got := answer{status: resp.StatusCode, header: resp.Header}
	if err := json.Unmarshal(raw, &got); err != nil && resp.StatusCode < 400 {
		a.t.Fatalf("%s answered %s", method, raw)
	}
	return got
}

// good is a call that must work.
func (a *app) good(method string, kv ...string) answer {
	a.t.Helper()
	got := a.call(method, kv...)
	if !got.OK {
		a.t.Fatalf("%s: %s %q", method, got.Error, got.Errors)
	}
	return got
}

// bad is a call that must be refused with a code.
func (a *app) bad(code, method string, kv ...string) answer {
	a.t.Helper()
	got := a.call(method, kv...)
	if got.OK || got.Error != code {
		a.t.Errorf("%s: got ok %t, error %q %q; want %q", method, got.OK, got.Error, got.Errors, code)
	}
	return got
}

// dial opens a link and reads it until it ends.
func (a *app) dial() {
	a.t.Helper()
	ws, _, err := a.dialer.DialContext(within(a.t), a.good("apps.connections.open").URL, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	a.ws = ws
	a.mu.Unlock()
	hello := make(chan struct{})
	a.reader.Go(func() {
		for {
			_, raw, err := ws.ReadMessage()
			if err != nil {
				return
			}
			var f frame
			if json.Unmarshal(raw, &f) != nil {
				continue
			}
			a.mu.Lock()
			a.frames = append(a.frames, f)
			if f.Type == "hello" {
				close(hello)
			}
			reply, ack := "", true
			if a.ack != nil {
				reply, ack = a.ack(f)
			}
			if f.Envelope != "" && ack {
				out := fmt.Sprintf(`{"envelope_id":%q}`, f.Envelope)
				if reply != "" {
					out = fmt.Sprintf(`{"envelope_id":%q,"payload":%s}`, f.Envelope, reply)
				}
				_ = ws.WriteMessage(websocket.TextMessage, []byte(out)) // the fake may have closed it
			}
			a.mu.Unlock()
		}
	})
	select {
	case <-hello:
	case <-within(a.t).Done():
		a.t.Fatal("no hello")
	}
}

func (a *app) hangUp() {
	a.mu.Lock()
	ws := a.ws
	a.mu.Unlock()
	if ws != nil {
		ws.Close()
	}
	a.reader.Wait()
}

// got are the frames of a type.
func (a *app) got(kind string) []frame {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []frame
	for _, f := range a.frames {
		if f.Type == kind {
			list = append(list, f)
		}
	}
	return list
}

// events are the inner types of the events that came, in order.
func (a *app) events() []string {
	var list []string
	for _, f := range a.got("events_api") {
		var in struct {
			Event struct {
				Type    string `json:"type"`
				Subtype string `json:"subtype"`
			} `json:"event"`
		}
		if err := json.Unmarshal(f.Payload, &in); err != nil {
			a.t.Errorf("payload %s: %v", f.Payload, err)
		}
		list = append(list, strings.TrimSuffix(in.Event.Type+"/"+in.Event.Subtype, "/"))
	}
	return list
}

// until waits for a change after which cond holds.
func (a *app) until(what string, cond func() bool) {
	a.t.Helper()
	if err := a.fake.Wait(within(a.t), cond); err != nil {
		a.t.Fatalf("waiting for %s: %v; events %q, stats %+v", what, err, a.events(), a.fake.Stats())
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
