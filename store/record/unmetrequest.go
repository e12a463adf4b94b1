package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/kv"
)

// UnmetRequests implements [store.UnmetRequests] except RecordUnmetRequest, which an engine
// implements as a delayed write.
type UnmetRequests struct{ db kv.DB }

// maxUnmetRequests limits how many different requests are stored. To make room, the least
// frequent one is deleted.
const maxUnmetRequests = 1000

// unmetRequest counts by day, so that days before the window can be dropped.
type unmetRequest struct {
	Text  string         `json:"text"`
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Days  map[string]int `json:"days"` // by date, in UTC
}

const day = "2006-01-02"

func (w unmetRequest) count(since time.Time) (n int) {
	from := since.UTC().Format(day)
	for d, c := range w.Days {
		if d >= from {
			n += c
		}
	}
	return n
}

// findUnmetRequest returns the key of a nearly equal request, or "".
func findUnmetRequest(r kv.Reader, words []string) (key string, n int, err error) {
	err = r.Each("wishes", nil, nil, func(k, _ []byte) error {
		n++
		if key == "" && sameRequest(words, strings.Split(string(k), " ")) {
			key = string(k)
		}
		return nil
	})
	return key, n, err
}

// RecordUnmetRequest counts a request with at least one significant word.
func RecordUnmetRequest(tx kv.Tx, text string, words []string) error {
	k, n, err := findUnmetRequest(tx, words)
	if err != nil {
		return err
	}
	w := unmetRequest{Text: text, First: tx.Now(), Days: map[string]int{}}
	switch {
	case k != "":
		if w, err = kv.GetJSON[unmetRequest](tx, "wishes", k); err != nil {
			return err
		}
	case n >= maxUnmetRequests:
		if err := evictUnmetRequest(tx); err != nil {
			return err
		}
		fallthrough
	default:
		k = strings.Join(words, " ")
	}
	w.Last = tx.Now()
	w.Days[tx.Now().UTC().Format(day)]++
	return kv.PutJSON(tx, "wishes", k, w)
}

// evictUnmetRequest deletes the least frequent request, and of several the oldest.
func evictUnmetRequest(tx kv.Tx) error {
	var least string
	var of unmetRequest
	since := tx.Now().Add(-store.KeepUnmetRequests)
	err := tx.Each("wishes", nil, nil, func(k, v []byte) error {
		w, err := kv.DecodeJSON[unmetRequest](v)
		if err != nil {
			return err
		}
		if least == "" || cmp.Or(cmp.Compare(w.count(since), of.count(since)), w.Last.Compare(of.Last)) < 0 {
			least, of = string(k), w
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Delete("wishes", []byte(least))
}

// ListUnmetRequests implements [store.UnmetRequests].
func (u UnmetRequests) ListUnmetRequests(ctx context.Context) (list []store.UnmetRequest, err error) {
	err = u.db.View(ctx, "listing unmet requests", func(r kv.Reader) error {
		list = nil
		since := r.Now().Add(-store.KeepUnmetRequests)
		return r.Each("wishes", nil, nil, func(_, v []byte) error {
			w, err := kv.DecodeJSON[unmetRequest](v)
			if n := w.count(since); n > 0 {
				list = append(list, store.UnmetRequest{Text: w.Text, Count: n, First: w.First, Last: w.Last})
			}
			return err
		})
	})
	slices.SortStableFunc(list, func(a, b store.UnmetRequest) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
	})
	return list, err
}

// DeleteUnmetRequests implements [store.UnmetRequests].
func (u UnmetRequests) DeleteUnmetRequests(ctx context.Context, by store.Caller, text string) (n int, err error) {
	err = u.db.Update(ctx, "forgetting unmet requests", func(tx kv.Tx) error {
		keys, err := unmetKeys(tx)
		if text != "" && err == nil {
			var k string
			k, _, err = findUnmetRequest(tx, store.RequestWords(store.UnmetRequestText(text)))
			if keys = []string{k}; k == "" && err == nil {
				err = fmt.Errorf("such an unmet request %w", store.ErrNotFound)
			}
		}
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := tx.Delete("wishes", []byte(k)); err != nil {
				return err
			}
		}
		n = len(keys)
		return tx.Event(by, store.Event{Kind: "wish.delete", Subject: "wishes"}, struct {
			Deleted int `json:"deleted"`
		}{n})
	})
	return n, err
}

func unmetKeys(r kv.Reader) (keys []string, err error) {
	err = r.Each("wishes", nil, nil, func(k, _ []byte) error {
		keys = append(keys, string(k))
		return nil
	})
	return keys, err
}

// PruneUnmetRequests deletes the counts of days before a time, and requests without any
// count left.
func PruneUnmetRequests(tx kv.Tx, before time.Time) error {
	from := before.UTC().Format(day)
	keys, err := unmetKeys(tx)
	for _, k := range keys {
		if err != nil {
			return err
		}
		var w unmetRequest
		if w, err = kv.GetJSON[unmetRequest](tx, "wishes", k); err != nil {
			return err
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
			err = tx.Delete("wishes", []byte(k))
		default:
			err = kv.PutJSON(tx, "wishes", k, w)
		}
	}
	return err
}

// sameRequest reports whether two requests, given as their words, are nearly equal: they
// share six in ten of their words.
func sameRequest(a, b []string) bool {
	shared := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch strings.Compare(a[i], b[j]) {
		case 0:
			shared, i, j = shared+1, i+1, j+1
		case -1:
			i++
		default:
			j++
		}
	}
	return shared > 0 && shared*10 >= (len(a)+len(b)-shared)*6
}
