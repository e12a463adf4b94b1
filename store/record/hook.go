package record

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"nize/store"
	"nize/store/hooks"
	"nize/store/kv"
)

// Hooks implements [hooks.Store].
type Hooks struct{ db kv.DB }

var _ hooks.Store = Hooks{}

var hookNoun = kv.Noun{Kind: "hook", Bucket: "hooks"}

const (
	hookRevisions = "hook_revisions"
	hookSecrets   = "hook_secrets"
)

func revisionKey(id string, revision uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(id+"\x00"), revision)
}

// hookKey returns the key of a hook: an admin's by its name, a person's after the owner's
// id, which sorts before every valid hook name and contains no slash.
func hookKey(owner, name string) string {
	if owner == "" {
		return name
	}
	return owner + "/" + name
}

// PutHook implements [hooks.Store].
func (s Hooks) PutHook(ctx context.Context, by store.Caller, h hooks.Hook, most int) (stored hooks.Hook, err error) {
	err = s.db.Update(ctx, "storing hook "+h.Name, func(tx kv.Tx) error {
		stored = h
		if err := kv.CheckID("hook", h.Name); err != nil {
			return err
		}
		at := hookKey(h.Owner, h.Name)
		old, err := kv.GetJSON[hooks.Hook](tx, hookNoun.Bucket, at)
		switch {
		case errors.Is(err, store.ErrNotFound) && h.Revision == 0:
			if err := checkHookCount(tx, h.Owner, most); err != nil {
				return err
			}
			stored.ID, stored.Created = store.NewID(tx.Now()), tx.Now()
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("%w: it was removed", store.ErrConflict)
		case err != nil:
			return err
		case h.Revision == 0:
			return store.ErrExists
		case h.Revision != old.Revision:
			return fmt.Errorf("%w: revision %d is now %d", store.ErrConflict, h.Revision, old.Revision)
		default:
			stored.ID, stored.Created = old.ID, old.Created
		}
		stored.Revision, stored.Updated, stored.Signed = h.Revision+1, tx.Now(), !h.Secret.IsZero()
		key := revisionKey(stored.ID, stored.Revision)
		if err := kv.PutJSON(tx, hookRevisions, string(key), stored); err != nil {
			return err
		}
		if stored.Signed {
			if err := tx.PutSealed(hookSecrets, key, []byte(h.Secret.Reveal())); err != nil {
				return err
			}
		}
		if h.Owner != "" && stored.Revision > hooks.MaxRevisions {
			if err := tx.Delete(hookRevisions, revisionKey(stored.ID, stored.Revision-hooks.MaxRevisions)); err != nil {
				return err
			}
		}
		return hookNoun.Put(tx, by, at, stored)
	})
	return stored, err
}

// checkHookCount returns an error if a person already has most hooks.
func checkHookCount(r kv.Reader, owner string, most int) error {
	if owner == "" {
		return nil
	}
	mine, err := kv.ListJSON[hooks.Hook](r, hookNoun.Bucket, owner+"/")
	if err != nil || len(mine) < most {
		return err
	}
	return store.Mark(store.Errorf("there are %d hooks, and one person may have %d (the setting limits.user.hooks); remove one first", len(mine), most), store.ErrRefused)
}

// withSecret returns h with the unsealed secret of its revision.
func withSecret(r kv.Reader, h hooks.Hook) (hooks.Hook, error) {
	if !h.Signed {
		return h, nil
	}
	plain, err := r.Unseal(hookSecrets, revisionKey(h.ID, h.Revision))
	if err != nil {
		return h, fmt.Errorf("opening the secret of hook %s: %w", h.Name, err)
	}
	h.Secret = store.NewSecret(string(plain))
	return h, nil
}

// GetHook implements [hooks.Store].
func (s Hooks) GetHook(ctx context.Context, owner, name string) (h hooks.Hook, err error) {
	return s.read(ctx, "reading hook "+name, hookNoun.Bucket, hookKey(owner, name))
}

// HookRevision implements [hooks.Store].
func (s Hooks) HookRevision(ctx context.Context, id string, revision uint64) (hooks.Hook, error) {
	return s.read(ctx, fmt.Sprintf("reading revision %d of hook %s", revision, id), hookRevisions, string(revisionKey(id, revision)))
}

func (s Hooks) read(ctx context.Context, what, bucket, key string) (h hooks.Hook, err error) {
	err = s.db.View(ctx, what, func(r kv.Reader) (err error) {
		if h, err = kv.GetJSON[hooks.Hook](r, bucket, key); err == nil {
			h, err = withSecret(r, h)
		}
		return err
	})
	return h, err
}

// ListHooks implements [hooks.Store].
func (s Hooks) ListHooks(ctx context.Context) (all []hooks.Hook, err error) {
	err = s.db.View(ctx, "listing hooks", func(r kv.Reader) (err error) {
		if all, err = kv.ListJSON[hooks.Hook](r, hookNoun.Bucket, ""); err != nil {
			return err
		}
		for i := range all {
			if all[i], err = withSecret(r, all[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// DeleteHook implements [hooks.Store]. The revisions of an admin's hook remain for waiting
// calls.
func (s Hooks) DeleteHook(ctx context.Context, by store.Caller, owner, name string) error {
	if owner == "" {
		return hookNoun.Remove(ctx, s.db, by, name)
	}
	return s.db.Update(ctx, "removing hook "+name, func(tx kv.Tx) error {
		h, err := kv.GetJSON[hooks.Hook](tx, hookNoun.Bucket, hookKey(owner, name))
		if err != nil {
			return err
		}
		return deletePersonal(tx, by, h)
	})
}

// deletePersonal deletes a person's hook with its revisions.
func deletePersonal(tx kv.Tx, by store.Caller, h hooks.Hook) error {
	for i := uint64(0); i < min(h.Revision, hooks.MaxRevisions); i++ {
		if err := tx.Delete(hookRevisions, revisionKey(h.ID, h.Revision-i)); err != nil {
			return err
		}
	}
	key := hookKey(h.Owner, h.Name)
	if err := tx.Delete(hookNoun.Bucket, []byte(key)); err != nil {
		return err
	}
	tx.Change(store.Change{Kind: hookNoun.Kind, ID: key})
	return tx.Event(by, store.Event{Kind: hookNoun.Kind + ".delete", Subject: key}, nil)
}

// MoveHooks transfers the hooks of a user's calls to another user: when two are joined, an
// admin's hooks around the calls of one apply to both. If into is empty, the user's own
// hooks are deleted.
func MoveHooks(tx kv.Tx, by store.Caller, from, into string) error {
	all, err := kv.ListJSON[hooks.Hook](tx, hookNoun.Bucket, "")
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, h := range all {
		taken[hookKey(h.Owner, h.Name)] = true
	}
	for _, h := range all {
		user, server, both := strings.Cut(h.ScopeID, "/")
		switch {
		case user != from || h.Scope != hooks.User && h.Scope != hooks.UserServer, into == "" && h.Owner == "":
			continue
		case into == "":
			if err := deletePersonal(tx, by, h); err != nil {
				return err
			}
			continue
		}
		if h, err = withSecret(tx, h); err != nil {
			return err
		}
		if h.Owner != "" {
			if err := deletePersonal(tx, by, h); err != nil {
				return err
			}
			name := h.Name
			for n := 2; taken[hookKey(into, h.Name)]; n++ {
				h.Name = name + "-" + strconv.Itoa(n)
			}
			h.Owner = into
			taken[hookKey(into, h.Name)] = true
		}
		if h.ScopeID = into; both {
			h.ScopeID += "/" + server
		}
		h.Revision, h.Updated = h.Revision+1, tx.Now()
		if err := kv.PutJSON(tx, hookRevisions, string(revisionKey(h.ID, h.Revision)), h); err != nil {
			return err
		}
		if h.Signed {
			if err := tx.PutSealed(hookSecrets, revisionKey(h.ID, h.Revision), []byte(h.Secret.Reveal())); err != nil {
				return err
			}
		}
		if err := hookNoun.Put(tx, by, hookKey(h.Owner, h.Name), h); err != nil {
			return err
		}
	}
	return nil
}
