package spending

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// Usage implements [store.Ledger]. It counts days of q.Zone from the one that q.Since falls
// into; tools are counted in days of UTC. Days are sorted by time, everything else by
// tokens, then calls.
func (d Spending) Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error) {
	by := cmp.Or(q.By, "day")
	dim, ok := Dimensions[by]
	if !ok {
		return store.UsageReport{}, fmt.Errorf("reading usage: %w dimension %q: use %s", store.ErrInvalid, q.By, strings.Join(store.UsageGroupings, ", "))
	}
	if err := commit.CheckOptional("user", q.User); err != nil {
		return store.UsageReport{}, fmt.Errorf("reading usage: %w", err)
	}
	zone := time.UTC
	if by != "tool" && q.Zone != nil {
		zone = q.Zone
	}
	if err := d.db.CatchUp(ctx); err != nil {
		return store.UsageReport{}, err
	}
	report := store.UsageReport{By: by, Zone: zone.String(), Since: q.Since}
	if !q.Since.IsZero() {
		report.Since = startOfDay(q.Since, zone)
	}
	err := d.db.Read(ctx, "reading usage", func(t *commit.Tx) error {
		var s *record.Sums
		var err error
		if by == "user" && q.User != "" { // one user's row is the sum of their days
			s, err = sumOf(t, q.User, Dimensions["day"], report.Since, func([]byte) []byte { return []byte(q.User) })
		} else if by == "day" {
			s, err = sumOf(t, q.User, dim, report.Since, dayIn(zone))
		} else {
			s, err = sumFrom(t, q.User, by, report.Since)
		}
		if err != nil {
			return err
		}
		s.Report(&report, q.Top)
		if by == "tool" {
			return nil
		}
		report.Unpriced, err = unpriced(t, q.User, report.Since)
		return err
	})
	return report, err
}

func startOfDay(at time.Time, zone *time.Location) time.Time {
	y, m, d := at.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

// dayIn returns a function that names the day of a zone that a quarter of an hour belongs
// to. Quarters are in order, so most belong to the same day as the previous one.
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

// sumOf sums the counters of a dimension from a time on, everyone's or one person's. nameOf
// extracts the name from the key; nil is the end of the key.
func sumOf(t *commit.Tx, user string, dim byte, since time.Time, nameOf func(k []byte) []byte) (*record.Sums, error) {
	s := new(record.Sums)
	if user == "" {
		if dim == Dimensions["user"] {
			nameOf = func(k []byte) []byte { return []byte(t.DB.Alias(string(k[5:]))) }
		}
		return s, addSums(t, s, sumPart{"usage", nil, dim, since}, nameOf)
	}
	for _, id := range t.DB.AllIDs(user) {
		if err := addSums(t, s, sumPart{"usage_user", commit.Key(id, ""), dim, since}, nameOf); err != nil {
			return s, err
		}
	}
	return s, nil
}

// sumFrom sums the counters of a dimension counted in days of UTC, from a time on that may
// be within a day: for that day it counts the rows themselves.
func sumFrom(t *commit.Tx, user, by string, since time.Time) (*record.Sums, error) {
	whole := since
	if start := startOfDay(since, time.UTC); !since.IsZero() && start.Before(since) {
		whole = start.AddDate(0, 0, 1)
	}
	s, err := sumOf(t, user, Dimensions[by], whole, nil)
	if err != nil || !since.Before(whole) {
		return s, err
	}
	ids := t.DB.AllIDs(user)
	for _, v := range t.Scan("spends", kv.Range{From: commit.TimeKey(since), Before: commit.TimeKey(whole)}) {
		row, err := record.DecodeSpend(v)
		if err != nil {
			return s, err
		}
		if user != "" && !slices.Contains(ids, row.User) {
			continue
		}
		name, n := clipped(nameIn(by, row)), countersOf(row)
		if by == "user" {
			name = t.DB.Alias(name)
		}
		s.Add([]byte(name), &n)
	}
	return s, nil
}

// sumPart is a range of counters: of a dimension, after a prefix, from a time on.
type sumPart struct {
	bucket string
	prefix []byte
	dim    byte
	since  time.Time
}

func addSums(t *commit.Tx, s *record.Sums, p sumPart, nameOf func(k []byte) []byte) error {
	prefix, dim, since := p.prefix[:len(p.prefix):len(p.prefix)], p.dim, p.since
	head := append(prefix, dim)
	for k, v := range t.Scan(p.bucket, kv.Range{Prefix: head, From: append(prefix, UsageKey(dim, since, "")...)}) {
		k = k[len(prefix):]
		n, err := record.DecodeCounters(v)
		if err != nil || len(k) < 5 {
			return commit.ErrDamaged
		}
		name := k[5:]
		if nameOf != nil {
			name = nameOf(k)
		}
		s.Add(name, &n)
	}
	return nil
}

// unpriced returns the models with calls without a price.
func unpriced(t *commit.Tx, user string, since time.Time) ([]string, error) {
	s, err := sumFrom(t, user, "model", since)
	var list []string
	s.Each(func(name []byte, c *record.Counters) {
		if c.Unpriced > 0 {
			list = append(list, string(name))
		}
	})
	slices.Sort(list)
	return list, err
}
