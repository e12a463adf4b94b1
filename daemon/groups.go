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

// Groups (SPEC 22): named people, with whom things are shared.

func (d *Daemon) groupViews(ctx context.Context, groups ...store.Group) ([]api.GroupView, error) {
	users, err := d.db.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	servers, err := d.db.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	views := make([]api.GroupView, len(groups))
	for i, g := range groups {
		v := api.GroupView{Name: g.Name, Members: []api.GroupMember{}, Servers: []string{}, Created: g.Created}
		for _, u := range users {
			if slices.Contains(g.Members, u.ID) {
				v.Members = append(v.Members, api.GroupMember{ID: u.ID, Name: u.Name, State: u.State})
			}
		}
		for _, s := range servers {
			if slices.Contains(s.Visibility, "group:"+g.Name) {
				v.Servers = append(v.Servers, s.Name)
			}
		}
		views[i] = v
	}
	return views, nil
}

func (d *Daemon) groupView(ctx context.Context, g store.Group) (any, error) {
	views, err := d.groupViews(ctx, g)
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// findGroup finds a group by its name.
func (d *Daemon) findGroup(ctx context.Context, name string) (store.Group, error) {
	all, err := d.db.ListGroups(ctx)
	if err != nil {
		return store.Group{}, fmt.Errorf("listing groups: %w", err)
	}
	var names []string
	for _, g := range all {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return store.Group{}, store.Unknown("group", name, names)
}

func (d *Daemon) listGroups(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	all, err := d.db.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	views, err := d.groupViews(ctx, all...)
	if err != nil {
		return nil, err
	}
	return items(views), nil
}

func (d *Daemon) getGroup(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	g, err := d.findGroup(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return d.groupView(ctx, g)
}

// userIDs finds people as they were typed.
func (d *Daemon) userIDs(ctx context.Context, who []string) ([]string, error) {
	var ids []string
	for _, w := range who {
		u, err := d.findUser(ctx, w)
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}

func (d *Daemon) addGroup(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.AddGroup](r)
	if err != nil {
		return nil, err
	}
	members, err := d.userIDs(ctx, req.Members)
	if err != nil {
		return nil, err
	}
	g, err := d.db.AddGroup(ctx, by, store.Group{Name: req.Name, Members: members})
	if errors.Is(err, store.ErrExists) {
		return nil, fmt.Errorf("group %q %w: change it with nizectl groups edit %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("storing group %s: %w", req.Name, err)
	}
	return d.groupView(ctx, g)
}

func (d *Daemon) patchGroup(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PatchGroup](r)
	if err != nil {
		return nil, err
	}
	g, err := d.findGroup(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	in, err := d.userIDs(ctx, req.Add)
	if err != nil {
		return nil, err
	}
	out, err := d.userIDs(ctx, req.Remove)
	if err != nil {
		return nil, err
	}
	if g, err = d.db.EditGroup(ctx, by, g.Name, in, out); err != nil {
		return nil, fmt.Errorf("group %s: %w", r.PathValue("name"), err)
	}
	return d.groupView(ctx, g)
}

func (d *Daemon) removeGroup(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	g, err := d.findGroup(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return nil, d.db.DeleteGroup(ctx, by, g.Name)
}

// groupsOf names the groups that the caller is in. Who can't be looked up is
// in none: groups only ever allow.
func (d *Daemon) groupsOf(ctx context.Context, by store.Caller) []string {
	names, err := d.db.GroupsOf(ctx, by.User)
	if err != nil {
		d.log.Warn("reading groups; the caller counts as in none", "err", err)
	}
	return names
}
