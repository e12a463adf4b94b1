package views

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"nize/store/database/databasetest"
)

// TestSigningKeys: a key signs for a month, and what it signed holds for another.
func TestSigningKeys(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := databasetest.OpenIn(t, dir, Buckets...)
		read := func() [][]byte {
			t.Helper()
			keys, err := signingKeys(t.Context(), db)
			if err != nil || len(keys) == 0 || len(keys[0]) != 32 {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			return keys
		}
		first := read()
		if again := read(); len(first) != 1 || !bytes.Equal(again[0], first[0]) {
			t.Errorf("%d keys at first", len(first))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = databasetest.OpenIn(t, dir, Buckets...)
		time.Sleep(29 * 24 * time.Hour)
		if again := read(); !bytes.Equal(again[0], first[0]) {
			t.Error("another key after a restart")
		}
		for n := range 2 {
			time.Sleep(30 * 24 * time.Hour)
			keys := read()
			if len(keys) != 2 || bytes.Equal(keys[0], first[0]) || bytes.Equal(keys[1], first[0]) != (n == 0) {
				t.Errorf("after %d months: %d keys", n+1, len(keys))
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
