package database

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record/calls"
	"nize/store/storetest"
)

// older makes the database in testdata/schema1, which nized of commit f0041a88 wrote, in a
// directory, and returns the JSON of its calls and of its events as that one listed them.
func older(t *testing.T, dir string) (listed map[string]string) {
	t.Helper()
	listed = map[string]string{}
	for _, name := range []string{"nize.db", "calls.json", "events.json"} {
		f, err := os.Open(filepath.Join("testdata", "schema1", name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		listed[name] = string(b)
	}
	key, err := os.ReadFile(filepath.Join("testdata", "schema1", "key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "key"), key, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "nize.db"), []byte(listed["nize.db"]), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

// forms counts the records of a bucket by their form.
func forms(t *testing.T, d *DB, bucket string) (first, short int) {
	t.Helper()
	err := d.Read(t.Context(), "counting", func(x *commit.Tx) error {
		for _, v := range x.Scan(bucket, kv.Range{}) {
			if is, err := commit.IsCompact(v); err != nil {
				return err
			} else if is {
				short++
			} else {
				first++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return first, short
}

// moduleBuckets returns the buckets of modules in a database; those of testdata are empty.
func moduleBuckets(t *testing.T, d *DB) (list []kv.Bucket) {
	t.Helper()
	err := d.Read(t.Context(), "listing buckets", func(x *commit.Tx) error {
		names, err := x.Raw.Buckets()
		for _, name := range names {
			if !slices.ContainsFunc(Buckets, func(b kv.Bucket) bool { return b.Name == name }) {
				list = append(list, kv.Bucket{Name: name})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestOlderRecords: records of earlier versions are read as they are, and stay the same
// when they are rewritten. Until that, nothing is written that the version before could
// not read.
func TestOlderRecords(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	want := older(t, dir)
	d := openTest(t, dir, Options{})
	check := func(when string) {
		t.Helper()
		listed, err := d.ListCalls(ctx, store.CallQuery{Limit: 1000})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		events, err := d.Events(ctx, store.EventQuery{Limit: 1000})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for len(events) > 0 && events[0].Seq > 68 { // what this test did
			events = events[1:]
		}
		for len(listed) > 0 && listed[0].By == tester.User {
			listed = listed[1:]
		}
		for i := range events {
			events[i].SubjectName = "" // that version listed none
		}
		for name, v := range map[string]any{"calls.json": listed, "events.json": events} {
			b, err := json.MarshalIndent(v, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[name], string(b)+"\n"); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", when, name, diff)
			}
		}
		if _, err := d.VerifyEvents(ctx); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		for _, q := range []struct {
			q    store.CallQuery
			want int
		}{
			{store.CallQuery{States: []store.State{store.Done}, Limit: 1000}, 45},
			{store.CallQuery{States: []store.State{store.Failed}}, 2},
			{store.CallQuery{States: []store.State{store.Failed, store.Done}, Limit: 1000}, 47},
			{store.CallQuery{Waiting: true}, 3},
			{store.CallQuery{Asks: true}, 1},
		} {
			got, err := d.ListCalls(ctx, q.q)
			got = slices.DeleteFunc(got, func(c store.Call) bool { return c.By == tester.User })
			if err != nil || len(got) != q.want {
				t.Errorf("%s: %+v: %d calls, want %d, %v", when, q.q, len(got), q.want, err)
			}
		}
	}
	check("as they are")
	d.Record(tester, testCall(store.Done))
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{"calls", "events", "feed"} {
		if first, short := forms(t, d, bucket); short > 0 || first == 0 {
			t.Errorf("before they are rewritten, %s has %d records of %d in the compact form", bucket, short, first+short)
		}
	}

	// A damaged record stops nothing.
	var damaged []byte
	behind(t, d, func(b *commit.Tx) error {
		k := b.First("calls", nil)
		damaged = commit.CloneBytes(b.Get("calls", k))
		broken := bytes.Clone(damaged)
		broken[len(broken)-1] ^= 1
		return b.Put("calls", k, broken)
	})
	r, err := d.CompactRecords(ctx, tester, nil)
	if err != nil || !r.Raised || r.Records < 100 || r.Damaged != 1 || r.After*2 > r.Before {
		t.Errorf("rewriting: %+v, %v", r, err)
	}
	behind(t, d, func(b *commit.Tx) error { return b.Put("calls", b.First("calls", nil), damaged) })
	check("rewritten but for one")
	if r, err = d.CompactRecords(ctx, tester, nil); err != nil || r.Raised || r.Records != 1 {
		t.Errorf("rewriting again: %+v, %v", r, err)
	}
	check("rewritten")
	for _, bucket := range []string{"calls", "events"} {
		if first, short := forms(t, d, bucket); first > 0 || short == 0 {
			t.Errorf("afterwards %s has %d records in the first form, %d in the compact one", bucket, first, short)
		}
	}

	// What changes such records goes on.
	modules := moduleBuckets(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, dir, Options{Buckets: modules})
	check("opened again")
	if n, err := d.Rotate(ctx, tester, d.master.Load()); err != nil || n != 2 {
		t.Errorf("rotating: %d, %v", n, err)
	}
	if n, err := d.Reseal(ctx); err != nil || n < 54 {
		t.Errorf("sealing anew: %d, %v", n, err)
	}
	check("sealed anew")
	users, err := d.ListUsers(ctx)
	if err != nil || len(users) < 2 {
		t.Fatalf("%d users, %v", len(users), err)
	}
	for _, u := range users {
		if _, err := d.EraseEvents(ctx, tester, u.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.VerifyEvents(ctx); err != nil {
		t.Errorf("erased: %v", err)
	}
	events, err := d.Events(ctx, store.EventQuery{Kind: "call", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if !e.Erased && e.User != tester.User {
			t.Errorf("event %d of %s was not erased", e.Seq, e.User)
		}
	}
}

// TestContractOfFirstForm: a database of the version before keeps its promises, too.
func TestContractOfFirstForm(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store.DB, func() store.DB) {
		dir := t.TempDir()
		open := func() *DB {
			d, err := openAt(t.Context(), dir, Options{testOnlyMigrations: migrations[:1]})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := open()
		t.Cleanup(func() { d.Close() })
		return d, func() store.DB {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = open()
			return d
		}
	})
}

// TestCompactIsRefused: a version that lacks the compact form refuses the database in a
// sentence.
func TestCompactIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := openTest(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	_, err := openAt(t.Context(), dir, Options{testOnlyMigrations: migrations[:1]})
	if err == nil || !strings.Contains(err.Error(), "its schema is 2, this nized knows 1") {
		t.Errorf("got %v", err)
	}
}

// TestCallDamage: a call in the compact form that was cut off is an error.
func TestCallDamage(t *testing.T) {
	d := openTest(t, t.TempDir(), Options{})
	c := testCall(store.Done)
	c.Result = &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"yes"}]}`)}
	d.Record(tester, c)
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var v []byte
	behind(t, d, func(b *commit.Tx) error { v = commit.CloneBytes(b.Get("calls", []byte(c.ID))); return nil })
	for n := range len(v) {
		if _, err := calls.DecodeCall(c.ID, v[:n]); n > 0 && err == nil {
			t.Errorf("the first %d bytes of %d are a call", n, len(v))
		}
	}
}
