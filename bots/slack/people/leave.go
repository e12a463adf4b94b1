package people

import (
	"context"
	"errors"
	"fmt"

	"nize/bots/slack/incoming"
	"nize/bots/slack/wire"
	"nize/store"
)

// Somebody whose account on Slack is switched off may do nothing more:
// what is remembered of them goes at once, and where it was their last
// live identity, they are disabled, with all that acts in their name.

// Forget makes the next look at somebody a fresh one, also where an older
// one is under way.
func (d *Directory) Forget(id string) { d.known.Forget(id) }

// HandleUserChange works on a user_change.
func (d *Directory) HandleUserChange(ctx context.Context, e incoming.Event) error {
	d.Forget(e.User)
	if !e.Left {
		return nil
	}
	p, err := d.LookUp(ctx, e.User, Fresh)
	if err != nil {
		return err
	}
	u, err := d.o.Store.FindUser(ctx, p.Identity())
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding who left: %w", err)
	}
	_, err = d.sweeps.DisableGone(ctx, u)
	return err
}

// isGone says whether the account behind an identity is switched off. One that
// Slack tells otherwise of is not.
func (d *Directory) isGone(ctx context.Context, identity string) (bool, error) {
	p, err := d.LookUp(ctx, idOf(identity), Fresh)
	return err == nil && !p.active && p.Identity() == identity, err
}

// unknown says whether Slack tells, but not of somebody.
func unknown(err error) bool {
	return wire.Code(err) == "user_not_found" || wire.Code(err) == "user_not_visible"
}

// Sweep begins to look everybody up now, or leaves one that is under way.
func (d *Directory) Sweep() { d.sweeps.Begin() }

// KeepSweeping sweeps when it is time, until ctx ends.
func (d *Directory) KeepSweeping(ctx context.Context) { d.sweeps.Run(ctx) }
