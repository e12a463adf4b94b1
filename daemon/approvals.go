package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

// listApprovals lists the cards of waiting calls: one's own and those that one
// may approve; of all for admins.
func (d *Daemon) listApprovals(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	calls, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	cards := make([]store.Card, 0, len(calls))
	for _, c := range calls {
		if !d.gateway.Policy.Sees(ctx, by, c) {
			continue
		}
		card, err := d.gateway.Card(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	return items(cards), nil
}

// call reads one call if the caller may look at its card.
func (d *Daemon) call(ctx context.Context, by store.Caller, id string) (store.Call, error) {
	c, err := d.db.GetCall(ctx, id)
	if err == nil && !d.gateway.Policy.Sees(ctx, by, c) {
		err = store.ErrNotFound
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	waiting, listErr := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, User: by.User})
	if listErr != nil {
		return c, fmt.Errorf("listing waiting calls: %w", listErr)
	}
	ids := make([]string, len(waiting))
	for i, w := range waiting {
		ids[i] = w.ID
	}
	return c, store.Unknown("call", id, ids)
}

func (d *Daemon) getApproval(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	c, err := d.call(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return d.gateway.Card(ctx, c.ID)
}

func (d *Daemon) decide(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.Decide](r)
	if err != nil {
		return nil, err
	}
	switch req.Verb {
	case store.Approve, store.RunAll, store.Deny, store.Cancel, store.Edit, store.Retry, store.Again:
	default:
		return nil, fmt.Errorf("%w verb %q: use approve, run_all, deny, cancel, edit, retry or again", store.ErrInvalid, req.Verb)
	}
	c, err := d.call(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	decided, err := d.gateway.Decide(ctx, by, c.ID, store.Decision{Verb: req.Verb, Digest: req.Digest, Args: req.Args, Always: req.Always, For: req.For, Pattern: req.Pattern, Until: req.Until, Exact: req.Exact, Reason: req.Reason})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

// getCall shows a call with its result, which is its requester's.
func (d *Daemon) getCall(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	c, err := d.call(ctx, by, r.PathValue("id"))
	if err == nil && c.By != by.User {
		c.Result = nil
	}
	return c, err
}

// listGrants lists the standing answers that count for a person's calls, and
// those that the person gave.
func (d *Daemon) listGrants(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	user, err := d.directory.Owner(ctx, by, r.URL.Query().Get("user"))
	if err != nil {
		return nil, err
	}
	all, err := d.db.ListGrants(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	return items(slices.DeleteFunc(all, func(g store.Grant) bool { return g.User != user && g.Scope != store.ForEveryone })), nil
}

func (d *Daemon) addGrant(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.AddGrant](r)
	if err != nil {
		return nil, err
	}
	return d.gateway.Policy.AddGrant(ctx, by, store.Grant{Tool: req.Tool, Deny: req.Deny, Scope: req.For, Pattern: req.Pattern, Expires: req.Expires})
}

func (d *Daemon) deleteGrant(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	id := r.PathValue("id")
	all, err := d.db.ListGrants(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	i := slices.IndexFunc(all, func(g store.Grant) bool { return g.ID == id })
	if i < 0 || all[i].User != by.User && !by.IsAdmin() {
		return nil, fmt.Errorf("grant %q %w", id, store.ErrNotFound)
	}
	if err := d.db.DeleteGrant(ctx, by, id); err != nil {
		return nil, fmt.Errorf("grant %q: %w", id, err)
	}
	return nil, nil
}
