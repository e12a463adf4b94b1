package record

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"nize/store"
	"nize/store/hooks"
	"nize/store/kv"
)

// Hooks implements [hooks.Store].
type Hooks struct{ db kv.DB }

var _ hooks.Store = Hooks{}

var hookNoun = noun{"hook", "hooks"}

const (
	hookRevisions = "hook_revisions"
	hookSecrets   = "hook_secrets"
)

func revisionKey(id string, revision uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(id+"\x00"), revision)
}

// PutHook implements [hooks.Store].
func (s Hooks) PutHook(ctx context.Context, by store.Caller, h hooks.Hook) (stored hooks.Hook, err error) {
	err = s.db.Update(ctx, "storing hook "+h.Name, func(tx kv.Tx) error {
		stored = h
		if err := checkID("hook", h.Name); err != nil {
			return err
		}
		old, err := get[hooks.Hook](tx, hookNoun.bucket, h.Name)
		switch {
		case errors.Is(err, store.ErrNotFound) && h.Revision == 0:
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
		if err := put(tx, hookRevisions, string(key), stored); err != nil {
			return err
		}
		if stored.Signed {
			if err := tx.PutSealed(hookSecrets, key, []byte(h.Secret.Reveal())); err != nil {
				return err
			}
		}
		return hookNoun.put(tx, by, h.Name, stored)
	})
	return stored, err
}

// withSecret opens what belongs to a revision.
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
func (s Hooks) GetHook(ctx context.Context, name string) (h hooks.Hook, err error) {
	return s.read(ctx, "reading hook "+name, hookNoun.bucket, name)
}

// HookRevision implements [hooks.Store].
func (s Hooks) HookRevision(ctx context.Context, id string, revision uint64) (hooks.Hook, error) {
	return s.read(ctx, fmt.Sprintf("reading revision %d of hook %s", revision, id), hookRevisions, string(revisionKey(id, revision)))
}

func (s Hooks) read(ctx context.Context, what, bucket, key string) (h hooks.Hook, err error) {
	err = s.db.View(ctx, what, func(r kv.Reader) (err error) {
		if h, err = get[hooks.Hook](r, bucket, key); err == nil {
			h, err = withSecret(r, h)
		}
		return err
	})
	return h, err
}

// ListHooks implements [hooks.Store].
func (s Hooks) ListHooks(ctx context.Context) (all []hooks.Hook, err error) {
	err = s.db.View(ctx, "listing hooks", func(r kv.Reader) (err error) {
		if all, err = list[hooks.Hook](r, hookNoun.bucket, ""); err != nil {
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

// DeleteHook implements [hooks.Store]. Its revisions stay for calls that wait.
func (s Hooks) DeleteHook(ctx context.Context, by store.Caller, name string) error {
	return hookNoun.remove(ctx, s.db, by, name)
}
