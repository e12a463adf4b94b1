package database

import (
	"context"
	"fmt"
	"math"
	"sort"
	"time"

	"nize/store"
	"nize/store/kv"
)

// eventPage bounds how many events or blocks one transaction looks at.
const eventPage = 5000

// eventWalk answers a query, a page in each transaction.
type eventWalk struct {
	match   eventMatch
	forward bool
	lo, hi  uint64 // what is left to look at, both included
	limit   int
	block   uint64 // the one that was looked up last
	out     []store.Event
	known   names
}

// Events implements [store.Ledger]. It looks at blocks first (see block.go);
// Since and Until are found by halving, since times never decrease along the
// chain.
func (d *DB) Events(ctx context.Context, q store.EventQuery) ([]store.Event, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if err := d.commitEarly(ctx); err != nil {
		return nil, err
	}
	w := eventWalk{
		match: d.eventMatch(q), forward: q.Forward || q.After > 0,
		lo: q.After + 1, hi: math.MaxUint64, limit: q.Limit, block: math.MaxUint64,
	}
	if q.Before > 0 {
		w.hi = q.Before - 1
	}
	bounded := false
	for done := false; !done; {
		err := d.view(ctx, "reading the audit trail", func(t *tx) (err error) {
			if !bounded {
				bounded = true
				if !q.Since.IsZero() {
					w.lo = max(w.lo, t.firstEvent(q.Since))
				}
				if !q.Until.IsZero() {
					w.hi = min(w.hi, t.firstEvent(q.Until)-1)
				}
			}
			done, err = w.page(t)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return w.out, nil
}

// firstEvent is the number of the first event that is not before at, or of the
// one that will come next; at least 1.
func (t *tx) firstEvent(at time.Time) uint64 {
	first, last := t.first("events", nil), t.last("events", nil)
	if first == nil {
		return 1
	}
	lo := decodeSeq(first)
	n := sort.Search(int(decodeSeq(last)-lo)+1, func(i int) bool {
		p, err := unpack(t.get("events", seqKey(lo+uint64(i))))
		return err == nil && len(p) > evTime && len(p[evTime]) == 8 && !timeOf(p[evTime]).Before(at)
	})
	return lo + uint64(n)
}

// page looks at what one transaction may and says whether that was the rest.
func (w *eventWalk) page(t *tx) (done bool, err error) {
	first, last := t.first("events", nil), t.last("events", nil)
	if first == nil {
		return true, nil
	}
	w.lo, w.hi = max(w.lo, decodeSeq(first)), min(w.hi, decodeSeq(last))
	for looked := 0; looked < eventPage; {
		if w.lo > w.hi || len(w.out) == w.limit {
			return true, nil
		}
		at := w.lo
		if !w.forward {
			at = w.hi
		}
		if may, err := w.enter(t, at/blockSize); err != nil {
			return false, err
		} else if !may {
			looked++
			continue
		}
		r := kv.Range{From: seqKey(w.lo), Before: seqKey(w.hi + 1), Reverse: !w.forward, Limit: eventPage - looked}
		n, skipped, err := w.events(t, r)
		if err != nil {
			return false, err
		}
		looked += n
		if !skipped && n < r.Limit {
			return true, nil
		}
	}
	return false, nil
}

// events looks at a range, up to a block that has nothing of what is asked for,
// which it skips.
func (w *eventWalk) events(t *tx, r kv.Range) (looked int, skipped bool, err error) {
	var p [][]byte
	for k, v := range t.scan("events", r) {
		looked++
		seq := decodeSeq(k)
		if may, err := w.enter(t, seq/blockSize); !may || err != nil {
			return looked, true, err
		}
		if p, err = eventPartsTo(p, v); err != nil {
			return looked, false, fmt.Errorf("event %d: %w", seq, err)
		}
		if w.match.event(p) {
			e, err := t.decodeEvent(k, v, &w.known)
			if err != nil {
				return looked, false, err
			}
			w.out = append(w.out, e)
		}
		w.lo, w.hi = w.rest(seq, seq)
		if len(w.out) == w.limit {
			break
		}
	}
	return looked, false, nil
}

// enter looks at a block's columns, once, and skips it where it has nothing of
// what is asked for.
func (w *eventWalk) enter(t *tx, n uint64) (may bool, err error) {
	if n == w.block {
		return true, nil
	}
	if may, err = w.match.block(t, n); err != nil {
		return false, err
	}
	w.block = n
	if !may {
		w.lo, w.hi = w.rest(n*blockSize, (n+1)*blockSize-1)
	}
	return may, nil
}

// rest is what is left when first to last were looked at.
func (w *eventWalk) rest(first, last uint64) (lo, hi uint64) {
	if w.forward {
		return last + 1, w.hi
	}
	return w.lo, max(first, 1) - 1
}

// WaitEvents implements [store.Trail].
func (d *DB) WaitEvents(ctx context.Context, after uint64) error {
	for {
		more := d.trail.more() // before the look, so that nothing falls between
		if d.trail.last.Load() > after {
			return nil
		}
		d.mu.Lock()
		closing := d.closing
		d.mu.Unlock()
		if closing {
			return fmt.Errorf("waiting for events: %w", store.ErrNotOpen)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("waiting for events: %w", ctx.Err())
		}
	}
}
