package record

import (
	"context"
	"fmt"
	"time"

	"nize/store"
	"nize/store/kv"
)

// Homes implements [store.Homes].
type Homes struct{ db kv.DB }

var _ store.Homes = Homes{}

// PutHome implements [store.Homes].
func (h Homes) PutHome(ctx context.Context, home store.OpenHome) error {
	return h.db.Update(ctx, "noting an open Home", func(tx kv.Tx) error {
		if err := checkID("identity", home.Identity); err != nil {
			return err
		}
		if len(home.State) > store.MaxHomeState {
			return fmt.Errorf("%w state: %d bytes; at most %d fit", store.ErrInvalid, len(home.State), store.MaxHomeState)
		}
		if _, err := tx.Get("homes", []byte(home.Identity)); err != nil {
			if err := dropHomes(tx, home.Seen.Add(-store.HomeOpen)); err != nil {
				return err
			}
		}
		return put(tx, "homes", home.Identity, home)
	})
}

// dropHomes drops the Homes that were seen before, and one more if there are too
// many still.
func dropHomes(tx kv.Tx, before time.Time) error {
	left, err := listHomes(tx, "")
	if err != nil {
		return err
	}
	n, oldest := 0, store.OpenHome{}
	for _, h := range left {
		if h.Seen.Before(before) {
			if err := tx.Delete("homes", []byte(h.Identity)); err != nil {
				return err
			}
			continue
		}
		if n++; n == 1 || h.Seen.Before(oldest.Seen) {
			oldest = h
		}
	}
	if n < store.MaxHomes {
		return nil
	}
	return tx.Delete("homes", []byte(oldest.Identity))
}

func listHomes(r kv.Reader, prefix string) (all []store.OpenHome, err error) {
	err = r.Each("homes", []byte(prefix), nil, func(k, v []byte) error {
		h, err := decode[store.OpenHome](v)
		h.Identity = string(k)
		all = append(all, h)
		return err
	})
	return all, err
}

// ListHomes implements [store.Homes].
func (h Homes) ListHomes(ctx context.Context, prefix string, since time.Time) (list []store.OpenHome, err error) {
	err = h.db.View(ctx, "listing open Homes", func(r kv.Reader) error {
		all, err := listHomes(r, prefix)
		list = nil
		for _, h := range all {
			if !h.Seen.Before(since) {
				list = append(list, h)
			}
		}
		return err
	})
	return list, err
}

// PruneHomes drops those that count as open no longer.
func PruneHomes(tx kv.Tx, before time.Time) (n int, err error) {
	all, err := listHomes(tx, "")
	for _, h := range all {
		if h.Seen.Before(before) && err == nil {
			err, n = tx.Delete("homes", []byte(h.Identity)), n+1
		}
	}
	return n, err
}
