package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/commit"
)

// The members of a live group are stored by identity, not by user. So the membership
// applies from a person's first message, moves with an identity that is linked or unlinked,
// and ends when the identity is forgotten.

const (
	// maxInGroup limits the members found by one check.
	maxInGroup = 10_000
	// clockSlack is how far ahead of the clock a check may be. If the clock was set back, a
	// check from the future must not keep members in the group.
	clockSlack = time.Minute
)

// glance is the last check of a live group; Looked is zero before the first successful one.
type glance struct {
	Looked time.Time `json:"looked,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// fresh reports whether the check is recent enough to grant rights.
func (g glance) fresh(now time.Time) bool {
	age := now.Sub(g.Looked)
	return !g.Looked.IsZero() && age < store.GroupAge && age > -clockSlack
}

// RecordGroupCheck implements [store.LiveGroups].
func (d Access) RecordGroupCheck(ctx context.Context, by store.Caller, name string, s store.GroupCheck) (g store.Group, err error) {
	err = d.db.Write(ctx, "noting who is in group "+name, func(t *commit.Tx) (err error) {
		if g, err = commit.GetJSON[store.Group](t, "groups", []byte(name)); err != nil {
			return err
		}
		if !g.Live() || g.Source != s.Source { // it was created again meanwhile
			return fmt.Errorf("%w look at group %s: it is of another source", store.ErrInvalid, name)
		}
		seen, err := commit.GetJSON[glance](t, "groups_live", []byte(name))
		if err != nil {
			return err
		}
		seen.Error = s.Error
		if s.Error == "" {
			seen.Looked = t.Now
			if err := fillGroup(t, by, name, s.Identities); err != nil {
				return err
			}
		}
		if err := t.PutJSON("groups_live", []byte(name), seen); err != nil {
			return err
		}
		return loadGroup(t, &g)
	})
	if err != nil {
		return store.Group{}, err
	}
	return g, nil
}

// fillGroup makes the identities the members of the group; the event names the users that
// were added and removed.
func fillGroup(t *commit.Tx, by store.Caller, name string, identities []string) error {
	now := map[string]bool{}
	for _, id := range identities {
		if err := commit.CheckIDs("identity", id); err != nil {
			return err
		}
		now[id] = true
	}
	if len(now) > maxInGroup {
		return fmt.Errorf("%w group %s: more than %d people are in it", store.ErrInvalid, name, maxInGroup)
	}
	var moved struct {
		In  []string `json:"in,omitempty"`
		Out []string `json:"out,omitempty"`
	}
	changed := false
	for _, id := range inGroup(t, name) {
		if now[id] {
			delete(now, id)
			continue
		}
		changed = true
		if user := t.Get("identities", []byte(id)); user != nil {
			moved.Out = append(moved.Out, string(user))
		}
		if err := t.Delete("groups_in", commit.Key(name, id)); err != nil {
			return err
		}
	}
	for id := range now {
		changed = true
		if user := t.Get("identities", []byte(id)); user != nil {
			moved.In = append(moved.In, string(user))
		}
		if err := t.Put("groups_in", commit.Key(name, id), []byte{1}); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	slices.Sort(moved.In)
	slices.Sort(moved.Out)
	t.Change(store.Change{Kind: "group", ID: name})
	return t.Event(commit.Note{By: by, Kind: "group.members", Subject: name, Data: moved})
}

// inGroup returns the identities in a live group.
func inGroup(t *commit.Tx, name string) []string {
	prefix := commit.Key(name, "")
	var list []string
	for _, k := range t.Keys("groups_in", prefix, 0) {
		list = append(list, string(k[len(prefix):]))
	}
	return list
}

// loadGroup sets the fields that are not in a live group's record.
func loadGroup(t *commit.Tx, g *store.Group) error {
	if g.Provided() {
		loadProvided(t, g)
		return nil
	}
	if !g.Live() {
		return nil
	}
	seen, err := commit.GetJSON[glance](t, "groups_live", []byte(g.Name))
	if err != nil {
		return err
	}
	g.Checked, g.Error, g.Members = seen.Looked, seen.Error, []string{}
	for _, id := range inGroup(t, g.Name) {
		if user := t.Get("identities", []byte(id)); user != nil {
			g.Members = append(g.Members, string(user))
		}
	}
	slices.Sort(g.Members)
	g.Members = slices.Compact(g.Members)
	return nil
}

// liveGroupsWith returns the names of the live groups that contain one of the identities.
// If a group's last check is too old, it counts as empty for granting rights, and as
// containing everyone for denials.
func liveGroupsWith(t *commit.Tx, identities []string, denying bool) (names []string, err error) {
	err = t.Each("groups_live", nil, func(k, v []byte) error {
		seen, err := commit.DecodeJSON[glance](v)
		if err != nil {
			return err
		}
		name := string(k)
		in := slices.ContainsFunc(identities, func(id string) bool { return t.Get("groups_in", commit.Key(name, id)) != nil })
		if fresh := seen.fresh(t.Now); fresh && in || !fresh && denying {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// GroupsAwaiting implements [store.LiveGroups].
func (d Access) GroupsAwaiting(ctx context.Context, identity string) (names []string, err error) {
	now := d.db.Now()
	err = d.db.Read(ctx, "reading the groups of "+identity, func(t *commit.Tx) (err error) {
		t.Now = now
		names, err = liveGroupsWith(t, []string{identity}, false)
		return err
	})
	return names, err
}

// IsProvided implements [store.LiveGroups].
func (d Access) IsProvided(ctx context.Context, name string) (provided bool, err error) {
	err = d.db.Read(ctx, "reading the source of group "+name, func(t *commit.Tx) error {
		g, err := commit.GetJSON[store.Group](t, "groups", []byte(name))
		provided = err == nil && g.Provided()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	return provided, err
}

// GroupsOf returns the sorted names of the groups that a user is in.
func GroupsOf(t *commit.Tx, user string, denying bool) ([]string, error) {
	names := ListsOf(t, user)
	if t.First("groups_live", nil) == nil && t.First("provided_to", nil) == nil {
		return names, nil
	}
	u, err := commit.GetJSON[store.User](t, "users", []byte(t.DB.Alias(user)))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	live, err := liveGroupsWith(t, u.Identities, denying)
	if err != nil {
		return nil, err
	}
	names = slices.Concat(names, live, providedTo(t, u.Identities))
	slices.Sort(names)
	return slices.Compact(names), nil
}

// GroupMembers returns the users whose use counts for a group's budget: its members, and
// asks if the last check is too old, because asks may then be a member.
func GroupMembers(t *commit.Tx, name, asks string) ([]string, error) {
	g, err := commit.GetJSON[store.Group](t, "groups", []byte(name))
	if errors.Is(err, store.ErrNotFound) { // a deleted group has no members
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := loadGroup(t, &g); err != nil {
		return nil, err
	}
	if g.Live() && asks != "" && !slices.Contains(g.Members, asks) && !(glance{Looked: g.Checked}).fresh(t.Now) {
		return append(g.Members, asks), nil
	}
	return g.Members, nil
}

// checkSource returns an error if the source of a group is invalid.
func checkSource(g store.Group) error {
	if g.Source == "" {
		return nil
	}
	surface, id, ok := strings.Cut(g.Source, ":")
	if !ok || surface == "" || id == "" || len(g.Members) > 0 {
		return fmt.Errorf("%w group %s: it is a list of members, or of a chat platform or identity provider", store.ErrInvalid, g.Name)
	}
	return commit.CheckIDs("source", g.Source)
}
