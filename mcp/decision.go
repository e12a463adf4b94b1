package mcp

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
)

// Decide applies a person's decision to a waiting call. When as many people as the policy
// requires have approved it, the call is pending and approved, and Run executes it. The
// first decision wins; later ones get store.ErrDecided together with the call's current
// state. An edit ends the old call and creates a new one, which the editor's own approval
// decides if they may approve it. Retry and Again repeat a call that failed or expired.
func (g *Gateway) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error) {
	c, err := g.calls.GetCall(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", id, err)
	}
	knows := g.Policy.Sees(ctx, by, c) || g.Policy.May(ctx, by, c, store.Deny) // users who may deny it know that it waits
	if !knows && !g.Policy.May(ctx, by, c, d.Verb) {                           // return ErrNotFound, but audit the attempt
		g.auditRefusedPress(by, c, d, "may not see it")
		return nil, store.Errorf("call %q %w", id, store.ErrNotFound)
	}
	if !g.Policy.May(ctx, by, c, d.Verb) && c.State.Final() {
		g.auditRefusedPress(by, c, d, "too late")
		return &c, tooLate(id, c, store.ErrDecided)
	}
	if !g.Policy.May(ctx, by, c, d.Verb) {
		g.auditRefusedPress(by, c, d, "may not decide it")
		return &c, store.Mark(store.Errorf("only %s can decide this", g.Policy.WhoAlone(ctx, c)), store.ErrRefused)
	}
	return g.decideAndAudit(ctx, by, c, d)
}

// DecidesAlone reports whether the caller's approval alone is enough for a call, with the
// current rights.
func (g *Gateway) DecidesAlone(ctx context.Context, by store.Caller, c store.Call) bool {
	a := c.Policy.Approvers()
	return a.Need <= 1 && !(a.NotRequester && by.User == c.By) && g.Policy.May(ctx, by, c, store.Approve)
}

// decideAndAudit applies the decision of a user who may make it, and audits one that
// changed nothing.
func (g *Gateway) decideAndAudit(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	settled, err := g.applyDecision(ctx, by, c, d)
	why := ""
	switch {
	case err == nil:
	case errors.Is(err, store.ErrConflict):
		why = "another digest"
	case d.Verb == store.RunAll: // its parts are audited as separate decisions
	case errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrExpired):
		why = "too late"
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		why = store.Clip(firstLine(err.Error()), 200)
	}
	if settled != nil && settled.ID == c.ID {
		c = *settled
	}
	if why != "" {
		g.auditRefusedPress(by, c, d, why)
	}
	return settled, err
}

// applyDecision applies the decision's verb.
func (g *Gateway) applyDecision(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	if d.Digest != "" && d.Digest != c.Digest {
		return &c, store.Mark(store.Errorf("call %s changed since you opened it; review it again", c.ID), store.ErrConflict)
	}
	d.By, d.Name, d.Surface, d.At, d.Voids, d.Standing = by.User, by.Name, by.Surface, g.now(), nil, nil
	if c.Question != nil {
		return g.answerQuestion(ctx, by, c, d)
	}
	switch d.Verb {
	case store.Edit:
		return g.editCall(ctx, by, c, d)
	case store.Retry, store.Again:
		return g.repeatCall(ctx, by, c, d)
	case store.RunAll:
		return g.approveStep(ctx, by, c, d)
	case store.Approve, store.Deny:
		if d.Always {
			gr, err := g.Policy.GrantFor(ctx, by, c, d)
			if err != nil {
				return &c, err
			}
			d.Standing = &gr
		}
	}
	if d.Verb == store.Approve && c.Waiting() {
		why, _, err := g.executor.stale(ctx, c)
		switch {
		case err != nil:
			return &c, err
		case why != store.Text{}:
			d = store.Decision{Verb: store.Deny, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: d.At, Reason: why}
			by = store.System
		default:
			if err := g.checkPress(ctx, by, c); err != nil {
				return &c, err
			}
			d.Voids = g.Policy.VoidedVotes(ctx, c)
		}
	}
	settled, err := g.calls.Decide(ctx, by, c.ID, d)
	if err != nil {
		if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
			return &settled, tooLate(c.ID, settled, err)
		}
		return nil, fmt.Errorf("deciding call %s: %w", c.ID, err)
	}
	if by.User == store.System.User && d.Verb == store.Deny {
		return &settled, store.Mark(store.Errorf("call %s can't run any more: %s", c.ID, d.Reason), store.ErrRefused)
	}
	return &settled, nil
}

// checkPress returns an error if this person can't approve the call now: a hook denies them
// its tool, or its requester's budget is used up. The call keeps waiting.
func (g *Gateway) checkPress(ctx context.Context, by store.Caller, c store.Call) error {
	if by.User != c.By {
		if denied := g.hooks.checkAccess(ctx, by, c); denied != nil {
			return store.Mark(store.Errorf("you can't approve this: %s", denied.Message), store.ErrRefused)
		}
	}
	requester, err := g.Policy.Requester(ctx, c)
	if err != nil {
		return err
	}
	return g.budgets.CheckPress(ctx, by, requester, &c)
}

// tooLate returns the error for a decision on a call that has ended.
func tooLate(id string, c store.Call, err error) error {
	switch {
	case errors.Is(err, store.ErrExpired):
		return store.Mark(store.Errorf("call %s has expired", id), store.ErrExpired)
	case c.Waiting():
		return store.Mark(store.Errorf("you already decided; call %s is %s", id, stateWord(c)), store.ErrDecided)
	}
	return store.Mark(store.Errorf("too late, call %s is %s", id, decidedWord(c)), store.ErrDecided)
}

// decidedWord returns the state of a call and the name of who decided it.
func decidedWord(c store.Call) store.Text {
	by, state := decidedBy(c), stateWord(c)
	switch {
	case by == "":
		return state
	case endingOf(c) == store.Declined:
		return store.Textf("declined by %s", by)
	case endingOf(c) == store.Withdrawn:
		return store.Textf("withdrawn by %s", by)
	case !c.Approved.IsZero():
		return store.Textf("%s (approved by %s)", state, by)
	}
	return store.Textf("%s (decided by %s)", state, by)
}

// stateWord returns the state of a call as the approver reads it.
func stateWord(c store.Call) store.Text {
	switch {
	case c.State == store.Pending && !c.Approved.IsZero():
		return store.Textf("approved")
	case c.Waiting() && len(c.Yes()) > 0:
		return store.Textf("waiting, %d of %d have approved", len(c.Yes()), c.Policy.Approvers().Need)
	}
	return c.State.Word()
}

// auditRefusedPress audits a decision that changed nothing.
func (g *Gateway) auditRefusedPress(by store.Caller, c store.Call, d store.Decision, why string) {
	g.calls.AddEvent(by, store.Event{Kind: "call.press_refused", Subject: c.ID, Tool: c.ToolID(), Outcome: c.State,
		Data: mustJSON(map[string]string{"verb": string(d.Verb), "why": why})})
}
