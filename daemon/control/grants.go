package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp/policy"
	"nize/store"
)

// Grants implements the operations on people's standing answers.
type Grants struct {
	Store     store.Grants
	Trail     people.Trail
	Policy    *policy.Engine
	Directory *people.Directory
	Now       func() time.Time
	// FindTool returns a tool by its id; if it is nil, no grant is marked void.
	FindTool func(id string) (*policy.Tool, bool)
}

// Mount registers the operations.
func (g *Grants) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListGrants, g.List)
	mux.Handle(m, api.AddGrant, g.Add)
	mux.Handle(m, api.RevokeGrant, g.Revoke)
}

// List returns the standing answers that apply to a person's calls, and those that the
// person gave. An admin sees the arguments in other people's answers only if they give a
// reason, which is recorded in the audit trail.
func (g *Grants) List(ctx context.Context, by store.Caller, req api.ListGrantsRequest) (none api.List[api.GrantView], err error) {
	everybody := req.User == api.Everybody && by.IsAdmin()
	if req.User == api.Everybody {
		req.User = ""
	}
	user, err := g.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	all, err := g.Store.ListGrants(ctx, "")
	if err != nil {
		return none, fmt.Errorf("listing grants: %w", err)
	}
	var list []api.GrantView
	read := map[string]bool{} // users whose arguments are shown for the reason
	for _, grant := range all {
		if !everybody && grant.User != user && grant.Scope != store.ForEveryone {
			continue
		}
		read[grant.User] = true
		if req.Reason == "" && grant.User != by.User && grant.Scope != store.ForEveryone { // an answer for everyone is visible to everyone
			grant.Pattern, grant.Exact, grant.Repository, grant.Host = nil, "", "", ""
		}
		list = append(list, api.GrantView{Grant: grant, Void: g.void(grant)})
	}
	if req.Reason == "" {
		return api.Items(list), nil
	}
	if !everybody {
		read = map[string]bool{user: true}
	}
	for _, owner := range slices.Sorted(maps.Keys(read)) {
		if owner == by.User {
			continue
		}
		if err := people.NoteReading(ctx, g.Trail, by, "grant.read", owner, req.Reason); err != nil {
			return none, err
		}
	}
	return api.Items(list), nil
}

// void returns the reason why a standing "always" has no effect: it applies only to the
// definition that the person saw. A "never" applies to any tool of that name.
func (g *Grants) void(grant store.Grant) string {
	if grant.Deny || g.FindTool == nil {
		return ""
	}
	switch t, ok := g.FindTool(grant.Tool); {
	case !ok:
		return "the tool does not exist now"
	case t.Accepted != grant.Pin:
		return "the tool's definition has changed; it needs approval again"
	case t.State != store.ToolAccepted:
		return "the tool's definition has changed, and needs an admin's acceptance"
	}
	return ""
}

// GivenBy returns the standing answers that a person gave and that are in force.
func (g *Grants) GivenBy(ctx context.Context, user string) ([]store.Grant, error) {
	all, err := g.Store.ListGrants(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	return slices.DeleteFunc(all, func(grant store.Grant) bool {
		return grant.User != user || !grant.Expires.IsZero() && !g.Now().Before(grant.Expires)
	}), nil
}

// Add creates a standing answer about a tool.
func (g *Grants) Add(ctx context.Context, by store.Caller, req api.AddGrantRequest) (store.Grant, error) {
	return g.Policy.AddGrant(ctx, by, store.Grant{Tool: req.Tool, Deny: req.Deny, Scope: req.For, Pattern: req.Pattern, Repository: req.Repository, Host: req.Host, Expires: req.Expires})
}

// Revoke removes a standing answer.
func (g *Grants) Revoke(ctx context.Context, by store.Caller, req api.RevokeGrantRequest) (none api.Empty, err error) {
	all, err := g.Store.ListGrants(ctx, "")
	if err != nil {
		return none, fmt.Errorf("listing grants: %w", err)
	}
	i := slices.IndexFunc(all, func(grant store.Grant) bool { return grant.ID == req.ID })
	if i < 0 || all[i].User != by.User && !by.IsAdmin() {
		return none, store.Errorf("grant %q %w", req.ID, store.ErrNotFound)
	}
	if err := g.Store.DeleteGrant(ctx, by, req.ID); err != nil {
		return none, fmt.Errorf("grant %q: %w", req.ID, err)
	}
	return none, nil
}
