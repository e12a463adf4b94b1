package wire

import (
	"context"
	"encoding/json"
	"testing"
)

// A question that names no call is put only if a single call can be meant: with two
// open, or after one that was given up, it could reach another person's client.
func TestQuestionsThatNameNoCall(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	ctx, left := context.WithCancel(t.Context())
	one, two := &Request{Ask: ask}, &Request{Ask: ask}

	w := &HTTPConn{}
	standing := func() bool { _, err := w.Asked("elicitation/create", nil); return err == nil }
	if standing() {
		t.Error("asked without a call")
	}
	endOne := w.admitQuestions(ctx, ctx, one)
	if !standing() {
		t.Error("not asked with a single call")
	}
	endTwo := w.admitQuestions(t.Context(), t.Context(), two)
	if standing() {
		t.Error("asked with two calls")
	}
	left()
	endOne()
	if standing() {
		t.Error("asked after a call that was given up")
	}
	endTwo()

	p := &Peer{waiting: map[uint64]*waiter{1: {}, 2: {request: one, ctx: t.Context()}}}
	if _, r := p.requestOf(envelope{}); r != one {
		t.Error("over a stream: not asked with a single call")
	}
	p.waiting[3] = &waiter{request: two, ctx: t.Context()}
	if _, r := p.requestOf(envelope{}); r != nil {
		t.Error("over a stream: asked with two calls")
	}
	delete(p.waiting, 3)
	p.late = 1
	if _, r := p.requestOf(envelope{}); r != nil {
		t.Error("over a stream: asked after a call that was given up")
	}
}
