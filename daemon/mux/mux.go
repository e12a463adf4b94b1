// Package mux serves operations of daemon/api over HTTP: it finds out who
// calls, decodes the request, calls a plain function, and writes its answer or
// its error. The functions see no HTTP.
//
// Each operation is mounted once, by [Handle] or one of its siblings, on a
// function of the caller and the request:
//
//	mux.Handle(m, api.SetBudget, budgets.Set)
//
// A panic stays in its request. An error that the table of daemon/api does not
// know is logged, once, and the caller learns "internal error".
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
	// maxBody bounds a request that is no file.
	maxBody = 8 << 20
	// silence is how long a stream may be quiet before an empty line is sent,
	// so that what is between keeps it open.
	silence = 15 * time.Second
)

// Options say who calls and what an error looks like. Listen and Closing are
// needed where there are streams.
type Options struct {
	// Caller says who a request is from, or why it is refused.
	Caller func(*http.Request) (store.Caller, error)
	// Speak is who prints in a language that a request asks for; nil is English.
	Speak func(locale string) Speaker
	// Fail writes an error that the table of daemon/api made.
	Fail func(w http.ResponseWriter, e *api.Error)
	// Listen is called for a stream that begins, until leave is called. It ends the
	// stream by cancel when its caller may not go on, and returns an error if they may
	// not have another.
	Listen func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func(), err error)
	// Closing ends when streams must.
	Closing context.Context
	// Strict refuses fields that an operation doesn't have; without it only changes of
	// a part (PATCH) do, since nizectl may be of a later version.
	Strict bool
	Log    *slog.Logger
}

// Mux has the operations that are mounted on it.
type Mux struct {
	opt     Options
	mux     *http.ServeMux
	mounted []Mounted
}

// New returns one without operations, whose routes are on that ServeMux.
func New(on *http.ServeMux, opt Options) *Mux { return &Mux{opt: opt, mux: on} }

// Mounted is an operation with the types of its request and its answer.
type Mounted struct {
	api.Spec
	Request, Answer reflect.Type
}

// Mounted lists the operations, in the order in which they were mounted.
func (m *Mux) Mounted() []Mounted { return m.mounted }

// note remembers an operation.
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

// HandleDownload mounts an operation that answers with a file.
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
		_, _ = io.Copy(w, f) // a client that gets less than was announced knows it
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

// HandleStream mounts an operation that answers with lines. Its send fails when
// the client has left.
func HandleStream[Req, Line any](m *Mux, op api.Stream[Req, Line], do func(ctx context.Context, by store.Caller, req Req, send func(Line) error) error) {
	note[Req, Line](m, api.Spec(op))
	mount(m, api.Spec(op), func(w http.ResponseWriter, r *http.Request, by store.Caller, req Req) error {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(m.opt.Closing, cancel)() // a drain cannot wait for those who listen
		leave, err := m.opt.Listen(ctx, by, cancel)
		if err != nil {
			return err
		}
		defer leave()
		speaker := m.speaker(r)
		s := &stream{w: w, out: make(chan []byte), cancel: cancel}
		done := make(chan error, 1) // for its one send, also when nobody reads it any more
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

// HandleDuplex mounts an operation that takes the connection over. Its ctx ends
// when the caller may not go on; who serves it ends it in a drain. It closes the
// connection.
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
		defer conn.Close() // which do has done, unless it panicked
		head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.DuplexProtocol + "\r\n" + api.VersionHeader + ": " + api.Version + "\r\n\r\n"
		if _, err := io.WriteString(conn, head); err != nil {
			return nil // the client has left
		}
		if err := do(ctx, by, duplex{buffered.Reader, conn}); err != nil {
			m.opt.Log.Debug("a connection ended", "route", r.Pattern, "err", err)
		}
		return nil
	})
}

// duplex is a connection of which something may have been read already.
type duplex struct {
	io.Reader
	net.Conn
}

func (d duplex) Read(p []byte) (int, error) { return d.Reader.Read(p) }

// mount routes an operation whose request is decoded first.
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

// route is the edge: here a request gets its caller, and an error its form.
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
			return // done, or the client has left
		}
		m.opt.Fail(w, m.explain(r, err))
	})
}

// explain is what a caller learns of an error.
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
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
	return nil
}

// guarded turns a panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// stream is an answer of lines. Only its request's goroutine writes.
type stream struct {
	w      http.ResponseWriter
	out    chan []byte
	cancel context.CancelFunc
	begun  bool
}

// send hands over a line that is encoded.
func (s *stream) send(ctx context.Context, v any) error {
	line, ok := v.(api.Encoded)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding a line: %w", err)
		}
		line = append(b, '\n')
	}
	if ctx.Err() != nil { // select could choose the line
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
