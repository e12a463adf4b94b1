// Package databasetest opens real databases for tests.
package databasetest

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// Open returns a new database with the buckets of modules. It is closed at the end of the test.
func Open(t testing.TB, modules ...kv.Bucket) *database.DB {
	t.Helper()
	db := OpenIn(t, t.TempDir(), modules...)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the database of the test: %v", err)
		}
	})
	return db
}

// OpenIn returns the database of a directory and creates it, with its key, if there is
// none. The test closes it, and may open it again.
func OpenIn(t testing.TB, dir string, modules ...kv.Bucket) *database.DB {
	t.Helper()
	return open(t, dir, nil, modules)
}

func open(t testing.TB, dir string, engine kv.Engine, modules []kv.Bucket) *database.DB {
	t.Helper()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, "nize.db"), Engine: engine, Master: master, Buckets: modules, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Away simulates a database server that may be unavailable for a while.
type Away struct {
	kv.Engine
	away atomic.Bool
}

// OpenAway is OpenIn for a database that the test can make unavailable.
func OpenAway(t testing.TB, dir string, modules ...kv.Bucket) (*database.DB, *Away) {
	t.Helper()
	file, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &Away{Engine: file}
	return open(t, dir, a, modules), a
}

// Set sets whether the database is unavailable.
func (a *Away) Set(away bool) { a.away.Store(away) }

// Begin implements [kv.Engine].
func (a *Away) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	if a.away.Load() {
		return nil, store.ErrNoDatabase
	}
	tx, err := a.Engine.Begin(ctx, write)
	return away{tx, a}, err
}

type away struct {
	kv.Transaction
	from *Away
}

func (t away) Commit() error {
	if t.from.away.Load() {
		t.Rollback()
		return store.ErrNoDatabase
	}
	return t.Transaction.Commit()
}
