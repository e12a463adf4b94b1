package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"nize/daemon/api"
	"nize/store"
)

func (d *Daemon) listApprovals(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	q := store.CallQuery{Waiting: true, Limit: 1000}
	if !by.IsAdmin() {
		q.User = by.User
	}
	calls, err := d.db.ListCalls(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	cards := make([]store.Card, 0, len(calls))
	for _, c := range calls {
		card, err := d.gateway.Card(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	return items(cards), nil
}

// call reads one call if the caller may look at it.
func (d *Daemon) call(ctx context.Context, by store.Caller, id string) (store.Call, error) {
	c, err := d.db.GetCall(ctx, id)
	if err == nil && c.By != by.User && !by.IsAdmin() {
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
	case store.Approve, store.Deny, store.Cancel, store.Edit:
	default:
		return nil, fmt.Errorf("%w verb %q: use approve, deny, cancel or edit", store.ErrInvalid, req.Verb)
	}
	c, err := d.call(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	decided, err := d.gateway.Decide(ctx, by, c.ID, store.Decision{Verb: req.Verb, Digest: req.Digest, Args: req.Args, Always: req.Always, Reason: req.Reason})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

func (d *Daemon) getCall(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.call(ctx, by, r.PathValue("id"))
}

func (d *Daemon) listGrants(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	user, err := d.userOf(ctx, by, r.URL.Query().Get("user"))
	if err != nil {
		return nil, err
	}
	grants, err := d.db.ListGrants(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	return items(grants), nil
}

func (d *Daemon) deleteGrant(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	id := r.PathValue("id")
	own, err := d.db.ListGrants(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	mine := by.IsAdmin()
	for _, g := range own {
		mine = mine || g.ID == id
	}
	if !mine {
		return nil, fmt.Errorf("grant %q %w", id, store.ErrNotFound)
	}
	if err := d.db.DeleteGrant(ctx, by, id); err != nil {
		return nil, fmt.Errorf("grant %q: %w", id, err)
	}
	return nil, nil
}
