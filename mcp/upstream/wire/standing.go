package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
)

// StandingAnswers are the answers to our requests that a server sends over the
// standing stream, after it accepted the request with 202 and nothing else. The SDK
// reads that stream and does not know the requests. It is safe for concurrent use.
type StandingAnswers struct {
	mu      sync.Mutex
	stands  bool // the server has a standing stream
	waiting map[uint64]chan envelope
}

// open notes that there is a standing stream.
func (a *StandingAnswers) open() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stands = true
}

// expect has the answer to request id delivered, from before it is sent until forget.
// Without a standing stream there is nothing to wait for, and answer is nil.
func (a *StandingAnswers) expect(id uint64) (answer <-chan envelope, forget func()) {
	if a == nil {
		return nil, func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stands {
		return nil, func() {}
	}
	if a.waiting == nil {
		a.waiting = map[uint64]chan envelope{}
	}
	c := make(chan envelope, 1) // for the one answer, whether or not the request waits by then
	a.waiting[id] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, id)
	}
}

// deliver hands an answer on; it reports whether a request of ours has that id. An
// answer without one is nobody's: calls run at once.
func (a *StandingAnswers) deliver(e envelope) bool {
	id, ok := readID(e.id)
	if a == nil || e.method != "" || !ok || e.result == nil && e.fault == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.waiting[id]
	if c == nil {
		return false
	}
	delete(a.waiting, id) // a second answer has no meaning
	e.result, e.fault = bytes.Clone(e.result), bytes.Clone(e.fault)
	c <- e
	return true
}

// waitStanding waits for an answer over the standing stream.
func (w *HTTPConn) waitStanding(ctx context.Context, answer <-chan envelope) (json.RawMessage, error) {
	select {
	case e := <-answer:
		return e.answer()
	case <-w.life.Done():
		return nil, &Fault{Reach: Maybe, Drop: true, Err: context.Cause(w.life)}
	case <-ctx.Done():
		return nil, &Fault{Reach: Maybe, Err: ctx.Err()}
	}
}
