package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"nize/store"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// frames is a two-way stream of whole messages: stdioFrames and sseFrames.
type frames interface {
	// read returns the next message; the bytes are the caller's.
	read() ([]byte, error)
	// write sends one message, which holds no line break. Its error is a
	// *fault. It may be called concurrently.
	write(ctx context.Context, msg []byte) error
	// terminate ends the stream and whatever carries it, and waits; kill skips the
	// polite part. It may be called more than once.
	terminate(kill bool)
	pid() int
}

// peer carries the SDK's messages and ours over one stream of frames. The SDK
// sees nothing but answers to its own requests: ours are taken out by their
// id, the server's requests are answered here, and its notifications end here
// too, so that a storm of them fills no queue.
type peer struct {
	frames  frames
	changed func() // on tools/list_changed; must not block
	warn    func(msg string)

	incoming chan jsonrpc.Message // to the SDK; unbuffered: it reads at its pace
	ids      atomic.Uint64
	wg       sync.WaitGroup

	mu      sync.Mutex
	waiting map[uint64]*waiter
	failure error
	gone    chan struct{} // closed with failure
	closed  bool
}

// waiter is one of our requests under way.
type waiter struct {
	answer   chan envelope        // 1: the reader never waits for who has left
	progress chan json.RawMessage // 16: nor for a caller that is slow to take progress; the rest is dropped
}

var _ sdk.Connection = (*peer)(nil)

func newPeer(f frames, changed func(), warn func(string)) *peer {
	return &peer{frames: f, changed: changed, warn: warn,
		incoming: make(chan jsonrpc.Message), waiting: map[uint64]*waiter{}, gone: make(chan struct{})}
}

// Connect makes the peer its own sdk.Transport.
func (p *peer) Connect(context.Context) (sdk.Connection, error) {
	p.wg.Go(p.pump)
	return p, nil
}

// pump reads until the stream ends or breaks.
func (p *peer) pump() {
	quests := make(chan struct{}, maxServerRequests) // answers to the server under way
	for {
		msg, err := p.frames.read()
		if err != nil {
			p.fail(err)
			return
		}
		if err := p.dispatch(msg, quests); err != nil {
			p.fail(err)
			return
		}
	}
}

// dispatch gives one message to whom it is for.
func (p *peer) dispatch(msg []byte, quests chan struct{}) error {
	if msg = bytes.TrimSpace(msg); len(msg) > 0 && msg[0] == '[' {
		return p.dispatchBatch(msg, quests)
	}
	e, err := openEnvelope(msg)
	if err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w", err)
	}
	switch {
	case e.method != "" && e.id != nil:
		return p.answerRequest(e, quests)
	case e.method == "notifications/tools/list_changed":
		p.changed()
	case e.method == "notifications/progress":
		if id, ok := progressOf(e.params); ok {
			if w := p.findWaiter(id, false); w != nil && w.progress != nil {
				select {
				case w.progress <- e.params:
				default:
				}
			}
		}
	case e.method != "":
	default:
		if id, ok := ourID(e.id); ok {
			if w := p.findWaiter(id, true); w != nil {
				w.answer <- e
			}
			return nil
		}
		m, err := jsonrpc.DecodeMessage(msg)
		if err != nil {
			return nil // an answer that nobody can be waiting for
		}
		select {
		case p.incoming <- m:
		case <-p.gone:
		}
	}
	return nil
}

// dispatchBatch takes a JSON-RPC batch apart (2025-03-26 only).
func (p *peer) dispatchBatch(msg []byte, quests chan struct{}) error {
	var all []json.RawMessage
	if err := json.Unmarshal(msg, &all); err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w", errNotJSON)
	}
	for _, m := range all {
		if len(m) > 0 && m[0] == '[' {
			return errors.New("it sent a batch in a batch")
		}
		if err := p.dispatch(m, quests); err != nil {
			return err
		}
	}
	return nil
}

// answerRequest answers a request of the server without holding up the reader.
func (p *peer) answerRequest(e envelope, quests chan struct{}) error {
	select {
	case quests <- struct{}{}:
	default:
		return fmt.Errorf("it asks faster than it reads: %d requests unanswered", maxServerRequests)
	}
	msg := replyTo(e)
	p.wg.Go(func() { // pump holds the group open
		defer func() { <-quests }()
		ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
		defer cancel()
		if err := p.frames.write(ctx, msg); err != nil {
			p.warn(fmt.Sprintf("answering %s: %v", store.Clip(e.method, 100), err))
		}
	})
	return nil
}

// findWaiter finds who waits for id, and takes them off the list if asked.
func (p *peer) findWaiter(id uint64, take bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[id]
	if take {
		delete(p.waiting, id)
	}
	return w
}

// fail marks the peer dead; the first reason stands.
func (p *peer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
		close(p.gone)
	}
}

func (p *peer) done() <-chan struct{} { return p.gone }
func (p *peer) pid() int              { return p.frames.pid() }
func (p *peer) cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// call sends one of our requests and waits for its answer.
func (p *peer) call(ctx context.Context, r *request) (json.RawMessage, error) {
	id := p.ids.Add(1)
	w := &waiter{answer: make(chan envelope, 1)}
	if r.progress != nil {
		w.progress = make(chan json.RawMessage, 16)
	}
	p.mu.Lock()
	if p.failure != nil {
		p.mu.Unlock()
		return nil, &fault{reach: never, drop: true, err: p.cause()}
	}
	p.waiting[id] = w
	p.mu.Unlock()
	defer p.findWaiter(id, true)

	if err := p.frames.write(ctx, r.encode(id, "")); err != nil {
		if ctx.Err() != nil && asFault(err).reach != never {
			p.abandon(ctx, id)
		}
		return nil, err
	}
	for {
		select {
		case raw := <-w.progress:
			r.progress(raw)
		case e := <-w.answer:
			return w.result(e, r)
		case <-ctx.Done():
			p.abandon(ctx, id)
			return nil, &fault{reach: maybe, err: ctx.Err()}
		case <-p.gone:
			select { // it may have answered with its last breath
			case e := <-w.answer:
				return w.result(e, r)
			default:
			}
			return nil, &fault{reach: maybe, drop: true, err: p.cause()}
		}
	}
}

// result hands on the progress that came before the answer, and the answer.
func (w *waiter) result(e envelope, r *request) (json.RawMessage, error) {
	for {
		select {
		case raw := <-w.progress:
			r.progress(raw)
		default:
			return e.answer()
		}
	}
}

// abandon tells the server that nobody waits for id any more, best effort.
func (p *peer) abandon(ctx context.Context, id uint64) {
	reason := "cancelled"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = "timed out"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.failure != nil {
		return
	}
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
		defer cancel()
		if err := p.frames.write(ctx, cancelled(id, reason)); err != nil {
			p.warn(fmt.Sprintf("cancelling a call: %v", err))
		}
	})
}

// terminate ends the frames and waits for the reader.
func (p *peer) terminate(kill bool) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.frames.terminate(kill)
	p.fail(errEnded)
	p.wg.Wait()
}

// Read gives the SDK what is for it.
func (p *peer) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.gone:
		return nil, fmt.Errorf("%w: %w", io.EOF, p.cause())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the SDK.
func (p *peer) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return p.frames.write(ctx, b)
}

// Close is the SDK's way to end the connection. The frames are ended by
// whoever ends the session, who waits for it.
func (p *peer) Close() error {
	p.fail(errEnded)
	return nil
}

func (p *peer) SessionID() string { return "" }

// sdkPeer is a peer together with the SDK's session on it.
type sdkPeer struct {
	*peer
	session *sdk.ClientSession
}

func (p *sdkPeer) terminate(kill bool) {
	p.peer.terminate(kill)
	p.session.Close() //nolint:errcheck // the peer is closed: there is nothing left that can fail
}
