// Package bolttest opens real databases for tests.
package bolttest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/bolt"
	"nize/store/seal"
)

// Open returns a new database, which is closed at the end of the test.
func Open(t testing.TB) *bolt.DB {
	t.Helper()
	db := OpenIn(t, t.TempDir())
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the database of the test: %v", err)
		}
	})
	return db
}

// OpenIn returns the database of a directory, made with its key where there is
// none. The test closes it, and may open it again.
func OpenIn(t testing.TB, dir string) *bolt.DB {
	t.Helper()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(t.Context(), bolt.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
