package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nize/store"
)

// errDraining ends the wait of a caller when the daemon stops.
var errDraining = &store.CallError{Code: store.CodeUnavailable, Message: "nized is stopping; ask again when it is back", Retryable: true}

// tellEvery is how often a waiting client hears that it waits.
const tellEvery = 10 * time.Second

// Execute is Call for a caller that stays on the line: it returns
// the call once it is final. A call that needs a yes waits; the same call by
// the same token joins one that waits already. When the last caller leaves, or
// its limit passes, a call that still waits is cancelled.
func (g *Gateway) Execute(ctx context.Context, by store.Caller, req store.Request, progress store.ProgressFunc) (*store.Call, error) {
	return g.execute(ctx, by, req, &line{progress: progress})
}

// line is what a caller who stays hears; both parts may be nil.
type line struct {
	progress store.ProgressFunc
	waits    func() // the call has to wait for a person
}

func (g *Gateway) execute(ctx context.Context, by store.Caller, req store.Request, l *line) (*store.Call, error) {
	c, err := g.begin(ctx, by, req, l)
	if err != nil || c.State.Final() {
		return c, err
	}
	if l.waits != nil {
		l.waits()
	}
	return g.attend(ctx, by, c.ID, l.progress)
}

// begin makes the call, or joins one that waits already. Of a call that is not
// final the caller counts as on the line, and has to attend it or to hang up.
func (g *Gateway) begin(ctx context.Context, by store.Caller, req store.Request, l *line) (*store.Call, error) {
	if c, err := g.join(ctx, by, wanted{req.Tool, argsOf(req)}, l); c != nil || err != nil {
		return c, err
	}
	return g.call(ctx, by, req, l)
}

// wanted is a tool and what it is called with.
type wanted struct {
	tool string
	args json.RawMessage
}

// join finds the same call of the same token that waits already, whether or not
// anybody is on the line for it: nobody is after a restart, and while a client
// asks its person. It is nil if there is none. Nobody joins one that could
// not run any more, nor one that is ending since its last caller leaves.
func (g *Gateway) join(ctx context.Context, by store.Caller, want wanted, l *line) (*store.Call, error) {
	if by.Token == "" {
		return nil, nil
	}
	waiting, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Waiting: true, User: by.User, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("reading waiting calls: %w", err)
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	canonical, err := store.Canonical(want.args)
	if err != nil {
		return nil, nil // call says what is wrong with them
	}
	for _, c := range waiting {
		if c.Token != by.Token || c.ToolID() != want.tool || !bytes.Equal(c.Args, canonical) || l != nil && !g.pickUp(c.ID) {
			continue
		}
		same, err := g.opt.Store.GetCall(ctx, c.ID) // as it is now that somebody is on the line
		ended := same.State == store.Cancelled && same.Successor == ""
		void := err == nil && (ended || same.Waiting() && g.stale(ctx, same) != "")
		if l != nil && (err != nil || void || same.State.Final()) {
			g.hangUp(c.ID, false)
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

// pickUp counts a caller in for a call, unless its last one is just leaving.
func (g *Gateway) pickUp(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving[id] {
		return false
	}
	g.callers[id]++
	return true
}

// attend waits for a call that the caller is on the line for, and tells the
// client so. It hangs up.
func (g *Gateway) attend(ctx context.Context, by store.Caller, id string, progress store.ProgressFunc) (*store.Call, error) {
	told := make(chan struct{}, 1) // one place, so that wake never blocks
	g.mu.Lock()
	g.waiters[id] = append(g.waiters[id], told)
	if progress != nil {
		g.hears[id] = progress
	}
	g.mu.Unlock()
	c, err := g.waitTelling(ctx, id, told, progress)
	g.forget(id, told)
	last := g.hangUp(id, err != nil)
	if err == nil && c.State == store.Cancelled && c.Successor != "" && g.pickUp(c.Successor) {
		return g.attend(ctx, by, c.Successor, progress) // edited: the result is that of the last of the chain
	}
	if err == nil || !last {
		return c, err
	}
	// The caller left or its limit passed: nobody would see the result.
	defer g.hasLeft(id)
	reason := "its caller left"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = "nobody approved it within the caller's limit (mcp.wait)"
	case errors.Is(err, errDraining):
		reason = "nized is stopping"
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c2, cancelErr := g.opt.Store.Decide(end, by, id, store.Decision{Verb: store.Cancel, By: by.User, Name: by.Name, Surface: by.Surface, At: g.opt.Now(), Reason: reason})
	if cancelErr != nil && !errors.Is(cancelErr, store.ErrDecided) && !errors.Is(cancelErr, store.ErrExpired) {
		return nil, fmt.Errorf("cancelling call %s: %w", id, cancelErr)
	}
	if c2.State.Final() {
		return &c2, nil
	}
	return nil, err
}

// hangUp counts a caller out and says whether nobody is left on the line. Where
// the last one leaves before the end nobody joins the call any more: who hung up
// cancels it, and then says so to hasLeft.
func (g *Gateway) hangUp(id string, leaves bool) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.callers[id]--; g.callers[id] > 0 {
		return false
	}
	delete(g.callers, id)
	delete(g.hears, id)
	if leaves {
		g.leaving[id] = true
	}
	return true
}

// hasLeft ends what hangUp began where the last caller left.
func (g *Gateway) hasLeft(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leaving, id)
}

func (g *Gateway) waitTelling(ctx context.Context, id string, told chan struct{}, progress store.ProgressFunc) (*store.Call, error) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for n := 1.0; ; n++ {
		c, err := g.opt.Store.GetCall(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", id, err)
		}
		if c.State.Final() {
			return &c, nil
		}
		if progress != nil && c.Waiting() {
			progress(n, 0, fmt.Sprintf("waiting for a yes to %s: nizectl approvals show %s", c.ToolID(), c.ID))
		}
		draining := g.draining
		if !c.Waiting() {
			draining = nil // it runs, or will in a moment
		}
		select {
		case <-told:
		case <-tick.C:
		case <-draining:
			return nil, errDraining
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
