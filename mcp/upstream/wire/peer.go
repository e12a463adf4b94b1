package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"nize/mcp/upstream/process"
	"nize/store"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Frames is a two-way stream of whole messages: stdioFrames and sseFrames.
type Frames interface {
	// read returns the next message; the bytes are the caller's.
	read() ([]byte, error)
	// write sends one message, which holds no line break. Its error is a
	// *Fault. It may be called concurrently.
	write(ctx context.Context, msg []byte) error
	// Terminate ends the stream and whatever carries it, and waits; kill skips the
	// polite part. It may be called more than once.
	Terminate(kill bool)
	// Child is the process that it ends in; nil over HTTP.
	Child() process.Child
}

// Peer carries the SDK's messages and ours over one stream of frames. The SDK
// sees nothing but answers to its own requests: ours are taken out by their
// id, the server's requests are answered here, and its notifications end here
// too, so that a storm of them fills no queue.
type Peer struct {
	frames  Frames
	budget  *Budget // for all but the answers to our requests
	changed func()  // on list_changed of tools, prompts or resources; must not block
	warn    func(msg string)

	unanswered sync.Once // warns that a request of the server's got no answer; the next ones will neither

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

var _ sdk.Connection = (*Peer)(nil)

func NewPeer(f Frames, budget *Budget, changed func(), warn func(string)) *Peer {
	return &Peer{frames: f, budget: budget, changed: changed, warn: warn,
		incoming: make(chan jsonrpc.Message), waiting: map[uint64]*waiter{}, gone: make(chan struct{})}
}

// Connect makes the peer its own sdk.Transport.
func (p *Peer) Connect(context.Context) (sdk.Connection, error) {
	p.wg.Go(p.pump)
	return p, nil
}

// pump reads until the stream ends or breaks.
func (p *Peer) pump() {
	quests := make(chan struct{}, maxServerRequests) // answers to the server under way
	for {
		msg, err := p.frames.read()
		if err != nil {
			p.Fail(err)
			return
		}
		if err := p.dispatch(msg, quests); err != nil {
			p.Fail(err)
			return
		}
	}
}

// dispatch gives one message to whom it is for.
func (p *Peer) dispatch(msg []byte, quests chan struct{}) error {
	if msg = bytes.TrimSpace(msg); len(msg) > 0 && msg[0] == '[' {
		return p.dispatchBatch(msg, quests)
	}
	e, err := openEnvelope(msg)
	if err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w", err)
	}
	if e.method == "" {
		if id, ok := ourID(e.id); ok {
			if w := p.findWaiter(id, true); w != nil {
				w.answer <- e
				return nil
			}
		}
	}
	if err := p.budget.Spend(len(msg)+lineCost, p.gone); err != nil {
		return err
	}
	switch {
	case e.method != "" && e.id != nil:
		return p.answerRequest(e, quests)
	case e.method == "notifications/tools/list_changed", e.method == "notifications/prompts/list_changed", e.method == "notifications/resources/list_changed":
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
		if _, ok := ourID(e.id); ok {
			return nil // who asked has left
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
func (p *Peer) dispatchBatch(msg []byte, quests chan struct{}) error {
	var all []json.RawMessage
	if err := json.Unmarshal(msg, &all); err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w", errNotJSON)
	}
	if err := p.budget.Spend(lineCost, p.gone); err != nil {
		return err
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
func (p *Peer) answerRequest(e envelope, quests chan struct{}) error {
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
			p.unanswered.Do(func() { p.warn(fmt.Sprintf("answering %s: %v", store.Clip(e.method, 100), err)) })
		}
	})
	return nil
}

// findWaiter finds who waits for id, and takes them off the list if asked.
func (p *Peer) findWaiter(id uint64, take bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[id]
	if take {
		delete(p.waiting, id)
	}
	return w
}

// Fail marks the peer dead; the first reason stands.
func (p *Peer) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
		close(p.gone)
	}
}

func (p *Peer) Done() <-chan struct{} { return p.gone }
func (p *Peer) Child() process.Child  { return p.frames.Child() }
func (p *Peer) Cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// Call sends one of our requests and waits for its answer.
func (p *Peer) Call(ctx context.Context, r *Request) (json.RawMessage, error) {
	id := p.ids.Add(1)
	w := &waiter{answer: make(chan envelope, 1)}
	if r.Progress != nil {
		w.progress = make(chan json.RawMessage, 16)
	}
	p.mu.Lock()
	if p.failure != nil {
		p.mu.Unlock()
		return nil, &Fault{Reach: Never, Drop: true, Err: p.Cause()}
	}
	p.waiting[id] = w
	p.mu.Unlock()
	defer p.findWaiter(id, true)

	if err := p.frames.write(ctx, r.Encode(id, "")); err != nil {
		if ctx.Err() != nil && AsFault(err).Reach != Never {
			p.abandon(ctx, id)
		}
		return nil, err
	}
	for {
		select {
		case raw := <-w.progress:
			r.Progress(raw)
		case e := <-w.answer:
			return w.result(e, r)
		case <-ctx.Done():
			p.abandon(ctx, id)
			return nil, &Fault{Reach: Maybe, Err: ctx.Err()}
		case <-p.gone:
			select { // it may have answered with its last breath
			case e := <-w.answer:
				return w.result(e, r)
			default:
			}
			return nil, &Fault{Reach: Maybe, Drop: true, Err: p.Cause()}
		}
	}
}

// result hands on the progress that came before the answer, and the answer.
func (w *waiter) result(e envelope, r *Request) (json.RawMessage, error) {
	for {
		select {
		case raw := <-w.progress:
			r.Progress(raw)
		default:
			return e.answer()
		}
	}
}

// abandon tells the server that nobody waits for id any more, best effort.
func (p *Peer) abandon(ctx context.Context, id uint64) {
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

// Terminate ends the frames and waits for the reader.
func (p *Peer) Terminate(kill bool) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.frames.Terminate(kill)
	p.Fail(ErrEnded)
	p.wg.Wait()
}

// Read gives the SDK what is for it.
func (p *Peer) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.gone:
		return nil, fmt.Errorf("%w: %w", io.EOF, p.Cause())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the SDK.
func (p *Peer) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return p.frames.write(ctx, b)
}

// Close is the SDK's way to end the connection. The frames are ended by
// whoever ends the session, who waits for it.
func (p *Peer) Close() error {
	p.Fail(ErrEnded)
	return nil
}

func (p *Peer) SessionID() string { return "" }

// PeerSession is a peer together with the SDK's session on it.
type PeerSession struct {
	*Peer
	Session *sdk.ClientSession
}

func (p *PeerSession) Terminate(kill bool) {
	p.Peer.Terminate(kill)
	p.Session.Close() //nolint:errcheck // the peer is closed: there is nothing left that can fail
}
