package bolt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	bbolt "go.etcd.io/bbolt"

	"nize/store"
	"nize/store/seal"
)

// tx is one transaction, reading or writing. Values that get returns are valid
// inside it only.
type tx struct {
	db  *DB
	b   *bbolt.Tx
	now time.Time // never before any time that was stored earlier

	// Of a writing transaction only.
	writes  int                   // how many changes were made; 0 needs no commit
	changes []store.Change        // for the feed, in order
	head    auditHead             // of the audit chain, with what this transaction appended
	running map[string]storedCall // calls that this transaction began: most end in it, too
}

// bucket returns a top bucket. The schema makes all of them, so a missing one
// is damage, which the recover around each transaction reports.
func (t *tx) bucket(name string) *bbolt.Bucket {
	b := t.b.Bucket([]byte(name))
	if b == nil {
		panic(fmt.Sprintf("bucket %s is missing", name))
	}
	return b
}

func (t *tx) get(bucket string, k []byte) []byte { return t.bucket(bucket).Get(k) }

func (t *tx) put(bucket string, k, v []byte) error {
	t.writes++
	b := t.bucket(bucket)
	switch bucket {
	case "calls":
		delete(t.running, string(k))
	case "events", "feed", "spends": // only ever appended to
		b.FillPercent = 0.9
	}
	return b.Put(k, v)
}

func (t *tx) del(bucket string, k []byte) error {
	t.writes++
	if bucket == "calls" {
		delete(t.running, string(k))
	}
	return t.bucket(bucket).Delete(k)
}

func (t *tx) putJSON(bucket string, k []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.put(bucket, k, b)
}

// getJSON reads one record. ErrNotFound if there is none.
func getJSON[T any](t *tx, bucket string, k []byte) (T, error) {
	b := t.get(bucket, k)
	if b == nil {
		var zero T
		return zero, store.ErrNotFound
	}
	return decodeJSON[T](b)
}

// listJSON reads every record whose key starts with prefix, in key order.
func listJSON[T any](t *tx, bucket string, prefix []byte) ([]T, error) {
	var out []T
	err := t.each(bucket, prefix, func(_, v []byte) error {
		r, err := decodeJSON[T](v)
		out = append(out, r)
		return err
	})
	return out, err
}

// each visits the keys that start with prefix, in order. do must not change
// the bucket.
func (t *tx) each(bucket string, prefix []byte, do func(k, v []byte) error) error {
	c := t.bucket(bucket).Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if err := do(k, v); err != nil {
			return err
		}
	}
	return nil
}

// seekLast moves to the last key that starts with prefix, or to one that does
// not. What follows a prefix starts with a time or a count, so below 0xff.
func seekLast(c *bbolt.Cursor, prefix []byte) []byte {
	k, _ := c.Seek(append(prefix[:len(prefix):len(prefix)], 0xff))
	if k == nil {
		k, _ = c.Last()
		return k
	}
	k, _ = c.Prev()
	return k
}

// keys copies up to limit keys that start with prefix (0 is all).
func (t *tx) keys(bucket string, prefix []byte, limit int) [][]byte {
	var out [][]byte
	c := t.bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		if limit > 0 && len(out) == limit {
			break
		}
		out = append(out, cloneBytes(k))
	}
	return out
}

// delPrefix deletes every key that starts with prefix.
func (t *tx) delPrefix(bucket string, prefix []byte) error {
	for _, k := range t.keys(bucket, prefix, 0) {
		if err := t.del(bucket, k); err != nil {
			return err
		}
	}
	return nil
}

// change adds one entry to the feed; its number is given at the commit.
func (t *tx) change(c store.Change) {
	t.writes++
	t.changes = append(t.changes, c)
}

// seal encrypts a value for its place. what tells several of one record apart.
func (t *tx) seal(what, id string, plain []byte) []byte {
	return t.db.keys.Load().sealer.Seal(seal.Place(what, []byte(id)), plain)
}

func (d *DB) unseal(what, id string, sealed []byte) ([]byte, error) {
	return d.keys.Load().sealer.Open(seal.Place(what, []byte(id)), sealed)
}
