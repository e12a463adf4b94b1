package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTP serves the fake over Streamable HTTP and returns its URL. After Stop it serves again
// at the same address, like a restarted server that has lost all sessions.
func (s *Server) HTTP() string {
	legacy := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.real }, &sdk.StreamableHTTPOptions{JSONResponse: s.opt.JSON})
	modern := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.real }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: s.opt.JSON, PropagateRequestCancellation: true})
	return s.serve("/mcp", s.front(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.opt.Stateless {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})))
}

// SSE serves the fake over the older HTTP+SSE and returns its URL.
func (s *Server) SSE() string {
	h := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s.real }, nil)
	return s.serve("/sse", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		h.ServeHTTP(w, r)
	}))
}

// Handle serves a test's own handler at the fake's address.
func (s *Server) Handle(h http.Handler) string { return s.serve("/mcp", h) }

func (s *Server) serve(path string, h http.Handler) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv := httptest.NewUnstartedServer(h)
	if s.kept != nil {
		l, err := listenOn(s.kept)
		s.kept = nil
		if err != nil {
			s.t.Fatal(err)
		}
		srv.Listener.Close()
		srv.Listener = l
	}
	srv.Start()
	s.http = srv
	return srv.URL + path
}

// Stop ends the HTTP server and closes its connections. Its port stays reserved:
// connections to it are refused, and no other process gets it in the meantime.
func (s *Server) Stop() {
	s.stop(func(srv *httptest.Server) {
		kept, err := keepPort(srv.Listener.Addr())
		if err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = kept
	})
}

// end stops the fake for good.
func (s *Server) end() {
	s.stop(func(*httptest.Server) {})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		s.kept.Close()
	}
}

// stop ends the HTTP server; shut is called as soon as the listener is closed.
func (s *Server) stop(shut func(*httptest.Server)) {
	s.mu.Lock()
	srv := s.http
	s.http = nil
	s.mu.Unlock()
	if srv != nil {
		// First, or the server would wait for a client that reconnects immediately.
		srv.Listener.Close()
		shut(srv)
		srv.CloseClientConnections()
	}
	for ss := range s.real.Sessions() {
		ss.Close()
	}
	if srv != nil {
		srv.Close()
	}
	for ss := range s.real.Sessions() { // of a request that was in flight
		ss.Close()
	}
}

func (s *Server) record(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
}

// front applies faults, or passes the request on.
func (s *Server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		if r.Method != http.MethodPost {
			if r.Method == http.MethodGet && s.resumed(w, r) {
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		switch s.strikes(Unauthorized, ServerError, Unavailable, TooMany, Redirect) {
		case Unauthorized:
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		case ServerError:
			http.Error(w, "oh no", http.StatusInternalServerError)
			return
		case Unavailable:
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		case TooMany:
			http.Error(w, "slowly", http.StatusTooManyRequests)
			return
		case Redirect:
			http.Redirect(w, r, s.opt.Target, http.StatusTemporaryRedirect)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		msg, err := jsonrpc.DecodeMessage(body)
		if err == nil && s.handled(w, r, msg) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// handled handles requests that the fake answers itself, and reports whether it did.
func (s *Server) handled(w http.ResponseWriter, r *http.Request, msg jsonrpc.Message) bool {
	if a, ok := msg.(*jsonrpc.Response); ok {
		if s.answered(a) {
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		return false
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return false
	}
	switch req.Method {
	case "tools/list":
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		if result, ok := s.page(req.Params); ok {
			writeJSON(w, req.ID, result)
			return true
		}
	case "tools/call":
		stream := &stream{w: w}
		result, fault, ok := s.reply(r.Context(), req.ID, req.Params, stream.write)
		if !ok {
			return false
		}
		answer{id: req.ID, result: result, fault: fault}.send(r.Context(), stream)
		return true
	}
	return false
}

// answer is the response to a tool call: a result, or what a fault makes of it.
type answer struct {
	id     jsonrpc.ID
	result json.RawMessage
	fault  Fault
}

func (a answer) send(ctx context.Context, st *stream) {
	w := st.w
	switch a.fault {
	case Die:
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	case Hang, Wedge:
		<-ctx.Done()
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Sign in</title>")
	case Broken:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[`)
	case BigLine:
		writeJSON(w, a.id, Text(strings.Repeat("x", 17<<20)))
	case BigBody:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"x":"`)
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 200 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case Trickle:
		w.Header().Set("Content-Type", "application/json")
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprint(w, " ")
				http.NewResponseController(w).Flush()
			case <-ctx.Done():
				return
			}
		}
	case Polled:
		// SEP-1699: an event with an id, then the end; the client requests the rest.
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: rest-%v\nretry: 10\ndata:\n\nid: rest-%v\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", a.id.Raw(), a.id.Raw())
	default:
		if st.used() {
			if err := st.write(&jsonrpc.Response{ID: a.id, Result: a.result}); err != nil {
				return // the client has disconnected
			}
			return
		}
		writeJSON(w, a.id, a.result)
	}
}

// resumed handles the GET for the rest of a Polled stream.
func (s *Server) resumed(w http.ResponseWriter, r *http.Request) bool {
	raw, ok := strings.CutPrefix(r.Header.Get("Last-Event-Id"), "rest-")
	if !ok {
		return false
	}
	id, err := jsonrpc.MakeID(raw)
	if err != nil {
		return false
	}
	st := &stream{w: w}
	return st.write(&jsonrpc.Response{ID: id, Result: Text("resumed")}) == nil
}

// writeJSON responds verbatim, without encoding the result's bytes again.
func writeJSON(w http.ResponseWriter, id jsonrpc.ID, result json.RawMessage) {
	body := envelope(id, result)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Write(body) //nolint:errcheck // the client may have disconnected
}

func envelope(id jsonrpc.ID, result json.RawMessage) []byte {
	raw, err := json.Marshal(id.Raw())
	if err != nil {
		raw = []byte("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, raw, result)
}

// page handles tools/list for the faults that affect it.
func (s *Server) page(params json.RawMessage) (json.RawMessage, bool) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, false
	}
	switch s.strikes(Pages, SameCursor, Twice) {
	case Pages:
		n := 0
		if p.Cursor != "" {
			fmt.Sscan(p.Cursor, &n) //nolint:errcheck // our own cursor
		}
		return fmt.Appendf(nil, `{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n+1), true
	case SameCursor:
		return []byte(`{"tools":[{"name":"same","inputSchema":{"type":"object"}}],"nextCursor":"again"}`), true
	case Twice:
		return []byte(`{"tools":[{"name":"twin","description":"first","inputSchema":{"type":"object"}},{"name":"twin","description":"second","inputSchema":{"type":"object"}}]}`), true
	}
	return nil, false
}

// stream writes messages as events.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
}

func (s *stream) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *stream) write(msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.begun = true
	}
	if _, err := fmt.Fprintf(s.w, "event: message\ndata: %s\n\n", b); err != nil {
		return err
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
