package database

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
)

// TestWaitingIndexOfEarlierVersions: a version without the index of waiting calls by
// requester left calls out of it, and entries of calls that it decided in it. Opening
// the database mends both.
func TestWaitingIndexOfEarlierVersions(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := openTest(t, dir, Options{})
	by := store.Caller{User: "ada", Name: "Ada"}
	for _, c := range []store.Call{{ID: "a1", By: "ada"}, {ID: "a2", By: "ada"}, {ID: "b1", By: "bob"}, {ID: "decided", By: "bob"}} {
		c.Server, c.Tool, c.State = "s", "t", store.Pending
		if err := d.Begin(ctx, by, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	file, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := file.Begin(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	// The earlier version took "decided" out of its own index and never wrote a1's.
	var drop [][]byte
	err = tx.Range("calls_by", kv.Range{}, func(k, _ []byte) bool {
		if k[0] == 'w' && string(k[9:]) == "decided" || k[0] == 'p' && slices.Contains([]string{"a1", "b1"}, string(k[len(k)-2:])) {
			drop = append(drop, slices.Clone(k))
		}
		return true
	})
	if len(drop) != 3 {
		t.Fatalf("%q", drop)
	}
	for _, k := range drop {
		err = errors.Join(err, tx.Delete("calls_by", k))
	}
	if err = errors.Join(err, tx.Commit(), file.Close(true)); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		d = openTest(t, dir, Options{})
		for user, want := range map[string][]string{"ada": {"a2", "a1"}, "bob": {"b1"}, "nobody": nil} {
			list, err := d.ListCalls(ctx, store.CallQuery{Waiting: true, User: user})
			var got []string
			for _, c := range list {
				got = append(got, c.ID)
			}
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v, want %q", user, got, err, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
