package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"nize/mcp/mcptest"
	"nize/store"
)

// oldServer is a server of the older wire, written by hand: it answers each
// message in a way of the test's own, and counts the calls of its tool t.
type oldServer struct {
	sessions bool // it gives sessions ids, and knows those that it gave
	// before answers in place of the server; false leaves it to it.
	before func(w http.ResponseWriter, r *http.Request, m message) bool
	// stale answers a request with a session that is not known.
	stale func(w http.ResponseWriter, m message)
	// call answers a call of the tool; nil is the ordinary answer.
	call func(w http.ResponseWriter, m message)

	mu      sync.Mutex
	known   map[string]bool
	made    int
	methods []string
	runs    int
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.methods = append(s.methods, m.Method)
	known := s.known[r.Header.Get("Mcp-Session-Id")]
	s.mu.Unlock()
	switch {
	case s.before != nil && s.before(w, r, m):
	case s.sessions && m.Method != "initialize" && !known:
		if m.Method == "server/discover" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.stale(w, m)
	case m.Method == "initialize":
		if s.sessions {
			s.mu.Lock()
			s.made++
			id := fmt.Sprint("s", s.made)
			if s.known == nil {
				s.known = map[string]bool{}
			}
			s.known[id] = true
			s.mu.Unlock()
			w.Header().Set("Mcp-Session-Id", id)
		}
		result(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		result(w, m, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
	case m.Method == "tools/call":
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		if s.call != nil {
			s.call(w, m)
			return
		}
		result(w, m, `{"content":[{"type":"text","text":"ok"}]}`)
	case m.Method == "ping":
		result(w, m, `{}`)
	default:
		answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"Method not found"}}`)
	}
}

// forget is a restart: no session of before is known any more.
func (s *oldServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

// forgetMethods begins to count anew.
func (s *oldServer) forgetMethods() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods = nil
}

func (s *oldServer) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

func (s *oldServer) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.methods {
		if m == method {
			n++
		}
	}
	return n
}

func answer(w http.ResponseWriter, body string) { reply(w, 200, "application/json", body) }

func reply(w http.ResponseWriter, status int, media, body string) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	io.WriteString(w, body) //nolint:errcheck // the client may have left
}

func result(w http.ResponseWriter, m message, raw string) {
	answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+raw+`}`)
}

// TestOlderServersAreReached: whatever a server of the older wire makes of the
// first request of the newer one, it is spoken to by initialize.
func TestOlderServersAreReached(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]func(w http.ResponseWriter, r *http.Request, m message){
		"silent": func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() },
		"a stream that is silent": func(w http.ResponseWriter, r *http.Request, _ message) {
			reply(w, 200, "text/event-stream", ": hello\n\n")
			http.NewResponseController(w).Flush() //nolint:errcheck // a recorder can
			<-r.Context().Done()
		},
		"accepted":   func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(202) },
		"no content": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(204) },
		"nothing":    func(w http.ResponseWriter, _ *http.Request, _ message) { answer(w, "") },
		"an error without id": func(w http.ResponseWriter, _ *http.Request, _ message) {
			answer(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"initialize first"}}`)
		},
		"an error as text": func(w http.ResponseWriter, _ *http.Request, _ message) { answer(w, `{"error":"unknown method"}`) },
		"an error in 500": func(w http.ResponseWriter, _ *http.Request, _ message) {
			reply(w, 500, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x"}}`)
		},
		"a page": func(w http.ResponseWriter, _ *http.Request, _ message) {
			reply(w, 200, "text/html", "<html><title>Welcome</title>")
		},
		"a page with 404": func(w http.ResponseWriter, _ *http.Request, _ message) { reply(w, 404, "text/html", "<html>") },
		"plain text":      func(w http.ResponseWriter, _ *http.Request, _ message) { reply(w, 200, "text/plain", "OK") },
		"an empty result": func(w http.ResponseWriter, _ *http.Request, m message) { result(w, m, `{}`) },
		"a result of another": func(w http.ResponseWriter, _ *http.Request, _ message) {
			answer(w, `{"jsonrpc":"2.0","id":12345678,"result":{}}`)
		},
		"a stream that ends": func(w http.ResponseWriter, _ *http.Request, _ message) {
			reply(w, 200, "text/event-stream", ": hello\n\n")
		},
		"JSON that is none": func(w http.ResponseWriter, _ *http.Request, _ message) {
			answer(w, `{"jsonrpc":"2.0","id":1,"result":{`)
		},
		"not implemented": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(501) },
		"a session of its own": func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Mcp-Session-Id", "probe")
			answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"Method not found"}}`)
		},
		"the connection cut": func(w http.ResponseWriter, _ *http.Request, _ message) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sessions := range []bool{false, true} {
				b := newBench(t, nil)
				s := &oldServer{sessions: sessions, before: func(w http.ResponseWriter, r *http.Request, m message) bool {
					if m.Method == "server/discover" {
						probe(w, r, m)
					}
					return m.Method == "server/discover"
				}}
				b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
				b.good("far:t", `{}`, "ok")
			}
		})
	}
}

// TestOlderServersAreProbedOnce: what contacting a server before its registration has
// shown holds for the connection that follows, and for no other one.
func TestOlderServersAreProbedOnce(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }
	accepted := func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(202) }
	for name, c := range map[string]struct {
		probe func(w http.ResponseWriter, r *http.Request, m message)
		then  func(cfg *store.Server) // changes what is registered
		want  int                     // requests of the newer wire
	}{
		"silent":          {silent, nil, 1},
		"accepted":        {accepted, nil, 1},
		"a page":          {func(w http.ResponseWriter, _ *http.Request, _ message) { reply(w, 200, "text/html", "<html>") }, nil, 1},
		"unknown":         {func(w http.ResponseWriter, _ *http.Request, m message) { w.WriteHeader(400) }, nil, 1},
		"another name":    {accepted, func(cfg *store.Server) { cfg.Name = "other" }, 2},
		"another address": {accepted, func(cfg *store.Server) { cfg.URL += "?v=2" }, 2},
		"in trouble":      {func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(503) }, nil, 4}, // each connection asks again: it may just be starting
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := &oldServer{before: func(w http.ResponseWriter, r *http.Request, m message) bool {
				if m.Method == "server/discover" {
					c.probe(w, r, m)
				}
				return m.Method == "server/discover"
			}}
			cfg := remote(mcptest.New(t, mcptest.Options{}).Handle(s))
			for {
				if _, err := b.Probe(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				if name != "silent" || s.count("server/discover") == 1 {
					break
				}
				// The machine is so busy that the server could be one that is just starting.
				s.forgetMethods()
			}
			if c.then != nil {
				c.then(&cfg)
			}
			b.register(cfg)
			b.good(cfg.Name+":t", `{}`, "ok")
			if n := s.count("server/discover"); n != c.want {
				t.Errorf("it got %d requests of the newer wire, want %d", n, c.want)
			}
		})
	}
}

// TestServersThatAreNone: what answers nothing to initialize either is refused,
// with its own words.
func TestServersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, m message)
		words  []string
	}{
		"a page":     {func(w http.ResponseWriter, _ message) { reply(w, 200, "text/html", "<html><title>Sign in</title>") }, []string{"text/html", `"Sign in"`}},
		"accepted":   {func(w http.ResponseWriter, _ message) { w.WriteHeader(202) }, []string{"202 Accepted and nothing else"}},
		"a sentence": {func(w http.ResponseWriter, _ message) { reply(w, 403, "text/plain", "your plan has no API") }, []string{"403", "your plan has no API"}},
		"an error": {func(w http.ResponseWriter, m message) {
			answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"no","data":{"why":"closed on Sundays"}}}`)
		}, []string{"closed on Sundays"}},
		"another's":  {func(w http.ResponseWriter, m message) { answer(w, `{"jsonrpc":"2.0","id":12345678,"result":{}}`) }, []string{"another request"}},
		"other JSON": {func(w http.ResponseWriter, _ message) { answer(w, `{"status":"ok"}`) }, []string{`{"status":"ok"}`}},
		"502":        {func(w http.ResponseWriter, _ message) { reply(w, 502, "text/plain", "no upstream") }, []string{"502", "no upstream"}},
		"broken JSON": {func(w http.ResponseWriter, m message) {
			answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{oops}}`)
		}, []string{"oops"}},
		"an ended stream": {func(w http.ResponseWriter, _ message) { reply(w, 200, "text/event-stream", "data: bye\n\n") }, []string{"ended before the answer", `"bye"`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			s := &oldServer{before: func(w http.ResponseWriter, _ *http.Request, m message) bool { c.answer(w, m); return true }}
			_, err := b.Probe(t.Context(), remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			if err == nil {
				t.Fatal("it was taken for a server")
			}
			for _, words := range c.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("error %q lacks %q", err, words)
				}
			}
		})
	}
}

// TestStreamsAndNotificationsThatAreNotAnswered: a server may leave the standing
// stream and notifications without an answer, or refuse them.
func TestStreamsAndNotificationsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(w http.ResponseWriter, r *http.Request){
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"400":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) },
		"404":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"500":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"501":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) },
		"a page": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "text/html", "<html>") },
		"heartbeats": func(w http.ResponseWriter, r *http.Request) {
			reply(w, 200, "text/event-stream", "data: ping\n\ndata: {\"type\":\"heartbeat\"}\n\n")
			http.NewResponseController(w).Flush() //nolint:errcheck // a test's server can
			if r.Method == http.MethodGet {
				<-r.Context().Done()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := &oldServer{}
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.Method == http.MethodGet || strings.Contains(string(body), "notifications/initialized") {
					refuse(w, r)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				s.ServeHTTP(w, r)
			}))))
			for range 3 {
				b.good("far:t", `{}`, "ok")
			}
			if got := s.count("initialize"); got != 1 {
				t.Errorf("%d sessions were made, want 1", got)
			}
		})
	}
}

// TestStaleSessionIsRenewed: a server that has forgotten its sessions says so in
// its own way. The session is made again, and the call sent again only if it can't
// have run.
func TestStaleSessionIsRenewed(t *testing.T) {
	t.Parallel()
	words := func(status int, media, body string) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, m message) {
			reply(w, status, media, strings.ReplaceAll(body, "ID", string(m.ID)))
		}
	}
	for name, c := range map[string]struct {
		stale func(w http.ResponseWriter, m message)
		again bool // the call is sent again
	}{
		"404":               {words(404, "text/plain", "Session not found"), true},
		"404 of the letter": {words(404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`), true},
		"400":               {words(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`), true},
		"404 with the id":   {words(404, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`), true},
		"400 of the form":   {words(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Invalid Request"}}`), true},
		"410":               {words(410, "text/plain", ""), true},
		"401":               {words(401, "text/plain", "Unauthorized: Session not found"), true},
		"401 without words": {words(401, "text/plain", ""), true},
		"403":               {words(403, "application/json", `{"error":"Invalid session id"}`), true},
		"422":               {words(422, "text/plain", "Unexpected message, expect initialize request"), true},
		"500":               {words(500, "text/plain", "Error: Session not found"), true},
		"500 in JSON":       {words(500, "application/json", `{"error":"invalid session"}`), true},
		"503":               {words(503, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Server not initialized"}}`), true},
		"200 with an error": {words(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Session expired"}}`), true},
		"200 without an id": {words(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"Server not initialized"}}`), true},
		"200 with a stream": {words(200, "text/event-stream", "event: message\ndata: {\"error\":\"Session not found\"}\n\n"), true},
		"500 without words": {words(500, "text/plain", "oh no"), false},
		"503 without words": {words(503, "text/html", "<html><title>Down</title>"), false},
		"502 of a gateway":  {words(502, "text/plain", "no session with the server"), false},
		"504 of a gateway":  {words(504, "text/html", "<html><title>504: session timed out</title>"), false},
		"500, each time another": {func(w http.ResponseWriter, m message) {
			reply(w, 500, "text/plain", "session lost, case "+string(m.ID))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := &oldServer{sessions: true, stale: c.stale}
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			b.good("far:t", `{}`, "ok")
			s.forget()
			if c.again {
				b.good("far:t", `{}`, "ok")
			} else {
				_, err := b.run(t.Context(), "far:t", `{}`)
				fails(t, err, store.CodeUnknown, "the outcome is unknown")
			}
			b.good("far:t", `{}`, "ok") // over the new session in either case
			if want := map[bool]int{true: 3, false: 2}[c.again]; s.ran() != want {
				t.Errorf("it ran %d times, want %d", s.ran(), want)
			}
			if got := s.count("initialize"); got != 2 {
				t.Errorf("%d sessions were made, want 2", got)
			}
		})
	}
}

// TestCallThatRanIsNotSentAgain: an error that only sounds like a lost session, of
// a session that lives, is the tool's own.
func TestCallThatRanIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call  func(w http.ResponseWriter, m message)
		code  store.Code
		words string
	}{
		"a tool with sessions": {func(w http.ResponseWriter, m message) {
			answer(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32001,"message":"Session not found"}}`)
		}, store.CodeTool, "Session not found"},
		"the same in a stream": {func(w http.ResponseWriter, m message) {
			reply(w, 200, "text/event-stream", "data: {\"error\":\"Session not found\"}\n\n")
		}, store.CodeTool, "Session not found"},
		"500":               {func(w http.ResponseWriter, _ message) { reply(w, 500, "text/plain", "session store is full") }, store.CodeUnknown, "session store is full"},
		"503 without words": {func(w http.ResponseWriter, _ message) { w.WriteHeader(503) }, store.CodeUnknown, "503"},
		"422": {func(w http.ResponseWriter, m message) {
			reply(w, 422, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32602,"message":"no such session"}}`)
		}, store.CodeInvalid, "no such session"},
		"400 of the tool": {func(w http.ResponseWriter, m message) {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32603,"message":"no such row"}}`)
		}, store.CodeTool, "no such row"},
		"404 of the tool": {func(w http.ResponseWriter, m message) {
			reply(w, 404, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"no such session of the browser"}}`)
		}, store.CodeTool, "no such session"},
		"accepted":               {func(w http.ResponseWriter, _ message) { w.WriteHeader(202) }, store.CodeUnknown, "202 Accepted and nothing else"},
		"an answer that is none": {func(w http.ResponseWriter, _ message) { answer(w, `{'jsonrpc': '2.0'}`) }, store.CodeUnknown, `{'jsonrpc': '2.0'}`},
		"another's answer":       {func(w http.ResponseWriter, _ message) { answer(w, `{"jsonrpc":"2.0","id":7777,"result":{}}`) }, store.CodeUnknown, "another request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := &oldServer{sessions: true, call: c.call, stale: func(w http.ResponseWriter, _ message) { w.WriteHeader(404) }}
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			_, err := b.run(t.Context(), "far:t", `{}`)
			fails(t, err, c.code, c.words)
			if got := s.ran(); got != 1 {
				t.Errorf("it ran %d times, want 1", got)
			}
		})
	}
}

// TestHabitsOverHTTP: answers that are JSON-RPC by and large.
func TestHabitsOverHTTP(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(w http.ResponseWriter, id, raw string){
		"ids as text": func(w http.ResponseWriter, id, raw string) {
			answer(w, `{"jsonrpc":"2.0","id":"`+id+`","result":`+raw+`}`)
		},
		"ids are null": func(w http.ResponseWriter, _, raw string) { answer(w, `{"jsonrpc":"2.0","id":null,"result":`+raw+`}`) },
		"ids are 1":    func(w http.ResponseWriter, _, raw string) { answer(w, `{"jsonrpc":"2.0","id":1,"result":`+raw+`}`) },
		"no version":   func(w http.ResponseWriter, id, raw string) { answer(w, `{"id":`+id+`,"result":`+raw+`}`) },
		"byte order mark": func(w http.ResponseWriter, id, raw string) {
			answer(w, "\xef\xbb\xbf"+`{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+`}`)
		},
		"a batch": func(w http.ResponseWriter, id, raw string) {
			answer(w, `[{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+`}]`)
		},
		"plain text": func(w http.ResponseWriter, id, raw string) {
			reply(w, 200, "text/plain", `{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+`}`)
		},
		"created": func(w http.ResponseWriter, id, raw string) {
			reply(w, 201, "application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+`}`)
		},
		"a warning of PHP": func(w http.ResponseWriter, id, raw string) {
			reply(w, 200, "text/html", "<br />\n<b>Notice</b>: x in <b>{a}</b>\n"+`{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+`}`)
		},
		"a stream as JSON": func(w http.ResponseWriter, id, raw string) {
			answer(w, "event: message\ndata: "+`{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+"}\n\n")
		},
		"heartbeats": func(w http.ResponseWriter, id, raw string) {
			reply(w, 200, "text/event-stream", "data: ping\n\ndata: {\"type\":\"heartbeat\"}\n\ndata: "+`{"jsonrpc":"2.0","id":`+id+`,"result":`+raw+"}\n\n")
		},
		"no last line": func(w http.ResponseWriter, id, raw string) {
			reply(w, 200, "text/event-stream", "data: "+`{"jsonrpc":"2.0","id":null,"result":`+raw+"}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			s := &oldServer{before: func(w http.ResponseWriter, _ *http.Request, m message) bool {
				switch m.Method {
				case "initialize":
					send(w, string(m.ID), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
				case "tools/list":
					send(w, string(m.ID), `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
				case "tools/call":
					send(w, string(m.ID), `{"content":[{"type":"text","text":"ok"}]}`)
				default:
					return false
				}
				return true
			}}
			b.register(remote(mcptest.New(t, mcptest.Options{}).Handle(s)))
			b.good("far:t", `{}`, "ok")
		})
	}
}

// TestSlashRedirectIsFollowed: and no other, and the error names where another
// leads. No header goes to another address.
func TestSlashRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		path     string // registered
		location string
		words    string // of the error; "" works
	}{
		"a slash more":    {307, "/mcp", "/mcp/", ""},
		"a slash less":    {307, "/mcp/", "/mcp", ""},
		"permanently":     {308, "/mcp", "/mcp/", ""},
		"301":             {301, "/mcp", "/mcp/", ""},
		"302":             {302, "/mcp", "/mcp/", ""},
		"absolute":        {307, "/mcp", "SELF/mcp/", ""},
		"relative":        {307, "/mcp", "mcp/", ""},
		"with its query":  {307, "/mcp?k=v", "/mcp/?k=v", ""},
		"303":             {303, "/mcp", "/mcp/", "SELF/mcp/"},
		"another path":    {307, "/mcp", "/sse/", "SELF/sse/"},
		"another host":    {307, "/mcp", "OTHER/mcp/", "OTHER/mcp/"},
		"another scheme":  {307, "/mcp", "https://127.0.0.1/mcp/", "https://127.0.0.1/mcp/"},
		"another query":   {307, "/mcp", "/mcp/?token=s3cret", "SELF/mcp/"},
		"two slashes":     {307, "/mcp", "/mcp//", "SELF/mcp//"},
		"round and round": {307, "/mcp", "/mcp/", "SELF/mcp"},
		"nowhere":         {307, "/mcp", "", "redirects are not followed"},
		"with a password": {307, "/mcp", "//u:p4ss@OTHERHOST/mcp/", "OTHER/mcp/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			var mu sync.Mutex
			var stolen []http.Header
			thief := mcptest.New(t, mcptest.Options{})
			other := strings.TrimSuffix(thief.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				stolen = append(stolen, r.Header)
			})), "/mcp")
			s := &oldServer{}
			self := ""
			fill := func(text string) string {
				return strings.NewReplacer("SELF", self, "OTHERHOST", strings.TrimPrefix(other, "http://"), "OTHER", other).Replace(text)
			}
			m := mcptest.New(t, mcptest.Options{})
			registered, _, _ := strings.Cut(c.path, "?")
			self = strings.TrimSuffix(m.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == registered:
					if c.location != "" {
						w.Header().Set("Location", fill(c.location))
					}
					w.WriteHeader(c.status)
				case name == "round and round":
					w.Header().Set("Location", registered)
					w.WriteHeader(c.status)
				case r.Header.Get("X-Api-Key") != "k-123":
					w.WriteHeader(401)
				default:
					s.ServeHTTP(w, r)
				}
			})), "/mcp")
			cfg := remote(self + c.path)
			cfg.Headers = map[string]store.Value{"X-Api-Key": {Text: "k-123"}}
			_, err := b.Probe(t.Context(), cfg)
			if (err == nil) != (c.words == "") {
				t.Fatalf("error %v, want one with %q", err, c.words)
			}
			if err == nil {
				b.register(cfg)
				b.good("far:t", `{}`, "ok")
			} else if !strings.Contains(err.Error(), fill(c.words)) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "p4ss") {
				t.Errorf("error %q, want %q in it", err, fill(c.words))
			}
			mu.Lock()
			defer mu.Unlock()
			if len(stolen) > 0 {
				t.Errorf("another address got %v", stolen)
			}
		})
	}
}
