package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"nize/mcp/mcptest"
	"nize/store"
)

// standingServer accepts each request but initialize with a status and nothing else,
// and sends the answer over the standing stream.
type standingServer struct {
	oldServer
	accept func(w http.ResponseWriter)
	events chan string
	// reorder holds the answers of two calls back, and sends the second first.
	reorder bool
	held    chan string
}

func (s *standingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for {
			http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
			select {
			case e := <-s.events:
				fmt.Fprint(w, e)
			case <-r.Context().Done():
				return
			}
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m message
	if json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Method != http.MethodPost || m.Method == "initialize" || m.Method == "server/discover" || m.ID == nil {
		s.oldServer.ServeHTTP(w, r)
		return
	}
	got := &capture{header: http.Header{}}
	s.oldServer.ServeHTTP(got, r)
	event := "event: message\ndata: " + got.body.String() + "\n\n"
	switch {
	case s.reorder && m.Method == "tools/call":
		select {
		case first := <-s.held:
			s.events <- event + first
		default:
			s.held <- event
		}
	default:
		s.events <- event // before the request is accepted: the order is nobody's promise
	}
	s.accept(w)
}

// capture keeps what is written.
type capture struct {
	header http.Header
	body   bytes.Buffer
}

func (c *capture) Header() http.Header         { return c.header }
func (c *capture) WriteHeader(int)             {}
func (c *capture) Write(b []byte) (int, error) { return c.body.Write(b) }

// TestAnswersOverTheStandingStream: an answer that comes over the standing stream is
// matched by its id alone.
func TestAnswersOverTheStandingStream(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	text := func(id, text string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
	}
	for name, c := range map[string]struct {
		accept func(http.ResponseWriter)
		call   func(w http.ResponseWriter, m message)
		fails  string
	}{
		"202":                {accept: status(202, "")},
		"200 with nothing":   {accept: status(200, "")},
		"204":                {accept: status(204, "")},
		"202 with a newline": {accept: status(202, "\r\n")},
		"id as text":         {status(202, ""), func(w http.ResponseWriter, m message) { answer(w, text(`"`+string(m.ID)+`"`, "ok")) }, ""},
		"id with a fraction": {status(202, ""), func(w http.ResponseWriter, m message) { answer(w, text(string(m.ID)+".0", "ok")) }, ""},
		"behind others": {status(202, ""), func(w http.ResponseWriter, m message) {
			answer(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n\ndata: "+text("7", "another's")+"\n\n: ping\n\ndata: "+text(string(m.ID), "ok"))
		}, ""},
		"an error": {status(202, ""), func(w http.ResponseWriter, m message) {
			answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"no more paper"}}`)
		}, "no more paper"},
		"no answer in it": {status(202, ""), func(w http.ResponseWriter, m message) {
			answer(w, text("null", "not ok")+"\n\ndata: "+text("7", "not ok")+"\n\ndata: "+`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"the last"}}`)
		}, "the last"},
		"refused": {status(503, "busy"), nil, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := &standingServer{accept: c.accept, events: make(chan string, 10)} // more than there are requests
			s.call = c.call
			if c.fails == "503" {
				s.accept = func(w http.ResponseWriter) {
					if s.ran() > 0 {
						status(503, "busy")(w)
						return
					}
					status(202, "")(w)
				}
			}
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			if c.fails == "" {
				b.good("far:t", `{}`, "ok")
				b.good("far:t", `{}`, "ok")
				return
			}
			_, err := b.run(t.Context(), "far:t", `{}`)
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v lacks %q", err, c.fails)
			}
			if s.ran() != 1 {
				t.Errorf("it ran %d times", s.ran())
			}
		})
	}
}

// TestStandingAnswersAreNotMixedUp: answers to two calls at once come in the other
// order, and a server without a standing stream fails at once.
func TestStandingAnswersAreNotMixedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := &standingServer{accept: func(w http.ResponseWriter) { w.WriteHeader(202) }, events: make(chan string, 10), reorder: true, held: make(chan string, 1)}
	s.call = func(w http.ResponseWriter, m message) {
		result(w, m, `{"content":[{"type":"text","text":"answer to `+string(m.ID)+`"}]}`)
	}
	b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
	texts, errs := make(chan string, 2), make(chan error, 2) // one for each call
	for range 2 {
		go func() {
			got, err := b.run(t.Context(), "far:t", `{}`)
			if err != nil {
				errs <- err
				return
			}
			texts <- string(got.Raw)
		}()
	}
	seen := map[string]bool{}
	for range 2 {
		select {
		case text := <-texts:
			seen[text] = true
		case err := <-errs:
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the answers were %v", seen)
	}

	without := &oldServer{call: func(w http.ResponseWriter, _ message) { w.WriteHeader(202) }}
	b2 := newBench(t, nil)
	b2.register(remote(mcptest.New(t, mcptest.Options{}).Handle(without)))
	_, err := b2.run(t.Context(), "far:t", `{}`)
	fails(t, err, store.CodeUnknown, "it answered 202 Accepted and nothing else")
}

// TestNoAnswerToInitialize: a server that accepts initialize and answers it over no stream
// is refused at once with that, and one whose stream is silent within streamTime.
func TestNoAnswerToInitialize(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	events := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, text)
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		accept, stream http.HandlerFunc
		want           []string
	}{
		"202, no stream":              {status(202, ""), status(405, ""), []string{"202 Accepted and nothing else", "GET is answered 405"}},
		"202 with a blank, no stream": {status(202, "\r\n"), status(404, "no"), []string{"202 Accepted and nothing else", "GET is answered 404"}},
		"204, an error":               {status(204, ""), status(500, ""), []string{"204 No Content and nothing else", "GET is answered 500"}},
		"200, a page":                 {status(200, ""), status(200, "<html>"), []string{"200 OK and nothing else", "GET is answered 200 OK"}},
		"a stream that ends":          {status(202, ""), events(": hello\n\n"), []string{"202 Accepted and nothing else", "ended before the answer"}},
		"an answer to another":        {status(202, ""), events(`data: {"jsonrpc":"2.0","id":12345678,"result":{}}` + "\n\n"), []string{"202 Accepted and nothing else", "ended before the answer"}},
		"a stream that is silent":     {status(202, ""), silent, []string{"202 Accepted and nothing else", "no answer came within 5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					c.stream(w, r)
					return
				}
				c.accept(w, r)
			})
			_, err := b.Probe(t.Context(), remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
		})
	}
}

// TestInitializeOverTheStandingStream: a server that accepts every request, the first
// one, too, and sends all answers over the standing stream. It has one stream for a
// session.
func TestInitializeOverTheStandingStream(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":99,"method":"ping"}`
	for name, c := range map[string]struct {
		session string
		before  string // what the stream begins with
		late    bool   // the stream's head comes with its first event
		code    int
	}{
		"with a session":        {session: "s1", code: 202},
		"without one":           {code: 202},
		"behind others":         {session: "s1", code: 202, before: ": ping\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\ndata: heartbeat\n\n"},
		"behind a sign of life": {session: "s1", code: 202, before: "data: " + ping + "\n\n"},
		"a late head":           {session: "s1", code: 202, late: true},
		"204":                   {session: "s1", code: 204},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			var streams atomic.Int32
			out := make(chan string, 10) // more than there are requests
			old := &oldServer{}
			s := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					if r.Header.Get("Mcp-Session-Id") != c.session {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					if streams.Add(1) > 1 {
						w.WriteHeader(http.StatusConflict)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, c.before)
					for {
						if !c.late {
							http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
						}
						select {
						case e := <-out:
							fmt.Fprint(w, e)
							http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
						case <-r.Context().Done():
							return
						}
					}
				}
				body, err := io.ReadAll(r.Body)
				var m message
				if err != nil || json.Unmarshal(body, &m) != nil {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if m.Method == "initialize" && c.session != "" {
					w.Header().Set("Mcp-Session-Id", c.session)
				}
				if m.Method != "" && m.ID != nil && r.Method == http.MethodPost {
					got := &capture{header: http.Header{}}
					old.ServeHTTP(got, r)
					out <- "event: message\ndata: " + got.body.String() + "\n\n"
				}
				w.WriteHeader(c.code)
			})
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			b.good("far:t", `{}`, "ok")
			b.good("far:t", `{}`, "ok")
			if n := streams.Load(); n != 1 || old.ran() != 2 {
				t.Errorf("%d streams, %d calls", n, old.ran())
			}
		})
	}
}
