package database

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
)

// addressKey names a thread of a platform.
func addressKey(at store.Address) []byte {
	return key(string(at.Surface), at.Team, at.Channel, at.Thread)
}

func checkAddress(at store.Address) error {
	if err := checkIDs("surface", string(at.Surface), "channel", at.Channel, "thread", at.Thread); err != nil {
		return err
	}
	return checkOptional("team", at.Team, "message", at.Message)
}

func (t *tx) threadAt(at store.Address) (store.Thread, error) {
	id := t.get("threads_at", addressKey(at))
	if id == nil {
		return store.Thread{}, store.ErrNotFound
	}
	return getJSON[store.Thread](t, "threads", id)
}

// FindThread implements [store.Places].
func (d *DB) FindThread(ctx context.Context, at store.Address) (th store.Thread, err error) {
	err = d.view(ctx, "finding a conversation", func(t *tx) (err error) {
		th, err = t.threadAt(at)
		return err
	})
	return th, err
}

// ThreadAt implements [store.Places]. Most calls find it and write nothing.
func (d *DB) ThreadAt(ctx context.Context, by store.Caller, th store.Thread) (got store.Thread, made bool, err error) {
	if err := checkAddress(th.Address); err != nil {
		return got, false, fmt.Errorf("finding a conversation: %w", err)
	}
	if got, err = d.FindThread(ctx, th.Address); !errors.Is(err, store.ErrNotFound) {
		return got, false, err
	}
	err = d.update(ctx, "storing conversation "+th.ID, func(t *tx) (err error) {
		made = false
		if got, err = t.threadAt(th.Address); !errors.Is(err, store.ErrNotFound) { // somebody was first
			return err
		}
		if t.get("threads", []byte(th.ID)) != nil {
			return store.ErrExists
		}
		made = true
		th.Since = t.forgottenAt(th.Address)
		got, err = t.putThread(th)
		return err
	})
	return got, made && err == nil, err
}

// EditThread implements [store.Threads].
func (d *DB) EditThread(ctx context.Context, _ store.Caller, id string, edit func(*store.Thread)) (th store.Thread, err error) {
	err = d.update(ctx, "changing conversation "+id, func(t *tx) error {
		old, err := getJSON[store.Thread](t, "threads", []byte(id))
		if err != nil {
			return err
		}
		th = old
		edit(&th)
		th.ID, th.User, th.Address, th.Created, th.Updated, th.Open = old.ID, old.User, old.Address, old.Created, old.Updated, old.Open
		th.Tainted = th.Tainted || old.Tainted
		t.change(store.Change{Kind: "thread", ID: id, Thread: id})
		return t.saveThread(&old, th)
	})
	if err != nil {
		return store.Thread{}, err
	}
	return th, nil
}

// PutPlace implements [store.Places].
func (d *DB) PutPlace(ctx context.Context, owner, message string, at store.Address) error {
	return d.update(ctx, "noting where a message stands", func(t *tx) error {
		return t.putPlace(owner, message, at)
	})
}

func (t *tx) putPlace(owner, message string, at store.Address) error {
	if err := checkIDs("owner", owner, "message", message); err != nil {
		return err
	}
	if owner != store.DoubtfulPlaces && t.get("threads", []byte(owner)) == nil && t.get("calls", []byte(owner)) == nil {
		return store.ErrNotFound
	}
	return t.putJSON("places", key(owner, message), at)
}

// MovePlace implements [store.Places].
func (d *DB) MovePlace(ctx context.Context, owner, from, to string, at store.Address) error {
	return d.update(ctx, "noting where a message stands", func(t *tx) error {
		if err := checkIDs("owner", owner, "message", from); err != nil {
			return err
		}
		if err := t.del("places", key(owner, from)); err != nil || to == "" {
			return err
		}
		return t.putPlace(owner, to, at)
	})
}

// GetPlace implements [store.Places].
func (d *DB) GetPlace(ctx context.Context, owner, message string) (at store.Address, err error) {
	err = d.view(ctx, "finding where a message stands", func(t *tx) (err error) {
		at, err = getJSON[store.Address](t, "places", key(owner, message))
		return err
	})
	return at, err
}

// ListPlaces implements [store.Places].
func (d *DB) ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error) {
	list := map[string]store.Address{}
	err := d.view(ctx, "finding where messages stand", func(t *tx) error {
		prefix := key(owner, "")
		return t.each("places", prefix, func(k, v []byte) error {
			at, err := decodeJSON[store.Address](v)
			list[string(k[len(prefix):])] = at
			return err
		})
	})
	return list, err
}

// forgetPlaces deletes what is noted of a conversation that goes.
func (t *tx) forgetPlaces(th store.Thread) error {
	if err := t.delPrefix("places", key(th.ID, "")); err != nil {
		return err
	}
	if err := t.del("behind", []byte(th.ID)); err != nil {
		return err
	}
	k := addressKey(th.Address)
	if string(t.get("threads_at", k)) != th.ID {
		return nil // a terminal's has no entry
	}
	return t.del("threads_at", k)
}
