package policy

import (
	"context"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/outage"
)

// The conditions under which a call was proposed are checked again.

// VoidedVotes returns the users who approved the call earlier but may no longer do so:
// their approvals don't count towards the required number.
func (p *Engine) VoidedVotes(ctx context.Context, c store.Call) []string {
	var gone []string
	for _, id := range c.Yes() {
		u, err := p.store.GetUser(ctx, id)
		if err != nil || !p.approves(ctx, u, c) {
			gone = append(gone, id)
		}
	}
	return gone
}

// Stale returns the reason why an approved call may no longer run, if any: it checks the
// requester's access, the tool's pin, the credentials and the approvers again. It returns
// an error only if the database is unavailable, which is no reason to refuse the call.
func (p *Engine) Stale(ctx context.Context, c store.Call) (store.Text, error) {
	why, err := p.stale(ctx, c)
	if outage.Is(err) {
		return store.Text{}, fmt.Errorf("checking whether call %s may still run: %w", c.ID, err)
	}
	return why, nil
}

// stale also returns the error that led to the reason.
func (p *Engine) stale(ctx context.Context, c store.Call) (store.Text, error) {
	if c.ComputeDigest() != c.Digest {
		return store.Textf("the stored call differs from the one shown"), nil
	}
	requester, err := p.Requester(ctx, c)
	if err != nil {
		return store.Textf("its requester or their token no longer exists"), err
	}
	v, err := p.View(ctx, requester, p.scopeOf(ctx, c))
	if err != nil {
		return store.Textf("its requester may no longer use %s", c.ToolID()), err
	}
	t, err := p.Find(v, c.ToolID())
	switch {
	case err != nil:
		return store.Textf("its requester may no longer use %s", c.ToolID()), err
	case t.Accepted != c.Pin:
		return store.Textf("the definition of %s changed since it was proposed", c.ToolID()), nil
	}
	as, err := p.RunsAs(ctx, requester, t)
	if err != nil || as.Words.String() != c.RunsAs.String() { // calls stored by earlier versions have no format string
		return store.Textf("the credentials that it uses changed since it was proposed"), err
	}
	policy := p.ApproverPolicy(v, t, as)
	wasNowhere := policy == store.ByRequester && c.Policy == store.ByAdmins // the requester may have signed in since
	if !wasNowhere && p.withCurrentIDs(ctx, policy) != p.withCurrentIDs(ctx, c.Policy) {
		return store.Textf("its approvers changed since it was proposed"), nil
	}
	return store.Text{}, nil
}

// scopeOf returns the scope that limited the tools when the call was proposed.
func (p *Engine) scopeOf(ctx context.Context, c store.Call) store.Scope {
	scope := store.Scope{Agent: c.Agent, Thread: c.Thread, Servers: p.Thread(ctx, c.Thread).Servers, View: c.View != "", Ask: c.Ask != nil, Session: c.Session()}
	if c.Agent == "" && c.Token == "" { // the request itself named the tool
		scope.Tools = []string{c.ToolID()}
	}
	return scope
}

// Requester returns the requester of a stored call with their current rights.
func (p *Engine) Requester(ctx context.Context, c store.Call) (store.Caller, error) {
	u, err := p.store.GetUser(ctx, c.By)
	if err != nil {
		return store.Caller{}, fmt.Errorf("reading the requester of call %s: %w", c.ID, err)
	}
	if u.State != store.Active {
		return store.Caller{}, store.Mark(store.Errorf("the requester of call %s is disabled", c.ID), store.ErrRefused)
	}
	by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: c.Surface, Token: c.Token}
	if c.Token == "" {
		return by, nil
	}
	tokens, err := p.store.ListTokens(ctx, c.By)
	if err != nil {
		return by, fmt.Errorf("reading the token of call %s: %w", c.ID, err)
	}
	i := slices.IndexFunc(tokens, func(t store.Token) bool { return t.ID == c.Token })
	if i < 0 || tokens[i].State(p.now()) != "active" {
		return by, store.Mark(store.Errorf("the token of call %s is no longer valid", c.ID), store.ErrRefused)
	}
	by.Scopes = tokens[i].Scopes
	return by, nil
}
