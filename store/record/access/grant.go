package access

import (
	"cmp"
	"context"
	"errors"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
)

// Access stores permissions: groups, standing answers, tokens, credentials.
type Access struct {
	db    *commit.DB
	noted *noted
}

// Over returns the permissions stored in db.
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
	was := t.Get("grants", []byte(g.ID))
	if was != nil && string(was) != owner {
		return store.ErrExists // it belongs to another person
	}
	if was == nil && g.Quota != (store.Quota{}) {
		if err := checkGrantCount(t, g.User, g.Quota); err != nil {
			return err
		}
	}
	if err := t.Put("grants_by", commit.Key(g.User, g.ID), nil); err != nil {
		return err
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

// checkGrantCount returns an error if a person has already given as many grants as allowed.
// It first deletes those that no longer apply to anything.
func checkGrantCount(t *commit.Tx, user string, q store.Quota) error {
	ids := t.Keys("grants_by", commit.Key(user, ""), 0)
	if int64(len(ids)) >= q.Each {
		var err error
		if ids, err = dropEnded(t, ids); err != nil {
			return err
		}
	}
	if int64(len(ids)) >= q.Each {
		return store.Mark(store.Errorf("you have %d standing answers, and one person may have %d (the setting %s); revoke some first", len(ids), int(q.Each), q.Limit), store.ErrRefused)
	}
	all := int64(0)
	for range t.Scan("grants_by", kv.Range{}) {
		all++
	}
	if all >= q.All {
		return store.Mark(store.Errorf("%d standing answers are kept for everybody together, the most allowed (the setting %s); an admin can raise it", int(all), q.LimitAll), store.ErrRefused)
	}
	return nil
}

// dropEnded deletes the grants among these entries of grants_by that have expired, or whose
// conversation was deleted, and returns the remaining entries.
func dropEnded(t *commit.Tx, entries [][]byte) (left [][]byte, err error) {
	for _, k := range entries {
		parts := commit.SplitKey(k)
		if len(parts) != 2 {
			return nil, commit.ErrDamaged
		}
		owner := string(t.Get("grants", []byte(parts[1])))
		g, err := commit.GetJSON[store.Grant](t, "grants_user", commit.Key(owner, parts[1]))
		if err != nil {
			return nil, err
		}
		// A program's session has no record, but its grants always have an expiry.
		gone := g.Scope == store.ForConversation && g.Expires.IsZero() && t.Get("threads", []byte(g.Thread)) == nil
		if !gone && (g.Expires.IsZero() || g.Expires.After(t.Now)) {
			left = append(left, k)
			continue
		}
		if err := DeleteGrant(t, store.System, owner, g.ID); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// IndexGrants completes the index of grants by author. An earlier version neither wrote nor
// deleted its entries, so IndexGrants is called whenever a database is opened. It writes
// only if something differs.
func (d Access) IndexGrants(ctx context.Context) error {
	compare := func(t *commit.Tx) (missing, stale [][]byte, err error) {
		there := map[string]bool{}
		for k := range t.Scan("grants_by", kv.Range{}) {
			there[string(k)] = true
		}
		all, err := commit.ListJSON[store.Grant](t, "grants_user", nil)
		for _, g := range all {
			k := commit.Key(g.User, g.ID)
			if !there[string(k)] {
				missing = append(missing, k)
			}
			delete(there, string(k))
		}
		for k := range there {
			stale = append(stale, []byte(k))
		}
		return missing, stale, err
	}
	return d.db.Reindex(ctx, "indexing standing answers", "grants_by", compare)
}

type grantsOf string

// ListGrants implements [store.Grants].
func (d Access) ListGrants(ctx context.Context, owners ...string) (list []store.Grant, err error) {
	// Each call reads the grants of its own conversation and of few people, so each owner's
	// list is cached separately.
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

// DeleteGrant is [Access.DeleteGrant] for an owner, within a transaction.
func DeleteGrant(t *commit.Tx, by store.Caller, owner, id string) error {
	g, err := commit.GetJSON[store.Grant](t, "grants_user", commit.Key(owner, id))
	if err != nil {
		return err
	}
	if err := t.Delete("grants_user", commit.Key(owner, id)); err != nil {
		return err
	}
	if err := errors.Join(t.Delete("grants", []byte(id)), t.Delete("grants_by", commit.Key(g.User, id))); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "grant", ID: id})
	return t.Event(commit.Note{By: by, Kind: "grant.delete", Subject: id, Tool: g.Tool, Data: g})
}
