package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// A call that has no possible approver is refused immediately. This also happens if its
// last possible approver leaves while it waits, because users, groups and channels change.

// recheckEvery is the interval at which waiting calls are rechecked, because changes on a
// platform (group members, channel admins) produce no change in the store.
const recheckEvery = 5 * time.Minute

// recheckPause is the minimum time between two checks, so that a user who keeps creating
// and revoking tokens can't make the worker read all waiting calls continuously.
const recheckPause = 300 * time.Millisecond

// recheckApprovers requests a check of the waiting calls.
func (w *worker) recheckApprovers() {
	select {
	case w.again <- struct{}{}:
	default: // a check is already requested
	}
}

// watchApprovers checks the waiting calls now, periodically and on request, until the
// returned function is called.
func (w *worker) watchApprovers(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(recheckEvery)
		defer tick.Stop()
		for {
			if err := w.refuseUnreachable(ctx); err != nil && ctx.Err() == nil {
				w.log.Error("checking the approvers of waiting calls", "err", err)
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

// refuseUnreachable refuses the waiting calls that no user can approve any more. If some
// possible approvers can't be looked up now, the call keeps waiting.
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
