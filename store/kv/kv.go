// Package kv defines ordered keys in named buckets, with transactions, between records and
// database engines.
//
// Package record defines the keys and values of each kind of record over it. Package commit
// implements it over an [Engine] and adds to every change the audit trail, the feed, the
// clock and the keys of secrets.
//
// A [Bucket] describes a bucket. Opening a database creates those that it lacks, also in one
// that was written by a version without the bucket. An engine passes kvtest.Run.
package kv

import (
	"context"
	"time"

	"nize/store"
)

// DB runs transactions. Each is serializable: it sees everything that was committed before
// it began and nothing of concurrent ones. what describes the operation ("storing agent x")
// and precedes an error. The methods are safe for concurrent use. They return the context's
// error if it had ended before, and store.ErrNotOpen after the engine was closed.
type DB interface {
	// View runs fn in a transaction that only reads.
	View(ctx context.Context, what string, fn func(Reader) error) error
	// Recall is a cached View for data that most calls read: the result of read is cached
	// under key until one of the buckets, which are all that it reads, is written. Callers
	// must not modify it. key must have a type of its own. read may run more than once.
	Recall(ctx context.Context, what string, key any, read func(Reader) (any, error), buckets ...string) (any, error)
	// Update runs fn and returns when its changes are durable. If fn returns an error,
	// nothing is changed. fn may run more than once, so it must assign its results, not
	// append to them, and have no effect outside of tx.
	Update(ctx context.Context, what string, fn func(Tx) error) error
	// Now returns the time for expiry decisions, which never goes back.
	Now() time.Time
	// Sync returns when View sees everything that the engine has made durable but not yet
	// committed.
	Sync(ctx context.Context) error
}

// Reader reads in a transaction. Returned keys and values are valid inside it only, and
// must not be modified.
type Reader interface {
	// Now returns the transaction's time, which never goes back: it is never before any
	// stored time, whatever the machine's clock is set to.
	Now() time.Time
	// Get returns store.ErrNotFound if there is no such key.
	Get(bucket string, key []byte) ([]byte, error)
	// Each calls do for the keys that start with prefix in order, from the first that is
	// not before from (nil: from the start of the prefix), until do returns an error, which
	// Each returns. do must not change the bucket.
	Each(bucket string, prefix, from []byte, do func(key, value []byte) error) error
	// Unseal returns a value stored by PutSealed; the caller may keep it.
	Unseal(bucket string, key []byte) ([]byte, error)
}

// Tx is a transaction that writes.
type Tx interface {
	Reader
	Put(bucket string, key, value []byte) error
	// Delete is nothing where there is no such key.
	Delete(bucket string, key []byte) error
	// PutSealed stores a secret under the newest data key, bound to its bucket and key: it
	// can't be unsealed in another place. A bucket with sealed values contains nothing
	// else, and its [Bucket] says that it is sealed, for key rotation.
	PutSealed(bucket string, key, plain []byte) error
	// Event appends an event to the audit trail. It returns store.ErrInvalid if by names no
	// user. data is encoded as JSON, redacted and cut. Of e it uses Kind, Subject, Tool and
	// Outcome.
	Event(by store.Caller, e store.Event, data any) error
	// Change publishes c when the transaction is durable.
	Change(c store.Change)
}
