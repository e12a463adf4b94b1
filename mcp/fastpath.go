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
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"nize/mcp/expose"
	"nize/mcp/policy"
	"nize/mcp/reply"
	"nize/store"
)

const (
	maxRequest = 4 << 20 // bytes of a body, as the SDK's default
	// maxSessions bounds what is remembered of sessions; one that is forgotten
	// goes through the SDK, which knows it.
	maxSessions = 10_000
)

// fastPath stands before the SDK's stateful handler and answers the calls of
// the five tools itself. The SDK takes four goroutines and some 300 KB of
// buffers to a call, half of the gateway's whole time; a call of a session
// that is known needs neither. Everything else is the SDK's: the handshake,
// lists, notifications, streams, progress, and the life of a session, whose
// clock is kept going by sending a call through the SDK now and then.
//
// The answer is one JSON document, or, when a person has to be waited for, an
// event stream, which can be kept alive.
type fastPath struct {
	server       *Server
	sdk          http.Handler
	refreshEvery time.Duration // the SDK sees a call of each session at least so often

	mu       sync.Mutex
	sessions map[string]*fastSession
}

// fastSession is a session of the SDK's that was seen to begin.
type fastSession struct {
	user     string
	lastSeen time.Time                     // when the SDK last had a request of it
	inflight map[string]context.CancelFunc // by the request's id
}

func newFastPath(s *Server, sdk http.Handler, timeout time.Duration) *fastPath {
	return &fastPath{server: s, sdk: sdk, refreshEvery: timeout / 2, sessions: map[string]*fastSession{}}
}

// rpc is the part of a request that decides who answers it.
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
		h.passToSDK(w, r, session) // the SDK says what is wrong
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
	if !h.canAnswer(r, by, req) {
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

// canAnswer says whether the request is a plain call of one of the five.
func (h *fastPath) canAnswer(r *http.Request, by store.Caller, req rpc) bool {
	if req.Version != "2.0" || req.Method != "tools/call" || len(req.ID) == 0 || req.Params.Meta.ProgressToken != nil {
		return false
	}
	if req.Params.Name == Execute && store.GetBool(h.server.opt.Config, "", "approvals.elicitation") {
		return false // its client may be asked, which is the SDK's to do
	}
	if id := req.ID[0]; id != '"' && (id < '0' || id > '9') && id != '-' {
		return false
	}
	accept := r.Header.Get("Accept")
	if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return false // the SDK says what is wrong
	}
	return isMeta(req.Params.Name) && expose.Of(by.Scopes, policy.BuiltinServer).Meta
}

// beginCall notes a call of a session that is known, belongs to the user, and was
// seen by the SDK not long ago. Its context ends when the client cancels it.
func (h *fastPath) beginCall(ctx context.Context, session, user, id string) (context.Context, func(), bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.sessions[session]
	if k == nil || k.user != user || h.server.opt.Now().Sub(k.lastSeen) > h.refreshEvery || k.inflight[id] != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	k.inflight[id] = cancel
	return ctx, func() {
		cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(k.inflight, id)
	}, true
}

func (h *fastPath) cancelCall(session, user, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.sessions[session]; k != nil && k.user == user && k.inflight[id] != nil {
		k.inflight[id]()
	}
}

// passToSDK lets the SDK answer and learns from it which sessions there are.
func (h *fastPath) passToSDK(w http.ResponseWriter, r *http.Request, session string) {
	user := auth.TokenInfoFromContext(r.Context()).UserID
	now := h.server.opt.Now()
	if session != "" && r.Method == http.MethodPost {
		h.mu.Lock()
		if k := h.sessions[session]; k != nil && k.user == user {
			k.lastSeen = now
		}
		h.mu.Unlock()
	}
	seen := &reply.StatusWriter{ResponseWriter: w, OnStatus: func(status int) {
		switch given := w.Header().Get("Mcp-Session-Id"); {
		case session != "" && (status == http.StatusNotFound || r.Method == http.MethodDelete && status < 300):
			h.dropSession(session)
		case session == "" && given != "" && status < 300:
			h.addSession(given, user, now)
		}
	}}
	h.sdk.ServeHTTP(seen, r)
}

// dropSession notes that a session ended.
func (h *fastPath) dropSession(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, session)
}

// addSession notes a session that began.
func (h *fastPath) addSession(session, user string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) >= maxSessions {
		h.dropStaleLocked(now)
	}
	if len(h.sessions) < maxSessions {
		h.sessions[session] = &fastSession{user: user, lastSeen: now, inflight: map[string]context.CancelFunc{}}
	}
}

// dropStaleLocked forgets sessions that the SDK has given up by now; h.mu is held.
func (h *fastPath) dropStaleLocked(now time.Time) {
	for id, k := range h.sessions {
		if len(k.inflight) == 0 && now.Sub(k.lastSeen) > 2*h.refreshEvery {
			delete(h.sessions, id)
		}
	}
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
