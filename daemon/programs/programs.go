// Package programs serves the HTTP API for programs, which authenticate with a project's
// key or a member's token.
//
// They can use what a chat can. Their operations and the documentation of these are in
// operations.go, the operations on projects in projects.go, and the MCP servers that programs
// bring with their requests in servers.go. Package rounds runs their rounds. The records are in
// store/record, since they are deleted with budgets and calls. An error is {"error":{"type","message","param"}}; the message names the
// field.
package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/rounds"
	"nize/store"
	"nize/store/eventstream"
	"nize/store/outage"
	"nize/store/project"
)

// maxBody bounds a request.
const maxBody = 8 << 20

// UseKey returns a key and its project by the key's hash.
type UseKey func(ctx context.Context, hash [32]byte) (project.Key, project.Project, error)

// Project returns the project of the key in the header x-api-key.
func (use UseKey) Project(ctx context.Context, key string) (none project.Project, err error) {
	hash, err := store.ReadToken(strings.TrimSpace(key))
	if err != nil {
		return none, rounds.Unauthenticated("Invalid authorization format: x-api-key is mistyped or cut")
	}
	_, of, err := use(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return none, rounds.Unauthenticated("Invalid authorization format: x-api-key is unknown")
	case errors.Is(err, store.ErrRefused):
		return none, rounds.Unauthenticated("Invalid authorization format: x-api-key was revoked")
	}
	return of, err
}

// Server serves programs.
type Server struct {
	Engine *rounds.Engine
	UseKey UseKey
	// Bearer returns the owner of a request's token for the API.
	Bearer func(*http.Request) (store.Caller, error)
	// Find returns a project that the caller belongs to.
	Find func(ctx context.Context, by store.Caller, who string) (project.Project, error)
	// Count counts a request that follows a round towards its project's limit until leave
	// is called. It may call cancel to make room for others. It returns an error if the
	// project may not open another one.
	Count func(project string, cancel context.CancelFunc) (leave func(), err error)
	Log   *slog.Logger
}

// Routes returns the operations below /llm-exec/.
func (s *Server) Routes() []openapi.Route {
	return []openapi.Route{
		handle(s, runRound, runRoundDoc, s.Engine.Answer, writeAnswer),
		handle(s, streamRound, streamRoundDoc, s.Engine.Stream, send),
		handle(s, getRound, getRoundDoc, func(ctx context.Context, of project.Project, req oneRound) (rounds.Answer, error) {
			return s.Engine.Load(ctx, of, req.ID)
		}, writeAnswer),
		handle(s, followRound, followRoundDoc, s.events, follow),
		handle(s, cancelRound, cancelRoundDoc, func(ctx context.Context, of project.Project, req oneRound) (*rounds.Stream, error) {
			return nil, s.Engine.Cancel(ctx, of, req.ID)
		}, send),
	}
}

func writeAnswer(w http.ResponseWriter, _ *http.Request, a rounds.Answer) {
	w.Header().Set("X-Round-Id", a.ID)
	write(w, http.StatusOK, a)
}

// following is the response to a request that follows a round.
type following struct {
	stream *rounds.Stream  // nil if there are no more events
	ctx    context.Context // of the response
	leave  func()
}

// events resumes a stream. It counts requests, since the number of rounds is limited, but
// not the number of requests that follow each of them.
func (s *Server) events(ctx context.Context, of project.Project, req followed) (none following, err error) {
	at, err := rounds.ParsePosition(req.Last)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancel(ctx)
	left, err := s.Count(of.ID, cancel)
	if err != nil {
		cancel()
		return none, rounds.TooManyStreams(err)
	}
	leave := func() { left(); cancel() }
	st, err := s.Engine.Events(ctx, of, req.ID, at)
	if err != nil {
		leave()
		return none, err
	}
	return following{st, ctx, leave}, nil
}

// follow writes the events of a round, or status 204 if there are no more.
func follow(w http.ResponseWriter, r *http.Request, f following) {
	defer f.leave()
	send(w, r.WithContext(f.ctx), f.stream)
}

// send writes events until there are no more, or the client disconnects; it writes nothing
// without a stream.
func send(w http.ResponseWriter, r *http.Request, st *rounds.Stream) {
	if st == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer st.Close()
	h := w.Header()
	eventstream.SetHeader(h)
	h.Set("X-Round-Id", st.Round)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // harmless if it isn't supported
	for {
		events, err := st.Next(r.Context())
		if err != nil {
			return
		}
		var b []byte
		for _, e := range events {
			b = eventstream.Event{ID: e.ID, Name: e.Name, Data: []byte(e.Data)}.Append(b)
		}
		if _, err := w.Write(b); err != nil {
			return
		}
		_ = flush()
	}
}

// handle returns the route of an operation: it authenticates the caller, decodes the
// request, and writes the result. Out is the response as written, or a stream of it.
func handle[Req, Res, Out any](s *Server, op api.Op[Req, Res], doc openapi.Doc, do func(context.Context, project.Project, Req) (Out, error), write func(http.ResponseWriter, *http.Request, Out)) openapi.Route {
	return openapi.Handle(op, doc, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		of, err := s.authenticate(r)
		var req Req
		if err == nil && op.Method == http.MethodPost {
			err = decode(r, &req)
		}
		if err == nil {
			err = api.Decode(&req, r.PathValue, nil, nil, true)
			api.DecodeHeader(&req, r.Header.Get)
		}
		var out Out
		if err == nil {
			out, err = do(r.Context(), of, req)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		write(w, r, out)
	}), openapi.Security{projectKey: {}}, openapi.Security{openapi.Token: {}, projectID: {}})
}

// authenticate returns the project that a request acts for.
func (s *Server) authenticate(r *http.Request) (none project.Project, err error) {
	key, bearer := r.Header.Get("x-api-key"), r.Header.Get("Authorization")
	if key != "" && bearer != "" || len(r.Header.Values("x-api-key")) > 1 {
		return none, rounds.Unauthenticated("Invalid authorization format: send one x-api-key, or Authorization, and not both")
	}
	if key != "" {
		return s.UseKey.Project(r.Context(), key)
	}
	who := r.Header.Get("x-project-id")
	scheme, _, _ := strings.Cut(bearer, " ")
	if bearer == "" || who == "" || !strings.EqualFold(scheme, "Bearer") {
		return none, rounds.Unauthenticated("Invalid authorization format: send x-api-key, or Authorization: Bearer with x-project-id")
	}
	by, err := s.Bearer(r)
	if err != nil {
		return none, rounds.Unauthenticated("Invalid authorization format: " + err.Error())
	}
	if len(by.Scopes) > 0 { // a limited token can't act for a project
		return none, rounds.Unauthenticated("Invalid authorization format: the token is limited by scopes; take one without them, or a key of the project")
	}
	of, err := s.Find(r.Context(), by, who)
	if errors.Is(err, store.ErrNotFound) {
		return none, rounds.Unauthenticated("Invalid authorization format: x-project-id names no project of yours")
	}
	return of, err
}

// decode decodes the body. It rejects unknown fields, since a misspelt one must not be
// ignored silently.
func decode(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return rounds.Invalid("", "the body must be application/json")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return rounds.Invalid("", "the body broke off")
	}
	if len(body) > maxBody {
		return rounds.Invalid("", "the body is longer than %d bytes", maxBody)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if at, want := api.Misfit(into, body); at != "" {
			return rounds.Invalid(at, "%s %s", at, want)
		} else if want != "" {
			return rounds.Invalid("", "the body %s", want)
		}
		return rounds.Invalid("", "the body is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return rounds.Invalid("", "the body goes on after its end")
	}
	return nil
}

// fail writes an error. An internal one is logged, once, and not sent to the client.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	var e *api.Error
	if outage.Is(err) {
		e = rounds.AwayError()
	} else if !errors.As(err, &e) {
		s.Log.Error("serving a program", "path", r.URL.Path, "err", err)
		e = rounds.InternalError()
	}
	rounds.Form.Write(w, e)
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"type":"internal","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
