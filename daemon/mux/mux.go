// Package mux serves operations of daemon/api over HTTP.
//
// It authenticates the caller, decodes the request, calls a plain function, and writes its
// result or error. The functions don't use HTTP. Each operation is mounted once, by
// [Handle] or one of its siblings, on a function of the caller and the request:
//
//	mux.Handle(m, api.SetBudget, budgets.Set)
//
// A panic is contained in its request. An error that is not in daemon/api's table is
// logged, once, and the caller gets "internal error".
package mux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	// maxBody bounds a request that is not a file.
	maxBody = 8 << 20
	// silence is how long a stream may be idle before an empty line is sent, so that
	// intermediaries keep it open.
	silence = 15 * time.Second
)

// Options configure authentication and the form of errors. Listen and Closing are required
// if there are streams.
type Options struct {
	// Caller returns a request's caller, or the error with which it is rejected.
	Caller func(*http.Request) (store.Caller, error)
	// Speak returns the speaker for the language that a request asks for; nil is English.
	Speak func(locale string) Speaker
	// Fail writes an error from daemon/api's table.
	Fail func(w http.ResponseWriter, e *api.Error)
	// Listen is called when a stream begins. It calls cancel if the caller may not
	// continue, and returns an error if the caller may not open another one. leave must be
	// called when the stream ends.
	Listen func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func(), err error)
	// Closing ends when streams must end.
	Closing context.Context
	// Strict rejects fields that an operation doesn't have. If it is false, only partial
	// changes (PATCH) reject them, since nizectl may be newer.
	Strict bool
	Log    *slog.Logger
}

// Mux has mounted operations.
type Mux struct {
	opt     Options
	mux     *http.ServeMux
	mounted []Mounted
}

// New returns a Mux without operations, which adds its routes to the ServeMux.
func New(on *http.ServeMux, opt Options) *Mux { return &Mux{opt: opt, mux: on} }

// Mounted is an operation with the types of its request and response.
type Mounted struct {
	api.Spec
	Request, Answer reflect.Type
}

// Mounted returns the operations, in the order in which they were mounted.
func (m *Mux) Mounted() []Mounted { return m.mounted }

// note records an operation.
func note[Req, Res any](m *Mux, op api.Spec) {
	m.mounted = append(m.mounted, Mounted{op, reflect.TypeFor[Req](), reflect.TypeFor[Res]()})
}

// Handle mounts an operation on its function.
func Handle[Req, Res any](m *Mux, op api.Op[Req, Res], do func(context.Context, store.Caller, Req) (Res, error)) {
	note[Req, Res](m, api.Spec(op))
	mount(m, api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller, req Req) error {
		res, err := do(r.Context(), by, req)
		if err != nil {
			return err
		}
		return m.answer(w, r, res)
	})
}

// HandleDownload mounts an operation that returns a file.
func HandleDownload[Req any](m *Mux, op api.Download[Req], do func(context.Context, store.Caller, Req) (api.File, error)) {
	note[Req, api.File](m, api.Spec(op))
	mount(m, api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller, req Req) error {
		f, err := do(r.Context(), by, req)
		if err != nil {
			return err
		}
		defer f.Close()
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
		h.Set(api.BackupKeyHeader, f.Key)
		h.Set(api.BackupSumHeader, f.SHA256)
		_, _ = io.Copy(w, f) // the client notices if it gets less than Content-Length
		return nil
	})
}

// HandleUpload mounts an operation that takes a file.
func HandleUpload[Req, Res any](m *Mux, op api.Upload[Req, Res], do func(context.Context, store.Caller, Req, api.File) (Res, error)) {
	note[Req, Res](m, api.Spec(op))
	m.route(api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller) error {
		var req Req
		if err := api.Decode(&req, r.PathValue, r.URL.Query(), nil, false); err != nil {
			return err
		}
		if r.ContentLength < 0 {
			return fmt.Errorf("%w request: it does not say how long the file is", store.ErrInvalid)
		}
		res, err := do(r.Context(), by, req, api.File{ReadCloser: r.Body, Size: r.ContentLength})
		if err != nil {
			return err
		}
		return m.answer(w, r, res)
	})
}

// HandleStream mounts an operation that returns lines. send returns an error if the client
// has disconnected.
func HandleStream[Req, Line any](m *Mux, op api.Stream[Req, Line], do func(ctx context.Context, by store.Caller, req Req, send func(Line) error) error) {
	note[Req, Line](m, api.Spec(op))
	mount(m, api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller, req Req) error {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(m.opt.Closing, cancel)() // a drain cannot wait for streams
		leave, err := m.opt.Listen(ctx, by, cancel)
		if err != nil {
			return err
		}
		defer leave()
		speaker := m.speaker(r)
		s := &stream{w: w, out: make(chan []byte), cancel: cancel}
		done := make(chan error, 1) // capacity 1: its one send must not block if nothing receives any more
		go func() {
			done <- guarded(func() error {
				return do(ctx, by, req, func(line Line) error { return s.send(ctx, inLanguage(line, speaker)) })
			})
		}()
		err = s.copy(done)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case !s.begun:
			return err
		}
		line, _ := json.Marshal(api.Failure{Error: m.explain(r, err)}) // two strings always encode
		s.write(append(line, '\n'))
		return nil
	})
}

// HandleDuplex mounts an operation that takes over the connection. Its ctx ends if the
// caller may not continue; in a drain, the server must end it. It closes the connection.
func HandleDuplex(m *Mux, op api.Duplex, do func(context.Context, store.Caller, io.ReadWriteCloser) error) {
	note[api.Empty, api.Empty](m, api.Spec(op))
	m.route(api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller) error {
		if r.Header.Get("Upgrade") != api.DuplexProtocol {
			return fmt.Errorf("%w request: it does not ask to upgrade the connection", store.ErrInvalid)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		leave, err := m.opt.Listen(ctx, by, cancel)
		if err != nil {
			return err
		}
		defer leave()
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return fmt.Errorf("taking the connection over: %w", err)
		}
		defer conn.Close() // do has closed it, unless it panicked
		head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.DuplexProtocol + "\r\n" + api.VersionHeader + ": " + api.Version + "\r\n\r\n"
		if _, err := io.WriteString(conn, head); err != nil {
			return nil // the client has disconnected
		}
		if err := do(ctx, by, duplex{buffered.Reader, conn}); err != nil {
			m.opt.Log.Debug("a connection ended", "route", r.Pattern, "err", err)
		}
		return nil
	})
}

// duplex is a connection of which a part may already have been read into a buffer.
type duplex struct {
	io.Reader
	net.Conn
}

func (d duplex) Read(p []byte) (int, error) { return d.Reader.Read(p) }

// mount routes an operation whose request must be decoded first.
func mount[Req any](m *Mux, op api.Spec, serve func(http.ResponseWriter, *http.Request, store.Caller, Req) error) {
	m.route(op, func(w http.ResponseWriter, r *http.Request, by store.Caller) error {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil {
			return fmt.Errorf("%w request: its body did not come whole", store.ErrInvalid)
		}
		if len(body) > maxBody {
			return fmt.Errorf("%w request: it is over %d MiB", store.ErrInvalid, maxBody>>20)
		}
		var req Req
		if err := api.Decode(&req, r.PathValue, r.URL.Query(), body, m.opt.Strict || op.Method == http.MethodPatch); err != nil {
			return err
		}
		api.DecodeHeader(&req, r.Header.Get)
		return serve(w, r, by, req)
	})
}

// route adds the route, in which a request gets its caller and an error its form.
func (m *Mux) route(op api.Spec, serve func(http.ResponseWriter, *http.Request, store.Caller) error) {
	m.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		err := guarded(func() error {
			by, err := m.opt.Caller(r)
			if err == nil && op.Admin && !by.IsAdmin() {
				err = store.Mark(fmt.Errorf("only admins may do this"), store.ErrRefused)
			}
			if err != nil {
				return err
			}
			return serve(w, r, by)
		})
		if err == nil || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return // done, or the client has disconnected
		}
		m.opt.Fail(w, m.explain(r, err))
	})
}

// explain returns an error in the form for the caller.
func (m *Mux) explain(r *http.Request, err error) *api.Error {
	e, known := api.FromError(err)
	if !known {
		m.opt.Log.Error("request", "route", r.Pattern, "err", err)
	} else if s := m.speaker(r); s != nil {
		e = &api.Error{Code: e.Code, Message: s.Problem(err), Fields: api.FieldErrors(err, s.Text)}
	}
	return e
}

func (m *Mux) answer(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(inLanguage(v, m.speaker(r)))
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
	return nil
}

// guarded converts a panic to an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// stream is a response of lines. Only its request's goroutine writes.
type stream struct {
	w      http.ResponseWriter
	out    chan []byte
	cancel context.CancelFunc
	begun  bool
}

// send queues an encoded line.
func (s *stream) send(ctx context.Context, v any) error {
	line, ok := v.(api.Encoded)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding a line: %w", err)
		}
		line = append(b, '\n')
	}
	if ctx.Err() != nil { // otherwise select could choose to send the line
		return ctx.Err()
	}
	select {
	case s.out <- line:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copy writes lines until there are no more.
func (s *stream) copy(done <-chan error) error {
	idle := time.NewTicker(silence)
	defer idle.Stop()
	for {
		select {
		case line := <-s.out:
			s.write(line)
		case <-idle.C:
			if s.begun {
				s.write([]byte("\n"))
			}
		case err := <-done:
			return err
		}
	}
}

func (s *stream) write(line []byte) {
	if !s.begun {
		s.w.Header().Set("Content-Type", "application/x-ndjson")
		s.begun = true
	}
	if _, err := s.w.Write(line); err != nil {
		s.cancel()
		return
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		s.cancel()
	}
}
