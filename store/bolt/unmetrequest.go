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

// maxUnmetRequests bounds how many different ones are kept; for one more, the one
// that was asked for least goes.
const maxUnmetRequests = 1000

// storedUnmetRequest counts by day, so that what is older than the window drops out.
type storedUnmetRequest struct {
	Text  string         `json:"text"`
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Days  map[string]int `json:"days"` // by date, in UTC
}

const day = "2006-01-02"

func (w storedUnmetRequest) count(since time.Time) (n int) {
	from := since.UTC().Format(day)
	for d, c := range w.Days {
		if d >= from {
			n += c
		}
	}
	return n
}

// RecordUnmetRequest implements [store.UnmetRequests].
func (d *DB) RecordUnmetRequest(text string) {
	text = store.UnmetRequestText(text)
	words := store.RequestWords(text)
	if len(words) == 0 {
		return
	}
	if !d.writeLater(lazyOp{size: 512}, func(t *tx) error { return t.recordUnmetRequest(text, words) }) {
		d.logLost("counting an unmet request")
	}
}

// findUnmetRequest returns the key of the request that says nearly the same, or nil.
func (t *tx) findUnmetRequest(words []string) (key []byte, n int, err error) {
	err = t.each("wishes", nil, func(k, _ []byte) error {
		n++
		if key == nil && store.SameRequest(words, strings.Split(string(k), " ")) {
			key = cloneBytes(k)
		}
		return nil
	})
	return key, n, err
}

func (t *tx) recordUnmetRequest(text string, words []string) error {
	k, n, err := t.findUnmetRequest(words)
	if err != nil {
		return err
	}
	w := storedUnmetRequest{Text: text, First: t.now, Days: map[string]int{}}
	switch {
	case k != nil:
		if w, err = getJSON[storedUnmetRequest](t, "wishes", k); err != nil {
			return err
		}
	case n >= maxUnmetRequests:
		if err := t.evictUnmetRequest(); err != nil {
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

// evictUnmetRequest makes space: the one that was asked for least, and longest ago, goes.
func (t *tx) evictUnmetRequest() error {
	var least []byte
	var of storedUnmetRequest
	since := t.now.Add(-store.KeepUnmetRequests)
	err := t.each("wishes", nil, func(k, v []byte) error {
		w, err := decodeJSON[storedUnmetRequest](v)
		if err != nil {
			return err
		}
		if least == nil || cmp.Or(cmp.Compare(w.count(since), of.count(since)), w.Last.Compare(of.Last)) < 0 {
			least, of = cloneBytes(k), w
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.del("wishes", least)
}

// ListUnmetRequests implements [store.UnmetRequests].
func (d *DB) ListUnmetRequests(ctx context.Context) (list []store.UnmetRequest, err error) {
	var kept []storedUnmetRequest
	since := d.clock.now().Add(-store.KeepUnmetRequests)
	err = d.view(ctx, "listing unmet requests", func(t *tx) (err error) {
		kept, err = listJSON[storedUnmetRequest](t, "wishes", nil)
		return err
	})
	for _, w := range kept {
		if n := w.count(since); n > 0 {
			list = append(list, store.UnmetRequest{Text: w.Text, Count: n, First: w.First, Last: w.Last})
		}
	}
	slices.SortStableFunc(list, func(a, b store.UnmetRequest) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
	})
	return list, err
}

// DeleteUnmetRequests implements [store.UnmetRequests].
func (d *DB) DeleteUnmetRequests(ctx context.Context, by store.Caller, text string) (n int, err error) {
	err = d.update(ctx, "forgetting unmet requests", func(t *tx) error {
		keys := t.keys("wishes", nil, 0)
		if text != "" {
			k, _, err := t.findUnmetRequest(store.RequestWords(store.UnmetRequestText(text)))
			if err != nil {
				return err
			}
			if k == nil {
				return fmt.Errorf("such an unmet request %w", store.ErrNotFound)
			}
			keys = [][]byte{k}
		}
		for _, k := range keys {
			if err := t.del("wishes", k); err != nil {
				return err
			}
		}
		n = len(keys)
		return t.event(auditNote{by: by, kind: "wish.delete", subject: "wishes", data: struct {
			Deleted int `json:"deleted"`
		}{n}})
	})
	return n, err
}

// pruneUnmetRequests drops the days before, and requests that are left without any.
func (t *tx) pruneUnmetRequests(before time.Time) (int, bool, error) {
	from := before.UTC().Format(day)
	for _, k := range t.keys("wishes", nil, 0) {
		w, err := getJSON[storedUnmetRequest](t, "wishes", k)
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
