package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
)

// Decide takes a person's answer to a waiting call. A yes leaves the call
// pending and approved, once as many people as its policy wants have said it:
// Run executes it. The first answer stands; later ones get store.ErrDecided
// together with the call as it is. An edit ends the old call and makes a new
// one, which the editor's own yes decides if they may; Retry and Again make one
// anew that failed or that nobody answered.
func (g *Gateway) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error) {
	c, err := g.opt.Store.GetCall(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", id, err)
	}
	if !g.Sees(ctx, by, c) && !g.may(ctx, by, c, d.Verb) { // told as if there were none, but noted
		g.pressRefused(by, c, d, "may not see it")
		return nil, fmt.Errorf("call %s: %w", id, store.ErrNotFound)
	}
	if !g.may(ctx, by, c, d.Verb) && c.State.Final() {
		g.pressRefused(by, c, d, "too late")
		return &c, fmt.Errorf("call %s is %s: %w", id, wordOf(c), store.ErrDecided)
	}
	if !g.may(ctx, by, c, d.Verb) {
		g.pressRefused(by, c, d, "may not decide it")
		return &c, fmt.Errorf("call %s: %w: %s decides it", id, store.ErrRefused, g.whoDecides(ctx, c))
	}
	return g.press(ctx, by, c, d)
}

// press is a decision of somebody who may make it. One that changed nothing is
// left in the audit.
func (g *Gateway) press(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	settled, err := g.settle(ctx, by, c, d)
	why := ""
	switch {
	case err == nil:
	case errors.Is(err, store.ErrConflict):
		why = "another digest"
	case d.Verb == store.RunAll: // its parts are presses of their own
	case errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrExpired):
		why = "too late"
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		why = store.Clip(firstLine(err.Error()), 200)
	}
	if settled != nil && settled.ID == c.ID {
		c = *settled
	}
	if why != "" {
		g.pressRefused(by, c, d, why)
	}
	return settled, err
}

func (g *Gateway) settle(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	if d.Digest != "" && d.Digest != c.Digest {
		return &c, fmt.Errorf("call %s: %w: what you saw is not what would run; look at it again", c.ID, store.ErrConflict)
	}
	d.By, d.Name, d.Surface, d.At, d.Voids, d.Standing = by.User, by.Name, by.Surface, g.opt.Now(), nil, nil
	switch d.Verb {
	case store.Edit:
		return g.edit(ctx, by, c, d)
	case store.Retry, store.Again:
		return g.redo(ctx, by, c, d)
	case store.RunAll:
		return g.runAll(ctx, by, c, d)
	case store.Approve, store.Deny:
		if d.Always {
			gr, err := g.grantFor(ctx, by, c, d)
			if err != nil {
				return &c, err
			}
			d.Standing = &gr
		}
	}
	if d.Verb == store.Approve && c.Waiting() {
		if why := g.stale(ctx, c); why != "" {
			d = store.Decision{Verb: store.Deny, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: d.At, Reason: why}
			by = store.System
		} else {
			d.Voids = g.voided(ctx, c)
		}
	}
	settled, err := g.opt.Store.Decide(ctx, by, c.ID, d)
	if err != nil {
		if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
			return &settled, fmt.Errorf("call %s is %s: %w", c.ID, wordOf(settled), err)
		}
		return nil, fmt.Errorf("deciding call %s: %w", c.ID, err)
	}
	if by.User == store.System.User && d.Verb == store.Deny {
		return &settled, fmt.Errorf("call %s: %w: %s", c.ID, store.ErrRefused, d.Reason)
	}
	return &settled, nil
}

// voided lists who said yes to the call earlier and may not any more: their
// yes does not count towards those that are needed.
func (g *Gateway) voided(ctx context.Context, c store.Call) []string {
	var gone []string
	for _, id := range c.Yes() {
		u, err := g.opt.Store.GetUser(ctx, id)
		if err != nil || !g.approves(ctx, u, c) {
			gone = append(gone, id)
		}
	}
	return gone
}

// wordOf is the state of a call as its decider reads it.
func wordOf(c store.Call) string {
	switch {
	case c.State == store.Pending && !c.Approved.IsZero():
		return "approved"
	case c.Waiting() && len(c.Yes()) > 0:
		return fmt.Sprintf("waiting, %d of %d said yes", len(c.Yes()), c.Policy.Approvers().Need)
	}
	return c.State.Word()
}

// pressRefused leaves a press that changed nothing in the audit.
func (g *Gateway) pressRefused(by store.Caller, c store.Call, d store.Decision, why string) {
	g.opt.Store.AddEvent(by, store.Event{Kind: "call.press_refused", Subject: c.ID, Tool: c.ToolID(), Outcome: c.State,
		Data: mustJSON(map[string]string{"verb": string(d.Verb), "why": why})})
}

// stale says why an approved call may no longer run: at the press its
// requester's access, the tool's pin, as whom it runs and who approves it count
// anew.
func (g *Gateway) stale(ctx context.Context, c store.Call) string {
	if c.ComputeDigest() != c.Digest {
		return "the stored call is not what was shown"
	}
	requester, err := g.requester(ctx, c)
	if err != nil {
		return "its requester is gone, or their token is"
	}
	v, err := g.view(ctx, requester, g.scopeOf(ctx, c))
	if err != nil {
		return "its requester may no longer use " + c.ToolID()
	}
	e, err := g.findIn(v, c.ToolID())
	switch {
	case err != nil:
		return "its requester may no longer use " + c.ToolID()
	case e.Accepted != c.Pin:
		return "the definition of " + c.ToolID() + " changed since it was proposed"
	}
	as, err := g.credentials(ctx, requester, e)
	if err != nil || as.words != c.RunsAs {
		return "as whom it runs changed since it was proposed"
	}
	policy, err := g.reached(ctx, g.policy(e, as.shared, v.room), c.By)
	if err != nil || g.renamed(ctx, policy) != g.renamed(ctx, c.Policy) {
		return "who approves it changed since it was proposed"
	}
	return ""
}

// scopeOf is what narrowed the tools where the call was proposed.
func (g *Gateway) scopeOf(ctx context.Context, c store.Call) store.Scope {
	return store.Scope{Agent: c.Agent, Thread: c.Thread, Servers: g.thread(ctx, c.Thread).Servers}
}

// requester is the caller that a stored call runs for, as they are now.
func (g *Gateway) requester(ctx context.Context, c store.Call) (store.Caller, error) {
	u, err := g.opt.Store.GetUser(ctx, c.By)
	if err != nil {
		return store.Caller{}, fmt.Errorf("reading the requester of call %s: %w", c.ID, err)
	}
	if u.State != store.Active {
		return store.Caller{}, fmt.Errorf("the requester of call %s is disabled: %w", c.ID, store.ErrRefused)
	}
	by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: c.Surface, Token: c.Token}
	if c.Token == "" {
		return by, nil
	}
	tokens, err := g.opt.Store.ListTokens(ctx, c.By)
	if err != nil {
		return by, fmt.Errorf("reading the token of call %s: %w", c.ID, err)
	}
	i := slices.IndexFunc(tokens, func(t store.Token) bool { return t.ID == c.Token })
	if i < 0 || tokens[i].State(g.opt.Now()) != "active" {
		return by, fmt.Errorf("the token of call %s is no longer valid: %w", c.ID, store.ErrRefused)
	}
	by.Scopes = tokens[i].Scopes
	return by, nil
}

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
