package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
