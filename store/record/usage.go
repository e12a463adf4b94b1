package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"nize/store"
)

// Counters are the sums of a usage row, in stored order.
type Counters struct {
	Calls, Prompt, Completion, Cached, Reasoning, Estimated, MicroUSD, Unpriced, Failed, Took int64
}

// Add adds other counters.
func (c *Counters) Add(o *Counters) {
	c.Calls += o.Calls
	c.Prompt += o.Prompt
	c.Completion += o.Completion
	c.Cached += o.Cached
	c.Reasoning += o.Reasoning
	c.Estimated += o.Estimated
	c.MicroUSD += o.MicroUSD
	c.Unpriced += o.Unpriced
	c.Failed += o.Failed
	c.Took += o.Took
}

const countersSize = 10 * 8

// Encode returns the stored form.
func (c *Counters) Encode() []byte {
	b := make([]byte, 0, countersSize)
	for _, n := range []int64{c.Calls, c.Prompt, c.Completion, c.Cached, c.Reasoning, c.Estimated, c.MicroUSD, c.Unpriced, c.Failed, c.Took} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// DecodeCounters is the inverse of Encode.
func DecodeCounters(b []byte) (Counters, error) {
	if len(b) < countersSize {
		return Counters{}, ErrDamaged
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	return Counters{n(0), n(1), n(2), n(3), n(4), n(5), n(6), n(7), n(8), n(9)}, nil
}

// Sums are counters by name, in the order in which the names were added. A name points into
// the database and is valid during the transaction; a map of strings took three times as
// long over 100,000 conversations.
type Sums struct {
	names [][]byte
	sums  []Counters
	slots []uint64 // open addressing: half a hash, then the index in names plus one; 0 if empty
	seed  maphash.Seed
}

// Add adds to the counters of a name.
func (s *Sums) Add(name []byte, n *Counters) {
	if 2*len(s.names) >= len(s.slots) {
		s.grow()
	}
	hash := maphash.Bytes(s.seed, name)
	at := s.slot(hash, name)
	if i := uint32(s.slots[at]); i > 0 {
		s.sums[i-1].Add(n)
		return
	}
	s.names, s.sums = append(s.names, name), append(s.sums, *n)
	s.slots[at] = hash&^math.MaxUint32 | uint64(len(s.names))
}

// Each calls do with each name and its counters.
func (s *Sums) Each(do func(name []byte, c *Counters)) {
	for i, name := range s.names {
		do(name, &s.sums[i])
	}
}

// slot returns the slot of a name, or the free one for it.
func (s *Sums) slot(hash uint64, name []byte) uint64 {
	mask := uint64(len(s.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		have := s.slots[at]
		if have == 0 || have>>32 == hash>>32 && bytes.Equal(s.names[uint32(have)-1], name) {
			return at
		}
	}
}

func (s *Sums) grow() {
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

// Report sets the rows, largest first; top limits their number, except for days.
func (s *Sums) Report(r *store.UsageReport, top int) {
	order := make([]int32, len(s.sums))
	var total Counters
	for i := range s.sums {
		order[i] = int32(i)
		total.Add(&s.sums[i])
	}
	compare := func(a, b int32) int {
		x, y := &s.sums[a], &s.sums[b]
		return cmp.Or(cmp.Compare(y.Prompt+y.Completion, x.Prompt+x.Completion), cmp.Compare(y.Calls, x.Calls), bytes.Compare(s.names[a], s.names[b]))
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

// largest sorts the first n of a list in place without sorting the rest.
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

func (c *Counters) row(name string) store.UsageRow {
	return store.UsageRow{
		Key: name, Calls: c.Calls, Prompt: c.Prompt, Completion: c.Completion, Cached: c.Cached, Reasoning: c.Reasoning,
		Estimated: c.Estimated, MicroUSD: c.MicroUSD, Unpriced: c.Unpriced, Failed: c.Failed, TookMS: time.Duration(c.Took).Milliseconds(),
	}
}
