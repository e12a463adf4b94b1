package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Who is in a group of a chat platform is kept by identity, not by user: so it
// holds for somebody from their first message on, moves with an identity that is
// linked or unlinked, and ends with one that is forgotten.

const (
	// maxInGroup bounds what one look finds.
	maxInGroup = 10_000
	// clockSlack is how far ahead of the clock a look may be: a clock that went
	// back does not keep people in.
	clockSlack = time.Minute
)

// glance is the last look at a live group; Looked is zero before the first good
// one.
type glance struct {
	Looked time.Time `json:"looked,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// fresh says whether the look still allows anything.
func (g glance) fresh(now time.Time) bool {
	age := now.Sub(g.Looked)
	return !g.Looked.IsZero() && age < store.GroupAge && age > -clockSlack
}

// RecordGroupCheck implements [store.LiveGroups].
func (d *DB) RecordGroupCheck(ctx context.Context, by store.Caller, name string, s store.GroupCheck) (g store.Group, err error) {
	err = d.update(ctx, "noting who is in group "+name, func(t *tx) (err error) {
		if g, err = getJSON[store.Group](t, "groups", []byte(name)); err != nil {
			return err
		}
		if !g.Live() || g.Source != s.Source { // it was made again meanwhile
			return fmt.Errorf("%w look at group %s: it is of another source", store.ErrInvalid, name)
		}
		seen, err := getJSON[glance](t, "groups_live", []byte(name))
		if err != nil {
			return err
		}
		seen.Error = s.Error
		if s.Error == "" {
			seen.Looked = t.now
			if err := t.fillGroup(by, name, s.Identities); err != nil {
				return err
			}
		}
		if err := t.putJSON("groups_live", []byte(name), seen); err != nil {
			return err
		}
		return t.loadGroup(&g)
	})
	if err != nil {
		return store.Group{}, err
	}
	return g, nil
}

// fillGroup makes the identities those of the group; the event names the users
// among them that came and went.
func (t *tx) fillGroup(by store.Caller, name string, identities []string) error {
	now := map[string]bool{}
	for _, id := range identities {
		if err := checkIDs("identity", id); err != nil {
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
	for _, id := range t.inGroup(name) {
		if now[id] {
			delete(now, id)
			continue
		}
		changed = true
		if user := t.get("identities", []byte(id)); user != nil {
			moved.Out = append(moved.Out, string(user))
		}
		if err := t.del("groups_in", key(name, id)); err != nil {
			return err
		}
	}
	for id := range now {
		changed = true
		if user := t.get("identities", []byte(id)); user != nil {
			moved.In = append(moved.In, string(user))
		}
		if err := t.put("groups_in", key(name, id), []byte{1}); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	slices.Sort(moved.In)
	slices.Sort(moved.Out)
	t.change(store.Change{Kind: "group", ID: name})
	return t.event(auditNote{by: by, kind: "group.members", subject: name, data: moved})
}

// inGroup lists the identities in a live group.
func (t *tx) inGroup(name string) []string {
	prefix := key(name, "")
	var list []string
	for _, k := range t.keys("groups_in", prefix, 0) {
		list = append(list, string(k[len(prefix):]))
	}
	return list
}

// loadGroup fills in what a live group's record does not hold.
func (t *tx) loadGroup(g *store.Group) error {
	if !g.Live() {
		return nil
	}
	seen, err := getJSON[glance](t, "groups_live", []byte(g.Name))
	if err != nil {
		return err
	}
	g.Checked, g.Error, g.Members = seen.Looked, seen.Error, []string{}
	for _, id := range t.inGroup(g.Name) {
		if user := t.get("identities", []byte(id)); user != nil {
			g.Members = append(g.Members, string(user))
		}
	}
	slices.Sort(g.Members)
	g.Members = slices.Compact(g.Members)
	return nil
}

// liveGroupsWith names the live groups that one of the identities is in. One
// whose look is too old has nobody in it for what it allows, and everybody for
// what it denies.
func (t *tx) liveGroupsWith(identities []string, denying bool) (names []string, err error) {
	err = t.each("groups_live", nil, func(k, v []byte) error {
		seen, err := decodeJSON[glance](v)
		if err != nil {
			return err
		}
		name := string(k)
		in := slices.ContainsFunc(identities, func(id string) bool { return t.get("groups_in", key(name, id)) != nil })
		if fresh := seen.fresh(t.now); fresh && in || !fresh && denying {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// GroupsAwaiting implements [store.LiveGroups].
func (d *DB) GroupsAwaiting(ctx context.Context, identity string) (names []string, err error) {
	now := d.clock.now()
	err = d.view(ctx, "reading the groups of "+identity, func(t *tx) (err error) {
		t.now = now
		names, err = t.liveGroupsWith([]string{identity}, false)
		return err
	})
	return names, err
}

// groupsOf names the groups that a user is in, sorted.
func (t *tx) groupsOf(user string, denying bool) ([]string, error) {
	names := t.listsOf(user)
	if t.first("groups_live", nil) == nil {
		return names, nil
	}
	u, err := getJSON[store.User](t, "users", []byte(t.db.alias(user)))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	live, err := t.liveGroupsWith(u.Identities, denying)
	if err != nil {
		return nil, err
	}
	names = append(names, live...)
	slices.Sort(names)
	return names, nil
}

// groupMembers are the users whose use counts for a group's budget: those in
// it, and, as it can't be known that they are not, who asks while the last look
// is too old.
func (t *tx) groupMembers(name, asks string) ([]string, error) {
	g, err := getJSON[store.Group](t, "groups", []byte(name))
	if errors.Is(err, store.ErrNotFound) { // one that was removed has no members
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := t.loadGroup(&g); err != nil {
		return nil, err
	}
	if g.Live() && asks != "" && !slices.Contains(g.Members, asks) && !(glance{Looked: g.Checked}).fresh(t.now) {
		return append(g.Members, asks), nil
	}
	return g.Members, nil
}

// checkSource refuses a group of a platform that can't be one.
func checkSource(g store.Group) error {
	if !g.Live() {
		return nil
	}
	surface, id, ok := strings.Cut(g.Source, ":")
	if !ok || surface == "" || id == "" || len(g.Members) > 0 {
		return fmt.Errorf("%w group %s: it is a list of members, or a platform's", store.ErrInvalid, g.Name)
	}
	return checkIDs("source", g.Source)
}
