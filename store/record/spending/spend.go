package spending

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// A row with the cost of a model call has the form of record.EncodeSpend. Usage never reads
// rows: it reads the counters, which are updated by period, dimension and key in the same
// transaction, for everyone and for each person.

// The dimensions of usage, each the first byte of its counters' keys. Time is counted by
// quarters of an hour, which add up to the days of every zone; everything else by days of
// UTC.
var Dimensions = map[string]byte{
	"day": 'q', "user": 'u', "team": 'g', "agent": 'a', "provider": 'p', "model": 'm', "conversation": 'c', "tool": 't',
}

const (
	SecondsOfDay     = 86400
	secondsOfQuarter = 900
)

// periodOf returns the length of a period of the dimension, in seconds.
func periodOf(dim byte) int64 {
	if dim == Dimensions["day"] {
		return secondsOfQuarter
	}
	return SecondsOfDay
}

// UsageKey returns the key: dimension, number of the period since 1970, name.
func UsageKey(dim byte, at time.Time, k string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{dim}, uint32(max(0, at.Unix())/periodOf(dim)))
	return append(b, k...)
}

// tally collects counters before they are written, so that a batch of rows updates each
// counter once.
type tally map[[2]string]*record.Counters // by bucket and key

// count adds c to the counters of a name, everyone's and the person's.
func (y tally) count(dim string, at time.Time, name, user string, c record.Counters) {
	k := UsageKey(Dimensions[dim], at, clipped(name))
	y.add("usage", k, c)
	if dim != "user" && user != "" {
		y.add("usage_user", append(commit.Key(user, ""), k...), c)
	}
}

// clipped returns the stored form of a name.
func clipped(name string) string { return name[:min(len(name), commit.MaxID)] }

func (y tally) add(bucket string, k []byte, c record.Counters) {
	at := [2]string{bucket, string(k)}
	if sum := y[at]; sum != nil {
		sum.Add(&c)
		return
	}
	y[at] = &c
}

func (y tally) spend(s store.Spend) {
	c := countersOf(s)
	for _, by := range []string{"day", "user", "team", "agent", "provider", "model", "conversation"} {
		y.count(by, s.At, nameIn(by, s), s.User, c)
	}
}

// countersOf returns the counters of a row.
func countersOf(s store.Spend) record.Counters {
	c := record.Counters{Calls: 1, Prompt: s.Prompt, Completion: s.Completion, Cached: s.Cached, Reasoning: s.Reasoning, Took: int64(s.Took)}
	if s.Estimated {
		c.Estimated = 1
	}
	if s.Priced {
		c.MicroUSD = s.MicroUSD
	} else {
		c.Unpriced = 1
	}
	return c
}

// nameIn returns the name that a row counts for in a dimension.
func nameIn(by string, s store.Spend) string {
	switch by {
	case "user":
		return s.User
	case "team":
		return s.Team
	case "agent":
		return s.Agent
	case "provider":
		return s.Provider
	case "model":
		return s.ModelName()
	case "conversation":
		return s.Thread
	}
	return ""
}

// store adds the collected counters to the stored ones.
func (y tally) store(t *commit.Tx) error {
	if err := t.Ahead(slices.Collect(maps.Keys(y))); err != nil {
		return err
	}
	for at, c := range y {
		k := []byte(at[1])
		if v := t.Get(at[0], k); v != nil {
			sum, err := record.DecodeCounters(v)
			if err != nil {
				return err
			}
			c.Add(&sum)
		}
		if err := t.Put(at[0], k, c.Encode()); err != nil {
			return err
		}
	}
	return nil
}

// CountCall adds a call that ended to the counters of its tool.
func CountCall(t *commit.Tx, c store.Call) error {
	n := record.Counters{Calls: 1, Took: int64(Took(c))}
	if c.State != store.Done {
		n.Failed = 1
	}
	y := tally{}
	y.count("tool", c.Finished, c.ToolID(), c.By, n)
	return y.store(t)
}

// AddSpend implements [store.Ledger]. It returns ErrExists if that call was booked before.
func (d Spending) AddSpend(ctx context.Context, s store.Spend) error {
	return d.AddSpends(ctx, []store.Spend{s})
}

// AddSpends books many calls in one transaction, all or none.
func (d Spending) AddSpends(ctx context.Context, list []store.Spend) error {
	return d.db.Write(ctx, "booking a model call", func(t *commit.Tx) error { return addSpends(t, list) })
}

func addSpends(t *commit.Tx, list []store.Spend) error {
	y := tally{}
	for _, s := range list {
		if s.At.IsZero() {
			s.At = t.Now
		}
		s.ID = cmp.Or(s.ID, store.NewID(s.At))
		if err := commit.CheckIDs("spend id", s.ID); err != nil {
			return err
		}
		if err := commit.CheckOptional("user", s.User); err != nil {
			return err
		}
		k := append(commit.TimeKey(s.At), s.ID...)
		if err := t.IsNew("spends", k); err != nil {
			return err
		}
		if err := t.Put("spends", k, record.EncodeSpend(s)); err != nil {
			return err
		}
		y.spend(s)
	}
	return y.store(t)
}

// Recount rebuilds the counters from the rows, except those of tools, for a database of a
// version that counted less.
func Recount(b kv.Transaction) error {
	t := &commit.Tx{Raw: b}
	for _, k := range t.Keys("usage", nil, 0) {
		if k[0] == Dimensions["tool"] {
			continue
		}
		if err := t.Delete("usage", k); err != nil {
			return err
		}
	}
	y := tally{}
	err := t.Each("spends", nil, func(_, v []byte) error {
		s, err := record.DecodeSpend(v)
		if err == nil {
			y.spend(s)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("counting usage anew: %w", err)
	}
	return y.store(t)
}

// Took returns how long a call ran.
func Took(c store.Call) time.Duration {
	if c.Started.IsZero() || c.Finished.Before(c.Started) {
		return 0
	}
	return c.Finished.Sub(c.Started)
}
