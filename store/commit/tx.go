package commit

import (
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

// Tx is one transaction, reading or writing. Values returned by Get are valid only inside
// it.
type Tx struct {
	DB  *DB
	Raw kv.Transaction
	Now time.Time // never before any time that was stored earlier

	// Used in a writing transaction only.
	Writes    int            // how many changes were made; 0 needs no commit
	wrote     []string       // the buckets written to
	forgot    uint64         // the newest number of the feed that it deleted
	changes   []store.Change // for the feed, in order
	head      auditHead      // of the audit chain, including this transaction's events
	lastEvent time.Time      // of the newest event, once read
	clockBack bool           // Now is before the stored time
	Began     map[string]any // calls that this transaction began, in stored form; most also end in it
}

// engineError is a read error of the engine, raised as a panic. The recover around each
// transaction returns it, like the faults that a damaged page causes.
type engineError struct{ error }

// Recovered returns the error for a panic inside a transaction.
func Recovered(r any) error {
	if e, ok := r.(engineError); ok {
		return e.error
	}
	return fmt.Errorf("%w: %v", ErrDamaged, r)
}

// Get returns nil if there is no such key.
func (t *Tx) Get(bucket string, k []byte) []byte {
	v, err := t.Raw.Get(bucket, k)
	if err != nil {
		panic(engineError{err})
	}
	return v
}

// IsNew returns ErrExists if there is such a key. Otherwise the caller must put one next.
func (t *Tx) IsNew(bucket string, k []byte) error {
	none, err := t.Raw.New(bucket, k)
	if err == nil && !none {
		err = fmt.Errorf("id %w", store.ErrExists)
	}
	return err
}

// Absent declares that there is no such key, because a part of it was created in this
// transaction. The caller puts it next. A remote engine then inserts it without a lookup; if
// the declaration is wrong, the transaction is repeated and replaces the value.
func (t *Tx) Absent(bucket string, k []byte) {
	if e, ok := t.Raw.(interface{ Absent(string, []byte) }); ok {
		e.Absent(bucket, k)
	}
}

// Fresh declares that no keys of a bucket start with prefix, because prefix contains an id
// for which IsNew was called in this transaction. A remote engine then need not read them.
func (t *Tx) Fresh(bucket string, prefix []byte) {
	if e, ok := t.Raw.(interface{ Fresh(string, []byte) }); ok {
		e.Fresh(bucket, prefix)
	}
}

// Ahead announces the keys, each with its bucket, that are read next: a remote engine reads
// them in one request.
func (t *Tx) Ahead(keys [][2]string) error {
	if e, ok := t.Raw.(interface {
		Ahead(keys [][2]string) error
	}); ok {
		return e.Ahead(keys)
	}
	return nil
}

// Scan returns the entries in a range of a bucket, which must not be changed meanwhile.
func (t *Tx) Scan(bucket string, r kv.Range) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if err := t.Raw.Range(bucket, r, yield); err != nil {
			panic(engineError{err})
		}
	}
}

// First returns the first key that starts with prefix, nil if there is none.
func (t *Tx) First(bucket string, prefix []byte) (key []byte) {
	for k := range t.Scan(bucket, kv.Range{Prefix: prefix, Limit: 1}) {
		key = k
	}
	return key
}

// Last returns the last key that starts with prefix, nil if there is none.
func (t *Tx) Last(bucket string, prefix []byte) (key []byte) {
	for k := range t.Scan(bucket, kv.Range{Prefix: prefix, Reverse: true, Limit: 1}) {
		key = k
	}
	return key
}

func (t *Tx) Put(bucket string, k, v []byte) error {
	writing(t, bucket, k)
	return t.Raw.Put(bucket, k, v)
}

func (t *Tx) Delete(bucket string, k []byte) error {
	writing(t, bucket, k)
	return t.Raw.Delete(bucket, k)
}

func writing(t *Tx, bucket string, k []byte) {
	t.Writes++
	writesTo(t, bucket)
	if len(k) > 0 && slices.Contains(inParts, bucket) {
		writesTo(t, Part(bucket, k[0]))
	}
	if bucket == "calls" {
		delete(t.Began, string(k))
	}
}

func writesTo(t *Tx, bucket string) {
	if !slices.Contains(t.wrote, bucket) {
		t.wrote = append(t.wrote, bucket)
	}
}

// PutJSON stores a record as JSON.
func (t *Tx) PutJSON(bucket string, k []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.Put(bucket, k, b)
}

// GetJSON returns one record. It returns ErrNotFound if there is none.
func GetJSON[T any](t *Tx, bucket string, k []byte) (T, error) {
	b := t.Get(bucket, k)
	if b == nil {
		var zero T
		return zero, store.ErrNotFound
	}
	return DecodeJSON[T](b)
}

// ListJSON returns every record whose key starts with prefix, in key order.
func ListJSON[T any](t *Tx, bucket string, prefix []byte) ([]T, error) {
	var out []T
	err := t.Each(bucket, prefix, func(_, v []byte) error {
		r, err := DecodeJSON[T](v)
		out = append(out, r)
		return err
	})
	return out, err
}

// Each calls do for the keys that start with prefix, in order. do must not change the
// bucket.
func (t *Tx) Each(bucket string, prefix []byte, do func(k, v []byte) error) error {
	return t.EachIn(bucket, kv.Range{Prefix: prefix}, do)
}

// EachIn is Each for any range.
func (t *Tx) EachIn(bucket string, r kv.Range, do func(k, v []byte) error) (err error) {
	failed := t.Raw.Range(bucket, r, func(k, v []byte) bool {
		err = do(k, v)
		return err == nil
	})
	return cmp.Or(err, failed)
}

// Count returns the number of keys that start with prefix. A remote engine counts them itself.
func (t *Tx) Count(bucket string, prefix []byte) (n int, err error) {
	if e, ok := t.Raw.(interface {
		Count(bucket string, prefix []byte) (int, error)
	}); ok {
		return e.Count(bucket, prefix)
	}
	for range t.Scan(bucket, kv.Range{Prefix: prefix}) {
		n++
	}
	return n, nil
}

// Keys returns copies of up to limit keys that start with prefix (0 is all).
func (t *Tx) Keys(bucket string, prefix []byte, limit int) [][]byte {
	var out [][]byte
	for k := range t.Scan(bucket, kv.Range{Prefix: prefix, Limit: limit}) {
		out = append(out, CloneBytes(k))
	}
	return out
}

// DeletePrefix deletes every key that starts with prefix.
func (t *Tx) DeletePrefix(bucket string, prefix []byte) error {
	for _, k := range t.Keys(bucket, prefix, 0) {
		if err := t.Delete(bucket, k); err != nil {
			return err
		}
	}
	return nil
}

// Change adds one entry to the feed; the commit assigns its number.
func (t *Tx) Change(c store.Change) {
	t.Writes++
	t.changes = append(t.changes, c)
}

// Seal encrypts a value for its place. what distinguishes several values of one record.
func (t *Tx) Seal(what, id string, plain []byte) []byte {
	return t.DB.sealer.Load().Seal(seal.Place(what, []byte(id)), plain)
}

// NewestKey returns the number of the data key used for sealing.
func (t *Tx) NewestKey() uint32 { return t.DB.sealer.Load().Newest() }

// SetSealer replaces the sealer.
func (d *DB) SetSealer(s *seal.Sealer) { d.sealer.Store(s) }

func (d *DB) Unseal(what, id string, sealed []byte) ([]byte, error) {
	return d.sealer.Load().Open(seal.Place(what, []byte(id)), sealed)
}
