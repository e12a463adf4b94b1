package botstest

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/store"
	"nize/store/bolt"
	"nize/store/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openBolt(t *testing.T) store.DB {
	t.Helper()
	dir := t.TempDir()
	master, err := seal.Open(filepath.Join(dir, "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(t.Context(), bolt.Options{Path: filepath.Join(dir, "db"), Master: master})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestMemory(t *testing.T) {
	Script{
		Open: openBolt,
		New: func(*testing.T) (bots.Platform, User, store.Address) {
			m := NewMemory(store.OnTerminal)
			return m, m, store.Address{Surface: store.OnTerminal, Channel: "here", Thread: "THREAD"}
		},
	}.Run(t)
}
