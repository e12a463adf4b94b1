package commit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"nize/store/commit"
	"nize/store/database"
)

// counted is a record that counts how often one is decoded.
type counted struct{ Text string }

var decodings int

func (c *counted) UnmarshalJSON(b []byte) error {
	decodings++
	return json.Unmarshal(b, &c.Text)
}

// TestDecoded: a list has what is stored, and only changed records are decoded again.
func TestDecoded(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	cache := commit.Decoded[counted]{}
	check := func(decoded int, want ...string) {
		t.Helper()
		decodings = 0
		var got []string
		err := d.Read(t.Context(), "listing", func(tx *commit.Tx) error {
			list, err := cache.List(tx, "examples")
			for _, c := range list {
				got = append(got, c.Text)
			}
			return err
		})
		if err != nil || !slices.Equal(got, want) || decodings != decoded {
			t.Errorf("listed %q, decoded %d, %v; want %q, %d", got, decodings, err, want, decoded)
		}
	}
	put := func(key int, text string) {
		behind(t, d, func(tx *commit.Tx) error { return tx.PutJSON("examples", fmt.Append(nil, key), text) })
	}
	check(0)
	put(1, "a")
	put(2, "b")
	check(2, "a", "b")
	check(0, "a", "b")
	put(2, "c")
	put(3, "d")
	check(2, "a", "c", "d")
	behind(t, d, func(tx *commit.Tx) error { return tx.Delete("examples", []byte("1")) })
	check(0, "c", "d")
	put(1, "a")
	check(1, "a", "c", "d")
	behind(t, d, func(tx *commit.Tx) error { return tx.Put("examples", []byte("2"), []byte("{")) })
	err := d.Read(t.Context(), "listing", func(tx *commit.Tx) error { _, err := cache.List(tx, "examples"); return err })
	if err == nil {
		t.Error("a damaged record is listed")
	}
}
