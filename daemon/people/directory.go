// Package people finds people and groups by id, name or identity, and implements the
// operations on them.
//
// Rules about who may see and approve what are stored in terms of ids.
package people

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"nize/store"
	"nize/store/project"
)

// Directory finds people and groups.
type Directory struct {
	Store interface {
		ListUsers(ctx context.Context) ([]store.User, error)
		ListGroups(ctx context.Context) ([]store.Group, error)
		ListProjects(ctx context.Context) ([]project.Project, error)
	}
	Memberships Memberships
	Log         *slog.Logger
}

// Memberships returns the groups of a user. [LiveGroups] implements it.
type Memberships interface {
	GroupsOf(ctx context.Context, user string) ([]string, error)
}

// Find returns a person by id, identity or name. It returns an error for a name that
// several people have: an operation such as disabling must not hit the wrong person.
func (d *Directory) Find(ctx context.Context, who string) (store.User, error) {
	users, err := d.Store.ListUsers(ctx)
	if err != nil {
		return store.User{}, fmt.Errorf("listing users: %w", err)
	}
	var names []string
	var named, added []store.User
	for _, u := range users {
		if u.ID == who || slices.Contains(u.Identities, who) || slices.Contains(u.Aliases, who) {
			return u, nil
		}
		if u.Name == who {
			named = append(named, u)
		} else if slices.Contains(u.Identities, store.NamedIdentity+who) {
			added = append(added, u) // they have another display name now
		}
		names = append(names, u.Name)
	}
	if len(named) == 0 {
		named = added
	}
	switch len(named) {
	case 0:
		return store.User{}, store.Unknown("user", who, names)
	case 1:
		return named[0], nil
	}
	ids := make([]string, len(named))
	for i, u := range named {
		ids[i] = u.ID
	}
	return store.User{}, store.Errorf("%w user %q: several people have that name; choose one by id: %s", store.ErrInvalid, who, strings.Join(ids, ", "))
}

// Owner returns the user whose records a request is about: the caller or, if the caller is
// an admin, anyone by id, name or identity.
func (d *Directory) Owner(ctx context.Context, by store.Caller, who string) (string, error) {
	if who == "" || who == by.User {
		return by.User, nil
	}
	if !by.IsAdmin() {
		return "", store.Mark(fmt.Errorf("only admins may manage other people's records"), store.ErrRefused)
	}
	u, err := d.Find(ctx, who)
	return u.ID, err
}

func (d *Directory) Names(ctx context.Context) (map[string]string, error) {
	users, err := d.Store.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	out := map[string]string{store.System.User: store.System.Name}
	for _, u := range users {
		out[u.ID] = u.Name
	}
	projects, err := d.Store.ListProjects(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	for _, p := range projects {
		out[project.Actor(p.ID)] = project.Actor(p.Name)
	}
	return out, nil
}

// Group returns a group by its name.
func (d *Directory) Group(ctx context.Context, name string) (store.Group, error) {
	all, err := d.Store.ListGroups(ctx)
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

// GroupsOf returns the caller's groups. If they can't be looked up it returns none, which
// is safe because groups only ever allow.
func (d *Directory) GroupsOf(ctx context.Context, by store.Caller) []string {
	names, err := d.Memberships.GroupsOf(ctx, by.User)
	if err != nil {
		d.Log.Warn("reading groups; treating the caller as in none", "err", err)
	}
	return names
}

// Audience validates a server's audience and replaces users' names with their ids.
func (d *Directory) Audience(ctx context.Context, by store.Caller, with []string) ([]string, error) {
	var out []string
	for _, w := range with {
		if w == "all" {
			out = append(out, w)
			continue
		}
		if name, ok := strings.CutPrefix(w, "group:"); ok {
			if _, err := d.Group(ctx, name); err != nil {
				return nil, err
			}
			out = append(out, w)
			continue
		}
		if name, ok := project.IDOf(w); ok {
			id, err := d.project(ctx, name)
			if err != nil {
				return nil, err
			}
			out = append(out, project.Actor(id))
			continue
		}
		who, ok := strings.CutPrefix(w, "user:")
		if !ok || who == "" {
			return nil, store.Errorf("%w audience %q: use all, group:G, user:U or project:P", store.ErrInvalid, w)
		}
		id, err := d.Owner(ctx, by, who)
		if err != nil {
			return nil, err
		}
		out = append(out, "user:"+id)
	}
	return out, nil
}

// project returns the id of a project, given its name or id.
func (d *Directory) project(ctx context.Context, who string) (string, error) {
	all, err := d.Store.ListProjects(ctx)
	if err != nil {
		return "", fmt.Errorf("listing projects: %w", err)
	}
	var names []string
	for _, p := range all {
		if p.ID == who || p.Name == who {
			return p.ID, nil
		}
		names = append(names, p.Name)
	}
	return "", store.Unknown("project", who, names)
}

// WhoMay validates who may use an agent or a model name; all is stored as an empty list.
func (d *Directory) WhoMay(ctx context.Context, by store.Caller, who []string) ([]string, error) {
	switch {
	case slices.Contains(who, "all"), len(who) == 0:
		return nil, nil
	case len(who) == 1 && who[0] == "admins":
		return who, nil
	case slices.Contains(who, "admins"):
		return nil, fmt.Errorf("%w audience: admins may use everything; leave them out if others are named", store.ErrInvalid)
	}
	return d.Audience(ctx, by, who)
}

// Approvers validates who may approve and replaces users' names with their ids.
func (d *Directory) Approvers(ctx context.Context, p store.Policy) (store.Policy, error) {
	if strings.TrimSpace(string(p)) == "" {
		return "", nil
	}
	a, err := store.ParsePolicy(string(p))
	if err != nil {
		return "", err
	}
	for i, who := range a.Who {
		if name, ok := strings.CutPrefix(who, "group:"); ok {
			if _, err := d.Group(ctx, name); err != nil {
				return "", err
			}
		}
		if name, ok := strings.CutPrefix(who, "user:"); ok {
			u, err := d.Find(ctx, name)
			if err != nil {
				return "", err
			}
			a.Who[i] = "user:" + u.ID
		}
	}
	if a, err = store.ParsePolicy(string(a.Policy())); err != nil { // two names may belong to the same person
		return "", err
	}
	return a.Policy(), nil
}

// Access validates a value of bots.access and replaces users' names with their ids.
func (d *Directory) Access(ctx context.Context, text string) (string, error) {
	access, err := store.ParseAccess(text)
	if err != nil {
		return "", err
	}
	for i, who := range access {
		if name, ok := strings.CutPrefix(who, "group:"); ok {
			if _, err := d.Group(ctx, name); err != nil {
				return "", err
			}
		}
		if name, ok := strings.CutPrefix(who, "user:"); ok {
			u, err := d.Find(ctx, name)
			if err != nil {
				return "", fmt.Errorf("bots.access: %w", err)
			}
			access[i] = "user:" + u.ID
		}
	}
	return access.String(), nil
}
