package standby

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// settling is how long a request may still take to respond by itself after its lease has
// ended: reads end at once, and a pending commit ends within this time or hangs.
const settling = time.Second

// Holder serves requests while this node holds its lease on the database.
type Holder struct {
	// Term returns the context of the current lease, which ends with the lease.
	Term func() context.Context
	// Refuse writes the response of a request that is not served. begun is true if its
	// handler had started, so that its effects are unknown.
	Refuse func(w http.ResponseWriter, r *http.Request, begun bool)

	left sync.WaitGroup
}

// Wait waits for the handlers of requests that were answered before their handlers
// returned.
func (h *Holder) Wait() { h.left.Wait() }

// Handler rejects requests while there is no lease. When the lease ends, it cancels the
// requests in progress. If one is still blocked, for example in a commit with an unknown
// outcome, Handler responds in place of its handler, which continues; a response that has
// begun is cut off.
func (h *Holder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		term := h.Term()
		if term.Done() == nil { // the lease never ends
			next.ServeHTTP(w, r)
			return
		}
		if term.Err() != nil {
			h.Refuse(w, r, false)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		out, done := &output{to: w, header: maps.Clone(w.Header())}, make(chan any, 1) // capacity 1: the handler may end after this function has returned
		h.left.Go(func() {
			defer func() { done <- recover() }()
			next.ServeHTTP(out, r.WithContext(ctx))
		})
		select {
		case fault := <-done:
			out.end(fault)
			return
		case <-term.Done():
			cancel()
		}
		select {
		case fault := <-done:
			if fault == nil && !out.begun { // cancelled, it returned without a response
				h.Refuse(w, r, true)
				return
			}
			out.end(fault)
			return
		case <-time.After(settling):
		}
		if out.leave() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Connection", "close") // the rest of the request belongs to the handler
		h.Refuse(w, r, true)
	})
}

// output is the response of a handler that may be left behind.
type output struct {
	mu     sync.Mutex // guards the fields below
	to     http.ResponseWriter
	header http.Header // owned by the handler until it writes
	begun  bool
	gone   bool
}

var errLeft = errors.New("this nized no longer holds the database, and the request was answered")

func (o *output) Header() http.Header { return o.header }

func (o *output) WriteHeader(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writeHeaderLocked(status)
}

func (o *output) writeHeaderLocked(status int) {
	if o.gone {
		return
	}
	if !o.begun {
		o.copyLocked()
	}
	o.begun = o.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	o.to.WriteHeader(status)
}

// copyLocked copies the handler's headers to the response.
func (o *output) copyLocked() {
	to := o.to.Header()
	clear(to)
	maps.Copy(to, o.header)
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return 0, errLeft
	}
	if !o.begun {
		o.copyLocked()
		o.begun = true
	}
	return o.to.Write(b)
}

// FlushError implements the method that [http.ResponseController] uses.
func (o *output) FlushError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return errLeft
	}
	if !o.begun {
		o.writeHeaderLocked(http.StatusOK)
	}
	return http.NewResponseController(o.to).Flush()
}

// Flush implements [http.Flusher].
func (o *output) Flush() { _ = o.FlushError() }

// Hijack implements [http.Hijacker]. The connection then belongs to the handler, whose
// context ends with the lease.
func (o *output) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return nil, nil, errLeft
	}
	o.begun = true
	return http.NewResponseController(o.to).Hijack()
}

// SetReadDeadline implements the method that [http.ResponseController] uses.
func (o *output) SetReadDeadline(at time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return errLeft
	}
	return http.NewResponseController(o.to).SetReadDeadline(at)
}

// SetWriteDeadline implements the method that [http.ResponseController] uses.
func (o *output) SetWriteDeadline(at time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return errLeft
	}
	return http.NewResponseController(o.to).SetWriteDeadline(at)
}

// end finishes a response whose handler returned, or passes on its panic.
func (o *output) end(fault any) {
	if fault != nil {
		panic(fault)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun {
		o.copyLocked()
	}
}

// leave takes the response away from the handler and reports whether the handler had begun
// it.
func (o *output) leave() (begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	return o.begun
}
