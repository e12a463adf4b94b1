package database

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nize/store"
)

// PutGrant implements [store.Grants].
func (d *DB) PutGrant(ctx context.Context, by store.Caller, g store.Grant) error {
	return d.update(ctx, "storing grant for "+g.Tool, func(t *tx) error { return t.putGrant(by, g) })
}

func (t *tx) putGrant(by store.Caller, g store.Grant) error {
	g.ID = cmp.Or(g.ID, store.NewID(t.now))
	if err := checkIDs("grant id", g.ID, "user", g.User, "tool", g.Tool); err != nil {
		return err
	}
	if g.Created.IsZero() {
		g.Created = t.now
	}
	owner := g.Owner()
	if err := checkIDs("owner", owner); err != nil {
		return err
	}
	if was := t.get("grants", []byte(g.ID)); was != nil && string(was) != owner {
		return store.ErrExists // another person's
	}
	if err := t.put("grants", []byte(g.ID), []byte(owner)); err != nil {
		return err
	}
	if err := t.putJSON("grants_user", key(owner, g.ID), g); err != nil {
		return err
	}
	t.change(store.Change{Kind: "grant", ID: g.ID})
	return t.event(auditNote{by: by, kind: "grant.put", subject: g.ID, tool: g.Tool, data: g})
}

type grantsOf string

// ListGrants implements [store.Grants].
func (d *DB) ListGrants(ctx context.Context, owners ...string) (list []store.Grant, err error) {
	list, err = recall(ctx, d, "listing grants", grantsOf(strings.Join(owners, "\x00")), func(t *tx) (list []store.Grant, err error) {
		for _, owner := range owners {
			var prefix []byte
			if owner != "" {
				prefix = key(owner, "")
			}
			some, err := listJSON[store.Grant](t, "grants_user", prefix)
			if err != nil {
				return nil, err
			}
			list = append(list, some...)
		}
		return list, nil
	}, "grants_user")
	return slices.Clone(list), err
}

// DeleteGrant implements [store.Grants].
func (d *DB) DeleteGrant(ctx context.Context, by store.Caller, id string) error {
	return d.update(ctx, "removing grant "+id, func(t *tx) error {
		owner := t.get("grants", []byte(id))
		if owner == nil {
			return store.ErrNotFound
		}
		return t.deleteGrant(by, string(owner), id)
	})
}

func (t *tx) deleteGrant(by store.Caller, owner, id string) error {
	g, err := getJSON[store.Grant](t, "grants_user", key(owner, id))
	if err != nil {
		return err
	}
	if err := t.del("grants_user", key(owner, id)); err != nil {
		return err
	}
	if err := t.del("grants", []byte(id)); err != nil {
		return err
	}
	t.change(store.Change{Kind: "grant", ID: id})
	return t.event(auditNote{by: by, kind: "grant.delete", subject: id, tool: g.Tool, data: g})
}
