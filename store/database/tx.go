package database

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/seal"
)

// tx is one transaction, reading or writing. Values that get returns are valid
// inside it only.
type tx struct {
	db  *DB
	b   kv.Transaction
	now time.Time // never before any time that was stored earlier

	// Of a writing transaction only.
	writes  int                   // how many changes were made; 0 needs no commit
	wrote   []string              // to which buckets
	changes []store.Change        // for the feed, in order
	forgot  uint64                // the newest number of the feed that it forgot
	head    auditHead             // of the audit chain, with what this transaction appended
	running map[string]storedCall // calls that this transaction began: most end in it, too
}

// engineError is what the engine said where it couldn't read: a panic, which the
// recover around each transaction returns, as it does with what a damaged page
// leads to.
type engineError struct{ error }

// recovered is the error of a panic inside a transaction.
func recovered(r any) error {
	if e, ok := r.(engineError); ok {
		return e.error
	}
	return fmt.Errorf("%w: %v", errRecord, r)
}

// get returns nil where there is no such key.
func (t *tx) get(bucket string, k []byte) []byte {
	v, err := t.b.Get(bucket, k)
	if err != nil {
		panic(engineError{err})
	}
	return v
}

// isNew is ErrExists where there is such a key, and else one has to be put next.
func isNew(t *tx, bucket string, k []byte) error {
	none, err := t.b.New(bucket, k)
	if err == nil && !none {
		err = fmt.Errorf("id %w", store.ErrExists)
	}
	return err
}

// scan visits a part of a bucket, which must not be changed meanwhile.
func (t *tx) scan(bucket string, r kv.Range) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if err := t.b.Range(bucket, r, yield); err != nil {
			panic(engineError{err})
		}
	}
}

// first and last are the ends of what starts with prefix, nil where there is
// nothing.
func (t *tx) first(bucket string, prefix []byte) (key []byte) {
	for k := range t.scan(bucket, kv.Range{Prefix: prefix, Limit: 1}) {
		key = k
	}
	return key
}

func (t *tx) last(bucket string, prefix []byte) (key []byte) {
	for k := range t.scan(bucket, kv.Range{Prefix: prefix, Reverse: true, Limit: 1}) {
		key = k
	}
	return key
}

func (t *tx) put(bucket string, k, v []byte) error {
	writing(t, bucket, k)
	return t.b.Put(bucket, k, v)
}

func (t *tx) del(bucket string, k []byte) error {
	writing(t, bucket, k)
	return t.b.Delete(bucket, k)
}

func writing(t *tx, bucket string, k []byte) {
	t.writes++
	writesTo(t, bucket)
	switch bucket {
	case "calls":
		delete(t.running, string(k))
	case "calls_by":
		if bytes.HasPrefix(k, []byte("w")) {
			writesTo(t, waitingCalls)
		}
	}
}

func writesTo(t *tx, bucket string) {
	if !slices.Contains(t.wrote, bucket) {
		t.wrote = append(t.wrote, bucket)
	}
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
	return t.eachFrom(bucket, kv.Range{Prefix: prefix}, do)
}

func (t *tx) eachFrom(bucket string, r kv.Range, do func(k, v []byte) error) (err error) {
	failed := t.b.Range(bucket, r, func(k, v []byte) bool {
		err = do(k, v)
		return err == nil
	})
	return cmp.Or(err, failed)
}

// keys copies up to limit keys that start with prefix (0 is all).
func (t *tx) keys(bucket string, prefix []byte, limit int) [][]byte {
	var out [][]byte
	for k := range t.scan(bucket, kv.Range{Prefix: prefix, Limit: limit}) {
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
