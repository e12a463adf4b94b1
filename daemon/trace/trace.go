// Package trace tells an OpenTelemetry collector what nized does, from a
// person's message over the model to the upstream server.
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
// Names and attributes are those of OpenTelemetry's conventions for generative
// AI and MCP. A span holds names of tools, servers and models, ids, numbers and
// codes: never a text, an argument, a result, a header or a person.
//
// Spans are sent as OTLP over HTTP, in JSON (export.go). Without an endpoint
// nothing is kept, made or sent: a nil [Span] takes everything and does nothing.
//
// The context carries the span, as it carries cancellation: nothing is decided
// by it. What goes on in another context (an approved call, the next stretch of
// a turn) finds its parent by the id of the call or the conversation, as long as
// nized has not been restarted meanwhile.
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

// kind is the kind of a span, as OTLP numbers them.
type kind int

const (
	internal kind = 1
	server   kind = 2
	client   kind = 3
	consumer kind = 5
)

// mostParents bounds the conversations and calls whose spans are remembered.
const mostParents = 4096

// Options are what a Tracer is made of.
type Options struct {
	Transport http.RoundTripper
	Version   string // of nized
	Now       func() time.Time
	Log       *slog.Logger
}

// Tracer makes spans while it has an endpoint. It is safe for concurrent use.
type Tracer struct {
	opt     Options
	to      atomic.Pointer[target] // nil: off
	queue   queue
	threads parents // a message, by its conversation
	calls   parents // what asked for a call that waits, by its id
}

// New returns a tracer that is off; Run sends what it makes.
func New(opt Options) *Tracer { return &Tracer{opt: opt, queue: newQueue()} }

func (t *Tracer) on() bool { return t.to.Load() != nil }

// Span is one thing that nized does. A nil one is of a tracer that is off.
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
	fault        string      // the conventions' error.type, "" where all went well
	leads        atomic.Bool // something else is below it
}

// attribute is a text, or a number where the text is "".
type attribute struct {
	key, text string
	number    int64
}

// spanKey is where a context has the span that is under way.
type spanKey struct{}

func spanOf(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// within is ctx below a span, where there is one.
func within(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// start begins a span below the one in ctx; its name is a verb and, if there is
// one, what it is done to.
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

// identifier is a name that a model or a client sent, where it is one: anything
// could stand there.
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

// end ends a span, and hands it over to be sent; fault is the kind of what went
// wrong, or "".
func (s *Span) end(fault string) {
	if s == nil {
		return
	}
	s.ended, s.fault = s.tracer.opt.Now(), fault
	s.tracer.queue.add(s)
}

// Traceparent is the W3C header of the span in ctx, for whoever is asked next;
// "" where there is none. It is written into _meta of a tools/call.
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

// parseTraceparent reads the header of a client's span; nil for none and for
// what is not one.
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

// parents are spans that something goes on from later, the newest of them.
type parents struct {
	mu    sync.Mutex
	at    map[string]*Span
	order []string // of at, the oldest first
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
