package documents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/mcp/native"
	"nize/store"
	"nize/store/project"
)

// reader is a caller with the scopes that they may read: their own, their teams', and their
// projects'. The programs of a project read only the project's. Nothing else decides this.
type reader struct {
	by     store.Caller
	scopes []Scope
	names  map[Scope]string
	team   Scope // in which they act; "" if they are in none
	// projects are those that they belong to, by name.
	projects map[string]project.Project
}

// readerOf returns the reader for a caller who acts in a team.
func (d *Documents) readerOf(ctx context.Context, by store.Caller, team string) (*reader, error) {
	r := &reader{by: by, names: map[Scope]string{}, projects: map[string]project.Project{}}
	all, err := d.Projects.ListProjects(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	if id, ok := project.IDOf(by.User); ok {
		for _, p := range all {
			if p.ID == id {
				r.projects[p.Name] = p
				r.add(ScopeOf(Project, id), "project:"+p.Name)
			}
		}
		return r, nil
	}
	u, err := d.People.GetUser(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	for _, id := range append([]string{u.ID}, u.Aliases...) {
		r.add(ScopeOf(User, id), User)
	}
	members, err := d.People.ListMembers(ctx, "", u.ID)
	if err != nil {
		return nil, fmt.Errorf("listing memberships: %w", err)
	}
	for _, m := range members {
		scope := ScopeOf(Team, m.Team)
		r.add(scope, string(scope))
		if m.Team == team || len(members) == 1 {
			r.team = scope
		}
	}
	for _, p := range all {
		if p.Owner == u.ID || slices.Contains(p.Members, u.ID) {
			r.add(ScopeOf(Project, p.ID), "project:"+p.Name)
			r.projects[p.Name] = p
		}
	}
	return r, nil
}

func (r *reader) add(scope Scope, name string) {
	if _, ok := r.names[scope]; !ok {
		r.scopes = append(r.scopes, scope)
	}
	r.names[scope] = name
}

// own returns the scope of a document that is saved without one.
func (r *reader) own() Scope { return r.scopes[0] }

// scope returns the scope that the caller names, if they may read it.
func (r *reader) scope(text string) (Scope, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case len(r.scopes) == 0:
		return "", store.ErrNotFound
	case text == "", text == User && r.own().Kind() == User:
		return r.own(), nil
	case text == Team && r.team != "":
		return r.team, nil
	case text == Project && len(r.projects) == 1:
		for _, p := range r.projects {
			return ScopeOf(Project, p.ID), nil
		}
	case (kind == Team || kind == Project) && name != "":
		var names []string
		for scope, known := range r.names {
			if known == text {
				return scope, nil
			}
			if scope.Kind() == kind {
				names = append(names, known)
			}
		}
		return "", store.Unknown("scope", text, names)
	}
	var names []string
	for _, scope := range r.scopes {
		if name := r.names[scope]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "", store.Mark(fmt.Errorf("%q is no scope of yours; those are: %s", text, strings.Join(names, ", ")), store.ErrInvalid)
}

// within returns the scopes of a list: the one named, all of a kind, or all.
func (r *reader) within(text string) ([]Scope, error) {
	if text == "" {
		return r.scopes, nil
	}
	if kind := Scope(text).Kind(); text == kind { // all of a kind
		list := slices.DeleteFunc(slices.Clone(r.scopes), func(s Scope) bool { return s.Kind() != kind })
		if len(list) > 0 {
			return list, nil
		}
	}
	scope, err := r.scope(text)
	return []Scope{scope}, err
}

// mayRemove reports whether the reader may remove a document that they may read: they own or
// saved it, or they are an admin or the owner of its project.
func (r *reader) mayRemove(d Document) bool {
	if r.by.IsAdmin() || d.By == r.by.User || d.Scope.Kind() == User {
		return true
	}
	for _, p := range r.projects {
		if ScopeOf(Project, p.ID) == d.Scope && (p.Owner == r.by.User || project.Actor(p.ID) == r.by.User) {
			return true
		}
	}
	return false
}

// find returns a document of the reader by its id, or by its name if that is unique.
func (d *Documents) find(ctx context.Context, r *reader, which string) (none Document, err error) {
	if store.ValidID(which) {
		if one, err := d.store.Get(ctx, r.scopes, which); !errors.Is(err, store.ErrNotFound) {
			return one, err
		}
	}
	all, err := d.store.List(ctx, r.scopes)
	if err != nil {
		return none, err
	}
	var names, ids []string
	for _, one := range all {
		if one.Name == which {
			ids, none = append(ids, one.ID), one
		}
		names = append(names, one.Name)
	}
	switch len(ids) {
	case 0:
		return none, store.Unknown("document", which, names)
	case 1:
		return none, nil
	}
	return none, store.Mark(fmt.Errorf("several documents are called %q; say which by id: %s", which, strings.Join(ids, ", ")), store.ErrInvalid)
}

// callerOf returns the caller for whom a tool runs.
func callerOf(c native.Context) store.Caller { return store.Caller{User: c.Owner()} }
