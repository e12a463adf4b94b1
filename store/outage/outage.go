// Package outage is what is done where the database could not be asked: one on a server
// may not answer for a while, and then it may be another nized's.
//
// Whoever is asked by somebody says so ([store.ErrNoDatabase]), and that one asks
// again. What works in the background is told by the feed when it answers again
// ([Recovered]), and looks at the records as at a start; what nothing would do
// again then, it awaits.
package outage

import (
	"context"
	"errors"
	"time"

	"nize/store"
)

// Recovered is the kind of the change by which the feed tells that.
const Recovered = "recovered"

// Is says that an error is of a database that could not be asked, because it does not
// answer or this process works on it no more. The same may be asked again later, by
// this process or the next.
func Is(err error) bool {
	return errors.Is(err, store.ErrNoDatabase) || errors.Is(err, store.ErrNotOpen)
}

// Await does something again as long as it is [store.ErrNoDatabase], until ctx ends.
func Await(ctx context.Context, do func() error) error {
	const first, most = 100 * time.Millisecond, 2 * time.Second
	for pause := first; ; pause = min(2*pause, most) {
		err := do()
		if !errors.Is(err, store.ErrNoDatabase) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
