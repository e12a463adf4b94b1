package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"nize/mcp/expose"
	"nize/mcp/policy"
	"nize/mcp/reply"
	"nize/mcp/sessions"
	"nize/store"
)

// maxRequest is the maximum size of a body in bytes, equal to the SDK's default.
const maxRequest = 4 << 20

// fastPath handles calls of the five meta-tools itself, before the SDK's stateful handler.
// The SDK uses four goroutines and about 300 KB of buffers per call, half of the gateway's
// total time; a call of a known session needs neither. The SDK handles everything else: the
// handshake, lists, notifications, streams and progress. Package sessions decides how long
// a session lives.
//
// The response is one JSON document or, if the call waits for a person, an event stream,
// which can be kept alive.
type fastPath struct {
	server *Server
	sdk    http.Handler

	streams sessionStreams // on which clients of sessions listen

	mu       sync.Mutex
	inflight map[call]context.CancelFunc
}

// call identifies a call that the fast path serves.
type call struct{ session, id string }

func newFastPath(s *Server, sdk http.Handler) *fastPath {
	return &fastPath{server: s, sdk: sdk, inflight: map[call]context.CancelFunc{}}
}

// rpc holds the fields of a request that determine its handler.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
			Traceparent   string          `json:"traceparent"`
		} `json:"_meta"`
	} `json:"params"`
}

func (h *fastPath) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	if r.Method != http.MethodPost || session == "" {
		h.passToSDK(w, r, session)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil || len(body) > maxRequest {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		h.passToSDK(w, r, session) // the SDK reports the error
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req rpc
	if err := json.Unmarshal(body, &req); err != nil {
		h.passToSDK(w, r, session)
		return
	}
	info := auth.TokenInfoFromContext(r.Context())
	if req.Method == "notifications/cancelled" {
		h.cancelCall(session, info.UserID, string(req.Params.RequestID))
	}
	by, _ := info.Extra["caller"].(store.Caller)
	if !h.canAnswer(r, by, info.Extra[taskParam] != nil, req) {
		h.passToSDK(w, r, session)
		return
	}
	ctx, done, ok := h.beginCall(r.Context(), session, info.UserID, string(req.ID))
	if !ok {
		h.passToSDK(w, r, session)
		return
	}
	defer done()
	h.answer(ctx, w, by, req)
}

// canAnswer reports whether the request is a plain call of one of the five meta-tools. task
// is true if the request asks for a task.
func (h *fastPath) canAnswer(r *http.Request, by store.Caller, task bool, req rpc) bool {
	if req.Version != "2.0" || req.Method != "tools/call" || len(req.ID) == 0 || req.Params.Meta.ProgressToken != nil {
		return false
	}
	if task {
		return false // the SDK's handlers create tasks
	}
	if req.Params.Name == Execute && h.server.sessions.Asks(r.Header.Get("Mcp-Session-Id")) {
		return false // only the SDK can elicit from the client
	}
	if id := req.ID[0]; id != '"' && (id < '0' || id > '9') && id != '-' {
		return false
	}
	accept := r.Header.Get("Accept")
	if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return false // the SDK reports the error
	}
	return isMeta(req.Params.Name) && expose.Of(by.Scopes, policy.BuiltinServer).Meta
}

// beginCall registers a call of a known session that belongs to the user. The returned
// context ends when the client cancels the call.
func (h *fastPath) beginCall(ctx context.Context, session, user, id string) (context.Context, func(), bool) {
	leave, _, ok := h.server.sessions.Enter(session, user, sessions.Asks)
	if !ok {
		return nil, nil, false
	}
	one := call{session, id}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inflight[one] != nil {
		leave()
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	h.inflight[one] = cancel
	return ctx, func() {
		cancel()
		h.mu.Lock()
		delete(h.inflight, one)
		h.mu.Unlock()
		leave()
	}, true
}

// cancelCall cancels a call in one of the user's sessions.
func (h *fastPath) cancelCall(session, user, id string) {
	leave, _, ok := h.server.sessions.Enter(session, user, sessions.Asks)
	if !ok {
		return
	}
	defer leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	if cancel := h.inflight[call{session, id}]; cancel != nil {
		cancel()
	}
}

// passToSDK passes the request to the SDK. An unknown session has ended, even if the SDK
// hasn't noticed yet.
func (h *fastPath) passToSDK(w http.ResponseWriter, r *http.Request, session string) {
	if session != "" {
		use := sessions.Asks
		if r.Method == http.MethodGet {
			use = sessions.Listens
		}
		leave, known, ours := h.server.sessions.Enter(session, auth.TokenInfoFromContext(r.Context()).UserID, use)
		if !known {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		defer leave()
		if use == sessions.Listens && ours { // the SDK refuses another user
			stream, end := h.streams.enter(session, w)
			defer end()
			w = stream
		}
	}
	h.sdk.ServeHTTP(&reply.StatusWriter{ResponseWriter: w, OnStatus: func(status int) {
		if session != "" && (status == http.StatusNotFound || r.Method == http.MethodDelete && status < 300) {
			h.server.sessions.Drop(session)
		}
	}}, r)
}

// answer runs the call and writes the response.
func (h *fastPath) answer(ctx context.Context, w http.ResponseWriter, by store.Caller, req rpc) {
	out := &reply.Reply{W: w, ID: req.ID}
	defer func() {
		if p := recover(); p != nil {
			h.server.opt.Log.Error("a request panicked", "method", req.Method, "panic", fmt.Sprint(p))
			out.SendError("internal error")
		}
	}()
	a, err := h.server.serveTool(ctx, by, toolCall{name: req.Params.Name, args: req.Params.Arguments, waits: out.StartStream, traceparent: req.Params.Meta.Traceparent})
	if err != nil {
		out.SendError(err.Error())
		return
	}
	out.SendDocument(append(a.append(append(out.Head(), `"result":`...)), '}'))
}
