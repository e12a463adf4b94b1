package database

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/seal"
)

var tester = store.Caller{User: "u", Name: "U", Surface: store.OnTerminal}

// openAt opens the database of a test with what o says beyond the path.
func openAt(ctx context.Context, dir string, o Options) (*DB, error) {
	master, err := seal.Open(filepath.Join(dir, "key"), store.Secret{})
	if err != nil {
		return nil, err
	}
	o.Path, o.Master = filepath.Join(dir, "nize.db"), master
	return Open(ctx, o)
}

// openTest opens a database and closes it at the end of the test.
func openTest(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	d, err := openAt(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func testCall(state store.State) store.Call {
	now := time.Now().UTC()
	c := store.Call{ID: store.NewID(now), Server: "box", Tool: "x", Args: []byte(`{"a":1}`), By: "u", State: state, Created: now}
	c.Digest = c.ComputeDigest()
	return c
}

// behind changes what is stored behind the store's back.
func behind(t *testing.T, d *DB, change func(b *commit.Tx) error) {
	t.Helper()
	if err := commit.Transact(d.engine, true, func(b kv.Transaction) error { return change(&commit.Tx{DB: d.DB, Raw: b}) }); err != nil {
		t.Fatal(err)
	}
}

// noise is a text of n characters that can't be compressed to less than three quarters.
func noise(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)[:n]
}
