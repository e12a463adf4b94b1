package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/store"
	"nize/store/commit"
)

// TestShortenedTrail: an older copy of the database, put in its place by hand,
// ends before the event that was noted beside it, and is told; so is a note
// that was changed. A note that lags behind, or is missing, says nothing.
func TestShortenedTrail(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "nize.db")
	add := func(d *DB, n int) {
		t.Helper()
		for range n {
			d.AddEvent(store.System, store.Event{Kind: "x.y", Subject: "z"})
		}
		if err := d.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	copyFile := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := openTest(t, dir, Options{})
	add(d, 3)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(path, path+".old")
	noted, err := os.ReadFile(commit.BesidePath(path))
	if err != nil {
		t.Fatal(err)
	}

	d = openTest(t, dir, Options{})
	if err := d.CheckTrailEnd(ctx); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	add(d, 3)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(commit.BesidePath(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, beside, want string
		db                 string
	}{
		{"a note that lags behind", string(noted), "", path},
		{"an older copy", string(newer), "it was shortened", path + ".old"},
		{"a note of another database", strings.Repeat("00", len(noted)/2), "was changed", path},
		{"no hex", "?", "was changed", path},
	} {
		if test.db != path {
			copyFile(test.db, path)
		}
		if err := os.WriteFile(commit.BesidePath(path), []byte(test.beside), 0o600); err != nil {
			t.Fatal(err)
		}
		d := openTest(t, dir, Options{})
		err := d.CheckTrailEnd(ctx)
		_, whole := d.VerifyEvents(ctx)
		var bad *store.TamperedError
		if test.want == "" && (err != nil || whole != nil) || test.want != "" && (!errors.As(err, &bad) || !errors.As(whole, &bad) || !strings.Contains(bad.Why, test.want)) {
			t.Errorf("%s: %v, %v", test.what, err, whole)
		}
		if err := d.engine.Close(false); err != nil { // as a kill does: nothing is noted
			t.Fatal(err)
		}
		copyFile(path+".old", path)
	}
}
