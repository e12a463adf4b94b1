package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// waiter is what a caller who stays is told; each part may be nil.
type waiter struct {
	progress store.ProgressFunc
	waits    func()            // the call has to wait for a person
	began    func(*store.Call) // it is about to run, and its record is there
	left     <-chan struct{}   // closed when its connection is gone, though nothing else ends
	asks     bool              // it can ask its person what a server asks, and comes back with the answer
	late     <-chan time.Time  // when it no longer wants to wait, and comes back later
}

// waiters are the callers who are attached to calls that are not final.
type waiters struct {
	mu       sync.Mutex
	settled  map[string][]chan struct{}    // by call id: who is told when it settles
	attached map[string]int                // by call id: how many callers are attached
	gone     map[string]int                // by call id: how many of them have lost their connection
	expected map[string]bool               // by call id: its client went to ask its person, or waits for what it replaced
	leaving  map[string]bool               // by call id: its last caller left, and it is being cancelled
	progress map[string]store.ProgressFunc // by call id: the waiting client's progress
	cancels  map[string]context.CancelFunc // by call id: ends a task that runs
}

func newWaiters() *waiters {
	return &waiters{
		settled: map[string][]chan struct{}{}, attached: map[string]int{}, gone: map[string]int{}, expected: map[string]bool{},
		leaving: map[string]bool{}, progress: map[string]store.ProgressFunc{}, cancels: map[string]context.CancelFunc{},
	}
}

// attach counts a caller in for a call, unless its last one is just leaving.
func (w *waiters) attach(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving[id] {
		return false
	}
	w.attached[id]++
	delete(w.expected, id)
	return true
}

// setExpected notes that the caller of a call is to attach in a while.
func (w *waiters) setExpected(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[id] = true
}

// setGone counts an attached caller whose connection is lost.
func (w *waiters) setGone(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[id]++
}

// anybody says whether somebody would see the result of a call.
func (w *waiters) anybody(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attached[id] > w.gone[id] || w.expected[id]
}

// detach counts a caller out and says whether nobody is left. Where the last one
// leaves before the end nobody joins the call any more: who detached cancels it,
// and then says so to setCancelled.
func (w *waiters) detach(id string, leaves bool) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attached[id]--; w.attached[id] > 0 {
		return false
	}
	delete(w.attached, id)
	delete(w.gone, id)
	delete(w.progress, id)
	if leaves {
		w.leaving[id] = true
	}
	return true
}

// setCancelled ends what detach began where the last caller left.
func (w *waiters) setCancelled(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.leaving, id)
}

// subscribe returns a channel that is sent to when the call settles; a progress
// that is not nil is told of the call's own progress once it runs.
func (w *waiters) subscribe(id string, progress store.ProgressFunc) chan struct{} {
	told := make(chan struct{}, 1) // one place, so that notify never blocks
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled[id] = append(w.settled[id], told)
	if progress != nil {
		w.progress[id] = progress
	}
	return told
}

// unsubscribe takes a channel out.
func (w *waiters) unsubscribe(id string, told chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.settled[id] {
		if c == told {
			w.settled[id] = append(w.settled[id][:i:i], w.settled[id][i+1:]...)
			break
		}
	}
	if len(w.settled[id]) == 0 {
		delete(w.settled, id)
	}
}

// notify tells who waits that the call settled.
func (w *waiters) notify(id string) {
	w.mu.Lock()
	delete(w.expected, id)
	w.mu.Unlock()
	w.wake(id)
}

// wake has who waits look at the call again.
func (w *waiters) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, told := range w.settled[id] {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// progressOf is the progress of the client that waits for the call, or nil.
func (w *waiters) progressOf(id string) store.ProgressFunc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress[id]
}

// setCancel notes how to end a task that runs; nil is no way any more.
func (w *waiters) setCancel(id string, cancel context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel == nil {
		delete(w.cancels, id)
	} else {
		w.cancels[id] = cancel
	}
}

// cancelRun cancels a task that runs here; ok reports whether one does.
func (w *waiters) cancelRun(id string) (ok bool) {
	w.mu.Lock()
	cancel := w.cancels[id]
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// errDraining ends the wait of a caller when the daemon stops.
var errDraining = &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("nized is stopping; ask again when it is back"), Retryable: true}

// progressEvery is how often a waiting client is told that it waits.
const progressEvery = 10 * time.Second

// Execute is Call for a caller that stays: it returns the call once it is final. A call that needs a yes waits; the same call by
// the same token joins one that waits already. When the last caller leaves, or
// its limit passes, a call that still waits is cancelled.
func (g *Gateway) Execute(ctx context.Context, by store.Caller, req store.Request, progress store.ProgressFunc) (*store.Call, error) {
	return g.execute(ctx, by, req, &waiter{progress: progress})
}

func (g *Gateway) execute(ctx context.Context, by store.Caller, req store.Request, w *waiter) (*store.Call, error) {
	c, err := g.begin(ctx, by, req, w)
	if err != nil || c.State.Final() {
		return c, err
	}
	if w.waits != nil {
		w.waits()
	}
	return g.await(ctx, by, c.ID, w)
}

// begin makes the call, or joins one that waits already. The caller is attached
// to a call that is not final, and has to await it or to detach.
func (g *Gateway) begin(ctx context.Context, by store.Caller, req store.Request, w *waiter) (*store.Call, error) {
	// Before join: a request whose arguments stand elsewhere must not join a call
	// without arguments.
	if err := g.placeArgs(ctx, by, &req); err != nil {
		if ctx.Err() == nil {
			g.turnAway(by, req.Tool, err)
		}
		return nil, err
	}
	if c, err := g.join(ctx, by, invoked{req.Tool, argsOf(req)}, w); c != nil || err != nil {
		return c, err
	}
	return g.call(ctx, by, req, w)
}

// invoked is a tool and what it is called with.
type invoked struct {
	tool string
	args json.RawMessage
}

// mayRepeat says whether the caller is a program: it sends a call again that it
// lost, and means the same one. Of a person each is a call of its own.
func mayRepeat(by store.Caller) bool { return by.Token != "" || by.Surface == store.OnMCP }

// join finds the same call of the same token that waits already, whether or not
// anybody is attached to it: nobody is after a restart, and while a client
// asks its person. It is nil if there is none. Nobody joins one that could
// not run any more, nor one that is ending since its last caller leaves.
func (g *Gateway) join(ctx context.Context, by store.Caller, want invoked, w *waiter) (*store.Call, error) {
	if !mayRepeat(by) {
		return nil, nil
	}
	canonical, err := store.Canonical(want.args)
	if err != nil {
		return nil, nil // call says what is wrong with them
	}
	server, tool, _ := strings.Cut(want.tool, ":")
	waiting, err := g.calls.FindWaiting(ctx, store.Call{By: by.User, Token: by.Token, Surface: by.Surface, Server: server, Tool: tool, Args: canonical})
	if err != nil {
		return nil, fmt.Errorf("reading waiting calls: %w", err)
	}
	for _, c := range waiting {
		if w != nil && !g.waiters.attach(c.ID) {
			continue
		}
		same, err := g.calls.GetCall(ctx, c.ID) // as it is now that somebody is attached
		void := err == nil && same.State == store.Cancelled && same.Successor == ""
		if err == nil && same.Waiting() {
			var why store.Text
			why, err = g.Policy.Stale(ctx, same)
			void = why != store.Text{}
		}
		if w != nil && (err != nil || void || same.State.Final()) {
			g.waiters.detach(c.ID, false)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading call %s: %w", c.ID, err)
		case !void:
			return &same, nil
		}
	}
	return nil, nil
}

// await waits for a call that the caller is attached to, and tells the client
// so. It detaches.
func (g *Gateway) await(ctx context.Context, by store.Caller, id string, w *waiter) (*store.Call, error) {
	told := g.waiters.subscribe(id, w.progress)
	c, err := g.awaitFinal(ctx, id, told, w)
	g.waiters.unsubscribe(id, told)
	last := g.waiters.detach(id, err != nil)
	if err == nil && c.State == store.Cancelled && c.Successor != "" && g.waiters.attach(c.Successor) {
		return g.await(ctx, by, c.Successor, w) // edited: the result is that of the last of the chain
	}
	if err == nil && !c.State.Final() { // its client is about to ask its person, or comes back later
		g.waiters.setExpected(id)
	}
	if err == nil || !last {
		return c, err
	}
	if kept, failed := g.calls.GetCall(context.WithoutCancel(ctx), id); failed == nil && kept.Task { // its client comes back
		g.waiters.setCancelled(id)
		return c, err
	}
	// The caller left or its limit passed: nobody would see the result.
	defer g.waiters.setCancelled(id)
	reason := store.Textf("its caller left")
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = store.Textf("nobody approved it within the caller's limit (mcp.wait)")
	case errors.Is(err, errDraining):
		reason = store.Textf("nized is stopping")
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c2, cancelErr := g.calls.Decide(end, by, id, store.Decision{Verb: store.Cancel, By: by.User, Name: by.Name, Surface: by.Surface, At: g.now(), Reason: reason, Auto: true})
	if cancelErr != nil && !errors.Is(cancelErr, store.ErrDecided) && !errors.Is(cancelErr, store.ErrExpired) {
		return nil, fmt.Errorf("cancelling call %s: %w", id, cancelErr)
	}
	if c2.State.Final() {
		return &c2, nil
	}
	return nil, err
}

// awaitFinal waits until the call is final, the daemon drains or ctx ends.
func (g *Gateway) awaitFinal(ctx context.Context, id string, told chan struct{}, w *waiter) (*store.Call, error) {
	progress, left := w.progress, w.left
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for n := 1.0; ; n++ {
		c, err := g.calls.GetCall(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", id, err)
		}
		if c.State.Final() || w.asks && len(g.questions.of(id)) > 0 {
			return &c, nil
		}
		if progress != nil && c.Waiting() {
			progress(n, 0, fmt.Sprintf("waiting for a yes to %s: nizectl approvals show %s", c.ToolID(), c.ID))
		}
		draining := g.worker.draining
		if !c.Waiting() {
			draining = nil // it runs, or will in a moment
		}
		select {
		case <-told:
		case <-tick.C:
		case <-w.late:
			return &c, nil
		case <-left:
			left = nil
			g.waiters.setGone(id)
			if g.CallerLeft != nil {
				g.CallerLeft(id)
			}
		case <-draining:
			return nil, errDraining
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Wait returns the call once it is final. It needs Run.
func (g *Gateway) Wait(ctx context.Context, id string) (*store.Call, error) {
	told := g.waiters.subscribe(id, nil)
	defer g.waiters.unsubscribe(id, told)
	for {
		c, err := g.calls.GetCall(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", id, err)
		}
		if c.State.Final() {
			return &c, nil
		}
		select {
		case <-told:
		case <-ctx.Done():
			return &c, ctx.Err()
		}
	}
}
