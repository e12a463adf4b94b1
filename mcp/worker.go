package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/mcp/catalog"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/outage"
)

// worker follows the store's feed: see [Gateway.Run].
type worker struct {
	calls    CallStore
	feed     store.Feed
	policy   *policy.Engine
	catalog  *catalog.Catalog
	executor *executor
	waiters  *waiters
	tasks    *taskGroup
	log      *slog.Logger
	now      func() time.Time

	ctx      context.Context // only while run runs: the context of the calls that the worker runs
	draining chan struct{}   // closed by drain
	until    time.Time       // set by drain: when calls that still run are cancelled
	again    chan struct{}   // capacity 1: an approver may have lost the right to approve
	relist   chan struct{}   // capacity 1: the lists of a client may have changed
}

func newWorker(opt Options, rules *policy.Engine, catalog *catalog.Catalog, run *executor, waiters *waiters, background *taskGroup) *worker {
	return &worker{
		calls: opt.Calls, feed: opt.Feed, policy: rules, catalog: catalog, executor: run, waiters: waiters, tasks: background, log: opt.Log, now: opt.Now,
		draining: make(chan struct{}), again: make(chan struct{}, 1), relist: make(chan struct{}, 1),
	}
}

// drain is [Gateway.Drain].
func (w *worker) drain(until time.Time) {
	w.until = until
	time.AfterFunc(time.Until(until), w.executor.cut)
	close(w.draining)
}

// run is [Gateway.Run].
func (w *worker) run(ctx context.Context) error {
	// A stop must not cancel running calls immediately: they get the grace period.
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	w.ctx = calls
	after := w.feed.Last()
	if err := w.catalog.Load(ctx); err != nil {
		return err
	}
	if err := w.resumeCalls(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped during startup
		}
		return err
	}
	defer w.finishWork(cut)
	defer w.tasks.Stop()
	defer w.watchApprovers(ctx)()
	for change, err := range w.feed.Watch(ctx, after) {
		if err != nil {
			return fmt.Errorf("following the feed: %w", err)
		}
		switch change.Kind {
		case outage.Recovered:
			w.lookAgain(ctx)
		case "server", "tools":
			if err := outage.Await(ctx, func() error { return w.catalog.Refresh(ctx, change.ID) }); err != nil && ctx.Err() == nil {
				w.log.Error("refreshing tools", "server", change.ID, "err", err)
			}
		case "call":
			w.followCall(ctx, change)
		case "user", "group", "member", "channel", "token":
			w.recheckApprovers()
		}
		switch change.Kind {
		case "server", "tools", "user", "group", "member", "grant", "setting", "credential", outage.Recovered:
			w.relistClients()
		}
	}
	return nil
}

// lookAgain repeats the work that failed while the database was unavailable. If it is
// unavailable again, the feed reports its recovery again.
func (w *worker) lookAgain(ctx context.Context) {
	if err := w.resumeCalls(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("checking all calls after a database outage", "err", err)
	}
	w.recheckApprovers()
}

func (w *worker) relistClients() {
	select {
	case w.relist <- struct{}{}:
	default:
	}
}

// finishWork waits for the running calls. After the grace period it cancels them, and their
// servers' transports determine how they end: cancelled, or unknown.
func (w *worker) finishWork(cut context.CancelFunc) {
	grace := time.Duration(0)
	select {
	case <-w.draining:
		grace = time.Until(w.until)
	default: // Run ended without a drain: no grace period
	}
	late := time.AfterFunc(grace, cut)
	defer late.Stop()
	w.tasks.Running.Wait()
}

// noLimit is more calls than can be unfinished at once.
const noLimit = 1 << 20

// resumeCalls ends or continues the calls of a stopped daemon: running calls are lost and
// never run again by themselves, approved calls run now, waiting calls get their timer. An
// approved call that did not start before its expiry ends, because its caller no longer
// expects it.
func (w *worker) resumeCalls(ctx context.Context) error {
	err := w.markLost(ctx)
	if errors.Is(err, store.ErrDiskFull) {
		w.log.Warn("the disk is full: interrupted calls are checked when there is space")
		w.tasks.Running.Go(w.markLostLater)
		err = nil
	}
	if err != nil {
		return err
	}
	w.resumeTasks(ctx)
	pending, err := w.calls.ListCalls(ctx, store.CallQuery{States: []store.State{store.Pending}, Limit: noLimit})
	if err != nil {
		return fmt.Errorf("reading pending calls: %w", err)
	}
	for _, c := range pending {
		if c.Question != nil && c.Owner != w.executor.owner { // the call that asked ran in another process, and is lost
			if err := withdraw(ctx, w.calls, c.ID, store.Textf("nized stopped, and with it the call that asked"), w.now()); err != nil {
				return fmt.Errorf("withdrawing question %s: %w", c.ID, err)
			}
			continue
		}
		if !c.Approved.IsZero() {
			if c.Expires.IsZero() || w.now().Before(c.Expires) {
				w.startApproved(c.ID)
				continue
			}
			late := store.Outcome{State: store.Expired, Reason: store.Textf("it was approved, but nized stopped before it ran, and it expired")}
			if _, err := w.calls.Finish(ctx, store.System, c.ID, late); err != nil && !errors.Is(err, store.ErrDecided) {
				return fmt.Errorf("ending call %s: %w", c.ID, err)
			}
			continue
		}
		w.scheduleTimer(c)
	}
	return nil
}

// markLost ends the running calls of an nized that stopped. It returns ErrDiskFull if some
// outcomes are known but not in the database yet.
func (w *worker) markLost(ctx context.Context) error {
	running, err := w.calls.ListCalls(ctx, store.CallQuery{States: []store.State{store.Running}, Exact: true, Limit: noLimit})
	if err != nil {
		return fmt.Errorf("reading running calls: %w", err)
	}
	for _, c := range running {
		if c.Owner == w.executor.owner || c.Remote != nil {
			continue
		}
		why := store.Textf("nized stopped while it ran; it may or may not have taken effect")
		lost := store.Outcome{State: store.Lost, Reason: why, Result: &store.Result{IsError: true, Error: &store.CallError{Code: store.CodeUnknown, Message: why}}}
		if _, err := w.calls.Finish(ctx, store.System, c.ID, lost); err != nil && !errors.Is(err, store.ErrDecided) {
			return fmt.Errorf("marking call %s as lost: %w", c.ID, err)
		}
	}
	return nil
}

// resumeTasks resumes waiting for the tasks of calls that another instance of nized left:
// their servers still run them.
func (w *worker) resumeTasks(ctx context.Context) {
	running, err := w.calls.ListCalls(ctx, store.CallQuery{States: []store.State{store.Running}, Exact: true, Limit: noLimit})
	if err != nil {
		w.log.Error("reading running calls", "err", err)
		return
	}
	for _, c := range running {
		if c.Remote == nil || c.Owner == w.executor.owner {
			continue
		}
		w.tasks.Running.Go(func() {
			if err := w.resumeTask(w.ctx, c.ID); err != nil {
				w.log.Error("resuming a task at its server", "call", c.ID, "err", err)
			}
		})
	}
}

func (w *worker) resumeTask(ctx context.Context, id string) error {
	c, err := w.calls.Resume(ctx, id, w.executor.owner)
	if errors.Is(err, store.ErrDecided) {
		return nil // another worker was first
	}
	if err != nil {
		return err
	}
	by, err := w.policy.Requester(ctx, c)
	if err != nil { // the requester is deleted; the call is still theirs, and ends
		by = store.Caller{User: c.By, Name: c.ByName, Surface: c.Surface, Token: c.Token}
	}
	inv := &Invocation{Point: AroundCall, By: by, Tool: c.ToolID(), Args: c.Args, Call: &c, Started: w.now()}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	w.waiters.setCancel(id, cancel)
	defer w.waiters.setCancel(id, nil)
	tell, end := w.waiters.relay(id, nil, w.now)
	defer end()
	_, err = w.executor.finish(ctx, inv, w.executor.run(run, inv, tell))
	return err
}

// markLostLater runs markLost when the disk has space.
func (w *worker) markLostLater() {
	for {
		select {
		case <-time.After(roomPause):
		case <-w.draining:
			return
		case <-w.ctx.Done():
			return
		}
		err := w.markLost(w.ctx)
		if err == nil || w.ctx.Err() != nil {
			return
		}
		if !errors.Is(err, store.ErrDiskFull) {
			w.log.Error("looking for calls that were cut off", "err", err)
			return
		}
	}
}

// followCall handles one state change of a call.
func (w *worker) followCall(ctx context.Context, change store.Change) {
	defer w.waiters.changed(change.ID)
	switch {
	case change.State == store.Pending && change.Approved:
		w.tasks.StopTimer(change.ID)
		w.startApproved(change.ID)
	case change.State == store.Pending:
		if c, err := w.calls.GetCall(ctx, change.ID); err == nil && c.Waiting() {
			w.scheduleTimer(c)
		}
	case change.State.Final():
		w.tasks.StopTimer(change.ID)
		w.waiters.notify(change.ID)
	}
}

// startApproved runs an approved call in the background, once: the store lets only one
// daemon and one goroutine move it to running.
func (w *worker) startApproved(id string) {
	w.tasks.Running.Go(func() {
		err := w.runApproved(w.ctx, id)
		if errors.Is(err, store.ErrDiskFull) {
			w.log.Warn("the disk is full: an approved call starts when there is space", "call", id)
			err = w.awaitRoom(id)
		}
		if err != nil {
			w.log.Error("running an approved call", "call", id, "err", err)
		}
	})
}

// roomPause is the retry interval for an approved call while the disk is full: an approval
// fits into reserved space, but the record that the call runs may not.
const roomPause = 2 * time.Second

// awaitRoom runs an approved call once the disk has space. If the daemon stops, the call is
// left for the next start; if it expires, it ends.
func (w *worker) awaitRoom(id string) (err error) {
	for {
		select {
		case <-time.After(roomPause):
		case <-w.draining:
			return nil
		case <-w.ctx.Done():
			return nil
		}
		c, err := w.calls.GetCall(w.ctx, id)
		switch {
		case err != nil:
		case c.State != store.Pending || c.Approved.IsZero():
			return nil
		case !c.Expires.IsZero() && !w.now().Before(c.Expires):
			late := store.Outcome{State: store.Expired, Reason: store.Textf("it was approved, but the disk was full until it expired")}
			if _, err = w.calls.Finish(w.ctx, store.System, id, late); errors.Is(err, store.ErrDecided) {
				err = nil
			}
		default:
			err = w.runApproved(w.ctx, id)
		}
		if !errors.Is(err, store.ErrDiskFull) {
			return err
		}
	}
}

func (w *worker) runApproved(ctx context.Context, id string) error {
	c, err := w.calls.GetCall(ctx, id)
	if err != nil {
		return err
	}
	stale, by, err := w.executor.stale(ctx, c)
	if err != nil {
		return err
	}
	refused := &store.CallError{Code: store.CodeRefused, Message: stale}
	c, err = w.calls.Start(ctx, id, w.executor.owner)
	if errors.Is(err, store.ErrDecided) {
		return nil // another worker was first
	}
	if err != nil {
		return err
	}
	inv := &Invocation{Point: AroundCall, By: store.System, Tool: c.ToolID(), Args: c.Args, Call: &c, Started: w.now()}
	if refused.Message == (store.Text{}) {
		inv.By = by
		if err := w.executor.budgets.Count(ctx, inv.By, &c); err != nil {
			refused = callError(err)
		}
	}
	if refused.Message != (store.Text{}) {
		_, err := w.executor.finish(ctx, inv, w.executor.runAfter(ctx, inv, store.Outcome{State: store.Refused, Reason: refused.Message, Result: &store.Result{IsError: true, Error: refused}}))
		return err
	}
	run := ctx
	if c.Task {
		var cancel context.CancelFunc
		run, cancel = context.WithCancel(ctx)
		defer cancel()
		w.waiters.setCancel(id, cancel)
		defer w.waiters.setCancel(id, nil)
	}
	tell, end := w.waiters.relay(id, nil, w.now)
	defer end()
	_, err = w.executor.finish(ctx, inv, w.executor.run(run, inv, tell))
	return err
}

// scheduleTimer sets the timer of a waiting call: half way to its expiry people are
// reminded once, and at its expiry it ends.
func (w *worker) scheduleTimer(c store.Call) {
	switch {
	case c.Expires.IsZero(): // it never expires
	case c.Reminded.IsZero():
		w.tasks.SetTimer(c.ID, c.Created.Add(c.Expires.Sub(c.Created)/2).Sub(w.now()), func() { w.remindPeople(c.ID) })
	default:
		w.tasks.SetTimer(c.ID, c.Expires.Sub(w.now()), func() { w.expireCall(c.ID) })
	}
}

// remindPeople writes a reminder of a waiting call to the feed, from which the chat
// platforms deliver it. The resulting change sets the timer of the call's expiry; if there
// is no change, remindPeople sets it.
func (w *worker) remindPeople(id string) {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	w.recheckApprovers()
	_, err := w.calls.Remind(ctx, id)
	if err == nil || ctx.Err() != nil {
		return
	}
	if !errors.Is(err, store.ErrDecided) {
		w.log.Error("reminding of a call", "call", id, "err", err)
	}
	if c, err := w.calls.GetCall(ctx, id); err == nil && c.Waiting() && !c.Expires.IsZero() {
		w.tasks.SetTimer(id, c.Expires.Sub(w.now()), func() { w.expireCall(id) })
	}
}

// expireCall ends a call without an answer. The store decides by its own clock, which never
// runs backwards.
func (w *worker) expireCall(id string) {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	_, err := w.calls.Decide(ctx, store.System, id, store.Decision{Verb: store.Expire, By: store.System.User, Name: store.System.Name, At: w.now(), Reason: store.Textf("nobody answered in time")})
	if err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) && ctx.Err() == nil {
		w.log.Error("expiring a call", "call", id, "err", err)
	}
}
