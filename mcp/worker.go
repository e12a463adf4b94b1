package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/store"
)

// Run is the worker on the store's feed: it executes what was approved,
// expires what nobody answered, tells who waits, and keeps the catalog fresh.
// It returns when ctx ends and the calls that it runs have finished.
func (g *Gateway) Run(ctx context.Context) error {
	// A stop must not cut a call that is on its way at once: it gets the grace
	// time.
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	g.ctx = calls
	after := g.opt.Store.Last()
	if err := g.tools.load(ctx); err != nil {
		return err
	}
	if err := g.resume(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it began
		}
		return err
	}
	defer g.finishWork(cut)
	defer g.stopTimers()
	defer g.watchElectorates(ctx)()
	for change, err := range g.opt.Store.Watch(ctx, after) {
		if err != nil {
			return fmt.Errorf("following the feed: %w", err)
		}
		switch change.Kind {
		case "server", "tools":
			if err := g.tools.refresh(ctx, change.ID); err != nil {
				g.opt.Log.Error("refreshing tools", "server", change.ID, "err", err)
			}
		case "call":
			g.changed(ctx, change)
		case "user", "group", "member", "channel":
			g.lookAgain()
		}
	}
	return nil
}

// finishWork waits for the calls that run; when the grace time is over it cuts
// them, and they end as their servers' transports tell: cancelled, or unknown.
func (g *Gateway) finishWork(cut context.CancelFunc) {
	grace := time.Duration(0)
	select {
	case <-g.draining:
		grace = time.Until(g.until)
	default: // Run ends without a drain: nothing was promised
	}
	late := time.AfterFunc(grace, cut)
	defer late.Stop()
	g.work.Wait()
}

// resume settles what a stopped daemon left: running calls are lost and never
// run again by themselves, approved ones run now, waiting ones get their timer.
// One that was approved and did not begin before its time was over ends: nobody
// expects it any more.
func (g *Gateway) resume(ctx context.Context) error {
	running, err := g.opt.Store.ListCalls(ctx, store.CallQuery{States: []store.State{store.Running}, Limit: 1 << 20})
	if err != nil {
		return fmt.Errorf("reading running calls: %w", err)
	}
	for _, c := range running {
		if c.Owner == g.opt.Owner {
			continue
		}
		const why = "nized stopped while it ran; it may or may not have taken effect"
		lost := store.Outcome{State: store.Lost, Reason: why, Result: &store.Result{IsError: true, Error: &store.CallError{Code: store.CodeUnknown, Message: why}}}
		if _, err := g.opt.Store.Finish(ctx, store.System, c.ID, lost); err != nil && !errors.Is(err, store.ErrDecided) {
			return fmt.Errorf("marking call %s as lost: %w", c.ID, err)
		}
	}
	pending, err := g.opt.Store.ListCalls(ctx, store.CallQuery{States: []store.State{store.Pending}, Limit: 1 << 20})
	if err != nil {
		return fmt.Errorf("reading pending calls: %w", err)
	}
	for _, c := range pending {
		if !c.Approved.IsZero() {
			if c.Expires.IsZero() || g.opt.Now().Before(c.Expires) {
				g.start(c.ID)
				continue
			}
			late := store.Outcome{State: store.Expired, Reason: "it was approved, but nized stopped before it ran, and its time is over"}
			if _, err := g.opt.Store.Finish(ctx, store.System, c.ID, late); err != nil && !errors.Is(err, store.ErrDecided) {
				return fmt.Errorf("ending call %s: %w", c.ID, err)
			}
			continue
		}
		g.schedule(c)
	}
	return nil
}

// changed reacts to one transition of a call.
func (g *Gateway) changed(ctx context.Context, change store.Change) {
	switch {
	case change.State == store.Pending && change.Approved:
		g.stopTimer(change.ID)
		g.start(change.ID)
	case change.State == store.Pending:
		if c, err := g.opt.Store.GetCall(ctx, change.ID); err == nil && c.Waiting() {
			g.schedule(c)
		}
	case change.State.Final():
		g.stopTimer(change.ID)
		g.wake(change.ID)
	}
}

// start runs an approved call in the background, once: the store lets only
// one daemon and one goroutine move it to running.
func (g *Gateway) start(id string) {
	g.work.Go(func() {
		if err := g.runApproved(g.ctx, id); err != nil {
			g.opt.Log.Error("running an approved call", "call", id, "err", err)
		}
	})
}

func (g *Gateway) runApproved(ctx context.Context, id string) error {
	c, err := g.opt.Store.GetCall(ctx, id)
	if err != nil {
		return err
	}
	why := g.stale(ctx, c)
	c, err = g.opt.Store.Start(ctx, id, g.opt.Owner)
	if errors.Is(err, store.ErrDecided) {
		return nil // somebody was first
	}
	if err != nil {
		return err
	}
	inv := &Invocation{Point: AroundCall, By: store.System, Tool: c.ToolID(), Args: c.Args, Call: &c, Started: g.opt.Now()}
	if why != "" {
		_, err := g.finish(ctx, inv, store.Outcome{State: store.Refused, Reason: why, Result: &store.Result{IsError: true, Error: &store.CallError{Code: store.CodeRefused, Message: why}}})
		return err
	}
	if inv.By, err = g.requester(ctx, c); err != nil {
		return err
	}
	g.mu.Lock()
	progress := g.hears[id]
	g.mu.Unlock()
	_, err = g.finish(ctx, inv, g.run(ctx, inv, progress))
	return err
}

// Wait returns the call once it is final. It needs Run.
func (g *Gateway) Wait(ctx context.Context, id string) (*store.Call, error) {
	told := make(chan struct{}, 1) // one place, so that wake never blocks
	g.mu.Lock()
	g.waiters[id] = append(g.waiters[id], told)
	g.mu.Unlock()
	defer g.forget(id, told)
	for {
		c, err := g.opt.Store.GetCall(ctx, id)
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

// forget takes a waiter out.
func (g *Gateway) forget(id string, told chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiters[id] {
		if w == told {
			g.waiters[id] = append(g.waiters[id][:i:i], g.waiters[id][i+1:]...)
			break
		}
	}
	if len(g.waiters[id]) == 0 {
		delete(g.waiters, id)
	}
}

func (g *Gateway) wake(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, told := range g.waiters[id] {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// schedule sets the timer of a call that waits: half way to its expiry people
// are reminded once, then it ends.
func (g *Gateway) schedule(c store.Call) {
	switch {
	case c.Expires.IsZero(): // it waits for ever
	case c.Reminded.IsZero():
		g.at(c.ID, c.Created.Add(c.Expires.Sub(c.Created)/2), g.remind)
	default:
		g.at(c.ID, c.Expires, g.expire)
	}
}

// at does one thing for a call later. The store decides by its own clock,
// which never runs backwards.
func (g *Gateway) at(id string, at time.Time, do func(id string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.expiry[id]; t != nil {
		t.Stop()
	}
	if g.stopped {
		return
	}
	g.expiry[id] = time.AfterFunc(max(0, at.Sub(g.opt.Now())), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.stopped {
			g.work.Go(func() { do(id) })
		}
	})
}

// remind tells the feed, on which platforms bring it to people, that a call
// still waits. The change that this makes sets the timer of its expiry; where
// none is made that is set here.
func (g *Gateway) remind(id string) {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	g.lookAgain()
	_, err := g.opt.Store.Remind(ctx, id)
	if err == nil || ctx.Err() != nil {
		return
	}
	if !errors.Is(err, store.ErrDecided) {
		g.opt.Log.Error("reminding of a call", "call", id, "err", err)
	}
	if c, err := g.opt.Store.GetCall(ctx, id); err == nil && c.Waiting() && !c.Expires.IsZero() {
		g.at(id, c.Expires, g.expire)
	}
}

func (g *Gateway) expire(id string) {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	_, err := g.opt.Store.Decide(ctx, store.System, id, store.Decision{Verb: store.Expire, By: store.System.User, Name: store.System.Name, At: g.opt.Now(), Reason: "nobody answered in time"})
	if err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) && ctx.Err() == nil {
		g.opt.Log.Error("expiring a call", "call", id, "err", err)
	}
}

func (g *Gateway) stopTimer(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.expiry[id]; t != nil {
		t.Stop()
		delete(g.expiry, id)
	}
}

func (g *Gateway) stopTimers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for id, t := range g.expiry {
		t.Stop()
		delete(g.expiry, id)
	}
}
