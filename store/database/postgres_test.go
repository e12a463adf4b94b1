package database_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/database"
	"nize/store/kv/kvtest"
	"nize/store/kv/postgres"
	"nize/store/kv/postgres/postgrestest"
	"nize/store/seal"
	"nize/store/storetest"
)

// TestPostgres: the contracts hold over a database server as well.
func TestPostgres(t *testing.T) {
	t.Run("contract", func(t *testing.T) { storetest.Run(t, served[store.DB]) })
	t.Run("waist", func(t *testing.T) { kvtest.Run(t, served[kvtest.Engine]) })
}

func served[DB any](t *testing.T) (DB, func() DB) {
	url := postgrestest.New(t)
	master, err := seal.Open(filepath.Join(t.TempDir(), "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *database.DB {
		e, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		db, err := database.Open(t.Context(), database.Options{Engine: e, Master: master})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	t.Cleanup(func() { db.Close() })
	return any(db).(DB), func() DB {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open()
		return any(db).(DB)
	}
}
