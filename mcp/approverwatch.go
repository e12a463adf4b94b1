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

// lookEvery is how often waiting calls are looked at for what no change in the
// store tells: who is in a group or administers a channel on a platform.
const lookEvery = 5 * time.Minute

// lookAgain has the waiting calls looked at soon.
func (g *Gateway) lookAgain() {
	select {
	case g.again <- struct{}{}:
	default: // it is asked for already
	}
}

// watchElectorates looks at the waiting calls now and from time to time, until
// the function that it returns is called.
func (g *Gateway) watchElectorates(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			if err := g.refuseUnreachable(ctx); err != nil && ctx.Err() == nil {
				g.opt.Log.Error("looking who could approve the calls that wait", "err", err)
			}
			select {
			case <-g.again:
			case <-tick.C:
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
func (g *Gateway) refuseUnreachable(ctx context.Context) error {
	waiting, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 10_000})
	if err != nil {
		return fmt.Errorf("reading waiting calls: %w", err)
	}
	for _, c := range waiting {
		e, err := g.electorate(ctx, c)
		if err != nil {
			return err
		}
		if e.suffices(c) || e.unsure {
			continue
		}
		d := store.Decision{Verb: store.Deny, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: g.opt.Now(), Reason: g.nobody(ctx, c, e)}
		if _, err := g.opt.Store.Decide(ctx, store.System, c.ID, d); err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) {
			return fmt.Errorf("refusing call %s: %w", c.ID, err)
		}
	}
	return nil
}
