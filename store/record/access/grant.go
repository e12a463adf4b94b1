package access

import (
	"cmp"
	"context"
	"time"

	"nize/store"
	"nize/store/commit"
)

// Access says who may do what: groups, standing answers, tokens, credentials.
type Access struct {
	db    *commit.DB
	noted *noted
}

// Over returns groups, standing answers, tokens and credentials as db keeps them.
func Over(db *commit.DB) Access { return Access{db, &noted{at: map[string]time.Time{}}} }

// PutGrant implements [store.Grants].
func (d Access) PutGrant(ctx context.Context, by store.Caller, g store.Grant) error {
	return d.db.Write(ctx, "storing grant for "+g.Tool, func(t *commit.Tx) error { return PutGrant(t, by, g) })
}

// PutGrant is [Access.PutGrant] within a transaction.
func PutGrant(t *commit.Tx, by store.Caller, g store.Grant) error {
	g.ID = cmp.Or(g.ID, store.NewID(t.Now))
	if err := commit.CheckIDs("grant id", g.ID, "user", g.User, "tool", g.Tool); err != nil {
		return err
	}
	if g.Created.IsZero() {
		g.Created = t.Now
	}
	owner := g.Owner()
	if err := commit.CheckIDs("owner", owner); err != nil {
		return err
	}
	if was := t.Get("grants", []byte(g.ID)); was != nil && string(was) != owner {
		return store.ErrExists // another person's
	}
	if err := t.Put("grants", []byte(g.ID), []byte(owner)); err != nil {
		return err
	}
	if err := t.PutJSON("grants_user", commit.Key(owner, g.ID), g); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "grant", ID: g.ID})
	return t.Event(commit.Note{By: by, Kind: "grant.put", Subject: g.ID, Tool: g.Tool, Data: g})
}

type grantsOf string

// ListGrants implements [store.Grants].
func (d Access) ListGrants(ctx context.Context, owners ...string) (list []store.Grant, err error) {
	// Each call asks for those of its conversation, which are its own, and for those of
	// few people: so each owner's are kept apart.
	for _, owner := range owners {
		some, err := commit.Recall(ctx, d.db, "listing grants", grantsOf(owner), func(t *commit.Tx) ([]store.Grant, error) {
			var prefix []byte
			if owner != "" {
				prefix = commit.Key(owner, "")
			}
			return commit.ListJSON[store.Grant](t, "grants_user", prefix)
		}, "grants_user")
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// DeleteGrant implements [store.Grants].
func (d Access) DeleteGrant(ctx context.Context, by store.Caller, id string) error {
	return d.db.Write(ctx, "removing grant "+id, func(t *commit.Tx) error {
		owner := t.Get("grants", []byte(id))
		if owner == nil {
			return store.ErrNotFound
		}
		return DeleteGrant(t, by, string(owner), id)
	})
}

// DeleteGrant is [Access.DeleteGrant] of an owner, within a transaction.
func DeleteGrant(t *commit.Tx, by store.Caller, owner, id string) error {
	g, err := commit.GetJSON[store.Grant](t, "grants_user", commit.Key(owner, id))
	if err != nil {
		return err
	}
	if err := t.Delete("grants_user", commit.Key(owner, id)); err != nil {
		return err
	}
	if err := t.Delete("grants", []byte(id)); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "grant", ID: id})
	return t.Event(commit.Note{By: by, Kind: "grant.delete", Subject: id, Tool: g.Tool, Data: g})
}
