package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Usage implements [store.Ledger]. By day it counts days of q.Zone, by all else
// days of UTC, in both cases from the one that q.Since falls into. Days come in
// order, all else by tokens, then calls.
func (d *DB) Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error) {
	by := cmp.Or(q.By, "day")
	dim, ok := dimensions[by]
	if !ok {
		return store.UsageReport{}, fmt.Errorf("reading usage: %w dimension %q: use %s", store.ErrInvalid, q.By, strings.Join(store.UsageGroupings, ", "))
	}
	if err := checkOptional("user", q.User); err != nil {
		return store.UsageReport{}, fmt.Errorf("reading usage: %w", err)
	}
	zone := time.UTC
	if by == "day" && q.Zone != nil {
		zone = q.Zone
	}
	if err := d.commitEarly(ctx); err != nil {
		return store.UsageReport{}, err
	}
	report := store.UsageReport{By: by, Zone: zone.String(), Since: q.Since}
	if !q.Since.IsZero() {
		report.Since = startOfDay(q.Since, zone)
	}
	err := d.view(ctx, "reading usage", func(t *tx) error {
		var s *sums
		var err error
		if by == "user" && q.User != "" { // one's own row is what all days have of one
			s, err = t.sumOf(q.User, dimensions["day"], startOfDay(q.Since, time.UTC), func([]byte) []byte { return []byte(q.User) })
		} else if by == "day" {
			s, err = t.sumOf(q.User, dim, report.Since, dayIn(zone))
		} else {
			s, err = t.sumOf(q.User, dim, report.Since, nil)
		}
		if err != nil {
			return err
		}
		s.report(&report, q.Top)
		if by == "tool" {
			return nil
		}
		report.Unpriced, err = t.unpriced(q.User, report.Since)
		return err
	})
	return report, err
}

func startOfDay(at time.Time, zone *time.Location) time.Time {
	y, m, d := at.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

// dayIn names the day of a zone that a quarter of an hour belongs to. Quarters
// come in order, so most of them are of the day before.
func dayIn(zone *time.Location) func(k []byte) []byte {
	var from, to int64
	var name []byte
	return func(k []byte) []byte {
		at := int64(binary.BigEndian.Uint32(k[1:])) * secondsOfQuarter
		if at < from || at >= to {
			start := startOfDay(time.Unix(at, 0), zone)
			name, from, to = start.AppendFormat(nil, time.DateOnly), start.Unix(), startOfDay(start.Add(36*time.Hour), zone).Unix()
		}
		return name
	}
}

// sums are counters by name, in the order in which the names were met. A name
// points into the database and is good as long as the transaction; a map of
// strings took three times as long over 100,000 conversations.
type sums struct {
	names [][]byte
	sums  []counters
	slots []uint64 // open addressing: half a hash, then the place in names plus one; 0 for none
	seed  maphash.Seed
}

// add adds to the counters of a name.
func (s *sums) add(name []byte, n *counters) {
	if 2*len(s.names) >= len(s.slots) {
		s.grow()
	}
	hash := maphash.Bytes(s.seed, name)
	at := s.slot(hash, name)
	if i := uint32(s.slots[at]); i > 0 {
		s.sums[i-1].add(n)
		return
	}
	s.names, s.sums = append(s.names, name), append(s.sums, *n)
	s.slots[at] = hash&^math.MaxUint32 | uint64(len(s.names))
}

// slot is where a name stands, or would.
func (s *sums) slot(hash uint64, name []byte) uint64 {
	mask := uint64(len(s.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		have := s.slots[at]
		if have == 0 || have>>32 == hash>>32 && bytes.Equal(s.names[uint32(have)-1], name) {
			return at
		}
	}
}

func (s *sums) grow() {
	if s.slots == nil {
		s.seed = maphash.MakeSeed()
	}
	s.slots = make([]uint64, max(64, 4*len(s.slots)))
	for i, name := range s.names {
		hash := maphash.Bytes(s.seed, name)
		s.slots[s.slot(hash, name)] = hash&^math.MaxUint32 | uint64(i+1)
	}
	s.names, s.sums = slices.Grow(s.names, len(s.slots)/2-len(s.names)), slices.Grow(s.sums, len(s.slots)/2-len(s.sums))
}

// sumOf adds up the counters of a dimension from a time on, everybody's or one
// person's. nameOf tells the name from the key; nil is what the key ends in.
func (t *tx) sumOf(user string, dim byte, since time.Time, nameOf func(k []byte) []byte) (*sums, error) {
	s := new(sums)
	if user == "" {
		if dim == dimensions["user"] {
			nameOf = func(k []byte) []byte { return []byte(t.db.alias(string(k[5:]))) }
		}
		return s, t.addSums(s, sumPart{"usage", nil, dim, since}, nameOf)
	}
	for _, id := range t.db.allIDs(user) {
		if err := t.addSums(s, sumPart{"usage_user", key(id, ""), dim, since}, nameOf); err != nil {
			return s, err
		}
	}
	return s, nil
}

// sumPart is a run of counters: of a dimension, after a prefix, from a time on.
type sumPart struct {
	bucket string
	prefix []byte
	dim    byte
	since  time.Time
}

func (t *tx) addSums(s *sums, p sumPart, nameOf func(k []byte) []byte) error {
	prefix, dim, since := p.prefix[:len(p.prefix):len(p.prefix)], p.dim, p.since
	head := append(prefix, dim)
	c := t.bucket(p.bucket).Cursor()
	for k, v := c.Seek(append(prefix, usageKey(dim, since, "")...)); bytes.HasPrefix(k, head); k, v = c.Next() {
		k = k[len(prefix):]
		n, err := decodeCounters(v)
		if err != nil || len(k) < 5 {
			return errRecord
		}
		name := k[5:]
		if nameOf != nil {
			name = nameOf(k)
		}
		s.add(name, &n)
	}
	return nil
}

// unpriced lists the models of which calls have no price.
func (t *tx) unpriced(user string, since time.Time) ([]string, error) {
	s, err := t.sumOf(user, dimensions["model"], startOfDay(since, time.UTC), nil)
	var list []string
	for i, c := range s.sums {
		if c.unpriced > 0 {
			list = append(list, string(s.names[i]))
		}
	}
	slices.Sort(list)
	return list, err
}

// report fills in the rows, the largest first; top bounds them, but for days.
func (s *sums) report(r *store.UsageReport, top int) {
	order := make([]int32, len(s.sums))
	var total counters
	for i := range s.sums {
		order[i] = int32(i)
		total.add(&s.sums[i])
	}
	compare := func(a, b int32) int {
		x, y := &s.sums[a], &s.sums[b]
		return cmp.Or(cmp.Compare(y.prompt+y.completion, x.prompt+x.completion), cmp.Compare(y.calls, x.calls), bytes.Compare(s.names[a], s.names[b]))
	}
	if r.By == "day" {
		compare, top = func(a, b int32) int { return bytes.Compare(s.names[a], s.names[b]) }, 0
	}
	if top > 0 && top < len(order) {
		order = largest(order, top, compare)
	} else {
		slices.SortFunc(order, compare)
	}
	r.Rows = make([]store.UsageRow, len(order))
	for i, at := range order {
		r.Rows[i] = s.sums[at].row(string(s.names[at]))
	}
	r.More = len(s.sums) - len(order)
	r.Total = total.row("all")
}

// largest sorts the first n of a list, in its place, without sorting the rest.
func largest(list []int32, n int, compare func(a, b int32) int) []int32 {
	kept := list[:n]
	slices.SortFunc(kept, compare)
	for _, v := range list[n:] {
		if compare(v, kept[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(kept, v, compare)
		copy(kept[at+1:], kept[at:n-1])
		kept[at] = v
	}
	return kept
}

func (c *counters) row(name string) store.UsageRow {
	return store.UsageRow{
		Key: name, Calls: c.calls, Prompt: c.prompt, Completion: c.completion, Cached: c.cached, Reasoning: c.reasoning,
		Estimated: c.estimated, MicroUSD: c.microUSD, Unpriced: c.unpriced, Failed: c.failed, TookMS: time.Duration(c.took).Milliseconds(),
	}
}
