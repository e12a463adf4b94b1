package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/mcp/policy"
	"nize/store"
)

// editCall replaces a waiting call with one that has other arguments. The old call is
// cancelled and the new one created in one transaction, without votes. The edit counts as
// its editor's own approval if they may approve and the call that would run is exactly what
// they saw and wrote. Otherwise the new call waits on its own card: if the tool or the
// identity that it runs as changed since the card was shown, if a hook changed the
// arguments, or if the arguments cause new warnings.
func (g *Gateway) editCall(ctx context.Context, by store.Caller, old store.Call, d store.Decision) (*store.Call, error) {
	if !old.Waiting() {
		return &old, tooLate(old.ID, old, store.ErrDecided)
	}
	c, err := g.replaceCall(ctx, by, replacement{old, d.Args, store.Textf("edited by %s", by.Name)})
	if err != nil {
		return nil, err
	}
	wrote, err := store.Canonical(argsOf(store.Request{Args: d.Args}))
	if err != nil {
		return c, fmt.Errorf("reading the arguments of call %s: %w", c.ID, err)
	}
	if !unchanged(c, old, wrote) {
		return c, nil
	}
	return g.approveOwn(ctx, by, c)
}

// unchanged reports whether a replacement differs from the old call in nothing but the
// given arguments: the tool and the identity that it runs as are those of the old card, the
// arguments are args, and no warning is new.
func unchanged(c *store.Call, old store.Call, args []byte) bool {
	return c.Pin == old.Pin && c.RunsAs.String() == old.RunsAs.String() && string(c.Args) == string(args) &&
		!slices.ContainsFunc(c.Warnings, func(w store.Text) bool { return !warnsOf(old, w) })
}

// repeatCall repeats a call that failed (Retry) or that expired without an answer (Again),
// with the same arguments. The new call needs approval again. A Retry counts as approval if
// its author may approve and nothing is new to them: the tool's definition is unchanged,
// and no text has arrived since that may have prompted it.
func (g *Gateway) repeatCall(ctx context.Context, by store.Caller, old store.Call, d store.Decision) (*store.Call, error) {
	want := map[store.Verb]store.State{store.Retry: store.Failed, store.Again: store.Expired}[d.Verb]
	switch {
	case old.Ask != nil:
		return &old, store.Mark(store.Errorf("call %s was asked for by a program, which asks again by itself", old.ID), store.ErrRefused)
	case old.State == store.Lost:
		return &old, store.Mark(store.Errorf("the outcome of call %s is unknown; check what it did, then propose it again", old.ID), store.ErrRefused)
	case old.ComputeDigest() != old.Digest:
		return &old, store.Mark(store.Errorf("the arguments of call %s were erased", old.ID), store.ErrRefused)
	case old.State != want || old.Successor != "":
		return &old, store.Mark(store.Errorf("too late, call %s is %s", old.ID, replacedWord(old)), store.ErrDecided)
	}
	why := store.Textf("asked for again by %s", by.Name)
	if d.Verb == store.Retry {
		why = store.Textf("tried again by %s", by.Name)
	}
	c, err := g.replaceCall(ctx, by, replacement{old, old.Args, why})
	if err != nil {
		return nil, err
	}
	if d.Verb == store.Again || !unchanged(c, old, old.Args) {
		return c, nil
	}
	return g.approveOwn(ctx, by, c)
}

func replacedWord(c store.Call) store.Text {
	if c.Successor != "" {
		return store.Textf("%s and was replaced by %s", c.State.Word(), c.Successor)
	}
	return stateWord(c)
}

// replacement describes a call that replaces another one.
type replacement struct {
	old  store.Call
	args []byte
	why  store.Text
}

// replaceCall creates a waiting call that replaces another one, for the same requester with
// their current rights; by is the user who makes the change. If it returns an error, the
// old call is unchanged.
func (g *Gateway) replaceCall(ctx context.Context, by store.Caller, r replacement) (*store.Call, error) {
	old, v := r.old, policy.Verdict{Reason: r.why}
	tainted, err := g.Policy.Tainted(ctx, old.Thread)
	if err != nil {
		return nil, err
	}
	if tainted {
		v.Warnings = append(v.Warnings, policy.TaintWarning)
	}
	requester, err := g.Policy.Requester(ctx, old)
	if err != nil {
		return nil, err
	}
	req := store.Request{
		Tool: old.ToolID(), Args: r.args, Thread: old.Thread, Agent: old.Agent, Why: old.Why, Replaces: old.ID, Step: old.Step, Asked: old.Asked, Ask: askAnew(old.Ask),
		Allowed: g.Policy.Thread(ctx, old.Thread).Servers,
	}
	req.Task = old.Task
	req.ByMeta = old.ByMeta || slices.ContainsFunc(old.Hooks, func(ref store.HookRef) bool { return ref.Meta }) // calls stored by earlier versions have only the hooks' flag
	outer := &Invocation{}
	if req.ByMeta { // the use of execute_tool continues with other arguments
		if outer, err = g.aroundExecute(ctx, requester, &req); err != nil {
			return nil, g.unreplaced(ctx, outer, err)
		}
	}
	inv, tool, err := g.plan(ctx, requester, request{Request: req})
	if err != nil {
		return nil, g.unreplaced(ctx, outer, err)
	}
	inv.Hooks = slices.Clone(outer.Hooks)
	if err := g.hooks.runBefore(ctx, inv); err != nil {
		return nil, g.unreplaced(ctx, inv, err)
	}
	if err := g.applyHookArgs(inv, tool); err != nil {
		return nil, g.unreplaced(ctx, inv, err)
	}
	inv.Call.Digest, inv.Call.Hooks = inv.Call.CanonicalDigest(), inv.Hooks
	inv.By = by                    // the audit names the user who decided, not the requester
	if g.waiters.anybody(old.ID) { // the callers that wait for the old call join this one shortly
		g.waiters.setExpected(inv.Call.ID)
	}
	c, err := g.storeWaiting(ctx, inv, v)
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		return nil, fmt.Errorf("call %s: %w", old.ID, err)
	}
	return c, err
}

// unreplaced returns the error for a call that was not replaced, after the hooks that had
// already run have seen it.
func (g *Gateway) unreplaced(ctx context.Context, inv *Invocation, why error) error {
	if len(inv.Hooks) == 0 || ctx.Err() != nil {
		return why
	}
	return g.unmade(ctx, inv, callError(why))
}

// approveOwn applies the approval implied by creating a call, if its creator may approve
// it.
func (g *Gateway) approveOwn(ctx context.Context, by store.Caller, c *store.Call) (*store.Call, error) {
	if c.State != store.Pending || !g.Policy.May(ctx, by, *c, store.Approve) {
		return c, nil
	}
	return g.decideAndAudit(ctx, by, *c, store.Decision{Verb: store.Approve, Digest: c.Digest})
}

// callsOfStep returns the other waiting calls of c's step. It omits replacements, because
// they did not exist when the step's cards were shown.
func (g *Gateway) callsOfStep(ctx context.Context, c store.Call) ([]store.Call, error) {
	return othersOfStep(c, func() ([]store.Call, error) { return g.waitingIn(ctx, c.Thread) })
}

// waitingIn returns the waiting calls of a conversation.
func (g *Gateway) waitingIn(ctx context.Context, thread string) ([]store.Call, error) {
	return g.calls.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: thread, Limit: noLimit})
}

// othersOfStep is callsOfStep with the calls that wait in the conversation.
func othersOfStep(c store.Call, read func() ([]store.Call, error)) ([]store.Call, error) {
	if c.Step == "" || c.Replaces != "" {
		return nil, nil
	}
	waiting, err := read()
	if err != nil {
		return nil, fmt.Errorf("reading the calls of a step: %w", err)
	}
	var out []store.Call
	for _, o := range waiting {
		if o.Step == c.Step && o.ID != c.ID && o.Replaces == "" {
			out = append(out, o)
		}
	}
	return out, nil
}

// approveStep approves a call and the other calls of its step that this person may approve.
// Each is a separate decision; calls that were decided in the meantime are left unchanged.
func (g *Gateway) approveStep(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	others, err := g.callsOfStep(ctx, c)
	if err != nil {
		return nil, err
	}
	yes := store.Decision{Verb: store.Approve, Reason: d.Reason}
	first, err := g.decideAndAudit(ctx, by, c, yes)
	for _, o := range others {
		if d.Calls != nil && !slices.Contains(d.Calls, o.ID) || !g.Policy.May(ctx, by, o, store.Approve) {
			continue
		}
		if _, oerr := g.decideAndAudit(ctx, by, o, yes); oerr != nil && !errors.Is(oerr, store.ErrDecided) && !errors.Is(oerr, store.ErrExpired) {
			err = errors.Join(err, oerr)
		}
	}
	return first, err
}
