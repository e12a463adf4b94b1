package bolt_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/bolt"
	"nize/store/seal"
	"nize/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store.DB, func() store.DB) {
		dir := t.TempDir()
		open := func() store.DB {
			master, err := seal.Open(filepath.Join(dir, "key"), store.Secret{})
			if err != nil {
				t.Fatal(err)
			}
			db, err := bolt.Open(t.Context(), bolt.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		db := open()
		t.Cleanup(func() { db.Close() })
		return db, func() store.DB {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open()
			return db
		}
	})
}
