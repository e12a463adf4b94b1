package commit

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"nize/store"
)

// If a machine's clock was far ahead, its time may have been stored, and the database's
// time never goes back behind it: tokens and sessions count as expired. RepairClock sets it
// back. Events keep the times that they were written with, so the trail gets a break: times
// are non-decreasing only between two breaks.
//
// meta/clock_breaks contains the numbers of the first events after each break.

// Clocks holds the database's time and the current time.
type Clocks struct {
	Stored  time.Time // determines when tokens and approvals expire
	Present time.Time // of this machine, or of the database server
}

// Ahead returns how far the stored time is ahead, or 0 if that is within the tolerance.
func (c Clocks) Ahead() time.Duration {
	if d := c.Stored.Sub(c.Present); d > mostApart {
		return d
	}
	return 0
}

// Clocks returns the database's time and the current time.
func (d *DB) Clocks() Clocks {
	return Clocks{Stored: d.Now(), Present: d.clock.present().UTC()}
}

// RepairClock sets the database's time back to the current time and returns both previous
// values. It returns ErrRefused if the time is not ahead.
func (d *DB) RepairClock(ctx context.Context, by store.Caller) (was Clocks, err error) {
	err = d.Write(ctx, "setting the database's clock back", func(t *Tx) error {
		was = d.Clocks()
		if was.Ahead() == 0 {
			return store.Mark(errors.New("the database's time is not ahead of the present, so there is nothing to repair"), store.ErrRefused)
		}
		t.Now, t.clockBack = was.Present, true
		breaks := append(t.clockBreaks(), SeqKey(t.head.seq+1))
		if err := t.Put("meta", []byte("clock_breaks"), Pack(breaks...)); err != nil {
			return err
		}
		return t.Event(Note{By: by, Kind: "database.clock", Data: map[string]any{"was": was.Stored, "now": was.Present}})
	})
	return was, err
}

// clockBreaks returns the numbers of the first events after each repair.
func (t *Tx) clockBreaks() [][]byte {
	b := t.Get("meta", []byte("clock_breaks"))
	if b == nil {
		return nil
	}
	breaks, err := unpack(CloneBytes(b))
	if err != nil {
		panic(engineError{fmt.Errorf("reading the repairs of the clock: %w", err)})
	}
	return breaks
}

// span returns the smallest range of events that includes all with times from since to
// before until; either may be zero. If the clock was repaired, the range may include
// others.
func (t *Tx) span(since, until time.Time) (lo, hi uint64) {
	first, last := t.First("events", nil), t.Last("events", nil)
	if first == nil {
		return 1, 0
	}
	from, end := DecodeSeq(first), DecodeSeq(last)+1
	lo, hi = end, 0
	for _, b := range append(t.clockBreaks(), SeqKey(end)) {
		to := min(DecodeSeq(b), end)
		if to <= from {
			continue // pruned
		}
		a, z := from, to
		if !since.IsZero() {
			a = t.firstEvent(since, from, to)
		}
		if !until.IsZero() {
			z = t.firstEvent(until, from, to)
		}
		if a < z {
			lo, hi = min(lo, a), max(hi, z-1)
		}
		from = to
	}
	return lo, hi
}

// firstEvent returns the number of the first event in [from, to) that is not before at, or
// to if there is none.
func (t *Tx) firstEvent(at time.Time, from, to uint64) uint64 {
	n := sort.Search(int(to-from), func(i int) bool {
		p, err := t.eventParts(t.Get("events", SeqKey(from+uint64(i))))
		return err == nil && !TimeOf(p[evTime]).Before(at)
	})
	return from + uint64(n)
}
