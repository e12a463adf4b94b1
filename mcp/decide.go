package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/store"
)

// Decide takes a person's answer to a waiting call. A yes leaves the call
// pending and approved: Run executes it. The first answer stands; later ones
// get store.ErrDecided together with the call as it is. An edit ends the old
// call and makes a new one, which the editor's own yes decides if they may.
func (g *Gateway) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error) {
	c, err := g.opt.Store.GetCall(ctx, id)
	if err != nil || !sees(by, c) && !may(by, c, d.Verb) {
		return nil, fmt.Errorf("call %s: %w", id, notFound(err))
	}
	if !may(by, c, d.Verb) && c.State.Final() {
		g.pressRefused(by, c, d, "too late")
		return &c, fmt.Errorf("call %s is %s: %w", id, wordOf(c), store.ErrDecided)
	}
	if !may(by, c, d.Verb) {
		g.pressRefused(by, c, d, "may not decide it")
		return &c, fmt.Errorf("call %s: %w: %s decides it", id, store.ErrRefused, whoDecides(c))
	}
	if d.Digest != "" && d.Digest != c.Digest {
		g.pressRefused(by, c, d, "another digest")
		return &c, fmt.Errorf("call %s: %w: what you saw is not what would run; look at it again", id, store.ErrConflict)
	}
	d.By, d.Name, d.Surface, d.At = by.User, by.Name, by.Surface, g.opt.Now()
	if d.Verb == store.Edit {
		return g.edit(ctx, by, c, d)
	}
	if d.Verb == store.Approve {
		if why := g.stale(ctx, c); why != "" {
			d = store.Decision{Verb: store.Deny, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: d.At, Reason: why}
			by = store.System
		}
	}
	settled, err := g.opt.Store.Decide(ctx, by, id, d)
	if err != nil {
		if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
			g.pressRefused(by, settled, d, "too late")
			return &settled, fmt.Errorf("call %s is %s: %w", id, wordOf(settled), err)
		}
		return nil, fmt.Errorf("deciding call %s: %w", id, err)
	}
	if by.User == store.System.User && d.Verb == store.Deny {
		return &settled, fmt.Errorf("call %s: %w: %s", id, store.ErrRefused, d.Reason)
	}
	if d.Always {
		if err := g.grant(ctx, by, settled, d.Verb); err != nil {
			return &settled, err
		}
	}
	return &settled, nil
}

func notFound(err error) error {
	if err == nil {
		return store.ErrNotFound
	}
	return err
}

// wordOf is the state of a call as its decider reads it.
func wordOf(c store.Call) string {
	if c.State == store.Pending && !c.Approved.IsZero() {
		return "approved"
	}
	return c.State.Word()
}

func whoDecides(c store.Call) string {
	if c.Policy == store.ByAdmins {
		return "an admin"
	}
	return "its requester " + c.ByName
}

// pressRefused leaves a press that changed nothing in the audit.
func (g *Gateway) pressRefused(by store.Caller, c store.Call, d store.Decision, why string) {
	g.opt.Store.AddEvent(by, store.Event{Kind: "call.press_refused", Subject: c.ID, Tool: c.ToolID(), Outcome: c.State,
		Data: mustJSON(map[string]string{"verb": string(d.Verb), "why": why})})
}

// stale says why an approved call may no longer run: at the press its
// requester's access and the tool's pin count anew.
func (g *Gateway) stale(ctx context.Context, c store.Call) string {
	requester, err := g.requester(ctx, c)
	if err != nil {
		return "its requester is gone"
	}
	e, err := g.find(ctx, requester, store.Scope{Agent: c.Agent}, c.ToolID())
	switch {
	case err != nil:
		return "its requester may no longer use " + c.ToolID()
	case e.Accepted != c.Pin:
		return "the definition of " + c.ToolID() + " changed since it was proposed"
	case c.ComputeDigest() != c.Digest:
		return "the stored call is not what was shown"
	}
	return ""
}

// requester is the caller that a stored call runs for.
func (g *Gateway) requester(ctx context.Context, c store.Call) (store.Caller, error) {
	u, err := g.opt.Store.GetUser(ctx, c.By)
	if err != nil {
		return store.Caller{}, fmt.Errorf("reading the requester of call %s: %w", c.ID, err)
	}
	if u.State != store.Active {
		return store.Caller{}, fmt.Errorf("the requester of call %s is disabled: %w", c.ID, store.ErrRefused)
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: c.Surface, Token: c.Token}, nil
}

// edit replaces a waiting call by one with other arguments: the old one is
// cancelled and the new one made in one transaction (SPEC 11).
func (g *Gateway) edit(ctx context.Context, by store.Caller, old store.Call, d store.Decision) (*store.Call, error) {
	if !old.Waiting() {
		return &old, fmt.Errorf("call %s is %s: %w", old.ID, wordOf(old), store.ErrDecided)
	}
	requester, err := g.requester(ctx, old)
	if err != nil {
		return nil, err
	}
	inv, tool, err := g.plan(ctx, requester, store.Request{Tool: old.ToolID(), Args: d.Args, Thread: old.Thread, Agent: old.Agent, Why: old.Why, Replaces: old.ID})
	if err != nil {
		return nil, err
	}
	if err := g.before(ctx, inv); err != nil {
		return nil, err
	}
	if err := g.settleArgs(inv, tool); err != nil {
		return nil, err
	}
	inv.Call.Digest = inv.Call.ComputeDigest()
	c, err := g.wait(ctx, requester, inv, verdict{ask: "edited by " + by.Name, warnings: old.Warnings})
	if err != nil {
		return nil, err
	}
	if c.State != store.Pending || !may(by, *c, store.Approve) {
		return c, nil
	}
	return g.Decide(ctx, by, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest})
}

// grant makes "always" of a decision: for this person, this tool, this exact
// definition.
func (g *Gateway) grant(ctx context.Context, by store.Caller, c store.Call, verb store.Verb) error {
	gr := store.Grant{ID: store.NewID(g.opt.Now()), User: by.User, Tool: c.ToolID(), Pin: c.Pin, Deny: verb != store.Approve, Created: g.opt.Now()}
	if err := g.opt.Store.PutGrant(ctx, by, gr); err != nil {
		return fmt.Errorf("the decision stands, but \"always\" could not be stored: %w", err)
	}
	return nil
}

// Card is what a person decides on, made from the stored call alone.
func (g *Gateway) Card(ctx context.Context, id string) (store.Card, error) {
	c, err := g.opt.Store.GetCall(ctx, id)
	if err != nil {
		return store.Card{}, fmt.Errorf("call %s: %w", id, err)
	}
	if err := g.tools.load(ctx); err != nil {
		return store.Card{}, err
	}
	card := store.Card{
		Call: c.ID, Tool: c.ToolID(), Server: c.Server, By: c.ByName, RunsAs: c.RunsAs, Why: c.Why, Args: c.Args,
		Warnings: c.Warnings, Digest: c.Digest, Policy: c.Policy, Expires: c.Expires, State: c.State, Approved: !c.Approved.IsZero(),
	}
	if card.By == "" {
		card.By = c.By
	}
	if e, ok := g.tools.get(c.ToolID()); ok {
		card.Title, card.Description, card.Where = e.Title, e.Description, e.server.Where()
		if e.Accepted != c.Pin || e.Pin != c.Pin {
			card.Warnings = append(card.Warnings, "the tool's definition changed since this was proposed; it will not run")
		}
		grantable, err := g.grantable(ctx, c, e)
		card.Always = err == nil && grantable
	} else {
		card.Warnings = append(card.Warnings, "the tool is gone; it will not run")
	}
	for _, d := range c.Decisions {
		card.DecidedBy = d.Name
	}
	if c.State.Final() {
		card.Outcome = c.Reason
		if c.State == store.Done {
			card.Outcome = clip(firstLine(c.Result.Text()), 200)
		}
	}
	return card, nil
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
			g.start(c.ID)
			continue
		}
		g.expireAt(c.ID, c.Expires)
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
			g.expireAt(c.ID, c.Expires)
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

// expireAt ends the call at its expiry. The store decides by its own clock,
// which never runs backwards; a timer that is early is set again.
func (g *Gateway) expireAt(id string, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.expiry[id]; t != nil {
		t.Stop()
	}
	g.expiry[id] = time.AfterFunc(max(0, at.Sub(g.opt.Now())), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.stopped {
			g.work.Go(func() { g.expire(id) })
		}
	})
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
