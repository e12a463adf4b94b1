// Package trace sends OpenTelemetry spans of nized's work, from a message to the upstream
// server.
//
//	message slack                     [Tracer.Agent]
//	└─ invoke_agent                   once for each stretch of work: it stops at a card and goes on after it
//	   ├─ chat gpt-5-mini             [Tracer.Model]
//	   ├─ execute_tool discover_tools [Tracer.Tools]
//	   └─ execute_tool tracker:create
//	      └─ tools/call create        [Tracer.Runner]; its server gets it as the parent of its own
//	tools/call execute_tool           [Tracer.MetaTool]: an MCP client's, whose own span is its parent
//	└─ tools/call create
//
// Names and attributes are those of OpenTelemetry's conventions for generative AI and MCP.
// A span contains names of tools, servers and models, ids, numbers and codes: never a text,
// an argument, a result, a header or a person.
//
// Spans are sent as OTLP over HTTP, in JSON (export.go). Without an endpoint nothing is
// stored, created or sent: all methods of a nil [Span] do nothing.
//
// The context carries the span, as it carries cancellation: no decision depends on it. Work
// that continues in another context (an approved call, the next stretch of a turn) finds
// its parent by the id of the call or the conversation, unless nized was restarted in
// between.
package trace

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

// kind is the kind of a span, with OTLP's numbers.
type kind int

const (
	internal kind = 1
	server   kind = 2
	client   kind = 3
	consumer kind = 5
)

// mostParents bounds the conversations and calls whose spans are remembered.
const mostParents = 4096

// Options are a Tracer's dependencies.
type Options struct {
	Transport http.RoundTripper
	Version   string // nized's
	Now       func() time.Time
	Log       *slog.Logger
}

// Tracer creates spans while it has an endpoint. It is safe for concurrent use.
type Tracer struct {
	opt     Options
	to      atomic.Pointer[target] // nil if tracing is off
	queue   queue
	threads parents // the last message's span, by conversation
	calls   parents // the span that requested a pending call, by its id
}

// New returns a Tracer that is off; Run sends its spans.
func New(opt Options) *Tracer { return &Tracer{opt: opt, queue: newQueue()} }

func (t *Tracer) on() bool { return t.to.Load() != nil }

// Span is one operation. It is nil if the tracer is off.
type Span struct {
	tracer  *Tracer
	trace   [16]byte
	id      [8]byte
	parent  [8]byte
	sampled bool

	name         string
	kind         kind
	began, ended time.Time
	attributes   []attribute
	fault        string      // the conventions' error.type, "" if there was no error
	leads        atomic.Bool // it has child spans
}

// attribute is a string, or a number if the string is "".
type attribute struct {
	key, text string
	number    int64
}

// spanKey is the context key of the current span.
type spanKey struct{}

func spanOf(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// within returns ctx with s as the current span, unless s is nil.
func within(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// start begins a child of the span in ctx; its name is a verb and, if there is one, its
// object.
func (t *Tracer) start(ctx context.Context, k kind, verb, what string) (context.Context, *Span) {
	parent := spanOf(ctx)
	if !t.on() || parent != nil && !parent.sampled {
		return ctx, nil
	}
	s := &Span{tracer: t, name: verb, kind: k, sampled: true, began: t.opt.Now()}
	if what != "" {
		s.name = store.Clip(verb+" "+what, 200)
	}
	for s.id == [8]byte{} {
		binary.LittleEndian.PutUint64(s.id[:], rand.Uint64())
	}
	if parent != nil {
		s.trace, s.parent = parent.trace, parent.id
		parent.leads.Store(true)
	}
	for s.trace == [16]byte{} {
		binary.LittleEndian.PutUint64(s.trace[:8], rand.Uint64())
		binary.LittleEndian.PutUint64(s.trace[8:], rand.Uint64())
	}
	return within(ctx, s), s
}

// identifier returns a name sent by a model or a client if it has the form of one, since it
// could contain anything.
func identifier(name string) string {
	if len(name) > 200 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") != "" {
		return "_other"
	}
	return name
}

func (s *Span) set(key, text string) {
	if s != nil && text != "" {
		s.attributes = append(s.attributes, attribute{key: key, text: store.Clip(text, 200)})
	}
}

func (s *Span) count(key string, n int64) {
	if s != nil && n != 0 {
		s.attributes = append(s.attributes, attribute{key: key, number: n})
	}
}

// end ends a span and queues it; fault is the kind of an error, or "".
func (s *Span) end(fault string) {
	if s == nil {
		return
	}
	s.ended, s.fault = s.tracer.opt.Now(), fault
	s.tracer.queue.add(s)
}

// Traceparent returns the W3C header of the span in ctx, for the next service; "" if there
// is none. It is sent in _meta of a tools/call.
func (t *Tracer) Traceparent(ctx context.Context) string {
	if !t.on() {
		return ""
	}
	s := spanOf(ctx)
	if s == nil {
		return ""
	}
	b := append(make([]byte, 0, 55), "00-"...)
	b = append(hex.AppendEncode(b, s.trace[:]), '-')
	b = append(hex.AppendEncode(b, s.id[:]), "-00"...)
	if s.sampled {
		b[len(b)-1] = '1'
	}
	return string(b)
}

// parseTraceparent parses the header of a client's span; it returns nil if it is missing or
// invalid.
func parseTraceparent(text string) *Span {
	if len(text) < 55 || text[:2] == "ff" || len(text) > 55 && (text[:2] == "00" || text[55] != '-') || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return nil
	}
	for i := range 55 {
		if c := text[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil
		}
	}
	s, flags := new(Span), [1]byte{}
	_, err1 := hex.Decode(s.trace[:], []byte(text[3:35]))
	_, err2 := hex.Decode(s.id[:], []byte(text[36:52]))
	_, err3 := hex.Decode(flags[:], []byte(text[53:55]))
	if err1 != nil || err2 != nil || err3 != nil || s.trace == [16]byte{} || s.id == [8]byte{} {
		return nil
	}
	s.sampled = flags[0]&1 == 1
	return s
}

// parents are spans that later work continues from; only the newest are kept.
type parents struct {
	mu    sync.Mutex
	at    map[string]*Span
	order []string // keys of at, oldest first
}

func (p *parents) put(id string, s *Span) {
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[string]*Span{}
	}
	if _, ok := p.at[id]; !ok {
		p.order = append(p.order, id)
	}
	p.at[id] = s
	if len(p.order) > mostParents {
		for _, id := range p.order[:mostParents/4] {
			delete(p.at, id)
		}
		p.order = append([]string(nil), p.order[mostParents/4:]...)
	}
}

func (p *parents) get(id string) *Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[id]
}
