package connections

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/failure"
)

const (
	// slowest is the average rate, in bytes per second, at which a body must arrive after
	// its initial grace time.
	slowest = 16 << 10
	// drainTime is how long a response waits for the rest of an unread body, so that the
	// connection can be reused if the rest is already on its way.
	drainTime = 100 * time.Millisecond
	drainMost = 256 << 10
	// linger is how long a client may keep sending data that is discarded, so that it reads
	// its response before the connection is closed.
	linger = time.Second
)

// ErrLate is returned by a read of a body that exceeds its time.
var ErrLate = errors.New("the body of the request did not come in time")

type exchangeKey struct{}

// exchange is a request in progress.
type exchange struct {
	place
	set  *Set
	conn *conn // nil for a connection that isn't counted
	body *body // nil if there is none
}

// Handler counts requests and limits the time of each body. If a response is written before
// the whole request was read, it closes the connection.
func (s *Set) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{set: s}
		x.conn, _ = r.Context().Value(connKey{}).(*conn)
		x.place = place{key: s.client(r, x.conn), idle: x.waits, end: x.abort}
		hasBody := r.Body != nil && r.Body != http.NoBody
		if hasBody {
			s.mu.Lock()
			grace := s.limits.BodyTime
			s.mu.Unlock()
			x.body = &body{inner: r.Body, out: http.NewResponseController(w), grace: grace, conn: x.conn, asks: strings.EqualFold(r.Header.Get("Expect"), "100-continue")}
		}
		if x.conn != nil {
			x.conn.working.Add(1)
			defer x.conn.working.Add(-1)
			s.mu.Lock()
			ended := x.conn.in == nil
			x.conn.touch()
			s.mu.Unlock()
			if ended { // closed to make room before this request counted as work, so the client couldn't get its result
				panic(http.ErrAbortHandler)
			}
		}
		known := s.opt.Client == nil && x.conn != nil
		if !s.admit(&x.place, &s.requests, known, !known) { // a control connection carries one request at a time
			w.Header().Set("Connection", "close")
			failure.Text.Write(w, &api.Error{Code: "not_ready", Message: "too many requests are under way from your address; try again in a moment", Retry: 5})
			return
		}
		defer s.release(&x.place)
		inside := r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		if hasBody {
			inside.Body = x.body
			answer := &writer{ResponseWriter: w, body: x.body, http1: r.ProtoMajor == 1}
			defer answer.finish()
			w = answer
		}
		next.ServeHTTP(w, inside)
	})
}

func (s *Set) client(r *http.Request, c *conn) string {
	if s.opt.Client == nil {
		if c != nil {
			return c.owner
		}
		return ""
	}
	return group(s.opt.Client(r))
}

func (s *Set) release(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.leave()
}

// waits reports whether the request is waiting for its body, so that it can be ended
// without losing work.
func (x *exchange) waits() bool { return x.body != nil && x.body.isWaiting() }

func (x *exchange) abort() { x.body.abort() }

// body is a request's body with a deadline for its reads: a grace time, extended in
// proportion to the bytes received. Only time spent in reads counts.
type body struct {
	inner io.ReadCloser
	out   *http.ResponseController
	grace time.Duration
	conn  *conn
	asks  bool // the client sent Expect: 100-continue

	mu      sync.Mutex
	came    int64
	waited  time.Duration
	cap     time.Time // deadline set by the handler
	waiting bool
	aborted bool // to make room for others
	late    bool
	ended   bool // it was read to its end
}

func (b *body) isWaiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting && !b.aborted
}

// abort makes the pending read fail, and all later ones.
func (b *body) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aborted, b.late = true, true
	if b.waiting {
		_ = b.out.SetReadDeadline(time.Unix(1, 0)) // fails only if it isn't a network connection
	}
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.aborted {
		b.mu.Unlock()
		return 0, ErrLate
	}
	start := time.Now()
	due := start.Add(b.grace + time.Duration(b.came)*(time.Second/slowest) - b.waited)
	if !b.cap.IsZero() && b.cap.Before(due) {
		due = b.cap
	}
	_ = b.out.SetReadDeadline(due) // fails only if it isn't a network connection
	b.waiting = true
	b.mu.Unlock()
	if b.conn != nil {
		b.conn.working.Add(-1)
	}
	n, err := b.inner.Read(p)
	if b.conn != nil {
		b.conn.working.Add(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = false
	b.came += int64(n)
	b.waited += time.Since(start)
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		_ = b.out.SetReadDeadline(time.Time{}) // a stream may last indefinitely
	case errors.Is(err, os.ErrDeadlineExceeded), err != nil && b.aborted:
		b.late = true
		err = ErrLate
	}
	return n, err
}

func (b *body) Close() error { return b.inner.Close() }

// writer is the response to a request with a body.
type writer struct {
	http.ResponseWriter
	body  *body
	http1 bool
	begun bool
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetReadDeadline sets an additional deadline for reads of the body.
func (w *writer) SetReadDeadline(t time.Time) error {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	w.body.cap = t
	return w.body.out.SetReadDeadline(t)
}

func (w *writer) WriteHeader(status int) {
	if status >= 200 && !w.begun {
		w.begun = true
		if w.settle() && status >= http.StatusBadRequest {
			status = http.StatusRequestTimeout // overrides the handler's status
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// settle makes the response close the connection unless the whole request was read. It
// returns true if the body was late.
func (w *writer) settle() (late bool) {
	b := w.body
	b.mu.Lock()
	ended, late, unasked := b.ended, b.late, b.asks && b.came == 0
	b.mu.Unlock()
	if ended || !w.http1 { // in HTTP/2 only the stream ends
		return late
	}
	if !late && !unasked { // a read would send 100 Continue
		ended = w.drain()
	}
	if !ended {
		w.Header().Set("Connection", "close")
	}
	return late
}

// drain reads the part of the rest that has arrived, or is about to.
func (w *writer) drain() (ended bool) {
	b := w.body
	end := time.Now().Add(drainTime)
	b.mu.Lock()
	if b.waiting { // the handler reads and writes concurrently
		b.mu.Unlock()
		return false
	}
	before := b.cap
	b.cap = end
	b.mu.Unlock()
	n, err := io.CopyN(io.Discard, b, drainMost)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cap, b.late = before, b.aborted
	if n < drainMost && errors.Is(err, io.EOF) {
		b.ended = true
	}
	return b.ended
}

func (w *writer) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() } // callers that need the error use FlushError

// FlushError is for [http.ResponseController].
func (w *writer) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.body.out.Flush()
}

// finish limits what the handler left unread: the server discards input for a short time
// only.
func (w *writer) finish() {
	if !w.begun {
		w.settle()
	}
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && w.http1 {
		_ = b.out.SetReadDeadline(time.Now().Add(linger)) // fails only if it isn't a network connection
	}
}
