package bolt

import (
	"context"
	"fmt"
	"time"

	"nize/store"
)

// PutHome implements [store.Homes].
func (d *DB) PutHome(ctx context.Context, h store.OpenHome) error {
	return d.update(ctx, "noting an open Home", func(t *tx) error {
		if err := checkIDs("identity", h.Identity); err != nil {
			return err
		}
		if len(h.State) > store.MaxHomeState {
			return fmt.Errorf("%w state: %d bytes; at most %d fit", store.ErrInvalid, len(h.State), store.MaxHomeState)
		}
		if t.get("homes", []byte(h.Identity)) == nil {
			if err := t.dropHomes(h.Seen.Add(-store.HomeOpen)); err != nil {
				return err
			}
		}
		return t.putJSON("homes", []byte(h.Identity), h)
	})
}

// dropHomes drops the Homes that were seen before, and one more if there are too
// many still.
func (t *tx) dropHomes(before time.Time) error {
	left, oldest, first := 0, []byte(nil), time.Time{}
	for _, k := range t.keys("homes", nil, 0) {
		h, err := getJSON[store.OpenHome](t, "homes", k)
		if err != nil {
			return err
		}
		if h.Seen.Before(before) {
			if err := t.del("homes", k); err != nil {
				return err
			}
			continue
		}
		if left++; oldest == nil || h.Seen.Before(first) {
			oldest, first = k, h.Seen
		}
	}
	if left < store.MaxHomes {
		return nil
	}
	return t.del("homes", oldest)
}

// ListHomes implements [store.Homes].
func (d *DB) ListHomes(ctx context.Context, prefix string, since time.Time) ([]store.OpenHome, error) {
	var list []store.OpenHome
	err := d.view(ctx, "listing open Homes", func(t *tx) error {
		return t.each("homes", []byte(prefix), func(k, v []byte) error {
			h, err := decodeJSON[store.OpenHome](v)
			if err == nil && !h.Seen.Before(since) {
				h.Identity = string(k)
				list = append(list, h)
			}
			return err
		})
	})
	return list, err
}

// pruneHomes drops those that count as open no longer.
func (t *tx) pruneHomes(before time.Time) (int, bool, error) {
	n := 0
	for _, k := range t.keys("homes", nil, 0) {
		h, err := getJSON[store.OpenHome](t, "homes", k)
		if err != nil {
			return 0, false, err
		}
		if h.Seen.Before(before) {
			if err := t.del("homes", k); err != nil {
				return 0, false, err
			}
			n++
		}
	}
	return n, false, nil
}
