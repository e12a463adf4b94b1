package people

import (
	"context"
	"errors"
	"fmt"

	"nize/bots/slack/incoming"
	"nize/bots/slack/wire"
	"nize/store"
)

// A person whose Slack account is deactivated loses all access. Cached data about them is
// dropped at once, and if it was their last active identity, their user is disabled, with
// everything that acts in their name.

// Forget makes the next lookup of a person a fresh one, even if an older one is in
// progress.
func (d *Directory) Forget(id string) { d.known.Forget(id) }

// HandleUserChange handles a user_change event.
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

// isGone reports whether an identity's account is deactivated; it returns false unless
// Slack says so.
func (d *Directory) isGone(ctx context.Context, identity string) (bool, error) {
	p, err := d.LookUp(ctx, idOf(identity), Fresh)
	return err == nil && !p.active && p.Identity() == identity, err
}

// unknown reports whether Slack answered that it doesn't know a person.
func unknown(err error) bool {
	return wire.Code(err) == "user_not_found" || wire.Code(err) == "user_not_visible"
}

// Sweep starts a check of all users, unless one is in progress.
func (d *Directory) Sweep() { d.sweeps.Begin() }

// KeepSweeping runs the periodic sweeps until ctx ends.
func (d *Directory) KeepSweeping(ctx context.Context) { d.sweeps.Run(ctx) }
