package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/printable"
)

// Groups implements the operations on groups of people, with whom servers can be shared.
type Groups struct {
	Store     groupStore
	Directory *Directory
	Live      *LiveGroups
	Bots      *bots.Registry
	// Account returns a bot's account.
	Account func(ctx context.Context, at store.Surface) (store.Bot, error)
}

// Mount registers the operations.
func (g *Groups) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListGroups, g.List)
	mux.Handle(m, api.AddGroup, g.Add)
	mux.Handle(m, api.RemoveGroup, g.Remove)
	mux.Handle(m, api.GetGroup, g.Get)
	mux.Handle(m, api.PatchGroup, g.Patch)
}

type groupStore interface {
	AddGroup(ctx context.Context, by store.Caller, g store.Group) (store.Group, error)
	EditGroup(ctx context.Context, by store.Caller, name string, in, out []string) (store.Group, error)
	DeleteGroup(ctx context.Context, by store.Caller, name string) error
	ListGroups(ctx context.Context) ([]store.Group, error)
	RecordGroupCheck(ctx context.Context, by store.Caller, name string, s store.GroupCheck) (store.Group, error)
	ListUsers(ctx context.Context) ([]store.User, error)
	ListServers(ctx context.Context) ([]store.Server, error)
}

// firstCheckTimeout is the timeout of a group's first check.
const firstCheckTimeout = 10 * time.Second

func (g *Groups) views(ctx context.Context, groups ...store.Group) ([]api.GroupView, error) {
	users, err := g.Store.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	servers, err := g.Store.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	views := make([]api.GroupView, len(groups))
	for i, one := range groups {
		v := api.GroupView{
			Name: one.Name, Members: []api.GroupMember{}, Servers: []string{}, Created: one.Created,
			Source: one.Source, Handle: one.Handle, Looked: one.Checked, Error: one.Error,
		}
		for _, u := range users {
			if slices.Contains(one.Members, u.ID) {
				v.Members = append(v.Members, api.GroupMember{ID: u.ID, Name: u.Name, State: u.State})
			}
		}
		for _, s := range servers {
			if slices.Contains(s.Visibility, "group:"+one.Name) {
				v.Servers = append(v.Servers, s.Name)
			}
		}
		views[i] = v
	}
	return views, nil
}

func (g *Groups) view(ctx context.Context, one store.Group) (api.GroupView, error) {
	views, err := g.views(ctx, one)
	if err != nil {
		return api.GroupView{}, err
	}
	return views[0], nil
}

func (g *Groups) all(ctx context.Context) ([]api.GroupView, error) {
	all, err := g.Store.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	return g.views(ctx, all...)
}

// emptied returns the groups without any active member.
func (g *Groups) emptied(ctx context.Context, names []string) (out []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := g.all(ctx)
	for _, v := range all {
		active := slices.ContainsFunc(v.Members, func(m api.GroupMember) bool { return m.State == store.Active })
		if slices.Contains(names, v.Name) && !active {
			out = append(out, v.Name)
		}
	}
	return out, err
}

// List returns the groups.
func (g *Groups) List(ctx context.Context, _ store.Caller, _ api.Empty) (api.List[api.GroupView], error) {
	views, err := g.all(ctx)
	return api.Items(views), err
}

// Get returns one group.
func (g *Groups) Get(ctx context.Context, _ store.Caller, req api.GetGroupRequest) (api.GroupView, error) {
	one, err := g.Directory.Group(ctx, req.Name)
	if err != nil {
		return api.GroupView{}, err
	}
	return g.view(ctx, one)
}

// userIDs returns the ids of people given by id, name or identity.
func (g *Groups) userIDs(ctx context.Context, who []string) ([]string, error) {
	var ids []string
	for _, w := range who {
		u, err := g.Directory.Find(ctx, w)
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}

// Add creates a group.
func (g *Groups) Add(ctx context.Context, by store.Caller, req api.AddGroupRequest) (none api.GroupView, err error) {
	made := store.Group{Name: req.Name}
	if made.Members, err = g.userIDs(ctx, req.Members); err != nil {
		return none, err
	}
	seen, err := g.firstCheck(ctx, &made, req)
	if err != nil {
		return none, err
	}
	one, err := g.Store.AddGroup(ctx, by, made)
	if errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("group %q %w: see nizectl groups show %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return none, fmt.Errorf("storing group %s: %w", req.Name, err)
	}
	if one.Live() {
		if one, err = g.Store.RecordGroupCheck(ctx, by, one.Name, seen); err != nil {
			return none, fmt.Errorf("storing the members of group %s: %w", req.Name, err)
		}
		g.Live.add(one)
	}
	return g.view(ctx, one)
}

// firstCheck finds the chat platform's group for a new group and reads its members. If that
// fails, the group is not created.
func (g *Groups) firstCheck(ctx context.Context, one *store.Group, req api.AddGroupRequest) (seen store.GroupCheck, err error) {
	if req.OIDCGroup != "" {
		if req.Usergroup != "" || len(req.Members) > 0 {
			return seen, fmt.Errorf("%w group: its members are those named, or those of one group elsewhere, not both", store.ErrInvalid)
		}
		if req.OIDCGroup != strings.TrimSpace(req.OIDCGroup) || printable.Escape(req.OIDCGroup) != req.OIDCGroup || len(req.OIDCGroup) > 256 {
			return seen, fmt.Errorf("%w group %q: write it as the identity provider does, in up to 256 bytes", store.ErrInvalid, req.OIDCGroup)
		}
		one.Source, one.Handle = store.OIDCSource+req.OIDCGroup, req.OIDCGroup
		return seen, nil
	}
	if req.Usergroup == "" {
		return seen, nil
	}
	bot, on, name, err := g.platform(req.Usergroup)
	if err != nil {
		return seen, err
	}
	if len(req.Members) > 0 {
		return seen, fmt.Errorf("%w group: its members are those named, or those of a %s user group, not both", store.ErrInvalid, bot.Title())
	}
	account, err := g.Account(ctx, bot.Surface())
	if err != nil {
		return seen, err
	}
	if !account.Enabled {
		return seen, store.Mark(fmt.Errorf("the bot on %s is stopped, so its user groups can't be asked for: nizectl bots %s start", bot.Title(), bot.Surface()), store.ErrRefused)
	}
	asking, cancel := context.WithTimeout(ctx, firstCheckTimeout)
	defer cancel()
	if one.Source, one.Handle, err = on.UserGroup(asking, name); err == nil {
		seen.Source = one.Source
		seen.Identities, err = on.InUserGroup(asking, one.Source)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
		return seen, store.Mark(err, api.ErrUnavailable)
	}
	return seen, err
}

// platform returns the platform of a group written NAME:GROUP; GROUP alone is on the first
// platform that has groups.
func (g *Groups) platform(text string) (bot bots.Bot, on bots.GroupDirectory, name string, err error) {
	for _, b := range g.Bots.All() {
		dir, ok := b.(bots.GroupDirectory)
		if !ok {
			continue
		}
		if rest, named := strings.CutPrefix(text, string(b.Surface())+":"); named {
			return b, dir, rest, nil
		}
		if bot == nil {
			bot, on = b, dir
		}
	}
	if bot == nil {
		return nil, nil, "", fmt.Errorf("%w group: no platform has user groups", store.ErrInvalid)
	}
	return bot, on, text, nil
}

// title returns the display name of the platform of a group's source.
func (g *Groups) title(source string) string {
	name, _, _ := strings.Cut(source, ":")
	if bot, ok := bots.On[bots.Bot](g.Bots, store.Surface(name)); ok {
		return bot.Title()
	}
	return name
}

// Patch adds and removes members.
func (g *Groups) Patch(ctx context.Context, by store.Caller, req api.PatchGroupRequest) (none api.GroupView, err error) {
	one, err := g.Directory.Group(ctx, req.Name)
	if err != nil {
		return none, err
	}
	in, err := g.userIDs(ctx, req.Add)
	if err != nil {
		return none, err
	}
	out, err := g.userIDs(ctx, req.Remove)
	if err != nil {
		return none, err
	}
	if one.Provided() {
		return none, store.Mark(fmt.Errorf("group %s: its members are those of %q at the identity provider; change them there", one.Name, one.Handle), store.ErrRefused)
	}
	if one.Live() {
		return none, store.Mark(fmt.Errorf("group %s: its members are those of @%s on %s; change them there", one.Name, one.Handle, g.title(one.Source)), store.ErrRefused)
	}
	if one, err = g.Store.EditGroup(ctx, by, one.Name, in, out); err != nil {
		return none, fmt.Errorf("group %s: %w", req.Name, err)
	}
	return g.view(ctx, one)
}

// Remove removes a group.
func (g *Groups) Remove(ctx context.Context, by store.Caller, req api.RemoveGroupRequest) (none api.Empty, err error) {
	one, err := g.Directory.Group(ctx, req.Name)
	if err != nil {
		return none, err
	}
	if err := g.Store.DeleteGroup(ctx, by, one.Name); err != nil {
		return none, err
	}
	g.Live.remove(one.Name)
	return none, nil
}
