package database

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// AddGroup implements [store.Groups].
func (d *DB) AddGroup(ctx context.Context, by store.Caller, g store.Group) (store.Group, error) {
	var made store.Group
	err := d.update(ctx, "adding group "+g.Name, func(t *tx) error {
		if err := store.CheckSlug(g.Name); err != nil {
			return err
		}
		if t.get("groups", []byte(g.Name)) != nil {
			return store.ErrExists
		}
		if err := checkSource(g); err != nil {
			return err
		}
		made = store.Group{Name: g.Name, Source: g.Source, Handle: g.Handle, Created: t.now}
		if made.Live() {
			if err := t.putJSON("groups_live", []byte(g.Name), glance{}); err != nil {
				return err
			}
		}
		return t.putGroup(by, &made, g.Members, nil)
	})
	if err != nil {
		return store.Group{}, err
	}
	return made, nil
}

// EditGroup implements [store.Groups].
func (d *DB) EditGroup(ctx context.Context, by store.Caller, name string, in, out []string) (g store.Group, err error) {
	err = d.update(ctx, "changing group "+name, func(t *tx) (err error) {
		if g, err = getJSON[store.Group](t, "groups", []byte(name)); err != nil {
			return err
		}
		if g.Live() {
			return store.Mark(fmt.Errorf("who is in it is changed at its source, %s", g.Source), store.ErrRefused)
		}
		return t.putGroup(by, &g, in, out)
	})
	if err != nil {
		return store.Group{}, err
	}
	return g, nil
}

// putGroup takes members in and out, in the group and in the index by user.
func (t *tx) putGroup(by store.Caller, g *store.Group, in, out []string) error {
	for _, id := range in {
		if t.get("users", []byte(id)) == nil {
			return fmt.Errorf("member %s: %w", id, store.ErrNotFound)
		}
	}
	members := slices.Concat(g.Members, in)
	members = slices.DeleteFunc(members, func(id string) bool { return slices.Contains(out, id) })
	slices.Sort(members)
	members = slices.Compact(members)
	if err := t.indexGroup(g.Name, g.Members, members); err != nil {
		return err
	}
	g.Members = members
	return t.putThing(by, thing{"group", "groups", g.Name}, *g)
}

// indexGroup moves the group's entries by user from the old members to the new.
func (t *tx) indexGroup(name string, old, members []string) error {
	for _, id := range old {
		if err := t.del("groups_user", key(id, name)); err != nil {
			return err
		}
	}
	for _, id := range members {
		if err := t.put("groups_user", key(id, name), nil); err != nil {
			return err
		}
	}
	return nil
}

// DeleteGroup implements [store.Groups].
func (d *DB) DeleteGroup(ctx context.Context, by store.Caller, name string) error {
	return d.update(ctx, "removing group "+name, func(t *tx) error {
		g, err := getJSON[store.Group](t, "groups", []byte(name))
		if err != nil {
			return err
		}
		if err := t.unshared("group:" + name); err != nil {
			return err
		}
		if err := t.del("groups", []byte(name)); err != nil {
			return err
		}
		if err := t.indexGroup(name, g.Members, nil); err != nil {
			return err
		}
		if err := t.del("groups_live", []byte(name)); err != nil {
			return err
		}
		if err := t.delPrefix("groups_in", key(name, "")); err != nil {
			return err
		}
		t.change(store.Change{Kind: "group", ID: name})
		return t.event(auditNote{by: by, kind: "group.delete", subject: name})
	})
}

// unshared refuses if something is shared with who: what is to be gone then
// must be shared otherwise first.
func (t *tx) unshared(who string) error {
	servers, err := listJSON[store.Server](t, "servers", nil)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if slices.Contains(s.Visibility, who) {
			return store.Mark(fmt.Errorf("server %s is shared with it; share that otherwise first", s.Name), store.ErrRefused)
		}
		if approver(s.Approvers, who) {
			return store.Mark(fmt.Errorf("it approves calls of server %s; give that other --approvers first", s.Name), store.ErrRefused)
		}
	}
	if approver(store.Policy(t.get("settings", key("", "approvals.approvers"))), who) {
		return store.Mark(fmt.Errorf("the setting approvals.approvers names it; change that first"), store.ErrRefused)
	}
	if access, err := store.ParseAccess(string(t.get("settings", key("", "bots.access")))); err == nil && slices.Contains(access, who) {
		return store.Mark(fmt.Errorf("the setting bots.access names it; change that first"), store.ErrRefused)
	}
	agents, err := listJSON[store.Agent](t, "agents", nil)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if slices.Contains(a.Who, who) {
			return store.Mark(fmt.Errorf("agent %s is for it; change its --who first", a.ID), store.ErrRefused)
		}
	}
	models, err := listJSON[store.ModelName](t, "models", nil)
	if err != nil {
		return err
	}
	for _, m := range models {
		if slices.Contains(m.Who, who) {
			return store.Mark(fmt.Errorf("model %s is for it; change its --who first", m.Name), store.ErrRefused)
		}
	}
	channels, err := listJSON[store.Channel](t, "channels", nil)
	if err != nil {
		return err
	}
	for _, c := range channels {
		if approver(c.Approvers, who) || slices.Contains(c.Admins, who) {
			return store.Mark(fmt.Errorf("the channel %s names it; nizectl bots channels set %s with other --approvers and --admins first", c.Place, c.Place), store.ErrRefused)
		}
	}
	return nil
}

func approver(p store.Policy, who string) bool {
	return p != "" && slices.Contains(p.Approvers().Who, who)
}

// checkGroups refuses a list of whom something is shared with that names a
// group which is not there: one that is made later must not get it unasked.
func (t *tx) checkGroups(list []string) error {
	for _, who := range list {
		if name, ok := strings.CutPrefix(who, "group:"); ok && t.get("groups", []byte(name)) == nil {
			return fmt.Errorf("group %q: %w", name, store.ErrNotFound)
		}
	}
	return nil
}

// checkApprovers refuses a policy that can't be read, or that names somebody
// who is not there.
func (t *tx) checkApprovers(p store.Policy) error {
	if p == "" {
		return nil
	}
	a, err := store.ParsePolicy(string(p))
	if err != nil {
		return err
	}
	for _, who := range a.Who {
		if id, ok := strings.CutPrefix(who, "user:"); ok && t.get("users", []byte(id)) == nil {
			return fmt.Errorf("user %q: %w", id, store.ErrNotFound)
		}
	}
	return t.checkGroups(a.Who)
}

// ListGroups implements [store.Groups].
func (d *DB) ListGroups(ctx context.Context) (list []store.Group, err error) {
	err = d.view(ctx, "listing groups", func(t *tx) (err error) {
		if list, err = listJSON[store.Group](t, "groups", nil); err != nil {
			return err
		}
		for i := range list {
			if err := t.loadGroup(&list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// GroupsOf implements [store.Groups].
func (d *DB) GroupsOf(ctx context.Context, user string) (names []string, err error) {
	now := d.clock.now()
	err = d.view(ctx, "reading the groups of "+user, func(t *tx) (err error) {
		t.now = now
		names, err = t.groupsOf(user, false)
		return err
	})
	return names, err
}

// listsOf names the groups that are lists with a user in them.
func (t *tx) listsOf(user string) (names []string) {
	for _, k := range t.keys("groups_user", key(user, ""), 0) {
		names = append(names, string(k[len(user)+1:]))
	}
	return names
}
