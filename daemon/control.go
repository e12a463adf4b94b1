package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// maxBody bounds a request on the control socket.
const maxBody = 8 << 20

// answerFunc answers one request of the control API with a value, or an error
// that the one table of daemon/api turns into a wire code.
type answerFunc func(ctx context.Context, by store.Caller, r *http.Request) (any, error)

// streamFunc answers with lines; send fails when the client has left.
type streamFunc func(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error

// lines are lines of a stream that are encoded already.
type lines []byte

func encodeLines(v any) ([]byte, error) {
	if b, ok := v.(lines); ok {
		return b, nil
	}
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a line: %w", err)
	}
	return append(line, '\n'), nil
}

// handlers is every request of the control API; a test compares it with
// api.Routes.
func (d *Daemon) handlers() (answers map[string]answerFunc, streams map[string]streamFunc) {
	answers = map[string]answerFunc{}
	streams = map[string]streamFunc{
		"POST /v1/reindex": d.reindex,
	}
	return answers, streams
}

// controlHandler serves the control socket.
func (d *Daemon) controlHandler() http.Handler {
	admin := map[string]bool{}
	for _, route := range api.Routes {
		admin[route.Method+" "+route.Path] = route.Admin
	}
	mux := http.NewServeMux()
	d.controlMux(mux)
	answers, streams := d.handlers()
	for pattern, h := range answers {
		mux.HandleFunc(pattern, d.edge(admin[pattern], func(by store.Caller, w http.ResponseWriter, r *http.Request) {
			d.answer(w, r, by, h)
		}))
	}
	for pattern, h := range streams {
		mux.HandleFunc(pattern, d.edge(admin[pattern], func(by store.Caller, w http.ResponseWriter, r *http.Request) {
			d.stream(w, r, by, h)
		}))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, api.Version)
		mux.ServeHTTP(w, r)
	})
}

// failControl writes an error as nizectl reads it.
func failControl(w http.ResponseWriter, e *api.Error) {
	body, _ := json.Marshal(api.Failure{Error: e}) // two strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status())
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

// edge is where a request on the socket gets its caller. Browsers are refused
// before anything else, in case somebody puts the socket behind a proxy.
func (d *Daemon) edge(admin bool, next func(store.Caller, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		by, err := d.socketCaller(r)
		if err == nil && admin && !by.IsAdmin() {
			err = fmt.Errorf("only admins may do this: %w", store.ErrRefused)
		}
		if err != nil {
			d.fail(w, r, err)
			return
		}
		next(by, w, r)
	}
}

// socketCaller is where a request on the socket gets its caller. Browsers are
// refused before anything else, in case somebody puts the socket behind a proxy.
func (d *Daemon) socketCaller(r *http.Request) (store.Caller, error) {
	if r.Header.Get("Origin") != "" || r.Host != api.Host {
		return store.Caller{}, fmt.Errorf("the control socket is for nizectl alone: %w", store.ErrRefused)
	}
	return d.peers.caller(r)
}

func (d *Daemon) answer(w http.ResponseWriter, r *http.Request, by store.Caller, h answerFunc) {
	defer d.survive(w, r)
	value, err := h(r.Context(), by, r)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	if value == nil {
		value = api.Empty{}
	}
	body, err := json.Marshal(value)
	if err != nil {
		d.fail(w, r, fmt.Errorf("encoding the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

func (d *Daemon) stream(w http.ResponseWriter, r *http.Request, by store.Caller, h streamFunc) {
	defer d.survive(w, r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(d.closing, cancel)() // a drain cannot wait for those who listen
	defer d.streams.Enter(ctx, by, cancel)()
	begun := false
	flusher := http.NewResponseController(w)
	out := make(chan []byte)
	done := make(chan error, 1)
	send := func(v any) error {
		line, err := encodeLines(v)
		if err != nil {
			return err
		}
		select {
		case out <- line:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() { done <- d.guarded(func() error { return h(ctx, by, r, send) }) }()
	idle := time.NewTicker(silence)
	defer idle.Stop()
	write := func(line []byte) {
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
			begun = true
		}
		if _, err := w.Write(line); err != nil {
			cancel()
			return
		}
		if err := flusher.Flush(); err != nil {
			cancel()
		}
	}
	for {
		select {
		case line := <-out:
			write(line)
		case <-idle.C:
			if begun {
				write([]byte("\n"))
			}
		case err := <-done:
			switch {
			case err == nil || ctx.Err() != nil:
			case begun:
				e, known := api.FromError(err)
				if !known {
					d.log.Error("control stream", "route", r.Pattern, "err", err)
				}
				line, _ := json.Marshal(api.Failure{Error: e}) // two strings always encode
				write(append(line, '\n'))
			default:
				d.fail(w, r, err)
			}
			return
		}
	}
}

// guarded turns a panic into an error.
func (d *Daemon) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// survive keeps a panic inside its request.
func (d *Daemon) survive(w http.ResponseWriter, r *http.Request) {
	if p := recover(); p != nil {
		d.fail(w, r, fmt.Errorf("panic: %v", p))
	}
}

// fail writes an error: the one place where it becomes a status and a code.
func (d *Daemon) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the client has left
	}
	e, known := api.FromError(err)
	if !known {
		d.log.Error("control request", "route", r.Pattern, "err", err)
	}
	body, _ := json.Marshal(api.Failure{Error: e}) // two strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status())
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

// decode reads the body of a request.
func decode[T any](r *http.Request) (T, error) {
	var v T
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return v, fmt.Errorf("reading the request: %w", err)
	}
	if len(b) > maxBody {
		return v, fmt.Errorf("%w request: it is over %d MiB", store.ErrInvalid, maxBody>>20)
	}
	if len(b) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(b, &v); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return v, fmt.Errorf("%w request: %s cannot be %s", store.ErrInvalid, mismatch.Field, mismatch.Value)
		}
		if errors.Is(err, store.ErrInvalid) {
			return v, err
		}
		return v, fmt.Errorf("%w request: %w", store.ErrInvalid, err)
	}
	return v, nil
}

// items wraps a list; nil becomes an empty one.
func items[T any](list []T) api.List[T] {
	if list == nil {
		list = []T{}
	}
	return api.List[T]{Items: list}
}
