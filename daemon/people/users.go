package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

// People. Somebody who was only named has the identity named:NAME:
// they come in with bearer tokens, until a chat knows them.

func (d *Daemon) userView(ctx context.Context, u store.User) (api.UserView, error) {
	v := api.UserView{User: u, Tokens: []string{}, Teams: []string{}, Groups: []string{}}
	teams, err := d.db.ListMembers(ctx, "", u.ID)
	if err != nil {
		return v, fmt.Errorf("listing teams of %s: %w", u.Name, err)
	}
	for _, m := range teams {
		v.Teams = append(v.Teams, m.Team)
	}
	groups, err := d.groups.GroupsOf(ctx, u.ID)
	if err != nil {
		return v, fmt.Errorf("listing groups of %s: %w", u.Name, err)
	}
	v.Groups = append(v.Groups, groups...)
	tokens, err := d.db.ListTokens(ctx, u.ID)
	if err != nil {
		return v, fmt.Errorf("listing tokens of %s: %w", u.Name, err)
	}
	for _, t := range tokens {
		if t.State(d.now()) == "active" {
			v.Tokens = append(v.Tokens, t.Name)
		}
	}
	calls, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, User: u.ID, Limit: 1000})
	if err != nil {
		return v, fmt.Errorf("listing calls of %s: %w", u.Name, err)
	}
	v.Waiting = len(calls)
	grants, err := d.db.ListGrants(ctx, u.ID)
	if err != nil {
		return v, fmt.Errorf("listing standing answers of %s: %w", u.Name, err)
	}
	v.Grants = len(grants)
	credentials, err := d.db.ListCredentials(ctx)
	if err != nil {
		return v, fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range credentials {
		if c.Scope == "user" && c.Owner == u.ID {
			v.Credentials++
		}
	}
	return v, nil
}

func (d *Daemon) getUser(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	u, err := d.directory.Find(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return d.userView(ctx, u)
}

func (d *Daemon) addUser(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.AddUser](r)
	if err != nil {
		return nil, err
	}
	if !tokenName.MatchString(req.Name) {
		return nil, fmt.Errorf("%w user name %q: use 1 to 63 letters, digits, dots, dashes, underscores or @", store.ErrInvalid, req.Name)
	}
	if req.Role == "" {
		req.Role = store.Member
	}
	users, err := d.db.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	taken := slices.ContainsFunc(users, func(u store.User) bool { return u.Name == req.Name || u.ID == req.Name })
	u := store.User{}
	if !taken {
		u, err = d.db.AddUser(ctx, by, store.User{Name: req.Name, Role: req.Role, Identities: []string{store.NamedIdentity + req.Name}})
	}
	if taken || errors.Is(err, store.ErrExists) {
		return nil, fmt.Errorf("user %q %w: see nizectl users show %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("storing user %s: %w", req.Name, err)
	}
	return d.userView(ctx, u)
}

// patchUser changes a role or a state. To disable somebody also takes away
// what acts in their name, in the same transaction of the store; the MCP
// server hears of it and ends their streams.
func (d *Daemon) patchUser(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PatchUser](r)
	if err != nil {
		return nil, err
	}
	u, err := d.directory.Find(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	was := u
	apply(&u.Role, req.Role)
	apply(&u.State, req.State)
	var groups, lacked []string
	if u.Role != was.Role || u.State != was.State {
		if groups, err = d.groups.GroupsOf(ctx, u.ID); err != nil {
			return nil, fmt.Errorf("listing groups of %s: %w", u.Name, err)
		}
		if lacked, err = d.gateway.Policy.UndecidablePolicies(ctx); err != nil {
			return nil, fmt.Errorf("reading who approves: %w", err)
		}
		if err := d.db.PutUser(ctx, by, u); err != nil {
			return nil, fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	v, err := d.userView(ctx, u)
	if err != nil {
		return nil, err
	}
	if v.Lacking, err = d.lacking(ctx, lacked); err != nil {
		return nil, err
	}
	v.Emptied, err = d.emptied(ctx, groups)
	return v, err
}

// emptied are those of the groups in which nobody is left who could act.
func (d *Daemon) emptied(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := d.db.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	views, err := d.groupViews(ctx, all...)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, g := range views {
		active := slices.ContainsFunc(g.Members, func(m api.GroupMember) bool { return m.State == store.Active })
		if slices.Contains(names, g.Name) && !active {
			out = append(out, g.Name)
		}
	}
	return out, nil
}

// lacking names what has too few approvers now and had enough before.
func (d *Daemon) lacking(ctx context.Context, before []string) ([]string, error) {
	now, err := d.gateway.Policy.UndecidablePolicies(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading who approves: %w", err)
	}
	var out []string
	for _, name := range now {
		if !slices.Contains(before, name) {
			out = append(out, cmp.Or(name, "approvals.approvers"))
		}
	}
	return out, nil
}
