package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
)

// AddGroup implements [store.Groups].
func (d Access) AddGroup(ctx context.Context, by store.Caller, g store.Group) (store.Group, error) {
	var made store.Group
	err := d.db.Write(ctx, "adding group "+g.Name, func(t *commit.Tx) error {
		if err := store.CheckSlug(g.Name); err != nil {
			return err
		}
		if t.Get("groups", []byte(g.Name)) != nil {
			return store.ErrExists
		}
		if err := checkSource(g); err != nil {
			return err
		}
		made = store.Group{Name: g.Name, Source: g.Source, Handle: g.Handle, Created: t.Now}
		if name, ok := strings.CutPrefix(made.Source, store.OIDCSource); ok {
			if err := t.Put("provided_to", commit.Key(name, made.Name), []byte{1}); err != nil {
				return err
			}
		}
		if made.Live() {
			if err := t.PutJSON("groups_live", []byte(g.Name), glance{}); err != nil {
				return err
			}
		}
		if err := PutGroup(t, by, &made, g.Members, nil); err != nil {
			return err
		}
		return loadGroup(t, &made)
	})
	if err != nil {
		return store.Group{}, err
	}
	return made, nil
}

// EditGroup implements [store.Groups].
func (d Access) EditGroup(ctx context.Context, by store.Caller, name string, in, out []string) (g store.Group, err error) {
	err = d.db.Write(ctx, "changing group "+name, func(t *commit.Tx) (err error) {
		if g, err = commit.GetJSON[store.Group](t, "groups", []byte(name)); err != nil {
			return err
		}
		if g.Source != "" {
			return store.Mark(fmt.Errorf("who is in it is changed at its source, %s", g.Source), store.ErrRefused)
		}
		return PutGroup(t, by, &g, in, out)
	})
	if err != nil {
		return store.Group{}, err
	}
	return g, nil
}

// PutGroup adds and removes members, in the group and in the index by user.
func PutGroup(t *commit.Tx, by store.Caller, g *store.Group, in, out []string) error {
	for _, id := range in {
		if t.Get("users", []byte(id)) == nil {
			return fmt.Errorf("member %s: %w", id, store.ErrNotFound)
		}
	}
	members := slices.Concat(g.Members, in)
	members = slices.DeleteFunc(members, func(id string) bool { return slices.Contains(out, id) })
	slices.Sort(members)
	members = slices.Compact(members)
	if err := indexGroup(t, g.Name, g.Members, members); err != nil {
		return err
	}
	g.Members = members
	return t.PutRecord(by, commit.Record{Kind: "group", Bucket: "groups", ID: g.Name}, *g)
}

// indexGroup moves the group's entries by user from the old members to the new.
func indexGroup(t *commit.Tx, name string, old, members []string) error {
	for _, id := range old {
		if err := t.Delete("groups_user", commit.Key(id, name)); err != nil {
			return err
		}
	}
	for _, id := range members {
		if err := t.Put("groups_user", commit.Key(id, name), nil); err != nil {
			return err
		}
	}
	return nil
}

// DeleteGroup implements [store.Groups].
func (d Access) DeleteGroup(ctx context.Context, by store.Caller, name string) error {
	return d.db.Write(ctx, "removing group "+name, func(t *commit.Tx) error {
		g, err := commit.GetJSON[store.Group](t, "groups", []byte(name))
		if err != nil {
			return err
		}
		if err := unshared(t, "group:"+name); err != nil {
			return err
		}
		if err := t.Delete("groups", []byte(name)); err != nil {
			return err
		}
		if err := indexGroup(t, name, g.Members, nil); err != nil {
			return err
		}
		if err := t.Delete("groups_live", []byte(name)); err != nil {
			return err
		}
		if err := t.DeletePrefix("groups_in", commit.Key(name, "")); err != nil {
			return err
		}
		if provided, ok := strings.CutPrefix(g.Source, store.OIDCSource); ok {
			if err := t.Delete("provided_to", commit.Key(provided, name)); err != nil {
				return err
			}
		}
		t.Change(store.Change{Kind: "group", ID: name})
		return t.Event(commit.Note{By: by, Kind: "group.delete", Subject: name})
	})
}

// unshared returns an error if anything is shared with who. It must be shared with others
// before who can be deleted.
func unshared(t *commit.Tx, who string) error {
	servers, err := commit.ListJSON[store.Server](t, "servers", nil)
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
	if approver(store.Policy(t.Get("settings", commit.Key("", "approvals.approvers"))), who) {
		return store.Mark(fmt.Errorf("the setting approvals.approvers names it; change that first"), store.ErrRefused)
	}
	if access, err := store.ParseAccess(string(t.Get("settings", commit.Key("", "bots.access")))); err == nil && slices.Contains(access, who) {
		return store.Mark(fmt.Errorf("the setting bots.access names it; change that first"), store.ErrRefused)
	}
	agents, err := commit.ListJSON[store.Agent](t, "agents", nil)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if slices.Contains(a.Who, who) {
			return store.Mark(fmt.Errorf("agent %s is for it; change its --who first", a.ID), store.ErrRefused)
		}
	}
	models, err := commit.ListJSON[store.ModelName](t, "models", nil)
	if err != nil {
		return err
	}
	for _, m := range models {
		if slices.Contains(m.Who, who) {
			return store.Mark(fmt.Errorf("model %s is for it; change its --who first", m.Name), store.ErrRefused)
		}
	}
	channels, err := commit.ListJSON[store.Channel](t, "channels", nil)
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

// CheckGroups returns an error if a share list names a group that doesn't exist: a group of
// that name created later must not get access.
func CheckGroups(t *commit.Tx, list []string) error {
	for _, who := range list {
		if name, ok := strings.CutPrefix(who, "group:"); ok && t.Get("groups", []byte(name)) == nil {
			return fmt.Errorf("group %q: %w", name, store.ErrNotFound)
		}
	}
	return nil
}

// CheckApprovers returns an error if a policy can't be parsed, or names a user or group
// that doesn't exist.
func CheckApprovers(t *commit.Tx, p store.Policy) error {
	if p == "" {
		return nil
	}
	a, err := store.ParsePolicy(string(p))
	if err != nil {
		return err
	}
	for _, who := range a.Who {
		if id, ok := strings.CutPrefix(who, "user:"); ok && t.Get("users", []byte(id)) == nil {
			return fmt.Errorf("user %q: %w", id, store.ErrNotFound)
		}
	}
	return CheckGroups(t, a.Who)
}

// ListGroups implements [store.Groups].
func (d Access) ListGroups(ctx context.Context) (list []store.Group, err error) {
	err = d.db.Read(ctx, "listing groups", func(t *commit.Tx) (err error) {
		if list, err = commit.ListJSON[store.Group](t, "groups", nil); err != nil {
			return err
		}
		for i := range list {
			if err := loadGroup(t, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// GroupsOf implements [store.Groups].
func (d Access) GroupsOf(ctx context.Context, user string) (names []string, err error) {
	what, now := "reading the groups of "+user, d.db.Now()
	lists, err := commit.Recall(ctx, d.db, what, listsOf(user), func(t *commit.Tx) (listed, error) { // every call reads it
		return listed{ListsOf(t, user), t.First("groups_live", nil) != nil || t.First("provided_to", nil) != nil}, nil
	}, "groups_user", "groups_live", "provided_to")
	if err != nil || !lists.live {
		return slices.Clone(lists.names), err
	}
	err = d.db.Read(ctx, what, func(t *commit.Tx) (err error) {
		t.Now = now
		names, err = GroupsOf(t, user, false)
		return err
	})
	return names, err
}

// listsOf is the cache key of a user's lists.
type listsOf string

type listed struct {
	names []string
	live  bool // there are also groups by identity, some of which depend on the time
}

// ListsOf returns the names of the list groups that contain a user.
func ListsOf(t *commit.Tx, user string) (names []string) {
	for _, k := range t.Keys("groups_user", commit.Key(user, ""), 0) {
		names = append(names, string(k[len(user)+1:]))
	}
	return names
}

// Replaced returns list with into instead of from; "" removes from.
func Replaced(list []string, from, into string) []string {
	var out []string
	for _, who := range list {
		if who == from {
			who = into
		}
		if who != "" && !slices.Contains(out, who) {
			out = append(out, who)
		}
	}
	return out
}

// Reassigned returns a policy that names into instead of from, and whether it named from.
// If fewer different people remain than must approve, the admins are added, so that the
// required number stays the same and can be reached.
func Reassigned(p store.Policy, from, into string) (store.Policy, bool) {
	if !approver(p, from) {
		return p, false
	}
	a := p.Approvers()
	a.Who = Replaced(a.Who, from, into)
	if _, err := store.ParsePolicy(string(a.Policy())); err != nil {
		a.Who = append(a.Who, string(store.ByAdmins))
	}
	return a.Policy(), true
}
