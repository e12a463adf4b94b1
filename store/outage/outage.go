// Package outage handles an unavailable database: detecting it, waiting, and resuming work.
//
// A database server may be unavailable for a while, and may then belong to another nized.
//
// An operation that a caller waits for returns [store.ErrNoDatabase], and the caller
// retries. Background work gets the feed's change [Recovered] when the database is
// available again, and then reads the records as at startup. Operations that nothing would
// repeat then use [Await].
package outage

import (
	"context"
	"errors"
	"time"

	"nize/store"
	"nize/store/backoff"
)

// Recovered is the kind of the feed's change that reports that the database is available
// again.
const Recovered = "recovered"

// Is reports whether an error means that the database is unavailable, or that this process
// no longer owns it. The operation may be retried later, by this process or the next.
func Is(err error) bool {
	return errors.Is(err, store.ErrNoDatabase) || errors.Is(err, store.ErrNotOpen)
}

// Await retries do while it returns [store.ErrNoDatabase], until ctx ends.
func Await(ctx context.Context, do func() error) error {
	pause := backoff.Exponential{First: 100 * time.Millisecond, Most: 2 * time.Second}
	for try := 1; ; try++ {
		err := do()
		if !errors.Is(err, store.ErrNoDatabase) {
			return err
		}
		select {
		case <-time.After(pause.After(try)):
		case <-ctx.Done():
			return err
		}
	}
}
