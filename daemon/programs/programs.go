// Package programs serves programs over HTTP: they come with a key of a project,
// or with a token of one of its members, and get what a chat gets.
//
//	POST   /llm-exec/round               a round with a model and tools
//	POST   /llm-exec/round/stream        the same, as server-sent events
//	GET    /llm-exec/rounds/{id}         what it came to
//	GET    /llm-exec/rounds/{id}/events  its events, behind Last-Event-ID
//	DELETE /llm-exec/rounds/{id}         ends it
//
// An error is {"error":{"type","message","param"}}; the messages name the field.
package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"nize/daemon/rounds"
	"nize/store"
	"nize/store/project"
)

// maxBody bounds a request.
const maxBody = 8 << 20

// Server serves programs.
type Server struct {
	Engine *rounds.Engine
	// UseKey returns the project of a key by its hash.
	UseKey func(ctx context.Context, hash [32]byte) (project.Key, project.Project, error)
	// Bearer says whose token for the API a request comes with.
	Bearer func(*http.Request) (store.Caller, error)
	// Find finds a project that the caller is in.
	Find func(ctx context.Context, by store.Caller, who string) (project.Project, error)
	Log  *slog.Logger
}

// Handler has the routes below /llm-exec/.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /llm-exec/round", s.handle(s.round))
	mux.Handle("POST /llm-exec/round/stream", s.handle(s.stream))
	mux.Handle("GET /llm-exec/rounds/{id}", s.handle(s.get))
	mux.Handle("GET /llm-exec/rounds/{id}/events", s.handle(s.events))
	mux.Handle("DELETE /llm-exec/rounds/{id}", s.handle(s.cancel))
	return mux
}

func (s *Server) round(w http.ResponseWriter, r *http.Request, of project.Project) error {
	var req rounds.Request
	if bad := decode(r, &req); bad != nil {
		return bad
	}
	a, err := s.Engine.Answer(r.Context(), of, req)
	return answer(w, a, err)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, of project.Project) error {
	a, err := s.Engine.Load(r.Context(), of, r.PathValue("id"))
	return answer(w, a, err)
}

func answer(w http.ResponseWriter, a rounds.Answer, err error) error {
	if err == nil {
		w.Header().Set("X-Round-Id", a.ID)
		write(w, http.StatusOK, a)
	}
	return err
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, of project.Project) error {
	err := s.Engine.Cancel(r.Context(), of, r.PathValue("id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, of project.Project) error {
	var req rounds.Request
	if bad := decode(r, &req); bad != nil {
		return bad
	}
	st, err := s.Engine.Stream(r.Context(), of, req)
	if err == nil {
		send(w, r, st)
	}
	return err
}

// events goes on with a stream; 204 tells a client that nothing comes any more.
func (s *Server) events(w http.ResponseWriter, r *http.Request, of project.Project) error {
	at, err := rounds.ParsePosition(r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	st, err := s.Engine.Events(r.Context(), of, r.PathValue("id"), at)
	switch {
	case err != nil:
		return err
	case st == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		send(w, r, st)
	}
	return nil
}

// send writes events until there are no more, or the client leaves.
func send(w http.ResponseWriter, r *http.Request, st *rounds.Stream) {
	defer st.Close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy between must not wait for more
	h.Set("X-Round-Id", st.Round)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // where it can't be, nothing is lost
	for {
		events, err := st.Next(r.Context())
		if err != nil {
			return
		}
		var b bytes.Buffer
		for _, e := range events {
			if e.ID != "" {
				fmt.Fprintf(&b, "id: %s\n", e.ID)
			}
			fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Name, e.Data)
		}
		if _, err := w.Write(b.Bytes()); err != nil {
			return
		}
		_ = flush()
	}
}

// handle finds out who calls, and writes the error if there is one.
func (s *Server) handle(do func(http.ResponseWriter, *http.Request, project.Project) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		of, err := s.authenticate(r)
		if err == nil {
			err = do(w, r, of)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// authenticate returns the project that a request acts for.
func (s *Server) authenticate(r *http.Request) (none project.Project, err error) {
	key, bearer := r.Header.Get("x-api-key"), r.Header.Get("Authorization")
	if key != "" && bearer != "" || len(r.Header.Values("x-api-key")) > 1 {
		return none, rounds.Unauthenticated("Invalid authorization format")
	}
	if key != "" {
		hash, err := store.ReadToken(strings.TrimSpace(key))
		if err != nil {
			return none, rounds.Unauthenticated("Invalid authorization format: x-api-key is mistyped or cut")
		}
		_, of, err := s.UseKey(r.Context(), hash)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return none, rounds.Unauthenticated("Invalid authorization format: x-api-key is not known here")
		case errors.Is(err, store.ErrRefused):
			return none, rounds.Unauthenticated("Invalid authorization format: x-api-key was revoked")
		}
		return of, err
	}
	who := r.Header.Get("x-project-id")
	scheme, _, _ := strings.Cut(bearer, " ")
	if bearer == "" || who == "" || !strings.EqualFold(scheme, "Bearer") {
		return none, rounds.Unauthenticated("Invalid authorization format")
	}
	by, err := s.Bearer(r)
	if err != nil {
		return none, rounds.Unauthenticated("Invalid authorization format: " + err.Error())
	}
	if len(by.Scopes) > 0 { // it acts for the whole project, or not at all
		return none, rounds.Unauthenticated("Invalid authorization format: the token is limited by scopes; take one without them, or a key of the project")
	}
	of, err := s.Find(r.Context(), by, who)
	if errors.Is(err, store.ErrNotFound) {
		return none, rounds.Unauthenticated("Invalid authorization format: x-project-id names no project of yours")
	}
	return of, err
}

// decode reads the body. A field that is not known is refused: a misspelt one must
// not be passed over in silence.
func decode(r *http.Request, into any) *rounds.Error {
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
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return rounds.Invalid(mismatch.Field, "%s cannot be %s", mismatch.Field, mismatch.Value)
		}
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			name = strings.Trim(name, `"`)
			return rounds.Invalid(name, "%s is not a field of a request", name)
		}
		return rounds.Invalid("", "the body is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return rounds.Invalid("", "the body goes on after its end")
	}
	return nil
}

// fail writes an error. What is nize's own is logged, once, and not told.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody reads it
	}
	var e *rounds.Error
	if !errors.As(err, &e) {
		s.Log.Error("serving a program", "path", r.URL.Path, "err", err)
		e = rounds.InternalError()
	}
	if e.Status() == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	write(w, e.Status(), struct {
		Error *rounds.Error `json:"error"`
	}{e})
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"type":"internal","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}
