// Package kv is the waist between what nize keeps and where: ordered keys in
// named buckets, in transactions. Package record says what each noun means in
// keys and values over it; store/database does the rest over an [Engine], and what goes
// with every change: the audit trail, the feed, the clock, the keys of secrets.
//
// An engine makes every bucket that record names, also in a database that was
// written before the bucket was thought of, and passes kvtest.Run.
package kv

import (
	"context"
	"time"

	"nize/store"
)

// DB runs transactions. Each is serialisable: it sees what was committed
// before it began and nothing of others that run. What says what is done
// ("storing agent x") and stands before an error. Both are safe for concurrent
// use, give the context's error where it had ended before, and
// store.ErrNotOpen after the engine was closed.
type DB interface {
	// View runs fn in a transaction that only reads.
	View(ctx context.Context, what string, fn func(Reader) error) error
	// Recall is View for what most calls ask for: what read returns of these buckets is
	// kept under key until something is written to one of them. Nobody changes it; key
	// has a type of its own. read may run more than once.
	Recall(ctx context.Context, what string, key any, read func(Reader) (any, error), buckets ...string) (any, error)
	// Update runs fn and returns when what it changed is durable. Where fn
	// errs, nothing is changed. fn may run more than once, so it assigns its
	// results and adds nothing to them, and does nothing outside of tx.
	Update(ctx context.Context, what string, fn func(Tx) error) error
	// Now is the time by which what is stored expires, which never goes back.
	Now() time.Time
	// Sync returns when View sees what the engine has made durable, and not
	// committed yet.
	Sync(ctx context.Context) error
}

// Reader is what a transaction reads. Keys and values that it returns are
// valid inside it only, and not to be changed.
type Reader interface {
	// Now is the transaction's time, which never goes back: not behind anything
	// that was stored, however the machine's clock is set.
	Now() time.Time
	// Get returns store.ErrNotFound where there is no such key.
	Get(bucket string, key []byte) ([]byte, error)
	// Each visits the keys that start with prefix in order, from the first that
	// is not before from (nil: from the start of the prefix), until do errs,
	// whose error it returns. do must not change the bucket.
	Each(bucket string, prefix, from []byte, do func(key, value []byte) error) error
	// Unseal returns what PutSealed stored there, which the caller may keep.
	Unseal(bucket string, key []byte) ([]byte, error)
}

// Tx is a transaction that writes.
type Tx interface {
	Reader
	Put(bucket string, key, value []byte) error
	// Delete is nothing where there is no such key.
	Delete(bucket string, key []byte) error
	// PutSealed stores a secret under the newest data key, bound to its bucket
	// and key: moved elsewhere it does not open. A bucket that has one holds
	// nothing else, and record.Sealed names it, for the rotation of keys.
	PutSealed(bucket string, key, plain []byte) error
	// Event appends to the audit trail who did this; store.ErrInvalid where by
	// names nobody. JSON of data is redacted and cut. Kind, Subject, Tool and
	// Outcome are taken of e.
	Event(by store.Caller, e store.Event, data any) error
	// Change tells the watchers of the feed when the transaction is durable.
	Change(c store.Change)
}
