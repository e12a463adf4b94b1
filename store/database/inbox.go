package database

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nize/store"
)

const (
	// keepKeys is how long a platform may repeat itself.
	keepKeys = 24 * time.Hour
	// forgetKeys is how many old keys one new item takes with it: more than it
	// brings, so that they do not pile up.
	forgetKeys = 16
)

// Accept implements [store.Inbox]. An item's id counts as one of its keys. The
// payload is sealed: it may hold what is sealed where it goes, such as the
// arguments of a call.
func (d *DB) Accept(ctx context.Context, item store.Item) (fresh bool, err error) {
	err = d.update(ctx, "accepting item "+item.ID, func(t *tx) error {
		item := item
		fresh = false
		if err := checkIDs("item id", item.ID); err != nil {
			return err
		}
		for _, k := range item.Keys {
			if err := checkIDs("key", k); err != nil {
				return err
			}
		}
		seen := append([]string{"id\x00" + item.ID}, item.Keys...)
		for _, k := range seen {
			if at := t.get("inbox_keys", []byte(k)); at != nil && t.now.Sub(timeOf(at)) < keepKeys {
				return nil
			}
		}
		fresh = true
		if err := t.forgetKeys(forgetKeys); err != nil {
			return err
		}
		for _, k := range seen {
			if err := t.rememberKey(k); err != nil {
				return err
			}
		}
		if item.At.IsZero() {
			item.At = t.now
		}
		payload := item.Payload
		item.Payload = nil
		head, err := json.Marshal(item)
		if err != nil {
			return err
		}
		t.change(store.Change{Kind: "inbox", ID: item.ID})
		return t.put("inbox", []byte(item.ID), pack(head, nil, t.seal("inbox", item.ID, payload)))
	})
	return fresh && err == nil, err
}

func (t *tx) rememberKey(k string) error {
	if at := t.get("inbox_keys", []byte(k)); at != nil { // an old one that was not forgotten yet
		if err := t.del("inbox_seen", append(cloneBytes(at), k...)); err != nil {
			return err
		}
	}
	if err := t.put("inbox_keys", []byte(k), timeKey(t.now)); err != nil {
		return err
	}
	return t.put("inbox_seen", append(timeKey(t.now), k...), nil)
}

// forgetKeys deletes up to limit keys that are older than a day.
func (t *tx) forgetKeys(limit int) error {
	for _, k := range t.keys("inbox_seen", nil, limit) {
		if t.now.Sub(timeOf(k)) < keepKeys {
			return nil
		}
		if err := t.del("inbox_seen", k); err != nil {
			return err
		}
		if err := t.del("inbox_keys", k[8:]); err != nil {
			return err
		}
	}
	return nil
}

// Done implements [store.Inbox]. An item that is done already is fine.
func (d *DB) Done(ctx context.Context, id string) error {
	return d.update(ctx, "finishing item "+id, func(t *tx) error {
		if err := checkIDs("item id", id); err != nil {
			return err
		}
		if t.get("inbox", []byte(id)) == nil {
			if t.get("inbox_keys", []byte("id\x00"+id)) == nil {
				return store.ErrNotFound
			}
			return nil
		}
		return t.del("inbox", []byte(id))
	})
}

// Pending implements [store.Inbox].
func (d *DB) Pending(ctx context.Context) (list []store.Item, err error) {
	err = d.view(ctx, "reading the inbox", func(t *tx) error {
		return t.each("inbox", nil, func(_, v []byte) error {
			p, err := unpackN(v, 2)
			if err != nil {
				return err
			}
			item, err := decodeJSON[store.Item](p[0])
			if err != nil {
				return err
			}
			if item.Payload = cloneBytes(p[1]); len(p) > 2 { // without, it was stored before payloads were sealed
				if item.Payload, err = d.unseal("inbox", item.ID, p[2]); err != nil {
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
