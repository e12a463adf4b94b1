package people

import (
	"context"
	"errors"
	"fmt"

	"nize/bots/slack/incoming"
	"nize/store"
)

// Somebody whose account on Slack is switched off may do nothing more:
// what is remembered of them goes at once, and where it was their last
// live identity, they are disabled, with all that acts in their name.

// Forget makes the next look at somebody a fresh one, also where an older
// one is under way.
func (d *Directory) Forget(id string) {
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	delete(d.cache.known, id)
	delete(d.cache.asking, id)
}

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
	_, err = d.disableGone(ctx, u)
	return err
}

// disableGone disables a user whose account on Slack is switched off, unless an
// identity of theirs still lives: one elsewhere counts as alive, and so does one
// that Slack does not know.
func (d *Directory) disableGone(ctx context.Context, u store.User) (done bool, err error) {
	if u.State != store.Active {
		return false, nil
	}
	for _, identity := range u.Identities {
		id := idOf(identity)
		if id == "" {
			return false, nil
		}
		p, err := d.LookUp(ctx, id, Fresh)
		if err != nil {
			return false, err
		}
		if p.active || p.Identity() != identity {
			return false, nil
		}
	}
	// As they are now: what was read may be old, and their role another.
	if u, err = d.o.Store.GetUser(ctx, u.ID); err != nil || u.State != store.Active {
		return false, err
	}
	u.State = store.Disabled
	err = d.o.Store.PutUser(ctx, store.System, u)
	if errors.Is(err, store.ErrRefused) {
		d.o.Log.Warn("the last admin's account on Slack was switched off; they stay an admin of nize", "user", u.ID)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("disabling who left Slack: %w", err)
	}
	d.o.Log.Info("a user was disabled, since their account on Slack was", "user", u.ID)
	return true, nil
}
