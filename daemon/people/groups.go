package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// Groups: named people, with whom things are shared.

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
		v := api.GroupView{
			Name: g.Name, Members: []api.GroupMember{}, Servers: []string{}, Created: g.Created,
			Source: g.Source, Handle: g.Handle, Looked: g.Checked, Error: g.Error,
		}
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
	g, err := d.directory.Group(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return d.groupView(ctx, g)
}

// userIDs finds people as they were typed.
func (d *Daemon) userIDs(ctx context.Context, who []string) ([]string, error) {
	var ids []string
	for _, w := range who {
		u, err := d.directory.Find(ctx, w)
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
	made := store.Group{Name: req.Name}
	if made.Members, err = d.userIDs(ctx, req.Members); err != nil {
		return nil, err
	}
	seen, err := d.firstLook(ctx, &made, req)
	if err != nil {
		return nil, err
	}
	g, err := d.db.AddGroup(ctx, by, made)
	if errors.Is(err, store.ErrExists) {
		return nil, fmt.Errorf("group %q %w: see nizectl groups show %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("storing group %s: %w", req.Name, err)
	}
	if g.Live() {
		if g, err = d.db.RecordGroupCheck(ctx, by, g.Name, seen); err != nil {
			return nil, fmt.Errorf("noting who is in group %s: %w", req.Name, err)
		}
		d.groups.know(g)
	}
	return d.groupView(ctx, g)
}

// firstLook finds the group of people on a chat platform whose members are to be
// those of the group, and looks at it: one that can't be looked at is not made.
func (d *Daemon) firstLook(ctx context.Context, g *store.Group, req api.AddGroup) (seen store.GroupCheck, err error) {
	if req.SlackUsergroup == "" {
		return seen, nil
	}
	bot, on, name, err := d.groupsOn(req.SlackUsergroup)
	if err != nil {
		return seen, err
	}
	if len(req.Members) > 0 {
		return seen, fmt.Errorf("%w group: its members are those named, or those of a %s user group, not both", store.ErrInvalid, bot.Title())
	}
	account, err := d.account(ctx, string(bot.Surface()))
	if err != nil {
		return seen, err
	}
	if !account.Enabled {
		return seen, fmt.Errorf("%w: the bot on %s is stopped, so its user groups can't be asked for: nizectl bots %s start", store.ErrRefused, bot.Title(), bot.Surface())
	}
	asking, cancel := context.WithTimeout(ctx, botPatience)
	defer cancel()
	if g.Source, g.Handle, err = on.UserGroup(asking, name); err == nil {
		seen.Source = g.Source
		seen.Identities, err = on.InUserGroup(asking, g.Source)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
		return seen, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return seen, err
}

// groupsOn finds the platform of a group of people written NAME:GROUP; GROUP
// alone is on the first that has any.
func (d *Daemon) groupsOn(text string) (bot bots.Bot, on bots.GroupDirectory, name string, err error) {
	for _, b := range d.bots.All() {
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

// titleOf is how people write the platform of a group's source.
func (d *Daemon) titleOf(source string) string {
	name, _, _ := strings.Cut(source, ":")
	if bot, ok := bots.On[bots.Bot](d.bots, store.Surface(name)); ok {
		return bot.Title()
	}
	return name
}

func (d *Daemon) patchGroup(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PatchGroup](r)
	if err != nil {
		return nil, err
	}
	g, err := d.directory.Group(ctx, r.PathValue("name"))
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
	if g.Live() {
		return nil, fmt.Errorf("group %s: %w: its members are those of @%s on %s; change them there", g.Name, store.ErrRefused, g.Handle, d.titleOf(g.Source))
	}
	if g, err = d.db.EditGroup(ctx, by, g.Name, in, out); err != nil {
		return nil, fmt.Errorf("group %s: %w", r.PathValue("name"), err)
	}
	return d.groupView(ctx, g)
}

func (d *Daemon) removeGroup(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	g, err := d.directory.Group(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := d.db.DeleteGroup(ctx, by, g.Name); err != nil {
		return nil, err
	}
	d.groups.forget(g.Name)
	return nil, nil
}
