package threads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/store"
	"nize/store/commit"
)

// AddressKey returns the key of a thread of a platform.
func AddressKey(at store.Address) []byte {
	return commit.Key(string(at.Surface), at.Team, at.Channel, at.Thread)
}

func checkAddress(at store.Address) error {
	if err := commit.CheckIDs("surface", string(at.Surface), "channel", at.Channel, "thread", at.Thread); err != nil {
		return err
	}
	return commit.CheckOptional("team", at.Team, "message", at.Message)
}

func threadAt(t *commit.Tx, at store.Address) (store.Thread, error) {
	id := t.Get("threads_at", AddressKey(at))
	if id == nil {
		return store.Thread{}, store.ErrNotFound
	}
	return commit.GetJSON[store.Thread](t, "threads", id)
}

// FindThread implements [store.Places].
func (d Threads) FindThread(ctx context.Context, at store.Address) (th store.Thread, err error) {
	err = d.db.Read(ctx, "finding a conversation", func(t *commit.Tx) (err error) {
		th, err = threadAt(t, at)
		return err
	})
	return th, err
}

// ThreadAt implements [store.Places]. Most calls find it and write nothing.
func (d Threads) ThreadAt(ctx context.Context, by store.Caller, th store.Thread) (got store.Thread, made bool, err error) {
	if err := checkAddress(th.Address); err != nil {
		return got, false, fmt.Errorf("finding a conversation: %w", err)
	}
	if got, err = d.FindThread(ctx, th.Address); !errors.Is(err, store.ErrNotFound) {
		return got, false, err
	}
	err = d.db.Write(ctx, "storing conversation "+th.ID, func(t *commit.Tx) (err error) {
		made = false
		if got, err = threadAt(t, th.Address); !errors.Is(err, store.ErrNotFound) { // another writer was first
			return err
		}
		if t.Get("threads", []byte(th.ID)) != nil {
			return store.ErrExists
		}
		made = true
		th.Since = forgottenAt(t, th.Address)
		got, err = putThread(t, th)
		return err
	})
	return got, made && err == nil, err
}

// EditThread implements [store.Threads].
func (d Threads) EditThread(ctx context.Context, _ store.Caller, id string, edit func(*store.Thread)) (th store.Thread, err error) {
	err = d.db.Write(ctx, "changing conversation "+id, func(t *commit.Tx) error {
		old, err := commit.GetJSON[store.Thread](t, "threads", []byte(id))
		if err != nil {
			return err
		}
		th = old
		edit(&th)
		th.ID, th.User, th.Address, th.Created, th.Updated, th.Open = old.ID, old.User, old.Address, old.Created, old.Updated, old.Open
		th.Tainted = th.Tainted || old.Tainted
		t.Change(store.Change{Kind: "thread", ID: id, Thread: id})
		return saveThread(t, &old, th, 0)
	})
	if err != nil {
		return store.Thread{}, err
	}
	return th, nil
}

// PutPlace implements [store.Places].
func (d Threads) PutPlace(ctx context.Context, owner, message string, at store.Address) error {
	return d.db.Write(ctx, "noting where a message stands", func(t *commit.Tx) error {
		return putPlace(t, owner, message, at)
	})
}

func putPlace(t *commit.Tx, owner, message string, at store.Address) error {
	if err := commit.CheckIDs("owner", owner, "message", message); err != nil {
		return err
	}
	if owner != store.DoubtfulPlaces && t.Get("threads", []byte(owner)) == nil && t.Get("calls", []byte(owner)) == nil {
		return store.ErrNotFound
	}
	return t.PutJSON("places", commit.Key(owner, message), at)
}

// MovePlace implements [store.Places].
func (d Threads) MovePlace(ctx context.Context, owner, from, to string, at store.Address) error {
	return d.db.Write(ctx, "noting where a message stands", func(t *commit.Tx) error {
		if err := commit.CheckIDs("owner", owner, "message", from); err != nil {
			return err
		}
		if err := t.Delete("places", commit.Key(owner, from)); err != nil || to == "" {
			return err
		}
		return putPlace(t, owner, to, at)
	})
}

// GetPlace implements [store.Places].
func (d Threads) GetPlace(ctx context.Context, owner, message string) (at store.Address, err error) {
	err = d.db.Read(ctx, "finding where a message stands", func(t *commit.Tx) (err error) {
		at, err = commit.GetJSON[store.Address](t, "places", commit.Key(owner, message))
		return err
	})
	return at, err
}

// ListPlaces implements [store.Places].
func (d Threads) ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error) {
	list := map[string]store.Address{}
	err := d.db.Read(ctx, "finding where messages stand", func(t *commit.Tx) error {
		prefix := commit.Key(owner, "")
		return t.Each("places", prefix, func(k, v []byte) error {
			at, err := commit.DecodeJSON[store.Address](v)
			list[string(k[len(prefix):])] = at
			return err
		})
	})
	return list, err
}

// ForgetPlaces deletes the places of a conversation that is deleted.
func ForgetPlaces(t *commit.Tx, th store.Thread) error {
	if err := t.DeletePrefix("places", commit.Key(th.ID, "")); err != nil {
		return err
	}
	if err := t.Delete("behind", []byte(th.ID)); err != nil {
		return err
	}
	k := AddressKey(th.Address)
	if string(t.Get("threads_at", k)) != th.ID {
		return nil // a terminal's conversation has no entry
	}
	return t.Delete("threads_at", k)
}

// forgottenAt returns when the last conversation in a place was forgotten, zero if none
// was.
func forgottenAt(t *commit.Tx, at store.Address) time.Time {
	v := t.Get("forgotten", AddressKey(at))
	if v == nil {
		return time.Time{}
	}
	return commit.TimeOf(v)
}

// PruneForgotten deletes the record of where conversations were, once it is as old as a
// conversation may be.
func PruneForgotten(t *commit.Tx, before time.Time) (int, bool, error) {
	for _, k := range t.Keys("forgotten", nil, 0) {
		if !commit.TimeOf(t.Get("forgotten", k)).Before(before) {
			continue
		}
		if err := t.Delete("forgotten", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}
