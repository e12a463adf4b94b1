package bolt

import (
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/kvtest"
)

// TestFaults: a transaction that finds no room. Kills are those of store/database.
func TestFaults(t *testing.T) {
	const room = 1 << 20
	kvtest.Faults(t, func(t *testing.T) (kv.Engine, func() kv.Engine) {
		path := filepath.Join(t.TempDir(), "x.db")
		var f *File
		reopen := func() kv.Engine {
			if f != nil {
				_ = f.Close(false) // its file may be closed
			}
			var err error
			if f, err = Open(path, Options{TestOnlyMaxSize: room}); err != nil {
				t.Fatal(err)
			}
			return f
		}
		t.Cleanup(func() { _ = f.Close(false) })
		return reopen(), reopen
	}, map[string]kvtest.Fault{
		"full disk": {Want: store.ErrDiskFull, Do: func(t *testing.T, _ kv.Engine, b kv.Transaction) {
			if err := b.Put("b", []byte("z"), make([]byte, 2*room)); err != nil {
				t.Error(err)
			}
		}},
	})
}
