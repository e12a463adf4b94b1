package bolt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// maxWishes bounds how many different ones are kept; for one more, the one
// that was asked for least goes.
const maxWishes = 1000

// storedWish counts by day, so that what is older than the window drops out.
type storedWish struct {
	Text  string         `json:"text"`
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Days  map[string]int `json:"days"` // by date, in UTC
}

const day = "2006-01-02"

func (w storedWish) count(since time.Time) (n int) {
	from := since.UTC().Format(day)
	for d, c := range w.Days {
		if d >= from {
			n += c
		}
	}
	return n
}

// AddWish implements [store.Wishes].
func (d *DB) AddWish(text string) {
	text = store.WishText(text)
	words := store.WishWords(text)
	if len(words) == 0 {
		return
	}
	if !d.later(lazyOp{size: 512}, func(t *tx) error { return t.addWish(text, words) }) {
		d.lost("counting a wish")
	}
}

// findWish returns the key of the wish that says nearly the same, or nil.
func (t *tx) findWish(words []string) (key []byte, n int, err error) {
	err = t.each("wishes", nil, func(k, _ []byte) error {
		n++
		if key == nil && store.SameWish(words, strings.Split(string(k), " ")) {
			key = own(k)
		}
		return nil
	})
	return key, n, err
}

func (t *tx) addWish(text string, words []string) error {
	k, n, err := t.findWish(words)
	if err != nil {
		return err
	}
	w := storedWish{Text: text, First: t.now, Days: map[string]int{}}
	switch {
	case k != nil:
		if w, err = getJSON[storedWish](t, "wishes", k); err != nil {
			return err
		}
	case n >= maxWishes:
		if err := t.dropWish(); err != nil {
			return err
		}
		fallthrough
	default:
		k = []byte(strings.Join(words, " "))
	}
	w.Last = t.now
	w.Days[t.now.UTC().Format(day)]++
	return t.putJSON("wishes", k, w)
}

// dropWish makes room: the one that was asked for least, and longest ago, goes.
func (t *tx) dropWish() error {
	var least []byte
	var of storedWish
	since := t.now.Add(-store.KeepWishes)
	err := t.each("wishes", nil, func(k, v []byte) error {
		w, err := decodeJSON[storedWish](v)
		if err != nil {
			return err
		}
		if least == nil || cmp.Or(cmp.Compare(w.count(since), of.count(since)), w.Last.Compare(of.Last)) < 0 {
			least, of = own(k), w
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.del("wishes", least)
}

// ListWishes implements [store.Wishes].
func (d *DB) ListWishes(ctx context.Context) (list []store.Wish, err error) {
	var kept []storedWish
	since := d.clock.now().Add(-store.KeepWishes)
	err = d.view(ctx, "listing wishes", func(t *tx) (err error) {
		kept, err = listJSON[storedWish](t, "wishes", nil)
		return err
	})
	for _, w := range kept {
		if n := w.count(since); n > 0 {
			list = append(list, store.Wish{Text: w.Text, Count: n, First: w.First, Last: w.Last})
		}
	}
	slices.SortStableFunc(list, func(a, b store.Wish) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
	})
	return list, err
}

// DeleteWishes implements [store.Wishes].
func (d *DB) DeleteWishes(ctx context.Context, by store.Caller, text string) (n int, err error) {
	err = d.do(ctx, "forgetting wishes", func(t *tx) error {
		keys := t.keys("wishes", nil, 0)
		if text != "" {
			k, _, err := t.findWish(store.WishWords(store.WishText(text)))
			if err != nil {
				return err
			}
			if k == nil {
				return fmt.Errorf("such a wish %w", store.ErrNotFound)
			}
			keys = [][]byte{k}
		}
		for _, k := range keys {
			if err := t.del("wishes", k); err != nil {
				return err
			}
		}
		n = len(keys)
		return t.event(note{by: by, kind: "wish.delete", subject: "wishes", data: struct {
			Deleted int `json:"deleted"`
		}{n}})
	})
	return n, err
}

// pruneWishes drops the days before, and wishes that are left without any.
func (t *tx) pruneWishes(before time.Time) (int, bool, error) {
	from := before.UTC().Format(day)
	for _, k := range t.keys("wishes", nil, 0) {
		w, err := getJSON[storedWish](t, "wishes", k)
		if err != nil {
			return 0, false, err
		}
		had := len(w.Days)
		for d := range w.Days {
			if d < from {
				delete(w.Days, d)
			}
		}
		switch {
		case len(w.Days) == had:
		case len(w.Days) == 0:
			err = t.del("wishes", k)
		default:
			err = t.putJSON("wishes", k, w)
		}
		if err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}
