package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// The errors of an engine.
var (
	// ErrDamaged says that a stored record cannot be read: the database was damaged.
	ErrDamaged = errors.New("damaged record")
	// ErrRetry says that nothing was committed because another transaction came
	// first: the same again may be.
	ErrRetry = errors.New("another transaction came first")
	// ErrTaken says that another engine has had the database alone since, so that this
	// one writes nothing any more.
	ErrTaken = errors.New("another nized has had the database alone since, or it was set back; restart this one")
)

// Engine keeps ordered keys in named buckets. Its errors are store.ErrNotOpen
// after Close, store.ErrDiskFull where there is no room, store.ErrNoDatabase where
// nothing was committed because the database does not answer now, and those above; with any
// other of a commit nobody knows what is stored, and nothing more is written
// before the next start.
//
// Rooms above see [DB]. What stands between the two, for each engine alike:
// operations that wait share a transaction, and the audit trail, the feed, the
// clock and the keys of secrets are part of it.
type Engine interface {
	// Begin begins a transaction, which is serialisable: it sees what was
	// committed before, and nothing of others that run. Only one that writes
	// runs at a time, and readers run beside it.
	Begin(ctx context.Context, write bool) (Transaction, error)
	// Close ends the engine. clean says that all that was acknowledged is in it.
	Close(clean bool) error
}

// Transaction is used by one goroutine. Keys and values that it returns are
// valid inside it only, and not to be changed. After an error of its engine it
// can't be committed.
type Transaction interface {
	// Get returns nil where there is no such key.
	Get(bucket string, key []byte) ([]byte, error)
	// New says whether there is no such key, where the next is to put one there. An
	// engine far away may find out by that alone, at the latest in Commit: the error
	// is ErrRetry then, and the next transaction looks.
	New(bucket string, key []byte) (bool, error)
	Put(bucket string, key, value []byte) error
	// Delete is nothing where there is no such key.
	Delete(bucket string, key []byte) error
	// Range visits keys in their order until do returns false. do may use the
	// transaction, but not change the bucket.
	Range(bucket string, r Range, do func(key, value []byte) bool) error
	// Sequence adds to the bucket's counter, which begins at 0, and returns it.
	Sequence(bucket string, add uint64) (uint64, error)
	// Buckets names those that were made, sorted.
	Buckets() ([]string, error)
	// Make makes a bucket where it lacks. One whose name has a slash needs no
	// making: it is there once something is put into it.
	Make(bucket string) error
	// Commit returns when all is durable, and ends the transaction.
	Commit() error
	// Rollback ends it without a trace; it is nothing after Commit.
	Rollback()
}

// Range is a part of a bucket: the keys that start with Prefix, are not before
// From and are before Before, where those are set.
type Range struct {
	Prefix, From, Before []byte
	Reverse              bool // from the last to the first
	Limit                int  // 0 is all
	// Record is a bucket whose keys are what the keys visited have from At on, where
	// what Get gives of it is asked for next: an engine far away reads it along.
	Record string
	At     int
}

// End is the first key behind r; nil where it has no end.
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
