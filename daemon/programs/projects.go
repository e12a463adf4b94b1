package programs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/daemon/api"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
	"nize/store/project"
)

// Projects implements the operations on projects, which own the keys of programs that call
// over HTTP.
type Projects struct {
	Store     project.Projects
	Directory *people.Directory
	// Documents are deleted with their project.
	Documents interface {
		EraseProject(ctx context.Context, id string) error
	}
	Now func() time.Time
}

// Module returns the module.
func (p *Projects) Module() module.Module {
	return module.Module{Name: "projects", Operations: p.mount}
}

func (p *Projects) mount(m *mux.Mux) {
	mux.Handle(m, api.ListProjects, p.List)
	mux.Handle(m, api.AddProject, p.Add)
	mux.Handle(m, api.GetProject, p.Get)
	mux.Handle(m, api.PatchProject, p.Patch)
	mux.Handle(m, api.RemoveProject, p.Remove)
	mux.Handle(m, api.ListProjectKeys, p.Keys)
	mux.Handle(m, api.CreateProjectKey, p.CreateKey)
	mux.Handle(m, api.RevokeProjectKey, p.RevokeKey)
}

// Find returns a project by its name or id. Members get ErrNotFound unless they belong to
// it.
func (p *Projects) Find(ctx context.Context, by store.Caller, who string) (none project.Project, err error) {
	all, err := p.Store.ListProjects(ctx)
	if err != nil {
		return none, fmt.Errorf("listing projects: %w", err)
	}
	var names []string
	for _, one := range all {
		if !isIn(one, by) {
			continue
		}
		if one.ID == who || one.Name == who {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return none, store.Unknown("project", who, names)
}

func isIn(p project.Project, by store.Caller) bool {
	return by.IsAdmin() || p.Owner == by.User || slices.Contains(p.Members, by.User)
}

func (p *Projects) view(one project.Project, names map[string]string) api.ProjectView {
	name := func(id string) string {
		if n := names[id]; n != "" {
			return n
		}
		return id
	}
	v := api.ProjectView{Project: one, OwnerName: name(one.Owner), MemberNames: []string{}}
	if v.Members == nil {
		v.Members = []string{}
	}
	for _, id := range one.Members {
		v.MemberNames = append(v.MemberNames, name(id))
	}
	return v
}

// List returns the projects that the caller may see.
func (p *Projects) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ProjectView], err error) {
	all, err := p.Store.ListProjects(ctx)
	if err != nil {
		return none, fmt.Errorf("listing projects: %w", err)
	}
	names, err := p.Directory.Names(ctx)
	if err != nil {
		return none, err
	}
	var list []api.ProjectView
	for _, one := range all {
		if isIn(one, by) {
			list = append(list, p.view(one, names))
		}
	}
	return api.Items(list), nil
}

// Get returns one project.
func (p *Projects) Get(ctx context.Context, by store.Caller, req api.ProjectRequest) (none api.ProjectView, err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	names, err := p.Directory.Names(ctx)
	return p.view(one, names), err
}

// Add creates a project.
func (p *Projects) Add(ctx context.Context, by store.Caller, req api.AddProjectRequest) (none api.ProjectView, err error) {
	if err := store.CheckSlug(req.Name); err != nil {
		return none, err
	}
	one := project.Project{ID: store.NewID(p.Now()), Name: req.Name}
	if one.Owner, err = p.Directory.Owner(ctx, by, req.Owner); err != nil {
		return none, err
	}
	if one.Unattended, err = changePatterns(nil, req.Unattended, nil); err != nil {
		return none, err
	}
	return p.put(ctx, by, one, req.Members, nil)
}

// changePatterns adds and removes patterns of tools.
func changePatterns(list, add, remove []string) ([]string, error) {
	list = slices.Clone(list)
	for _, text := range add {
		pattern, err := project.ReadPattern(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, pattern) {
			list = append(list, pattern)
		}
	}
	for _, text := range remove {
		pattern, err := project.ReadPattern(text)
		if err != nil {
			return nil, err
		}
		i := slices.Index(list, pattern)
		if i < 0 {
			return nil, store.Unknown("pattern", pattern, list)
		}
		list = slices.Delete(list, i, i+1)
	}
	return list, nil
}

// Patch changes a project's people and patterns.
func (p *Projects) Patch(ctx context.Context, by store.Caller, req api.PatchProjectRequest) (none api.ProjectView, err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	if one.Unattended, err = changePatterns(one.Unattended, req.AddUnattended, req.RemoveUnattended); err != nil {
		return none, err
	}
	return p.put(ctx, by, one, req.Add, req.Remove)
}

func (p *Projects) put(ctx context.Context, by store.Caller, one project.Project, add, remove []string) (none api.ProjectView, err error) {
	for _, who := range add {
		u, err := p.Directory.Find(ctx, who)
		if err != nil {
			return none, err
		}
		if u.ID != one.Owner && !slices.Contains(one.Members, u.ID) {
			one.Members = append(slices.Clone(one.Members), u.ID)
		}
	}
	for _, who := range remove {
		u, err := p.Directory.Find(ctx, who)
		switch {
		case err != nil:
			return none, err
		case u.ID == one.Owner:
			return none, store.Mark(fmt.Errorf("%s owns the project %s and stays in it", who, one.Name), store.ErrRefused)
		case !slices.Contains(one.Members, u.ID):
			return none, fmt.Errorf("member %q %w in project %s", who, store.ErrNotFound, one.Name)
		}
		one.Members = slices.DeleteFunc(slices.Clone(one.Members), func(id string) bool { return id == u.ID })
	}
	if err := p.Store.PutProject(ctx, by, one); err != nil {
		return none, err
	}
	return p.Get(ctx, by, api.ProjectRequest{Project: one.ID})
}

// Remove removes a project with its keys, so that its programs no longer have access.
func (p *Projects) Remove(ctx context.Context, by store.Caller, req api.ProjectRequest) (none api.Empty, err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	if err := p.Store.DeleteProject(ctx, by, one.ID); err != nil {
		return none, err
	}
	return none, p.Documents.EraseProject(ctx, one.ID)
}

// Keys returns a project's keys.
func (p *Projects) Keys(ctx context.Context, by store.Caller, req api.ProjectRequest) (none api.List[project.Key], err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	list, err := p.Store.ListKeys(ctx, one.ID)
	return api.Items(list), err
}

// CreateKey creates a key.
func (p *Projects) CreateKey(ctx context.Context, by store.Caller, req api.CreateProjectKeyRequest) (none api.CreatedProjectKey, err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	name := req.Name
	if name == "" {
		name = "default"
	}
	if err := store.CheckSlug(name); err != nil {
		return none, err
	}
	secret, made := store.NewToken(p.Now())
	k := project.Key{ID: made.ID, Project: one.ID, Name: name, Prefix: made.Prefix, Created: p.Now()}
	if err := p.Store.PutKey(ctx, by, made.Hash, k); err != nil {
		if errors.Is(err, store.ErrExists) {
			return none, fmt.Errorf("%w: give another name, or nizectl projects keys revoke %s %s first", err, one.Name, name)
		}
		return none, err
	}
	return api.CreatedProjectKey{Key: k, Secret: api.Secret{Secret: secret}}, nil
}

// RevokeKey revokes a key, effective immediately.
func (p *Projects) RevokeKey(ctx context.Context, by store.Caller, req api.ProjectKeyRequest) (none project.Key, err error) {
	one, err := p.Find(ctx, by, req.Project)
	if err != nil {
		return none, err
	}
	k, err := p.Store.RevokeKey(ctx, by, one.ID, req.Key)
	if errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("key %q of project %s %w", req.Key, one.Name, store.ErrNotFound)
	}
	return k, err
}
