package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"nize/store"
)

// A row of what a model call cost is fixed columns (eight numbers of eight
// bytes, one byte of flags), then its strings packed. Usage never reads rows:
// it reads the counters, which are kept by day (UTC), dimension and key in the
// same transaction.

const (
	spendEstimated = 1 << iota
	spendPriced
)

func encodeSpend(s store.Spend) []byte {
	b := make([]byte, 0, 192)
	for _, n := range []int64{s.At.UnixNano(), s.Prompt, s.Completion, s.Cached, s.Reasoning, int64(s.Took), s.MicroUSD, 0} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	var flags byte
	if s.Estimated {
		flags |= spendEstimated
	}
	if s.Priced {
		flags |= spendPriced
	}
	return append(append(b, flags), pack([]byte(s.ID), []byte(s.User), []byte(s.Thread), []byte(s.Agent), []byte(s.Provider), []byte(s.Model))...)
}

// The dimensions of usage, each the first byte of its counters' keys.
var dimensions = map[string]byte{
	"day": 'd', "user": 'u', "agent": 'a', "provider": 'p', "model": 'm', "conversation": 'c', "tool": 't',
}

// counters are what a usage row sums up, in the order in which they are stored.
type counters struct {
	calls, prompt, completion, cached, reasoning, estimated, microUSD, unpriced, failed, took int64
}

func (c *counters) add(o *counters) {
	c.calls += o.calls
	c.prompt += o.prompt
	c.completion += o.completion
	c.cached += o.cached
	c.reasoning += o.reasoning
	c.estimated += o.estimated
	c.microUSD += o.microUSD
	c.unpriced += o.unpriced
	c.failed += o.failed
	c.took += o.took
}

const countersSize = 10 * 8

func (c *counters) encode() []byte {
	b := make([]byte, 0, countersSize)
	for _, n := range []int64{c.calls, c.prompt, c.completion, c.cached, c.reasoning, c.estimated, c.microUSD, c.unpriced, c.failed, c.took} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func decodeCounters(b []byte) (counters, error) {
	if len(b) < countersSize {
		return counters{}, errRecord
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	return counters{n(0), n(1), n(2), n(3), n(4), n(5), n(6), n(7), n(8), n(9)}, nil
}

const secondsOfDay = 86400

// usageKey is dimension, day since 1970, key.
func usageKey(dim byte, at time.Time, k string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{dim}, uint32(max(0, at.Unix())/secondsOfDay))
	return append(b, k...)
}

func (t *tx) count(dim string, at time.Time, name string, c counters) error {
	if len(name) > maxID {
		name = name[:maxID]
	}
	k := usageKey(dimensions[dim], at, name)
	if v := t.get("usage", k); v != nil {
		sum, err := decodeCounters(v)
		if err != nil {
			return err
		}
		c.add(&sum)
	}
	return t.put("usage", k, c.encode())
}

// countCall adds a call that ended to the counters of its tool.
func (t *tx) countCall(c store.Call) error {
	n := counters{calls: 1, took: int64(took(c))}
	if c.State != store.Done {
		n.failed = 1
	}
	return t.count("tool", c.Finished, c.ToolID(), n)
}

// AddSpend implements [store.Ledger]. ErrExists if that call was booked before.
func (d *DB) AddSpend(ctx context.Context, s store.Spend) error {
	return d.do(ctx, "booking a model call", func(t *tx) error {
		s := s
		if s.At.IsZero() {
			s.At = t.now
		}
		s.ID = cmp.Or(s.ID, store.NewID(s.At))
		if err := checkIDs("spend id", s.ID); err != nil {
			return err
		}
		k := append(timeKey(s.At), s.ID...)
		if t.get("spends", k) != nil {
			return store.ErrExists
		}
		if err := t.put("spends", k, encodeSpend(s)); err != nil {
			return err
		}
		c := counters{calls: 1, prompt: s.Prompt, completion: s.Completion, cached: s.Cached, reasoning: s.Reasoning, took: int64(s.Took)}
		if s.Estimated {
			c.estimated = 1
		}
		if s.Priced {
			c.microUSD = s.MicroUSD
		} else {
			c.unpriced = 1
		}
		for _, by := range []struct{ dim, key string }{
			{"day", ""}, {"user", s.User}, {"agent", s.Agent}, {"provider", s.Provider}, {"model", s.Model}, {"conversation", s.Thread},
		} {
			if err := t.count(by.dim, s.At, by.key, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Usage implements [store.Ledger]. It counts whole days (UTC) from the one
// that q.Since falls into. Days come in order, all else by tokens, then calls.
func (d *DB) Usage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	by := cmp.Or(q.By, "day")
	dim, ok := dimensions[by]
	if !ok {
		return nil, fmt.Errorf("reading usage: %w dimension %q: use day, user, agent, provider, model, conversation or tool", store.ErrInvalid, q.By)
	}
	since := usageKey(dim, q.Since, "")
	var (
		place = map[string]int{} // of each key in names and sums
		names []string
		sums  []counters
	)
	err := d.view(ctx, "reading usage", func(t *tx) error {
		c := t.bucket("usage").Cursor()
		for k, v := c.Seek(since); len(k) > 0 && k[0] == dim; k, v = c.Next() {
			n, err := decodeCounters(v)
			if err != nil || len(k) < 5 {
				return errRecord
			}
			name := k[5:]
			if dim == 'd' {
				name = []byte(time.Unix(int64(binary.BigEndian.Uint32(k[1:]))*secondsOfDay, 0).UTC().Format(time.DateOnly))
			}
			if i, ok := place[string(name)]; ok {
				sums[i].add(&n)
				continue
			}
			place[string(name)] = len(sums)
			names, sums = append(names, string(name)), append(sums, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([]store.UsageRow, 0, len(sums))
	for i, c := range sums {
		rows = append(rows, store.UsageRow{
			Key: names[i], Calls: c.calls, Prompt: c.prompt, Completion: c.completion, Cached: c.cached, Reasoning: c.reasoning,
			Estimated: c.estimated, MicroUSD: c.microUSD, Unpriced: c.unpriced, Failed: c.failed, TookMS: time.Duration(c.took).Milliseconds(),
		})
	}
	slices.SortFunc(rows, func(a, b store.UsageRow) int {
		if dim == 'd' {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Prompt+b.Completion, a.Prompt+a.Completion), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Key, b.Key))
	})
	return rows, nil
}
