package bolt_test

import (
	"testing"

	"nize/store"
	"nize/store/bolt/bolttest"
	"nize/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store.DB, func() store.DB) {
		dir := t.TempDir()
		open := func() store.DB { return bolttest.OpenIn(t, dir) }
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
