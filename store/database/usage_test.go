package database

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
	"nize/store/commit"
	"nize/store/record"
	"nize/store/record/spending"
)

func spendAt(i int, at time.Time) store.Spend {
	return store.Spend{ID: fmt.Sprint("s", i), At: at, User: []string{"ada", "bert"}[i%2], Thread: "t", Provider: "p", Model: "m", Prompt: 10, Completion: 1, Priced: true, MicroUSD: 3}
}

// TestRecount opens a database of a nized that counted days of UTC only, and
// nothing for persons: what it finds is what would have been counted.
func TestRecount(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := openTest(t, dir, Options{})
	day := time.Date(2026, 3, 1, 22, 50, 0, 0, time.UTC)
	for i := range 20 {
		if err := d.AddSpend(ctx, spendAt(i, day.Add(time.Duration(i)*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	c := benchCall(1, store.Running)
	if err := d.Begin(ctx, tester, c); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done}); err != nil {
		t.Fatal(err)
	}
	asked := func(d *DB) (list []store.UsageReport) {
		for _, by := range store.UsageGroupings {
			for _, user := range []string{"", "ada"} {
				r, err := d.Usage(ctx, store.UsageQuery{By: by, User: user, Zone: time.FixedZone("here", 3600+1800)})
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, r)
			}
		}
		return list
	}
	want := asked(d)
	err := d.Write(ctx, "", func(tx *commit.Tx) error {
		for _, k := range tx.Keys("usage", nil, 0) {
			if k[0] != 't' {
				if err := tx.Delete("usage", k); err != nil {
					return err
				}
			}
		}
		if err := tx.Put("usage", spending.UsageKey('d', day, ""), (&record.Counters{Calls: 20}).Encode()); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	without(t, filepath.Join(dir, "nize.db"), "usage_user")
	if diff := cmp.Diff(asked(openTest(t, dir, Options{})), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestSpendRow keeps every column, and reads the rows from before teams.
func TestSpendRow(t *testing.T) {
	s := store.Spend{
		ID: "i", At: time.Unix(1, 2).UTC(), User: "u", Team: "slack:T", Thread: "t", Agent: "a", Provider: "p", Model: "m",
		Prompt: 1, Completion: 2, Cached: 3, Reasoning: 4, Took: 5, MicroUSD: 6, Estimated: true, Priced: true,
	}
	b := record.EncodeSpend(s)
	got, err := record.DecodeSpend(b)
	if diff := cmp.Diff(got, s); diff != "" || err != nil {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	old := b[:len(b)-len(s.Team)-1]
	s.Team = ""
	if got, err = record.DecodeSpend(old); err != nil || got != s {
		t.Errorf("without a team: %+v, %v", got, err)
	}
	for i := range old {
		if _, err := record.DecodeSpend(old[:i]); err == nil {
			t.Errorf("%d bytes are read as a row", i)
		}
	}
}

// TestPruneUsage deletes what was counted for persons by whole days too.
func TestPruneUsage(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	d := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	for i := range 200 {
		if err := d.AddSpend(ctx, spendAt(i, now.Add(-time.Duration(i)*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Prune(ctx, store.Retention{Usage: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, by := range store.UsageGroupings[:7] {
		for user, want := range map[string]int64{"": 61, "ada": 31} { // from the day that the limit falls into on
			r, err := d.Usage(ctx, store.UsageQuery{By: by, User: user})
			if err != nil || r.Total.Calls != want {
				t.Errorf("by %s of %q: %+v, %v; want %d", by, user, r.Total, err, want)
			}
		}
	}
}
