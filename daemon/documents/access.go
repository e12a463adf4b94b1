package documents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/mcp/native"
	"nize/store"
	"nize/store/document"
	"nize/store/project"
)

// reader is somebody, with what they may read: their own documents, those of the
// teams in which they are, and those of their projects. A project's programs have
// its own and no other. This is decided here alone.
type reader struct {
	by     store.Caller
	scopes []document.Scope
	names  map[document.Scope]string
	team   document.Scope // in which they act; "" where they are in none
	// projects are those that they may name; admins any.
	projects map[string]project.Project
}

// readerOf says who reads. team is where they act.
func (d *Documents) readerOf(ctx context.Context, by store.Caller, team string) (*reader, error) {
	r := &reader{by: by, names: map[document.Scope]string{}, projects: map[string]project.Project{}}
	all, err := d.Projects.ListProjects(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	if id, ok := project.IDOf(by.User); ok {
		for _, p := range all {
			if p.ID == id {
				r.projects[p.Name] = p
				r.add(document.ScopeOf(document.Project, id), "project:"+p.Name)
			}
		}
		return r, nil
	}
	u, err := d.People.GetUser(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	for _, id := range append([]string{u.ID}, u.Aliases...) {
		r.add(document.ScopeOf(document.User, id), document.User)
	}
	members, err := d.People.ListMembers(ctx, "", u.ID)
	if err != nil {
		return nil, fmt.Errorf("listing memberships: %w", err)
	}
	for _, m := range members {
		scope := document.ScopeOf(document.Team, m.Team)
		r.add(scope, string(scope))
		if m.Team == team || len(members) == 1 {
			r.team = scope
		}
	}
	for _, p := range all {
		if p.Owner == u.ID || slices.Contains(p.Members, u.ID) {
			r.add(document.ScopeOf(document.Project, p.ID), "project:"+p.Name)
			r.projects[p.Name] = p
		}
	}
	return r, nil
}

func (r *reader) add(scope document.Scope, name string) {
	if _, ok := r.names[scope]; !ok {
		r.scopes = append(r.scopes, scope)
	}
	r.names[scope] = name
}

// own is where what they save goes if they say nothing.
func (r *reader) own() document.Scope { return r.scopes[0] }

// scope is what somebody calls one, of those that are theirs.
func (r *reader) scope(text string) (document.Scope, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case len(r.scopes) == 0:
		return "", store.ErrNotFound
	case text == "", text == document.User && r.own().Kind() == document.User:
		return r.own(), nil
	case text == document.Team && r.team != "":
		return r.team, nil
	case text == document.Project && len(r.projects) == 1:
		for _, p := range r.projects {
			return document.ScopeOf(document.Project, p.ID), nil
		}
	case (kind == document.Team || kind == document.Project) && name != "":
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

// within are the scopes of a list: one, or all.
func (r *reader) within(text string) ([]document.Scope, error) {
	if text == "" {
		return r.scopes, nil
	}
	if kind := document.Scope(text).Kind(); text == kind { // all of a kind
		list := slices.DeleteFunc(slices.Clone(r.scopes), func(s document.Scope) bool { return s.Kind() != kind })
		if len(list) > 0 {
			return list, nil
		}
	}
	scope, err := r.scope(text)
	return []document.Scope{scope}, err
}

// mayRemove says whether they may remove a document that they may read: their own,
// one that they saved, and as an admin or the owner of its project any.
func (r *reader) mayRemove(d document.Document) bool {
	if r.by.IsAdmin() || d.By == r.by.User || d.Scope.Kind() == document.User {
		return true
	}
	for _, p := range r.projects {
		if document.ScopeOf(document.Project, p.ID) == d.Scope && (p.Owner == r.by.User || project.Actor(p.ID) == r.by.User) {
			return true
		}
	}
	return false
}

// find finds one of theirs by its id, or by a name that only one has.
func (d *Documents) find(ctx context.Context, r *reader, which string) (none document.Document, err error) {
	if store.ValidID(which) {
		if one, err := d.Store.GetDocument(ctx, r.scopes, which); !errors.Is(err, store.ErrNotFound) {
			return one, err
		}
	}
	all, err := d.Store.ListDocuments(ctx, r.scopes)
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

// callerOf is who a tool runs for.
func callerOf(c native.Context) store.Caller { return store.Caller{User: c.Owner()} }
