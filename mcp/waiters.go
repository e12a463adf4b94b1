package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// firstPoll is how long a client may take until it asks about its new task: several of the
// intervals that it is given.
const firstPoll = 10 * time.Second

// waiter holds the channels and callbacks of a caller that stays; each may be nil.
type waiter struct {
	progress store.ProgressFunc
	waits    func()            // called if the call has to wait for a person
	began    func(*store.Call) // called when the call is about to run and is recorded
	left     <-chan struct{}   // closed when the connection is lost, even if nothing else ends
	asks     bool              // the client can ask its user a server's question, and returns with the answer
	made     func(id string)   // called when a task is known, before it runs if it needs no approval
	late     <-chan time.Time  // fires when the caller stops waiting, to return later
}

// waiters tracks the callers that are attached to calls which are not final.
type waiters struct {
	mu       sync.Mutex
	settled  map[string][]chan struct{}    // by call id: signalled when the call settles
	attached map[string]int                // by call id: number of attached callers
	gone     map[string]int                // by call id: number of those that lost their connection
	expected map[string]bool               // by call id: its client is asking its user, or waits for the call that it replaced
	leaving  map[string]bool               // by call id: its last caller left, and it is being cancelled
	progress map[string]store.ProgressFunc // by call id: the waiting client's progress
	cancels  map[string]context.CancelFunc // by call id: cancels a running task
	watches  map[string][]*callWatch       // by call id
	sessions map[string]taskSession        // by call id
	reports  map[string]callReport         // by the id of a running call: the last progress that its server reported
}

// callWatch is called when a call's state or progress changes. It must not block.
type callWatch struct{ changed func() }

// callReport is progress that a call's server reported.
type callReport struct {
	at          time.Time
	done, total float64
	message     string
}

// String describes the progress, such as "3 of 10, copying".
func (r callReport) String() string {
	var parts []string
	switch {
	case r.total > 0:
		parts = append(parts, fmt.Sprintf("%.10g of %.10g", r.done, r.total))
	case r.done > 0:
		parts = append(parts, fmt.Sprintf("%.10g", r.done))
	}
	if r.message != "" {
		parts = append(parts, r.message)
	}
	return strings.Join(parts, ", ")
}

func newWaiters() *waiters {
	return &waiters{
		settled: map[string][]chan struct{}{}, attached: map[string]int{}, gone: map[string]int{}, expected: map[string]bool{},
		leaving: map[string]bool{}, progress: map[string]store.ProgressFunc{}, cancels: map[string]context.CancelFunc{},
		watches: map[string][]*callWatch{}, reports: map[string]callReport{}, sessions: map[string]taskSession{},
	}
}

// attach adds a caller to a call. It returns false if the call is being cancelled because
// its last caller left.
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

// setExpected notes that the caller of a call will attach later.
func (w *waiters) setExpected(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[id] = true
}

// setGone records that an attached caller lost its connection.
func (w *waiters) setGone(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[id]++
}

// anybody reports whether any caller would receive the result of a call.
func (w *waiters) anybody(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attached[id] > w.gone[id] || w.expected[id]
}

// detach removes a caller and reports whether it was the last one. If the last caller
// leaves before the call has ended, no caller can join the call any more: the last caller
// cancels it and then calls setCancelled.
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

// setCancelled ends the state that detach began when the last caller left.
func (w *waiters) setCancelled(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.leaving, id)
}

// subscribe returns a channel that is sent to when the call settles. progress, if not nil,
// gets the call's own progress once it runs.
func (w *waiters) subscribe(id string, progress store.ProgressFunc) chan struct{} {
	told := make(chan struct{}, 1) // capacity 1, so that notify never blocks
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled[id] = append(w.settled[id], told)
	if progress != nil {
		w.progress[id] = progress
	}
	return told
}

// taskSession is the client whose session has a task.
type taskSession struct {
	ask   sessionAsker
	known chan struct{} // closed when the client has named the task
}

// setSession notes how the client of a task is asked questions, until the call settles.
func (w *waiters) setSession(id string, ask sessionAsker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[id] = taskSession{ask, make(chan struct{})}
}

// taskNamed notes that the client of a task has named it in a request.
func (w *waiters) taskNamed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s.known == nil {
		return
	}
	select {
	case <-s.known:
	default:
		close(s.known)
	}
}

// sessionOf returns what asks the client of a task, or nil. A client couldn't relate a
// question to a task whose id it has not read yet: responses and questions may go by
// different connections. So the question waits until the client has named the task, but not
// longer than firstPoll.
func (w *waiters) sessionOf(id string) sessionAsker {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s.ask == nil {
		return nil
	}
	return func(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		timer := time.NewTimer(firstPoll)
		defer timer.Stop()
		select {
		case <-s.known:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.ask(ctx, p)
	}
}

// keepProgress sends the progress of a call to a client that isn't attached, until the call
// settles.
func (w *waiters) keepProgress(id string, progress store.ProgressFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress[id] = progress
}

// unsubscribe removes a channel.
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

// notify signals the waiting callers that the call settled.
func (w *waiters) notify(id string) {
	w.mu.Lock()
	delete(w.expected, id)
	delete(w.progress, id)
	delete(w.sessions, id)
	w.mu.Unlock()
	w.wake(id)
}

// wake makes the waiting callers read the call again.
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

// asked makes the waiting callers and watchers look at the questions of a call again.
func (w *waiters) asked(id string) {
	w.wake(id)
	w.changed(id)
}

// progressOf returns the progress function of the client that waits for the call, or nil.
func (w *waiters) progressOf(id string) store.ProgressFunc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress[id]
}

// watch calls changed when the call's state or progress changes, until stop is called.
func (w *waiters) watch(id string, changed func()) (stop func()) {
	one := &callWatch{changed}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[id] = append(w.watches[id], one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watches[id] = slices.DeleteFunc(w.watches[id], func(o *callWatch) bool { return o == one }); len(w.watches[id]) == 0 {
			delete(w.watches, id)
		}
	}
}

// changed informs the watchers of a call.
func (w *waiters) changed(id string) {
	w.mu.Lock()
	watching := slices.Clone(w.watches[id])
	w.mu.Unlock()
	for _, one := range watching {
		one.changed()
	}
}

// reportEvery is how often watchers are informed of progress alone.
const reportEvery = time.Second

// relay returns the progress function of a call that begins to run. It passes each report
// on to direct or, if that is nil, to the client that is attached at that time, and keeps
// the last one until end is called.
func (w *waiters) relay(id string, direct store.ProgressFunc, now func() time.Time) (tell store.ProgressFunc, end func()) {
	var informed time.Time // guarded by w.mu, as is ended
	ended := false
	tell = func(done, total float64, message string) {
		r := callReport{now(), done, total, message}
		w.mu.Lock()
		if ended {
			w.mu.Unlock()
			return
		}
		w.reports[id] = r
		due := r.at.Sub(informed) >= reportEvery
		if due {
			informed = r.at
		}
		to := direct
		if to == nil {
			to = w.progress[id]
		}
		w.mu.Unlock()
		if to != nil {
			to(done, total, message)
		}
		if due {
			w.changed(id)
		}
	}
	return tell, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
		delete(w.reports, id)
	}
}

// reportOf returns the last progress of a running call.
func (w *waiters) reportOf(id string) callReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports[id]
}

// setCancel sets the function that cancels a running task; nil removes it.
func (w *waiters) setCancel(id string, cancel context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel == nil {
		delete(w.cancels, id)
	} else {
		w.cancels[id] = cancel
	}
}

// cancelRun cancels a task that runs here and reports whether there was one.
func (w *waiters) cancelRun(id string) (ok bool) {
	w.mu.Lock()
	cancel := w.cancels[id]
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// errDraining ends a caller's wait when the daemon stops.
var errDraining = &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("nized is stopping; ask again when it is back"), Retryable: true}

// progressEvery is the interval of progress notifications to a waiting client.
const progressEvery = 10 * time.Second

// Execute is Call for a caller that stays: it returns the call once it is final. A call
// that needs approval waits; a repeated call by the same token joins the one that already
// waits. If the last caller leaves or reaches its time limit, a call that still waits is
// cancelled.
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

// begin creates the call, or joins one that already waits. The caller is attached to a call
// that is not final, and must await it or detach from it.
func (g *Gateway) begin(ctx context.Context, by store.Caller, req store.Request, w *waiter) (*store.Call, error) {
	// Before join: a request with misplaced arguments must not join a call without
	// arguments.
	if err := g.placeArgs(ctx, by, &req); err != nil {
		if ctx.Err() == nil {
			g.turnAway(by, req.Tool, err)
		}
		return nil, err
	}
	r := request{Request: req}
	if g.validator.makeCanonical(&r) == nil {
		if c, err := g.join(ctx, by, invoked{r.Tool, r.Args}, w); c != nil || err != nil {
			return c, err
		}
	}
	return g.call(ctx, by, r, w)
}

// invoked is a tool with the arguments of a call.
type invoked struct {
	tool string
	args json.RawMessage // canonical
}

// mayRepeat reports whether the caller is a program. A program that lost a call sends it
// again and means the same call. Each call of a person is a separate one.
func mayRepeat(by store.Caller) bool { return by.Token != "" || by.Surface == store.OnMCP }

// join returns the same call of the same token if it already waits, or nil. Callers may not
// be attached to that call: none is after a restart, and while a client asks its user. join
// skips calls that may no longer run, and those being cancelled because their last caller
// left.
func (g *Gateway) join(ctx context.Context, by store.Caller, want invoked, w *waiter) (*store.Call, error) {
	if !mayRepeat(by) {
		return nil, nil
	}
	server, tool, _ := strings.Cut(want.tool, ":")
	waiting, err := g.calls.FindWaiting(ctx, store.Call{By: by.User, Token: by.Token, Surface: by.Surface, Server: server, Tool: tool, Args: want.args})
	if err != nil {
		return nil, fmt.Errorf("reading waiting calls: %w", err)
	}
	for _, c := range waiting {
		if w != nil && !g.waiters.attach(c.ID) {
			continue
		}
		same, err := g.calls.GetCall(ctx, c.ID) // its current state, now that a caller is attached
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

// await waits for a call that the caller is attached to, sends progress to the client, and
// detaches.
func (g *Gateway) await(ctx context.Context, by store.Caller, id string, w *waiter) (*store.Call, error) {
	told := g.waiters.subscribe(id, w.progress)
	c, err := g.awaitFinal(ctx, id, told, w)
	g.waiters.unsubscribe(id, told)
	last := g.waiters.detach(id, err != nil)
	if err == nil && c.State == store.Cancelled && c.Successor != "" && g.waiters.attach(c.Successor) {
		return g.await(ctx, by, c.Successor, w) // edited: return the result of the last replacement
	}
	if err == nil && !c.State.Final() { // its client is about to ask its user, or returns later
		g.waiters.setExpected(id)
	}
	if err == nil || !last {
		return c, err
	}
	if kept, failed := g.calls.GetCall(context.WithoutCancel(ctx), id); failed == nil && kept.Task { // its client returns later
		g.waiters.setCancelled(id)
		return c, err
	}
	// The caller left or its time limit passed: no caller would receive the result.
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
			progress(n, 0, fmt.Sprintf("waiting for approval of %s: nizectl approvals show %s", c.ToolID(), c.ID))
		}
		draining := g.worker.draining
		if !c.Waiting() {
			draining = nil // it runs, or is about to
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

// Wait returns the call once it is final. It requires Run.
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
