package bolt

import (
	"cmp"
	"context"

	"nize/store"
)

// PutGrant implements [store.Grants].
func (d *DB) PutGrant(ctx context.Context, by store.Caller, g store.Grant) error {
	return d.do(ctx, "storing grant for "+g.Tool, func(t *tx) error {
		g := g
		g.ID = cmp.Or(g.ID, store.NewID(t.now))
		if err := checkIDs("grant id", g.ID, "user", g.User, "tool", g.Tool); err != nil {
			return err
		}
		if g.Created.IsZero() {
			g.Created = t.now
		}
		if was := t.get("grants", []byte(g.ID)); was != nil && string(was) != g.User {
			return store.ErrExists // another person's
		}
		if err := t.put("grants", []byte(g.ID), []byte(g.User)); err != nil {
			return err
		}
		if err := t.putJSON("grants_user", key(g.User, g.ID), g); err != nil {
			return err
		}
		t.change(store.Change{Kind: "grant", ID: g.ID})
		return t.event(note{by: by, kind: "grant.put", subject: g.ID, tool: g.Tool, data: g})
	})
}

// ListGrants implements [store.Grants]; user "" is every user.
func (d *DB) ListGrants(ctx context.Context, user string) (list []store.Grant, err error) {
	var prefix []byte
	if user != "" {
		prefix = key(user, "")
	}
	err = d.view(ctx, "listing grants", func(t *tx) (err error) {
		list, err = listJSON[store.Grant](t, "grants_user", prefix)
		return err
	})
	return list, err
}

// DeleteGrant implements [store.Grants].
func (d *DB) DeleteGrant(ctx context.Context, by store.Caller, id string) error {
	return d.do(ctx, "removing grant "+id, func(t *tx) error {
		user := t.get("grants", []byte(id))
		if user == nil {
			return store.ErrNotFound
		}
		return t.deleteGrant(by, string(user), id)
	})
}

func (t *tx) deleteGrant(by store.Caller, user, id string) error {
	g, err := getJSON[store.Grant](t, "grants_user", key(user, id))
	if err != nil {
		return err
	}
	if err := t.del("grants_user", key(user, id)); err != nil {
		return err
	}
	if err := t.del("grants", []byte(id)); err != nil {
		return err
	}
	t.change(store.Change{Kind: "grant", ID: id})
	return t.event(note{by: by, kind: "grant.delete", subject: id, tool: g.Tool, data: g})
}
