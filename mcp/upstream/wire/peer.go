package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"nize/mcp/upstream/process"
	"nize/store"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Frames is a bidirectional stream of whole messages. StdioFrames and sseFrames implement
// it.
type Frames interface {
	// read returns the next message; the caller owns the bytes. An answer that was found
	// behind other text may come from a log, and is used only for the single open request.
	read() (msg []byte, afterText bool, err error)
	// write sends one message, which must not contain a line break. It returns errors as
	// *Fault. It may be called concurrently.
	write(ctx context.Context, msg []byte) error
	// Terminate ends the stream and its transport, and waits; kill skips the graceful part.
	// It may be called more than once.
	Terminate(kill bool)
	// Child returns the process at the other end, or nil over HTTP.
	Child() process.Child
}

// Peer carries the SDK's messages and ours over one stream of frames. It numbers all
// requests, including the SDK's, which only receives the answers to its own. It answers the
// server's requests and consumes its notifications, so that a flood of them fills no queue.
type Peer struct {
	Hide Hide // masks the texts that an error quotes; set before Connect
	// StartTime is the timeout of the SDK's requests, which open the session; 0 means none.
	// Set before Connect.
	StartTime time.Duration

	frames  Frames
	budget  *Budget // for everything but the answers to our requests
	changed func()  // called for list_changed of tools, prompts or resources; must not block
	warn    func(msg string)

	unanswered sync.Once // warns once that a request from the server could not be answered

	incoming chan jsonrpc.Message // to the SDK; unbuffered, so that it reads at its own pace
	ids      atomic.Uint64
	wg       sync.WaitGroup

	mu      sync.Mutex
	waiting map[uint64]*waiter
	late    int // abandoned requests that were not answered
	failure error
	gone    chan struct{}   // closed with failure
	life    context.Context // ends with gone
	end     context.CancelFunc
	closed  bool
	earlier []byte // the last text since the last message that was not a message
	greeted bool   // a message was received
	chatty  bool   // a call was answered after such text
}

// waiter is one request in flight.
type waiter struct {
	id       uint64
	sdk      jsonrpc.ID           // the id that the SDK's session gave the request; invalid if it didn't send it
	answer   chan envelope        // nil for the handshake; capacity 1: the reader never blocks on a caller that left
	progress chan json.RawMessage // capacity 16: nor on a caller that reads progress slowly; the rest is dropped
	request  *Request             // for our requests
	ctx      context.Context      // for our requests, for the server's questions

	// The fields below are guarded by the peer's mu.
	call  bool          // a tool call
	total time.Duration // timeout; 0 means none
	noise []byte        // the server's output in the meantime that was not a message
	quiet *time.Timer   // abandons the request if no more output follows
}

var (
	_ sdk.Connection = (*Peer)(nil)
	_ Conn           = (*PeerSession)(nil)
	_ Conn           = (*HTTPConn)(nil)
)

func NewPeer(f Frames, budget *Budget, changed func(), warn func(string)) *Peer {
	p := &Peer{frames: f, budget: budget, changed: changed, warn: warn,
		incoming: make(chan jsonrpc.Message), waiting: map[uint64]*waiter{}, gone: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	p.ids.Store(newFirstID())
	if n, ok := f.(noisy); ok {
		n.onNoise(p.heardNoise)
	}
	return p
}

// Connect returns a connection to the peer, which is its own sdk.Transport.
func (p *Peer) Connect(context.Context) (sdk.Connection, error) {
	p.wg.Go(p.pump)
	return p, nil
}

// pump reads until the stream ends or fails.
func (p *Peer) pump() {
	quests := make(chan struct{}, maxServerRequests) // answers to the server in progress
	for {
		msg, afterText, err := p.frames.read()
		if bad := (*unreadableError)(nil); errors.As(err, &bad) {
			if p.refuse(bad); p.Cause() != nil {
				return
			}
			continue
		}
		if err != nil {
			p.Fail(err)
			return
		}
		if afterText && !p.answersOnly(msg) {
			p.warn("it wrote an answer after other text on a line; it is used only for the single open request")
			err = p.budget.Spend(len(msg)+lineCost, p.gone)
		} else {
			err = p.dispatch(msg, quests)
		}
		if err != nil {
			p.Fail(err)
			return
		}
	}
}

// answersOnly reports whether the answer's id is that of the only open request.
func (p *Peer) answersOnly(answer []byte) bool {
	e, err := openEnvelope(answer)
	if err != nil {
		return false
	}
	n, ok := readID(e.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return ok && len(p.waiting) == 1 && p.waiting[n] != nil
}

// dispatch handles one message or passes it to its receiver.
func (p *Peer) dispatch(msg []byte, quests chan struct{}) error {
	if msg = bytes.TrimSpace(msg); len(msg) > 0 && msg[0] == '[' {
		return p.dispatchBatch(msg, quests)
	}
	e, err := openMessage(msg, p.Hide)
	if err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w", err)
	}
	if e.method == "" && (e.id != nil || e.result != nil || e.fault != nil) {
		w := p.takeAnswered(e.id)
		p.heardMessage(true)
		if w != nil {
			return p.deliver(w, e)
		}
	} else {
		p.heardMessage(false)
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
	}
	return nil // an answer without a waiter, or an unsupported notification
}

// takeAnswered removes and returns the request that an answer with this id is for. A
// foreign or missing id is attributed to the only open request, unless an abandoned earlier
// request may still be answered: its answer must not be attributed to another request.
func (p *Peer) takeAnswered(id []byte) *waiter {
	n, ok := readID(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiting[n]; ok && w != nil {
		p.removeLocked(n, w)
		p.chatty = p.chatty || w.call && w.noise != nil && len(p.waiting) == 0
		return w
	}
	foreign := !ok || n < firstID
	if foreign && p.late == 0 {
		if w := p.onlyLocked(); w != nil {
			p.chatty = p.chatty || w.call && w.noise != nil && len(p.waiting) == 0
			return w
		}
	}
	if (!foreign || len(p.waiting) == 0) && p.late > 0 {
		p.late--
	}
	return nil
}

// onlyLocked removes and returns the only open request, or returns nil if there is not
// exactly one. p.mu must be held.
func (p *Peer) onlyLocked() *waiter {
	if len(p.waiting) != 1 {
		return nil
	}
	for n, w := range p.waiting {
		p.removeLocked(n, w)
		return w
	}
	return nil
}

// removeLocked removes a request. p.mu must be held.
func (p *Peer) removeLocked(n uint64, w *waiter) {
	delete(p.waiting, n)
	if w.quiet != nil {
		w.quiet.Stop()
	}
}

// deliver passes an answer to the waiter of its request.
func (p *Peer) deliver(w *waiter, e envelope) error {
	if w.answer != nil {
		w.answer <- e
	}
	if !w.sdk.IsValid() {
		return nil
	}
	r := &jsonrpc.Response{ID: w.sdk}
	result, err := e.answer()
	var rpc *RPCError
	switch {
	case w.answer != nil: // tapped
		r.Result = emptyResult
	case errors.As(err, &rpc):
		r.Error = &jsonrpc.Error{Code: rpc.Code, Message: rpc.Error()}
	case err != nil:
		r.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	default:
		r.Result = result
	}
	select {
	case p.incoming <- r:
	case <-p.gone:
	}
	return nil
}

// refuse fails the request that an unreadable answer is for, if there is only one
// candidate, because waiting for another answer is useless.
func (p *Peer) refuse(bad *unreadableError) {
	p.mu.Lock()
	var w *waiter
	if p.late == 0 {
		w = p.onlyLocked()
	}
	p.mu.Unlock()
	if w == nil {
		p.warn(bad.Error())
		return
	}
	_ = p.deliver(w, envelope{broken: bad}) // deliver returns no error for a broken answer
}

// dispatchBatch splits a JSON-RPC batch (2025-03-26 only).
func (p *Peer) dispatchBatch(msg []byte, quests chan struct{}) error {
	var all []json.RawMessage
	if err := json.Unmarshal(msg, &all); err != nil {
		return fmt.Errorf("it sent a message that is not JSON-RPC: %w: %s", errNotJSON, p.Hide.quote(msg))
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

// requestOf returns our call that a request from the server belongs to, or nil. A single
// stream doesn't say so. The request is attributed to the only open call, unless it may
// belong to an earlier call, possibly of another caller.
func (p *Peer) requestOf(e envelope) (context.Context, *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var of *waiter
	for _, w := range p.waiting {
		if w.request == nil || w.request.Ask == nil {
			continue
		}
		if of != nil {
			return context.Background(), nil
		}
		of = w
	}
	if of == nil || p.late > 0 {
		return context.Background(), nil
	}
	return of.ctx, of.request
}

// answerRequest answers a request from the server without blocking the reader.
func (p *Peer) answerRequest(e envelope, quests chan struct{}) error {
	select {
	case quests <- struct{}{}:
	default:
		return fmt.Errorf("it asks faster than it reads: %d requests unanswered", maxServerRequests)
	}
	ctx, r := p.requestOf(e)
	e.id, e.params = bytes.Clone(e.id), bytes.Clone(e.params)
	p.wg.Go(func() { // pump holds the wait group open
		defer func() { <-quests }()
		msg := r.asked(ctx, e)
		ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
		defer cancel()
		if err := p.frames.write(ctx, msg); err != nil {
			p.unanswered.Do(func() { p.warn(fmt.Sprintf("answering %s: %v", store.Clip(e.method, 100), err)) })
		}
	})
	return nil
}

// findWaiter returns the waiter of the request id. leave removes it because the caller has
// left, whether or not it was answered.
func (p *Peer) findWaiter(id uint64, leave bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[id]
	if leave && w != nil {
		delete(p.waiting, id)
		p.late++
	}
	return w
}

// Fail marks the peer as dead; the first reason is kept.
func (p *Peer) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
		close(p.gone)
		p.end()
	}
}

func (p *Peer) Done() <-chan struct{} { return p.gone }
func (p *Peer) Child() process.Child  { return p.frames.Child() }
func (p *Peer) Cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// addWaiter registers a request. It returns an error if the peer is dead.
func (p *Peer) addWaiter(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.waiting[w.id] = w
		if !p.greeted && p.earlier != nil {
			p.watchLocked(w.id, w, p.earlier)
		}
	}
	return p.failure
}

// said returns the server's output that was not a message.
func (p *Peer) said() string {
	if f, ok := p.frames.(interface{ Said() string }); ok {
		return f.Said()
	}
	return ""
}

// newWaiter returns the waiter of a request that is not sent yet, which has to be ended.
func (p *Peer) newWaiter(ctx context.Context, r *Request) (w *waiter, end func()) {
	w = &waiter{id: p.ids.Add(1), answer: make(chan envelope, 1), call: r.Method == MethodCall}
	if when, ok := ctx.Deadline(); ok {
		w.total = time.Until(when)
	}
	if r.Progress != nil {
		w.progress = make(chan json.RawMessage, 16)
	}
	end = func() { p.findWaiter(w.id, true) }
	if r.Ask != nil {
		own, done := context.WithCancel(ctx)
		unhook := context.AfterFunc(p.life, done)
		w.request, w.ctx = r, own
		end = func() {
			p.findWaiter(w.id, true)
			unhook()
			done()
		}
	}
	return w, end
}

// Call sends a tools/call and waits for its answer.
func (p *Peer) Call(ctx context.Context, r *Request) (json.RawMessage, error) {
	w, end := p.newWaiter(ctx, r)
	if err := p.addWaiter(w); err != nil {
		end()
		return nil, &Fault{Reach: Never, Drop: true, Err: err}
	}
	defer end()

	if err := p.frames.write(ctx, r.Encode(w.id, "")); err != nil {
		switch {
		case AsFault(err).Reach == Never:
			p.withdraw(w)
		case ctx.Err() != nil: // the server may have read it, and written output
			return nil, p.leave(ctx, w, err)
		}
		return nil, err
	}
	return p.await(ctx, w, r, nil, nil)
}

// await waits for the answer to a request that was sent. If the SDK's session sends it,
// ended is closed when the session has ended the request, for the reason failed.
func (p *Peer) await(ctx context.Context, w *waiter, r *Request, ended <-chan struct{}, failed *error) (json.RawMessage, error) {
	for {
		select {
		case raw := <-w.progress:
			r.Progress(raw)
		case e := <-w.answer:
			return w.result(e, r)
		case <-ended:
			if ended = nil; len(w.answer) == 0 && ctx.Err() == nil && p.Cause() == nil {
				return nil, &Fault{Reach: Never, Drop: true, Err: *failed}
			}
		case <-ctx.Done():
			return nil, p.leave(ctx, w, &Fault{Reach: Maybe, Err: ctx.Err()})
		case <-p.gone:
			select { // it may have answered just before it ended
			case e := <-w.answer:
				return w.result(e, r)
			default:
			}
			return nil, &Fault{Reach: Maybe, Drop: true, Err: p.Cause()}
		}
	}
}

// bySession sends a request with the SDK's session, and returns the tapped answer.
func (p *PeerSession) bySession(ctx context.Context, r *Request) (json.RawMessage, error) {
	w, end := p.newWaiter(ctx, r)
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = sendBySession(context.WithValue(ctx, tapKey{}, w), p.Session, r, w.id)
	}()
	defer func() { // the session may have to notice the end of ctx first
		<-ended
		end()
	}()
	return p.await(ctx, w, r, ended, &failed)
}

// leave abandons a request whose context has ended, and returns its fault, to which it adds
// the server's other output.
func (p *Peer) leave(ctx context.Context, w *waiter, err error) error {
	p.abandon(w.id, reasonOf(ctx))
	f := *AsFault(err)
	f.Said = cmp.Or(f.Said, p.said())
	return &f
}

// withdraw removes a request that did not reach the server, and so will not be answered. It
// reports whether the request was open.
func (p *Peer) withdraw(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.waiting[w.id] == w
	if open {
		p.removeLocked(w.id, w)
	}
	return open
}

// result passes on the progress that arrived before the answer, and returns the answer.
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

// abandon notifies the server that the request was cancelled, best effort.
func (p *Peer) abandon(id uint64, reason string) {
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

// reasonOf returns the reason for abandoning a request whose context has ended.
func reasonOf(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "timed out"
	}
	return "cancelled"
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

// Read returns the next message for the SDK.
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

// Write sends a message of the SDK; a request gets one of our ids. It returns no error for
// a tapped request, since the SDK would end the session.
func (p *Peer) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	switch {
	case ok && r.Method == methodCancelled:
		return nil // it names the SDK's id; we cancel our requests ourselves
	case !ok || !r.IsCall():
		return p.writeMessage(ctx, m)
	}
	w, tapped := ctx.Value(tapKey{}).(*waiter)
	if !tapped {
		w = &waiter{id: p.ids.Add(1), total: p.StartTime}
	}
	w.sdk = r.ID
	if err := p.addWaiter(w); err != nil {
		return p.unsent(w, &Fault{Reach: Never, Drop: true, Err: err})
	}
	id, err := jsonrpc.MakeID(float64(w.id))
	if err == nil {
		err = p.writeMessage(ctx, &jsonrpc.Request{ID: id, Method: r.Method, Params: r.Params})
	}
	var open bool
	switch {
	case err == nil:
		return nil
	case AsFault(err).Reach == Never:
		open = p.withdraw(w)
	default:
		if open = p.findWaiter(w.id, true) != nil; open && ctx.Err() != nil {
			err = p.leave(ctx, w, err)
		}
	}
	if tapped && !open {
		return nil // it was answered before the write ended, and the reader delivers that
	}
	return p.unsent(w, err)
}

// unsent ends a request of the SDK that is not open and was not sent.
func (p *Peer) unsent(w *waiter, err error) error {
	if w.answer == nil {
		return err
	}
	return p.deliver(w, envelope{broken: err})
}

// writeMessage sends a message of the SDK.
func (p *Peer) writeMessage(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return p.frames.write(ctx, b)
}

// Close is called by the SDK to end the connection. The owner of the session ends the
// frames and waits for that.
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

// Call sends one request and returns the bytes of its result.
func (p *PeerSession) Call(ctx context.Context, r *Request) (json.RawMessage, error) {
	if r.Method == MethodCall {
		return p.Peer.Call(ctx, r)
	}
	return p.bySession(ctx, r)
}

func (p *PeerSession) Terminate(kill bool) {
	p.Peer.Terminate(kill)
	p.Session.Close() //nolint:errcheck // the peer is closed, so this can't fail
}
