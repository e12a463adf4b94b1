package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// Errors of an engine.
var (
	// ErrDamaged is returned if a stored record cannot be read: the database is damaged.
	ErrDamaged = errors.New("damaged record")
	// ErrRetry is returned if nothing was committed because of a conflict with another
	// transaction: the same transaction may be tried again.
	ErrRetry = errors.New("another transaction came first")
	// ErrTaken is returned if another engine has owned the database since, so that this one
	// can't write any more.
	ErrTaken = errors.New("another nized has had the database alone since, or it was set back; restart this one")
)

// Engine stores ordered keys in named buckets. Its methods return store.ErrNotOpen after
// Close, store.ErrDiskFull if there is no space, store.ErrNoDatabase if nothing was
// committed because the database is unavailable, and the errors above. After any other
// error of a commit it is unknown what is stored, and nothing more is written until the
// next start.
//
// Packages above use [DB]. Package commit implements it in the same way for each engine:
// queued operations share a transaction, which includes the audit trail, the feed, the
// clock and the keys of secrets.
type Engine interface {
	// Begin begins a serializable transaction: it sees everything that was committed
	// before, and nothing of concurrent ones. Only one writing transaction runs at a time;
	// readers run beside it.
	Begin(ctx context.Context, write bool) (Transaction, error)
	// Close ends the engine. clean reports that it contains all acknowledged writes.
	Close(clean bool) error
}

// Transaction is used by one goroutine. Returned keys and values are valid inside it only,
// and must not be modified. After an error of its engine it can't be committed.
type Transaction interface {
	// Get returns nil if there is no such key.
	Get(bucket string, key []byte) ([]byte, error)
	// New reports whether there is no such key; if so, the caller must put one next. A
	// remote engine may detect the key only when it is put, at the latest in Commit: it
	// then returns ErrRetry, and the next transaction checks first.
	New(bucket string, key []byte) (bool, error)
	Put(bucket string, key, value []byte) error
	// Delete has no effect if there is no such key.
	Delete(bucket string, key []byte) error
	// Range calls do for the keys in order until do returns false. do may use the
	// transaction, but must not change the bucket.
	Range(bucket string, r Range, do func(key, value []byte) bool) error
	// Sequence adds to the bucket's counter, which begins at 0, and returns it.
	Sequence(bucket string, add uint64) (uint64, error)
	// Buckets returns the sorted names of the buckets that Make created.
	Buckets() ([]string, error)
	// Make creates a bucket if it doesn't exist. A bucket with a slash in its name need not
	// be created: it exists once something is put into it.
	Make(bucket string) error
	// Commit ends the transaction and returns when everything is durable.
	Commit() error
	// Rollback ends it without changes; it has no effect after Commit.
	Rollback()
}

// Range is a part of a bucket: the keys that start with Prefix, are not before From and are
// before Before, for each of these that is set.
type Range struct {
	Prefix, From, Before []byte
	Reverse              bool // in descending order
	Limit                int  // 0 is all
	// Record is a bucket whose keys are the suffixes of the visited keys from At on, if the
	// caller will Get them next: a remote engine reads both together.
	Record string
	At     int
}

// End returns the first key after r; nil if r has no end.
func End(r Range) []byte {
	end := slices.Clone(r.Prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return r.Before
	}
	end[len(end)-1]++
	if r.Before != nil && bytes.Compare(r.Before, end) < 0 {
		return r.Before
	}
	return end
}
