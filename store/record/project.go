package record

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/project"
)

// Projects implements [project.Projects], and [project.Rounds] except PutRound, which
// engines implement.
type Projects struct{ db kv.DB }

var _ project.Projects = Projects{}

var projects = kv.Noun{Kind: "project", Bucket: "projects"}

// PutProject implements [project.Projects].
func (p Projects) PutProject(ctx context.Context, by store.Caller, one project.Project) error {
	return p.db.Update(ctx, "storing project "+one.Name, func(tx kv.Tx) error {
		one := one
		if err := kv.CheckID("project", one.ID); err != nil {
			return err
		}
		for _, who := range append([]string{one.Owner}, one.Members...) {
			if _, err := tx.Get("users", []byte(who)); err != nil {
				return fmt.Errorf("user %q: %w", who, err)
			}
		}
		all, err := kv.ListJSON[project.Project](tx, projects.Bucket, "")
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.ID == one.ID {
				one.Created = o.Created
			} else if o.Name == one.Name {
				return fmt.Errorf("project %s %w", one.Name, store.ErrExists)
			}
		}
		if one.Created.IsZero() {
			one.Created = tx.Now()
		}
		return projects.Put(tx, by, one.ID, one)
	})
}

// GetProject implements [project.Projects].
func (p Projects) GetProject(ctx context.Context, id string) (project.Project, error) {
	return kv.ReadJSON[project.Project](ctx, p.db, "reading project "+id, projects.Bucket, id)
}

// ListProjects implements [project.Projects].
func (p Projects) ListProjects(ctx context.Context) ([]project.Project, error) {
	return kv.ReadAllJSON[project.Project](ctx, p.db, "listing projects", projects.Bucket)
}

// DeleteProject implements [project.Projects].
func (p Projects) DeleteProject(ctx context.Context, by store.Caller, id string) error {
	return p.db.Update(ctx, "removing project "+id, func(tx kv.Tx) error {
		if _, err := tx.Get(projects.Bucket, []byte(id)); err != nil {
			return err
		}
		gone := map[string][][]byte{projects.Bucket: {[]byte(id)}}
		err := tx.Each("project_keys", nil, nil, func(k, v []byte) error {
			one, err := kv.DecodeJSON[project.Key](v)
			if one.Project == id {
				gone["project_keys"] = append(gone["project_keys"], slices.Clone(k))
			}
			return err
		})
		for _, bucket := range []string{"rounds", "last_rounds"} {
			err = errors.Join(err, tx.Each(bucket, ofProject(id, ""), nil, func(k, _ []byte) error {
				gone[bucket] = append(gone[bucket], slices.Clone(k))
				return nil
			}))
		}
		err = errors.Join(err, tx.Each("budgets", ofProject("user:"+project.Actor(id), ""), nil, func(k, _ []byte) error {
			gone["budgets"] = append(gone["budgets"], slices.Clone(k))
			return nil
		}))
		servers, failed := temporaryServersOf(tx, id)
		gone["temporary_servers"], err = servers, errors.Join(err, failed)
		for bucket, keys := range gone {
			for _, k := range keys {
				err = errors.Join(err, tx.Delete(bucket, k))
			}
		}
		if err != nil {
			return err
		}
		tx.Change(store.Change{Kind: projects.Kind, ID: id})
		return tx.Event(by, store.Event{Kind: "project.delete", Subject: id}, nil)
	})
}

// PutKey implements [project.Projects].
func (p Projects) PutKey(ctx context.Context, by store.Caller, hash [32]byte, k project.Key) error {
	return p.db.Update(ctx, "storing a key of project "+k.Project, func(tx kv.Tx) error {
		k := k
		if _, err := tx.Get(projects.Bucket, []byte(k.Project)); err != nil {
			return err
		}
		all, err := kv.ListJSON[project.Key](tx, "project_keys", "")
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.Project == k.Project && o.Name == k.Name && o.Revoked.IsZero() {
				return fmt.Errorf("key %s %w", k.Name, store.ErrExists)
			}
		}
		k.Created = tx.Now()
		if err := kv.PutJSON(tx, "project_keys", hex.EncodeToString(hash[:]), k); err != nil {
			return err
		}
		return tx.Event(by, store.Event{Kind: "project_key.put", Subject: k.ID}, k)
	})
}

// ListKeys implements [project.Projects].
func (p Projects) ListKeys(ctx context.Context, id string) ([]project.Key, error) {
	all, err := kv.ReadAllJSON[project.Key](ctx, p.db, "listing keys", "project_keys")
	all = slices.DeleteFunc(all, func(k project.Key) bool { return k.Project != id })
	slices.SortFunc(all, func(a, b project.Key) int { return strings.Compare(a.ID, b.ID) })
	return all, err
}

// RevokeKey implements [project.Projects].
func (p Projects) RevokeKey(ctx context.Context, by store.Caller, id, name string) (revoked project.Key, err error) {
	err = p.db.Update(ctx, "revoking a key of project "+id, func(tx kv.Tx) error {
		var at string
		err := tx.Each("project_keys", nil, nil, func(k, v []byte) error {
			one, err := kv.DecodeJSON[project.Key](v)
			if one.Project == id && one.Name == name && one.Revoked.IsZero() {
				at, revoked = string(k), one
			}
			return err
		})
		if err != nil {
			return err
		}
		if at == "" {
			return store.ErrNotFound
		}
		revoked.Revoked = tx.Now()
		if err := kv.PutJSON(tx, "project_keys", at, revoked); err != nil {
			return err
		}
		return tx.Event(by, store.Event{Kind: "project_key.revoke", Subject: revoked.ID}, revoked)
	})
	return revoked, err
}

// UseKey implements [project.Projects].
func (p Projects) UseKey(ctx context.Context, hash [32]byte) (k project.Key, of project.Project, err error) {
	at := hex.EncodeToString(hash[:])
	found, err := p.db.Recall(ctx, "looking a key up", keyHash(hash), func(r kv.Reader) (any, error) { // every request reads it
		k, err := kv.GetJSON[project.Key](r, "project_keys", at)
		if err != nil {
			return nil, err
		}
		of, err := kv.GetJSON[project.Project](r, projects.Bucket, k.Project)
		return keyOfProject{k, of}, err
	}, "project_keys", projects.Bucket)
	if err != nil {
		return k, of, err
	}
	k, of = found.(keyOfProject).key, found.(keyOfProject).of
	switch now := p.db.Now(); {
	case !k.Revoked.IsZero():
		return k, of, store.ErrRefused
	case now.Sub(k.LastUsed) < time.Hour:
		return k, of, nil
	}
	err = p.db.Update(ctx, "noting that a key was used", func(tx kv.Tx) (err error) {
		if k, err = kv.GetJSON[project.Key](tx, "project_keys", at); err != nil {
			return err
		}
		k.LastUsed = tx.Now()
		return kv.PutJSON(tx, "project_keys", at, k)
	})
	return k, of, err
}

// ofProject returns the key of a project's entry: ids have no zero byte.
func ofProject(id, what string) []byte { return []byte(id + "\x00" + what) }

// PutRound stores a round within the transaction of a step.
func PutRound(tx kv.Tx, r project.Round) error {
	for what, id := range map[string]string{"project": r.Project, "round": r.ID, "conversation": r.Conversation} {
		if err := kv.CheckID(what, id); err != nil {
			return err
		}
	}
	if _, err := tx.Get(projects.Bucket, []byte(r.Project)); err != nil {
		return err // it was deleted meanwhile
	}
	if err := tx.PutSealed("rounds", ofProject(r.Project, r.ID), r.State); err != nil {
		return err
	}
	return tx.Put("last_rounds", ofProject(r.Project, r.Conversation), []byte(r.ID))
}

// GetRound implements [project.Rounds].
func (p Projects) GetRound(ctx context.Context, id, round string) (r project.Round, err error) {
	if err := p.db.Sync(ctx); err != nil {
		return r, err
	}
	r = project.Round{ID: round, Project: id}
	err = p.db.View(ctx, "reading a round", func(tx kv.Reader) (err error) {
		r.State, err = tx.Unseal("rounds", ofProject(id, round))
		return err
	})
	return r, err
}

// LastRound implements [project.Rounds].
func (p Projects) LastRound(ctx context.Context, id, conversation string) (round string, err error) {
	if err := p.db.Sync(ctx); err != nil {
		return "", err
	}
	err = p.db.View(ctx, "reading the last round", func(tx kv.Reader) error {
		v, err := tx.Get("last_rounds", ofProject(id, conversation))
		round = string(v)
		return err
	})
	return round, err
}

// maxPruned is how many rounds one transaction deletes.
const maxPruned = 500

// PruneRounds implements [project.Rounds]. The id of a round contains its start time.
func (p Projects) PruneRounds(ctx context.Context, before time.Time) (n int, err error) {
	oldest := store.NewID(before)[:10] // only the time
	err = p.db.Update(ctx, "forgetting old rounds", func(tx kv.Tx) error {
		n = 0
		gone := map[string]bool{}
		err := tx.Each("rounds", nil, nil, func(k, _ []byte) error {
			_, round, _ := strings.Cut(string(k), "\x00")
			if len(gone) < maxPruned && round[:min(10, len(round))] < oldest {
				gone[string(k)] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		var last [][]byte
		err = tx.Each("last_rounds", nil, nil, func(k, v []byte) error {
			id, _, _ := strings.Cut(string(k), "\x00")
			if gone[string(ofProject(id, string(v)))] {
				last = append(last, slices.Clone(k))
			}
			return nil
		})
		for _, k := range last {
			err = errors.Join(err, tx.Delete("last_rounds", k))
		}
		for k := range gone {
			err = errors.Join(err, tx.Delete("rounds", []byte(k)))
		}
		n = len(gone)
		return errors.Join(err, pruneTemporaryServers(tx, oldest))
	})
	return n, err
}

// keyHash is the cache key of a project's key and its project.
type keyHash [32]byte

type keyOfProject struct {
	key project.Key
	of  project.Project
}
