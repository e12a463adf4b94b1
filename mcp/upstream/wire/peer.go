package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"nize/mcp/upstream/process"
	"nize/store"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Frames is a two-way stream of whole messages: stdioFrames and sseFrames.
type Frames interface {
	// read returns the next message; the bytes are the caller's. An answer that
	// stood behind other text may be one of a log, and is taken for the only open
	// request alone.
	read() (msg []byte, afterText bool, err error)
	// write sends one message, which holds no line break. Its error is a
	// *Fault. It may be called concurrently.
	write(ctx context.Context, msg []byte) error
	// Terminate ends the stream and whatever carries it, and waits; kill skips the
	// polite part. It may be called more than once.
	Terminate(kill bool)
	// Child is the process that it ends in; nil over HTTP.
	Child() process.Child
}

// Peer carries the SDK's messages and ours over one stream of frames. All
// requests are numbered here, the SDK's too, which sees nothing but the answers
// to its own. The server's requests are answered here, and its notifications end
// here too, so that a storm of them fills no queue.
type Peer struct {
	Hide Hide // what an error repeats goes through it; set before Connect
	// StartTime is what the SDK's requests have, which open the session; set before
	// Connect. 0 is for ever.
	StartTime time.Duration

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
	late    int // requests that nobody waits for any more and that were not answered
	failure error
	gone    chan struct{}   // closed with failure
	life    context.Context // ends with gone
	end     context.CancelFunc
	closed  bool
	earlier []byte // the last text that was no message, since the last message
	greeted bool   // a message came
	chatty  bool   // a call was answered behind such text
}

// waiter is one request under way.
type waiter struct {
	sdk      jsonrpc.ID           // of a request of the SDK's, which gets the answer; invalid for ours
	answer   chan envelope        // 1: the reader never waits for who has left
	progress chan json.RawMessage // 16: nor for a caller that is slow to take progress; the rest is dropped
	request  *Request             // ours
	ctx      context.Context      // of ours, for the questions of its server

	// The rest is guarded by the peer's mu.
	call  bool          // of a tool
	total time.Duration // that it has; 0 is for ever
	noise []byte        // what the server wrote meanwhile that is no message
	quiet *time.Timer   // gives the request up if nothing follows it
}

var _ sdk.Connection = (*Peer)(nil)

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

// Connect makes the peer its own sdk.Transport.
func (p *Peer) Connect(context.Context) (sdk.Connection, error) {
	p.wg.Go(p.pump)
	return p, nil
}

// pump reads until the stream ends or breaks.
func (p *Peer) pump() {
	quests := make(chan struct{}, maxServerRequests) // answers to the server under way
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
			p.warn("it wrote an answer behind other text on a line, which is taken for the only open request alone")
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

// answersOnly says whether an answer is for the only open request, by its number.
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

// dispatch gives one message to whom it is for.
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
	return nil // an answer that nobody waits for, or a notification that is of no use here
}

// takeAnswered takes the request that an answer with this id is for off the list.
// An id that is not ours, or none, is taken for the only request that is open. It
// is not while an earlier one, which nobody waits for any more, may still be
// answered: that one's answer must not be taken for another's.
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

// onlyLocked takes the only open request off the list; nil if there is not exactly
// one. It needs p.mu.
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

// removeLocked takes a request off the list. It needs p.mu.
func (p *Peer) removeLocked(n uint64, w *waiter) {
	delete(p.waiting, n)
	if w.quiet != nil {
		w.quiet.Stop()
	}
}

// deliver gives an answer to whom it is for.
func (p *Peer) deliver(w *waiter, e envelope) error {
	if !w.sdk.IsValid() {
		w.answer <- e
		return nil
	}
	r := &jsonrpc.Response{ID: w.sdk}
	result, err := e.answer()
	var rpc *RPCError
	switch {
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

// refuse ends the request that an unreadable answer is for, if only one can be
// meant: it is of no use to wait for another.
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
	_ = p.deliver(w, envelope{broken: bad}) // it has no error of its own
}

// dispatchBatch takes a JSON-RPC batch apart (2025-03-26 only).
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

// requestOf is the call of ours that a request of the server belongs to. On one stream
// nothing says so: it is the only call that is open, if no earlier one can be meant,
// which somebody else may have made; else nil.
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

// answerRequest answers a request of the server without holding up the reader.
func (p *Peer) answerRequest(e envelope, quests chan struct{}) error {
	select {
	case quests <- struct{}{}:
	default:
		return fmt.Errorf("it asks faster than it reads: %d requests unanswered", maxServerRequests)
	}
	ctx, r := p.requestOf(e)
	e.id, e.params = bytes.Clone(e.id), bytes.Clone(e.params)
	p.wg.Go(func() { // pump holds the group open
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

// findWaiter finds who waits for id. leave takes them off the list: they wait no
// more, whether it was answered or not.
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

// Fail marks the peer dead; the first reason stands.
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

// addWaiter puts a request on the list, unless the peer is dead.
func (p *Peer) addWaiter(id uint64, w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.waiting[id] = w
		if !p.greeted && p.earlier != nil {
			p.watchLocked(id, w, p.earlier)
		}
	}
	return p.failure
}

// said is what the server wrote in place of a message.
func (p *Peer) said() string {
	if f, ok := p.frames.(interface{ Said() string }); ok {
		return f.Said()
	}
	return ""
}

// Call sends one of our requests and waits for its answer.
func (p *Peer) Call(ctx context.Context, r *Request) (json.RawMessage, error) {
	id := p.ids.Add(1)
	w := &waiter{answer: make(chan envelope, 1), call: r.Method == MethodCall}
	if r.Ask != nil {
		own, done := context.WithCancel(ctx)
		defer done()
		defer context.AfterFunc(p.life, done)()
		w.request, w.ctx = r, own
	}
	if end, ok := ctx.Deadline(); ok {
		w.total = time.Until(end)
	}
	if r.Progress != nil {
		w.progress = make(chan json.RawMessage, 16)
	}
	if err := p.addWaiter(id, w); err != nil {
		return nil, &Fault{Reach: Never, Drop: true, Err: err}
	}
	defer p.findWaiter(id, true)

	if err := p.frames.write(ctx, r.Encode(id, "")); err != nil {
		switch {
		case AsFault(err).Reach == Never:
			p.takeAnswered(strconv.AppendUint(nil, id, 10)) // nothing will answer it
		case ctx.Err() != nil: // the server may have read it, and said something
			p.abandon(id, reasonOf(ctx))
			f := *AsFault(err)
			f.Said = cmp.Or(f.Said, p.said())
			return nil, &f
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
			p.abandon(id, reasonOf(ctx))
			return nil, &Fault{Reach: Maybe, Said: p.said(), Err: ctx.Err()}
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

// reasonOf says why a request whose context has ended is given up.
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

// Write sends a message of the SDK; a request gets a number of ours.
func (p *Peer) Write(ctx context.Context, m jsonrpc.Message) error {
	var id uint64
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		id = p.ids.Add(1)
		if err := p.addWaiter(id, &waiter{sdk: r.ID, total: p.StartTime}); err != nil {
			return err
		}
		renumbered, err := jsonrpc.MakeID(float64(id))
		if err != nil {
			return fmt.Errorf("numbering a message: %w", err)
		}
		m = &jsonrpc.Request{ID: renumbered, Method: r.Method, Params: r.Params}
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		err = p.frames.write(ctx, b)
	} else {
		err = fmt.Errorf("encoding a message: %w", err)
	}
	if err != nil && id != 0 {
		p.findWaiter(id, true)
	}
	return err
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
