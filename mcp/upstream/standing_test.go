package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// TestNoAnswerToInitialize: a server that accepts initialize and answers it over no stream,
// or over one that it would only open later, is refused at once with that.
func TestNoAnswerToInitialize(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]func(w http.ResponseWriter){
		"202":              func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"202 with a blank": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted); fmt.Fprint(w, "\r\n") },
		"204":              func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"200 with nothing": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet { // silent for ever: nothing may wait for it
					w.Header().Set("Content-Type", "text/event-stream")
					http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
					<-r.Context().Done()
					return
				}
				accept(w)
			})
			_, err := b.Probe(t.Context(), remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			if err == nil || !strings.Contains(err.Error(), "and nothing else") {
				t.Errorf("error %v", err)
			}
		})
	}
}
