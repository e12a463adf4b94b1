package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/mcp/reply"
	"nize/mcp/sessions"
	"nize/mcp/taskwire"
	"nize/store"
	"nize/store/outage"
)

// modern is the first protocol version that is stateless.
const modern = "2026-07-28"

// ServerOptions configures a Server.
type ServerOptions struct {
	Gateway *Gateway
	Tokens  store.Tokens
	Feed    store.Feed
	Config  store.Config
	Version string
	Views   Views // the zero value provides no views
	// Enter, if set, counts a listening request of a user until leave is called. It may
	// call cancel to make room for other users' requests. It returns an error if the user
	// has too many.
	Enter func(user string, cancel context.CancelFunc) (leave func(), err error)
	Log   *slog.Logger
	Now   func() time.Time
	// Trace, if set, is called for each use of a meta-tool; the function that it returns is
	// called when the use ends. traceparent is the W3C header of the client's own span,
	// from its request.
	Trace func(ctx context.Context, tool, traceparent string) (context.Context, func(failed bool))
}

// Server serves the gateway to MCP clients over Streamable HTTP: the five meta-tools, in
// both protocol variants on one URL. Two handlers of the SDK share one server: a stateless
// handler for 2026-07-28, and a stateful one for 2025-11-25 and older, whose sessions
// belong to their user, are limited in number and time out (package sessions). The same
// server serves clients that have their own connection (ServeConn).
type Server struct {
	opt     ServerOptions
	sdk     *sdk.Server
	handler http.Handler
	fast    *fastPath
	// stateless is the SDK's handler for 2026-07-28.
	stateless http.Handler

	mu      sync.Mutex
	streams map[*httpRequest]struct{} // requests in flight, to end them when their token is revoked
	checks  uint64                    // number of passes over streams that checked the tokens
	conns   conns

	sessions *sessions.Set // of the stateful handler
	lists    expose.Watch
}

// httpRequest is one request in flight.
type httpRequest struct {
	token   string // id
	hash    [32]byte
	listens bool // it waits for events, not for a response
	cancel  context.CancelFunc
}

// NewServer returns a server. Handler returns its HTTP handler, and Run ends the streams of
// revoked tokens.
func NewServer(opt ServerOptions) *Server {
	s := &Server{opt: opt, streams: map[*httpRequest]struct{}{}}
	sdkLog := slog.New(warnings{opt.Log.Handler()})
	sdkOpt := &sdk.ServerOptions{
		Instructions: "nize finds and runs a team's tools. Search with discover_tools, read the parameters with get_tool_schema, run with execute_tool. A person may have to approve a call: it then waits.",
		Logger:       sdkLog,
		Capabilities: capabilities(),
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	}
	addFixtureOptions(sdkOpt)
	srv := sdk.NewServer(&sdk.Implementation{Name: "nize", Version: opt.Version}, sdkOpt)
	s.sdk = srv
	for _, m := range metaTools {
		s.addMetaTool(m)
	}
	addFixtures(srv)
	s.sessions = sessions.New(sessions.Options{Idle: store.GetSpan(opt.Config, "", "mcp.session_timeout"), Now: opt.Now, Limits: func() sessions.Limits {
		return sessions.Limits{All: store.GetInt(opt.Config, "", "limits.sessions"), Token: store.GetInt(opt.Config, "", "limits.token.sessions")}
	}})
	srv.AddReceivingMiddleware(s.recoverPanics, s.countSession, s.offerTasks, s.serveExposed, s.cleanUpQuestions)
	srv.AddSendingMiddleware(s.onlyDue, s.acknowledgeTasks)
	get := func(*http.Request) *sdk.Server { return srv }
	s.stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, Logger: sdkLog, DisableLocalhostProtection: true})
	stateful := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Logger: sdkLog, DisableLocalhostProtection: true})
	s.fast = newFastPath(s, stateful)
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.serveTasksOverHTTP(w, r) {
			return
		}
		if r.Header.Get("MCP-Protocol-Version") >= modern {
			s.stateless.ServeHTTP(w, r)
			return
		}
		s.fast.ServeHTTP(w, r)
	})
	s.handler = s.authenticate(s.stepUp(reply.Negotiate(both, forbidQuestions)))
	return s
}

// forbidQuestions marks a request whose client can't be asked questions while it is in
// flight, because its response is a document. A client of 2026-07-28 is asked in the
// response instead.
func forbidQuestions(r *http.Request) {
	if info := auth.TokenInfoFromContext(r.Context()); info != nil && r.Header.Get("MCP-Protocol-Version") < modern {
		info.Extra["document"] = true
	}
}

func (s *Server) addMetaTool(m metaTool) {
	s.sdk.AddTool(&sdk.Tool{
		Name: m.name, Title: m.title, Description: m.description, InputSchema: m.input, OutputSchema: m.output,
		Annotations: annotations(m),
	}, s.toolHandler(m.name))
}

// warnings drops log records below warnings: the SDK logs the start, initialization and end
// of each session.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// capabilities returns all capabilities that any caller can have (limitCapabilities), and
// logging, whose level clients of 2025-11-25 may set.
func capabilities() *sdk.ServerCapabilities {
	can := &sdk.ServerCapabilities{
		Tools: &sdk.ToolCapabilities{ListChanged: true}, Prompts: &sdk.PromptCapabilities{ListChanged: true}, Resources: &sdk.ResourceCapabilities{ListChanged: true},
		//lint:ignore SA1019 deprecated in 2026-07-28, required by the conformance suite of 2025-11-25
		Logging: &sdk.LoggingCapabilities{},
	}
	can.AddExtension(taskwire.Extension, nil)
	return can
}

func annotations(m metaTool) *sdk.ToolAnnotations {
	open, destructive := !m.readOnly, !m.readOnly
	return &sdk.ToolAnnotations{ReadOnlyHint: m.readOnly, IdempotentHint: m.readOnly, OpenWorldHint: &open, DestructiveHint: &destructive}
}

// Handler returns the handler of /mcp. The listener must check Host and Origin.
func (s *Server) Handler() http.Handler { return s.handler }

// Run ends the streams of a token as soon as it is revoked or expires, or its user is
// disabled. It returns when ctx ends.
func (s *Server) Run(ctx context.Context) error {
	var lists sync.WaitGroup
	defer lists.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists.Go(func() { s.followLists(ctx) })
	after := s.opt.Feed.Last()
	s.recheckTokens(ctx) // earlier requests may have missed changes before Last
	for change, err := range s.opt.Feed.Watch(ctx, after) {
		if err != nil {
			return fmt.Errorf("following the feed: %w", err)
		}
		if change.Kind == "token" || change.Kind == "user" {
			s.recheckTokens(ctx)
		}
	}
	return nil
}

func (s *Server) recheckTokens(ctx context.Context) {
	s.mu.Lock()
	s.checks++
	open := make([]*httpRequest, 0, len(s.streams))
	for st := range s.streams {
		open = append(open, st)
	}
	s.mu.Unlock()
	for _, st := range open {
		if _, _, err := s.opt.Tokens.Authenticate(ctx, st.hash); err != nil { // also in an outage: the token may have been revoked
			st.cancel()
		}
	}
}

// CloseStreams ends the requests that listen, because a drain cannot wait for them.
// Requests that wait for a response continue, and connections end after their last one.
func (s *Server) CloseStreams() {
	s.conns.finish()
	s.EndStreams()
}

// EndStreams ends the requests that listen. New ones are accepted.
func (s *Server) EndStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		if st.listens {
			st.cancel()
		}
	}
}

// Counts holds the numbers of open sessions and requests.
type Counts struct {
	Sessions int // including clients with their own connection
	Ended    int // sessions ended since the start to make room for others
	Requests int // in flight
}

// Counts returns the counts for the status.
func (s *Server) Counts() Counts {
	open, ended := s.sessions.Counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Sessions: open + s.conns.count(), Ended: ended, Requests: len(s.streams)}
}

// countSession makes room for a new session. Sessions without an id end with their request
// or their connection.
func (s *Server) countSession(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ss, ok := req.GetSession().(*sdk.ServerSession)
		if method != "initialize" || !ok || ss.ID() == "" {
			return next(ctx, method, req)
		}
		by, ok := callerOf(req)
		if !ok {
			return nil, errors.New("internal error") // authenticate always sets it
		}
		owner := sessions.Owner{Token: by.Token, User: by.User}
		if hello, ok := req.(*sdk.ServerRequest[*sdk.InitializeParams]); ok && hello.Params.Capabilities != nil {
			owner.Asks = hello.Params.Capabilities.Elicitation != nil
		}
		if err := s.sessions.Begin(ss.ID(), owner, func() { _ = ss.Close() }); err != nil { // no client is left to get the error
			return nil, &jsonrpc.Error{Code: tooManySessions, Message: err.Error()}
		}
		res, err := next(ctx, method, req)
		if err != nil && ss.InitializeParams() == nil {
			s.sessions.Drop(ss.ID()) // the SDK closes it
		}
		return res, err
	}
}

// tooManySessions is the error code for a refused session.
const tooManySessions = -32029

// authenticate resolves a bearer token to the caller. Invalid tokens of other clients never
// delay a valid one.
func (s *Server) authenticate(next http.Handler) http.Handler {
	verify := func(ctx context.Context, text string, r *http.Request) (*auth.TokenInfo, error) {
		hash, err := store.ReadToken(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		checks := s.countChecks()
		t, u, err := s.opt.Tokens.Authenticate(ctx, hash)
		switch {
		case errors.Is(err, store.ErrExpired):
			return nil, fmt.Errorf("%w: it expired on %s; make a new one: nizectl tokens create NAME --overwrite", auth.ErrInvalidToken, t.Expires.UTC().Format("2006-01-02 15:04 MST"))
		case errors.Is(err, store.ErrRefused):
			return nil, fmt.Errorf("%w: it was revoked", auth.ErrInvalidToken)
		case errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("%w: it is not known here", auth.ErrInvalidToken)
		case outage.Is(err):
			if away, ok := ctx.Value(awayKey{}).(*bool); ok {
				*away = true
			}
			return nil, store.ErrNoDatabase
		case err != nil:
			s.opt.Log.Error("authenticating", "err", err)
			return nil, errors.New("internal error")
		case t.Audience != store.ForMCP:
			return nil, fmt.Errorf("%w: it is for %s, not for mcp", auth.ErrInvalidToken, t.Audience)
		}
		by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnMCP, Token: t.ID, Scopes: t.Scopes, Address: address(r)}
		return &auth.TokenInfo{UserID: u.ID, Expiration: t.Expires, Extra: map[string]any{"caller": by, "hash": hash, "checks": checks, "signed in": t.SignedIn != nil}}, nil
	}
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := auth.TokenInfoFromContext(r.Context())
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		by, _ := info.Extra["caller"].(store.Caller)
		hash, _ := info.Extra["hash"].([32]byte)
		checks, _ := info.Extra["checks"].(uint64)
		st := &httpRequest{token: by.Token, hash: hash, cancel: cancel,
			listens: r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"}
		if st.listens && s.opt.Enter != nil {
			leave, err := s.opt.Enter(by.User, cancel)
			if err != nil {
				w.Header().Set("Retry-After", "10")
				http.Error(w, err.Error(), http.StatusTooManyRequests)
				return
			}
			defer leave()
		}
		s.mu.Lock()
		s.streams[st] = struct{}{}
		missed := s.checks != checks
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.streams, st)
			s.mu.Unlock()
		}()
		info.Extra["left"] = ctx.Done() // not used for the SDK's sessions, which outlive their requests
		if missed {
			// The token may have been revoked between its check and now, and the pass over
			// the streams didn't see this request.
			if _, _, err := s.opt.Tokens.Authenticate(ctx, hash); outage.Is(err) {
				w.Header().Set("Retry-After", "1")
				http.Error(w, store.ErrNoDatabase.Error(), http.StatusServiceUnavailable)
				return
			} else if err != nil {
				http.Error(w, auth.ErrInvalidToken.Error(), http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
	checked := auth.RequireBearerToken(verify, nil)(inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		away := new(bool)
		checked.ServeHTTP(awayWriter{w, away}, r.WithContext(context.WithValue(r.Context(), awayKey{}, away)))
	})
}

// awayKey is the context key of a *bool that is set if the database is unavailable.
type awayKey struct{}

// awayWriter responds 503 instead of the SDK's 500 if the token could not be looked up.
type awayWriter struct {
	http.ResponseWriter
	away *bool
}

func (a awayWriter) WriteHeader(status int) {
	if *a.away && status == http.StatusInternalServerError {
		a.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a awayWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a awayWriter) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// ownCaller returns the token info for a request without a token.
func ownCaller(by store.Caller) *auth.TokenInfo {
	return &auth.TokenInfo{UserID: by.User, Extra: map[string]any{"caller": by}}
}

func (s *Server) countChecks() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checks
}

// address returns the address of a request's client, without the port. The listener has
// already applied the proxy headers that it trusts.
func address(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// recoverPanics turns a panic into an error of its request; the SDK would let it end the
// process.
func (s *Server) recoverPanics(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.opt.Log.Error("a request panicked", "method", method, "panic", fmt.Sprint(p))
				res, err = nil, errors.New("internal error")
			}
		}()
		return next(ctx, method, req)
	}
}

// toolHandler returns the SDK handler of one meta-tool.
func (s *Server) toolHandler(name string) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		by, ok := callerOf(req)
		if !ok {
			return nil, errors.New("internal error") // authenticate always sets it
		}
		u, _ := ctx.Value(useKey{}).(use) // set if the tool was called by its own name
		if asks := clientAsks(req); name == Execute && asks != "" {
			return s.executeAsking(ctx, by, req, u, asks)
		}
		traceparent, _ := req.Params.Meta["traceparent"].(string)
		a, err := s.serveTool(ctx, by, toolCall{name: name, args: req.Params.Arguments, use: u, progress: progressOf(ctx, req), left: connectionOf(req), traceparent: traceparent})
		if err != nil {
			return nil, err
		}
		return a.result(), nil
	}
}

// toolCall is one use of a meta-tool.
type toolCall struct {
	name     string
	args     json.RawMessage
	use      use // the tool to run; the zero value means that of execute_tool's arguments
	progress store.ProgressFunc
	waits    func()          // called once, if the call has to wait for a person
	left     <-chan struct{} // closed when the client's connection is lost

	traceparent string // of the client's own span
}

// connectionOf returns a channel that is closed when the connection of a request is lost.
// That doesn't end a call of a session, because its client may reconnect.
func connectionOf(req *sdk.CallToolRequest) <-chan struct{} {
	if req.Extra == nil || req.Extra.TokenInfo == nil {
		return nil
	}
	left, _ := req.Extra.TokenInfo.Extra["left"].(<-chan struct{})
	return left
}

// serveTool serves one use of a meta-tool. If an execute_tool needs approval, it waits for
// it and informs the client.
func (s *Server) serveTool(ctx context.Context, by store.Caller, t toolCall) (a answer, err error) {
	if s.opt.Trace != nil {
		var end func(failed bool)
		ctx, end = s.opt.Trace(ctx, t.name, t.traceparent)
		defer func() { end(err != nil || a.isError) }()
	}
	if t.use.answer == nil {
		if t.args, err = s.opt.Gateway.validator.placeMeta(t.name, t.args); err != nil {
			s.opt.Gateway.turnAway(by, "", err)
			if t.name == Execute {
				return executeAnswer("", nil, err), nil
			}
			return lookupAnswer(t.name, &store.Result{IsError: true, Error: callError(err)}), nil
		}
	}
	if t.name != Execute {
		r, err := s.opt.Gateway.Meta(ctx, by, store.Scope{}, store.ToolCall{Name: t.name, Args: string(t.args)})
		if err != nil {
			s.opt.Log.Error("meta-tool", "tool", t.name, "err", err)
			return answer{}, errors.New("internal error")
		}
		return lookupAnswer(t.name, r), nil
	}
	u, err := t.use.parsed(t.args)
	if err != nil {
		s.opt.Gateway.turnAway(by, u.req.Tool, err)
		return u.answer(nil, err), nil
	}
	c, err := s.execute(ctx, by, u.req, &waiter{progress: t.progress, waits: t.waits, left: t.left})
	if err != nil {
		if failure := callError(err); failure.Code == store.CodeInternal && ctx.Err() == nil {
			s.opt.Log.Error("execute_tool", "tool", u.req.Tool, "err", err)
		}
	}
	return u.answer(c, err), nil
}

// progressOf returns a function that sends progress for the client's progress token, or
// does nothing without a token. In a stateless session whose response is one document the
// SDK can't deliver progress; that is not an error of the call.
func progressOf(ctx context.Context, req *sdk.CallToolRequest) store.ProgressFunc {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	task, _ := ctx.Value(taskKey{}).(*taskRequest)
	return func(done, total float64, message string) {
		p := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message}
		if err := req.Session.NotifyProgress(ctx, p); err != nil && task != nil && task.legacy {
			// Its request was answered with the task, until whose end the token is valid.
			_ = req.Session.NotifyProgress(context.Background(), p)
		}
	}
}
