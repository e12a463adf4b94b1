// Package databasetest opens real databases for tests.
package databasetest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

// Open returns a new database, which is closed at the end of the test.
func Open(t testing.TB) *database.DB {
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
func OpenIn(t testing.TB, dir string) *database.DB {
	t.Helper()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
