package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp"
	"nize/store"
)

// Approvals implements the operations on pending and decided calls.
//
// The contents of a call (arguments, words, outcome) are visible to its requester and to
// those who may approve it. At the control socket an admin also sees that other people's
// calls are pending, and may deny them. To read one they must give a reason, which is
// recorded in the audit trail before the response is sent.
type Approvals struct {
	Calls interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
		ListWaiting(ctx context.Context) ([]store.Call, error)
		GetWaiting(ctx context.Context, ids []string) ([]store.Call, error)
	}
	Trail   people.Trail
	Gateway *mcp.Gateway
}

// Mount registers the operations.
func (a *Approvals) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListApprovals, a.List)
	mux.Handle(m, api.GetApproval, a.Get)
	mux.Handle(m, api.DecideCall, a.Decide)
	mux.Handle(m, api.GetCall, a.GetCall)
}

// oversees reports whether the caller may see that other people's calls exist, and read
// them if they give a reason.
func oversees(by store.Caller) bool { return by.IsAdmin() && by.Surface == store.OnCLI }

// withheldCard returns a card without the contents of its call.
func withheldCard(c store.Card) store.Card {
	return store.Card{
		Withheld: true, Call: c.Call, Tool: c.Tool, Title: c.Title, Description: c.Description, Server: c.Server, Where: c.Where, By: c.By,
		RunsAs: c.RunsAs, Digest: c.Digest, Policy: c.Policy, CardVotes: c.CardVotes, CardReason: c.CardReason, Private: c.Private,
		CardOrigin: store.CardOrigin{ID: c.ID, Token: c.Token, View: c.View, Gone: c.Gone},
		Edited:     c.Edited, Effect: c.Effect, Ended: c.Ended, Took: c.Took,
		Successor: c.Successor, Expires: c.Expires, State: c.State, Approved: c.Approved, DecidedBy: c.DecidedBy, Settled: c.Settled,
	}
}

// withheldCall returns a call without its contents.
func withheldCall(c store.Call) store.Call {
	c.Args, c.Why, c.Warnings, c.Reason, c.Result = nil, "", nil, store.Text{}, nil
	c.Decisions = slices.Clone(c.Decisions)
	for i := range c.Decisions {
		c.Decisions[i].Reason, c.Decisions[i].Args, c.Decisions[i].Pattern = store.Text{}, nil, nil
	}
	return c
}

// List returns the cards of the pending calls that the caller made or may approve. An admin
// at the control socket also gets those of everyone else, withheld.
func (a *Approvals) List(ctx context.Context, by store.Caller, _ api.Empty) (api.List[store.Card], error) {
	return a.list(ctx, by, func(store.Call) bool { return true })
}

// ListThread is List for one conversation.
func (a *Approvals) ListThread(ctx context.Context, by store.Caller, thread string) (api.List[store.Card], error) {
	return a.list(ctx, by, func(c store.Call) bool { return c.Thread == thread })
}

func (a *Approvals) list(ctx context.Context, by store.Caller, wanted func(store.Call) bool) (none api.List[store.Card], err error) {
	cards, _, err := a.cards(ctx, by, wanted)
	return api.Items(cards), err
}

// Cards is List with the call of each card, in the same order.
func (a *Approvals) Cards(ctx context.Context, by store.Caller) ([]store.Card, []store.Call, error) {
	return a.cards(ctx, by, func(store.Call) bool { return true })
}

func (a *Approvals) cards(ctx context.Context, by store.Caller, wanted func(store.Call) bool) ([]store.Card, []store.Call, error) {
	waiting, err := a.Calls.ListWaiting(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	presser := a.Gateway.Policy.Presser(ctx, by)
	var ids []string
	seen := map[string]bool{}
	for _, c := range waiting {
		if !wanted(c) {
			continue
		}
		sees := presser.Sees(ctx, c)
		if sees || c.Question == nil && oversees(by) { // only the requester answers a question
			ids, seen[c.ID] = append(ids, c.ID), sees
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	calls, err := a.Calls.GetWaiting(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	cards, err := a.Gateway.Cards(ctx, calls)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range calls {
		if !seen[c.ID] {
			cards[i] = withheldCard(cards[i])
		}
	}
	return cards, calls, nil
}

// WaitingFor returns the pending calls that the caller may approve, without arguments.
func (a *Approvals) WaitingFor(ctx context.Context, by store.Caller) ([]store.Call, error) {
	mine, _, err := a.Waiting(ctx, by)
	return mine, err
}

// Waiting returns the pending calls that the caller may approve, and all pending calls that
// they may read, both without arguments. It doesn't decode the arguments, since pages call
// it whenever a pending call changes.
func (a *Approvals) Waiting(ctx context.Context, by store.Caller) (mine, seen []store.Call, err error) {
	calls, err := a.Calls.ListWaiting(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	presser := a.Gateway.Policy.Presser(ctx, by)
	for _, c := range calls {
		may := presser.MayApprove(ctx, c)
		if may {
			mine = append(mine, c)
		}
		if may || presser.Sees(ctx, c) {
			seen = append(seen, c)
		}
	}
	return mine, seen, nil
}

// FindWaiting returns a pending call that the caller may approve, and ErrNotFound for any
// other call.
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

// find returns one call if the caller may see that it exists. sees reports whether they may
// read it too; an admin who doesn't take part must give a reason for that.
func (a *Approvals) find(ctx context.Context, by store.Caller, id, reason string) (c store.Call, sees bool, err error) {
	c, err = a.Calls.GetCall(ctx, id)
	if err == nil {
		switch sees = a.Gateway.Policy.Sees(ctx, by, c); {
		case sees:
		case !oversees(by), c.Question != nil:
			err = store.ErrNotFound
		case reason != "":
			return c, true, people.NoteReading(ctx, a.Trail, by, "call.read", id, reason)
		}
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, sees, err
	}
	waiting, listErr := a.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, User: by.User})
	if listErr != nil {
		return c, false, fmt.Errorf("listing waiting calls: %w", listErr)
	}
	ids := make([]string, len(waiting))
	for i, w := range waiting {
		ids[i] = w.ID
	}
	return c, false, store.Unknown("call", id, ids)
}

// Get returns one card, including that of a decided call. If an admin doesn't take part and
// gives no reason, the card is withheld.
func (a *Approvals) Get(ctx context.Context, by store.Caller, req api.CallRequest) (none store.Card, err error) {
	c, sees, err := a.find(ctx, by, req.ID, req.Reason)
	if err != nil {
		return none, err
	}
	card, err := a.Gateway.Card(ctx, c.ID)
	if err == nil && !sees {
		card = withheldCard(card)
	}
	return card, err
}

// Decide decides on a pending call.
func (a *Approvals) Decide(ctx context.Context, by store.Caller, req api.DecideCallRequest) (none store.Call, err error) {
	switch req.Verb {
	case store.Approve, store.RunAll, store.Deny, store.Cancel, store.Edit, store.Retry, store.Again:
	default:
		return none, fmt.Errorf("%w verb %q: use approve, run_all, deny, cancel, edit, retry or again", store.ErrInvalid, req.Verb)
	}
	c, _, err := a.find(ctx, by, req.ID, "")
	if err != nil {
		return none, err
	}
	decided, err := a.Gateway.Decide(ctx, by, c.ID, store.Decision{Verb: req.Verb, Digest: req.Digest, Args: req.Args, Always: req.Always, For: req.For, Pattern: req.Pattern, Until: req.Until, Exact: req.Exact, Line: req.Line, Here: req.Here, Reason: store.Keyed(req.Reason)})
	if err != nil {
		return none, err
	}
	if !a.Gateway.Policy.Sees(ctx, by, *decided) {
		return withheldCall(*decided), nil
	}
	return *decided, nil
}

// GetCall returns a call with its result, which belongs to its requester. An admin who
// doesn't take part must give a reason.
func (a *Approvals) GetCall(ctx context.Context, by store.Caller, req api.CallRequest) (none store.Call, err error) {
	c, sees, err := a.find(ctx, by, req.ID, req.Reason)
	switch {
	case err != nil:
		return none, err
	case !sees:
		return none, fmt.Errorf("%w request: call %s is another person's; give a reason for reading it, which is kept in the audit", store.ErrInvalid, req.ID)
	case c.By != by.User:
		c.Result = nil
	}
	return c, nil
}
