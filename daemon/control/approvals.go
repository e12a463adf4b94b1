package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/mcp"
	"nize/store"
)

// Approvals are the calls that wait for a person, and what became of them.
type Approvals struct {
	Calls interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	}
	Gateway *mcp.Gateway
}

// List lists the cards of waiting calls: one's own and those that one may
// approve; of all for admins.
func (a *Approvals) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[store.Card], err error) {
	calls, err := a.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 1000})
	if err != nil {
		return none, fmt.Errorf("listing waiting calls: %w", err)
	}
	cards := make([]store.Card, 0, len(calls))
	for _, c := range calls {
		if !a.Gateway.Policy.Sees(ctx, by, c) {
			continue
		}
		card, err := a.Gateway.Card(ctx, c.ID)
		if err != nil {
			return none, err
		}
		cards = append(cards, card)
	}
	return api.Items(cards), nil
}

// WaitingFor lists the calls that wait for the yes of somebody.
func (a *Approvals) WaitingFor(ctx context.Context, by store.Caller) ([]store.Call, error) {
	calls, err := a.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	return slices.DeleteFunc(calls, func(c store.Call) bool { return !a.Gateway.Policy.MayApprove(ctx, by, c) }), nil
}

// FindWaiting reads a call that waits for the yes of the caller; ErrNotFound for
// any other.
func (a *Approvals) FindWaiting(ctx context.Context, by store.Caller, id string) (store.Call, error) {
	c, err := a.Calls.GetCall(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return c, fmt.Errorf("reading call %s: %w", id, err)
	}
	if err != nil || !a.Gateway.Policy.MayApprove(ctx, by, c) {
		return c, store.Errorf("call %q %w", id, store.ErrNotFound)
	}
	return c, nil
}

// find reads one call if the caller may look at its card.
func (a *Approvals) find(ctx context.Context, by store.Caller, id string) (store.Call, error) {
	c, err := a.Calls.GetCall(ctx, id)
	if err == nil && !a.Gateway.Policy.Sees(ctx, by, c) {
		err = store.ErrNotFound
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	waiting, listErr := a.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, User: by.User})
	if listErr != nil {
		return c, fmt.Errorf("listing waiting calls: %w", listErr)
	}
	ids := make([]string, len(waiting))
	for i, w := range waiting {
		ids[i] = w.ID
	}
	return c, store.Unknown("call", id, ids)
}

// Get shows one card, also of a call that is decided.
func (a *Approvals) Get(ctx context.Context, by store.Caller, req api.CallRequest) (none store.Card, err error) {
	c, err := a.find(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	return a.Gateway.Card(ctx, c.ID)
}

// Decide settles a waiting call.
func (a *Approvals) Decide(ctx context.Context, by store.Caller, req api.DecideCallRequest) (none store.Call, err error) {
	switch req.Verb {
	case store.Approve, store.RunAll, store.Deny, store.Cancel, store.Edit, store.Retry, store.Again:
	default:
		return none, fmt.Errorf("%w verb %q: use approve, run_all, deny, cancel, edit, retry or again", store.ErrInvalid, req.Verb)
	}
	c, err := a.find(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	decided, err := a.Gateway.Decide(ctx, by, c.ID, store.Decision{Verb: req.Verb, Digest: req.Digest, Args: req.Args, Always: req.Always, For: req.For, Pattern: req.Pattern, Until: req.Until, Exact: req.Exact, Reason: store.Keyed(req.Reason)})
	if err != nil {
		return none, err
	}
	return *decided, nil
}

// GetCall shows a call with its result, which is its requester's.
func (a *Approvals) GetCall(ctx context.Context, by store.Caller, req api.CallRequest) (store.Call, error) {
	c, err := a.find(ctx, by, req.ID)
	if err == nil && c.By != by.User {
		c.Result = nil
	}
	return c, err
}
