package database_test

import (
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/kv/kvtest"
	"nize/store/storetest"
)

func TestContract(t *testing.T) { storetest.Run(t, opened[store.DB]) }

func TestStorageInterface(t *testing.T) { kvtest.Run(t, opened[kvtest.Engine]) }

func opened[DB any](t *testing.T) (DB, func() DB) {
	dir := t.TempDir()
	db := databasetest.OpenIn(t, dir)
	t.Cleanup(func() { db.Close() })
	return any(db).(DB), func() DB {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = databasetest.OpenIn(t, dir)
		return any(db).(DB)
	}
}
