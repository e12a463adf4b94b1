package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
)

// StandingAnswers collects the answers to requests that a server sends over the standing
// stream, after it accepted the request with an empty 202. The SDK reads that stream, but
// may not get the results. It is safe for concurrent use.
type StandingAnswers struct {
	mu      sync.Mutex
	stands  bool // the server has a standing stream
	waiting map[uint64]chan envelope
}

// open records that there is a standing stream.
func (a *StandingAnswers) open() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stands = true
}

// expect registers the request id for delivery of its answer, from before it is sent until
// forget is called. Without a standing stream it returns a nil channel.
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
	c := make(chan envelope, 1) // capacity 1, for the only answer, so that deliver never blocks
	a.waiting[id] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, id)
	}
}

// deliver passes on an answer, and reports whether one of our requests has its id. An
// answer without an id is dropped, because calls run concurrently.
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
	delete(a.waiting, id) // ignore a second answer
	e.result, e.fault = bytes.Clone(e.result), bytes.Clone(e.fault)
	c <- e
	return true
}

// waitStanding waits for an answer on the standing stream.
func (w *HTTPConn) waitStanding(ctx context.Context, answer <-chan envelope) (json.RawMessage, error) {
	select {
	case e := <-answer:
		return e.answer()
	case <-w.trip.Life.Done():
		return nil, &Fault{Reach: Maybe, Drop: true, Err: context.Cause(w.trip.Life)}
	case <-ctx.Done():
		return nil, &Fault{Reach: Maybe, Err: ctx.Err()}
	}
}
