package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// A call that nobody can approve is refused at once, also where the
// last who could leaves while it waits: people, groups and channels change
// under it.

// recheckEvery is how often waiting calls are checked for what no change in the
// store tells: who is in a group or administers a channel on a platform.
const recheckEvery = 5 * time.Minute

// recheckPause is the least time between two checks: somebody who makes and revokes
// tokens all the time must not have all waiting calls read all the time.
const recheckPause = 300 * time.Millisecond

// recheckApprovers has the waiting calls checked soon.
func (w *worker) recheckApprovers() {
	select {
	case w.again <- struct{}{}:
	default: // it is asked for already
	}
}

// watchApprovers checks the waiting calls now and from time to time, until
// the function that it returns is called.
func (w *worker) watchApprovers(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(recheckEvery)
		defer tick.Stop()
		for {
			if err := w.refuseUnreachable(ctx); err != nil && ctx.Err() == nil {
				w.log.Error("looking who could approve the calls that wait", "err", err)
			}
			pause := time.After(recheckPause)
			select {
			case <-w.again:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			select {
			case <-pause:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// refuseUnreachable refuses the waiting calls that nobody could approve any
// more. Where somebody can't be looked up now, a call goes on waiting.
func (w *worker) refuseUnreachable(ctx context.Context) error {
	waiting, err := w.calls.ListWaiting(ctx)
	if err != nil {
		return fmt.Errorf("reading waiting calls: %w", err)
	}
	for _, c := range waiting {
		e, err := w.policy.Electorate(ctx, c)
		if err != nil {
			return err
		}
		if e.Suffices(c) || e.Unsure {
			continue
		}
		d := store.Decision{Verb: store.Deny, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: w.now(), Reason: w.policy.UnreachableReason(ctx, c, e)}
		if _, err := w.calls.Decide(ctx, store.System, c.ID, d); err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) {
			return fmt.Errorf("refusing call %s: %w", c.ID, err)
		}
	}
	return nil
}
