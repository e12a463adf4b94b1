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

// Tx is one transaction, reading or writing. Values that get returns are valid
// inside it only.
type Tx struct {
	DB  *DB
	Raw kv.Transaction
	Now time.Time // never before any time that was stored earlier

	// Of a writing transaction only.
	Writes    int            // how many changes were made; 0 needs no commit
	wrote     []string       // to which buckets
	forgot    uint64         // the newest number of the feed that it forgot
	changes   []store.Change // for the feed, in order
	head      auditHead      // of the audit chain, with what this transaction appended
	lastEvent time.Time      // of the newest event, once one was asked for
	clockBack bool           // Now is behind what was stored
	Began     map[string]any // calls that this transaction began, as they are stored: most end in it, too
}

// engineError is what the engine said where it couldn't read: a panic, which the
// recover around each transaction returns, as it does with what a damaged page
// leads to.
type engineError struct{ error }

// Recovered is the error of a panic inside a transaction.
func Recovered(r any) error {
	if e, ok := r.(engineError); ok {
		return e.error
	}
	return fmt.Errorf("%w: %v", ErrDamaged, r)
}

// Get returns nil where there is no such key.
func (t *Tx) Get(bucket string, k []byte) []byte {
	v, err := t.Raw.Get(bucket, k)
	if err != nil {
		panic(engineError{err})
	}
	return v
}

// IsNew is ErrExists where there is such a key, and else one has to be put next.
func (t *Tx) IsNew(bucket string, k []byte) error {
	none, err := t.Raw.New(bucket, k)
	if err == nil && !none {
		err = fmt.Errorf("id %w", store.ErrExists)
	}
	return err
}

// Fresh says that no keys of a bucket start with prefix: it has an id in it for which
// IsNew was asked in this transaction. An engine far away need not ask for them then.
func (t *Tx) Fresh(bucket string, prefix []byte) {
	if e, ok := t.Raw.(interface{ Fresh(string, []byte) }); ok {
		e.Fresh(bucket, prefix)
	}
}

// Ahead says which keys, each with its bucket, are read next: an engine far away reads
// them at once.
func (t *Tx) Ahead(keys [][2]string) error {
	if e, ok := t.Raw.(interface {
		Ahead(keys [][2]string) error
	}); ok {
		return e.Ahead(keys)
	}
	return nil
}

// Scan visits a part of a bucket, which must not be changed meanwhile.
func (t *Tx) Scan(bucket string, r kv.Range) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if err := t.Raw.Range(bucket, r, yield); err != nil {
			panic(engineError{err})
		}
	}
}

// First and last are the ends of what starts with prefix, nil where there is
// nothing.
func (t *Tx) First(bucket string, prefix []byte) (key []byte) {
	for k := range t.Scan(bucket, kv.Range{Prefix: prefix, Limit: 1}) {
		key = k
	}
	return key
}

// Last is First from the other end.
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

// GetJSON reads one record. ErrNotFound if there is none.
func GetJSON[T any](t *Tx, bucket string, k []byte) (T, error) {
	b := t.Get(bucket, k)
	if b == nil {
		var zero T
		return zero, store.ErrNotFound
	}
	return DecodeJSON[T](b)
}

// ListJSON reads every record whose key starts with prefix, in key order.
func ListJSON[T any](t *Tx, bucket string, prefix []byte) ([]T, error) {
	var out []T
	err := t.Each(bucket, prefix, func(_, v []byte) error {
		r, err := DecodeJSON[T](v)
		out = append(out, r)
		return err
	})
	return out, err
}

// Each visits the keys that start with prefix, in order. do must not change
// the bucket.
func (t *Tx) Each(bucket string, prefix []byte, do func(k, v []byte) error) error {
	return t.EachIn(bucket, kv.Range{Prefix: prefix}, do)
}

// EachIn is Each of any range.
func (t *Tx) EachIn(bucket string, r kv.Range, do func(k, v []byte) error) (err error) {
	failed := t.Raw.Range(bucket, r, func(k, v []byte) bool {
		err = do(k, v)
		return err == nil
	})
	return cmp.Or(err, failed)
}

// Keys copies up to limit keys that start with prefix (0 is all).
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

// Change adds one entry to the feed; its number is given at the commit.
func (t *Tx) Change(c store.Change) {
	t.Writes++
	t.changes = append(t.changes, c)
}

// Seal encrypts a value for its place. what tells several of one record apart.
func (t *Tx) Seal(what, id string, plain []byte) []byte {
	return t.DB.sealer.Load().Seal(seal.Place(what, []byte(id)), plain)
}

// NewestKey is the number of the data key that seals.
func (t *Tx) NewestKey() uint32 { return t.DB.sealer.Load().Newest() }

// SetSealer has another one seal and open from now on.
func (d *DB) SetSealer(s *seal.Sealer) { d.sealer.Store(s) }

func (d *DB) Unseal(what, id string, sealed []byte) ([]byte, error) {
	return d.sealer.Load().Open(seal.Place(what, []byte(id)), sealed)
}
