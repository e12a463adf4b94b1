package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
)

const (
	// KeepKeys is how long a platform may repeat a message.
	KeepKeys = 24 * time.Hour
	// forgetKeys is how many old keys each new item deletes: more than it adds, so that
	// keys don't accumulate.
	forgetKeys = 16
)

// Accept implements [store.Inbox]. An item's id counts as one of its keys. The payload is
// sealed, because it may contain data that is sealed in its final place, such as the
// arguments of a call.
func (d Threads) Accept(ctx context.Context, item store.Item) (fresh bool, err error) {
	err = d.db.Write(ctx, "accepting item "+item.ID, func(t *commit.Tx) error {
		item := item
		fresh = false
		if err := commit.CheckIDs("item id", item.ID); err != nil {
			return err
		}
		for _, k := range item.Keys {
			if err := commit.CheckIDs("key", k); err != nil {
				return err
			}
		}
		seen := append([]string{"id\x00" + item.ID}, item.Keys...)
		for _, k := range seen {
			if at := t.Get("inbox_keys", []byte(k)); at != nil && t.Now.Sub(commit.TimeOf(at)) < KeepKeys {
				return nil
			}
		}
		fresh = true
		if err := ForgetKeys(t, forgetKeys); err != nil {
			return err
		}
		for _, k := range seen {
			if err := rememberKey(t, k); err != nil {
				return err
			}
		}
		if item.At.IsZero() {
			item.At = t.Now
		}
		payload := item.Payload
		item.Payload = nil
		head, err := json.Marshal(item)
		if err != nil {
			return err
		}
		t.Change(store.Change{Kind: "inbox", ID: item.ID})
		return t.Put("inbox", []byte(item.ID), commit.Pack(head, nil, t.Seal("inbox", item.ID, payload)))
	})
	return fresh && err == nil, err
}

func rememberKey(t *commit.Tx, k string) error {
	if at := t.Get("inbox_keys", []byte(k)); at != nil { // an old key that was not deleted yet
		if err := t.Delete("inbox_seen", append(commit.CloneBytes(at), k...)); err != nil {
			return err
		}
	}
	if err := t.Put("inbox_keys", []byte(k), commit.TimeKey(t.Now)); err != nil {
		return err
	}
	return t.Put("inbox_seen", append(commit.TimeKey(t.Now), k...), nil)
}

// ForgetKeys deletes up to limit keys that are older than a day.
func ForgetKeys(t *commit.Tx, limit int) error {
	for _, k := range t.Keys("inbox_seen", nil, limit) {
		if t.Now.Sub(commit.TimeOf(k)) < KeepKeys {
			return nil
		}
		if err := t.Delete("inbox_seen", k); err != nil {
			return err
		}
		if err := t.Delete("inbox_keys", k[8:]); err != nil {
			return err
		}
	}
	return nil
}

// Done implements [store.Inbox]. It returns nil if the item is already done.
func (d Threads) Done(ctx context.Context, id string) error {
	return d.db.Write(ctx, "finishing item "+id, func(t *commit.Tx) error {
		if err := commit.CheckIDs("item id", id); err != nil {
			return err
		}
		if t.Get("inbox", []byte(id)) == nil {
			if t.Get("inbox_keys", []byte("id\x00"+id)) == nil {
				return store.ErrNotFound
			}
			return nil
		}
		return t.Delete("inbox", []byte(id))
	})
}

// CountPending implements [store.Inbox].
func (d Threads) CountPending(ctx context.Context) (n int, err error) {
	err = d.db.Read(ctx, "counting the inbox", func(t *commit.Tx) (err error) {
		n, err = t.Count("inbox", nil)
		return err
	})
	return n, err
}

// Pending implements [store.Inbox].
func (d Threads) Pending(ctx context.Context) (list []store.Item, err error) {
	err = d.db.Read(ctx, "reading the inbox", func(t *commit.Tx) error {
		return t.Each("inbox", nil, func(_, v []byte) error {
			p, err := commit.UnpackN(v, 2)
			if err != nil {
				return err
			}
			item, err := commit.DecodeJSON[store.Item](p[0])
			if err != nil {
				return err
			}
			if item.Payload = commit.CloneBytes(p[1]); len(p) > 2 { // otherwise it was stored before payloads were sealed
				if item.Payload, err = d.db.Unseal("inbox", item.ID, p[2]); err != nil {
					return fmt.Errorf("item %s: %w", item.ID, err)
				}
			}
			list = append(list, item)
			return nil
		})
	})
	slices.SortFunc(list, func(a, b store.Item) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return list, err
}
