package slack

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

// forgetPerson makes the next look at somebody a fresh one, also where an older
// one is under way.
func (l *live) forgetPerson(id string) {
	l.people.mu.Lock()
	defer l.people.mu.Unlock()
	delete(l.people.known, id)
	delete(l.people.asking, id)
}

// left works on a user_change.
func (l *live) left(ctx context.Context, e incoming.Event) error {
	l.forgetPerson(e.User)
	if !e.Left {
		return nil
	}
	p, err := l.look(ctx, e.User, freshPerson)
	if err != nil {
		return err
	}
	u, err := l.b.o.Store.FindUser(ctx, p.identity())
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding who left: %w", err)
	}
	_, err = l.disableGone(ctx, u)
	return err
}

// disableGone disables a user whose account on Slack is switched off, unless an
// identity of theirs still lives: one elsewhere counts as alive, and so does one
// that Slack does not know.
func (l *live) disableGone(ctx context.Context, u store.User) (done bool, err error) {
	if u.State != store.Active {
		return false, nil
	}
	for _, identity := range u.Identities {
		id := l.slackID(identity)
		if id == "" {
			return false, nil
		}
		p, err := l.look(ctx, id, freshPerson)
		if err != nil {
			return false, err
		}
		if p.active || p.identity() != identity {
			return false, nil
		}
	}
	// As they are now: what was read may be old, and their role another.
	if u, err = l.b.o.Store.GetUser(ctx, u.ID); err != nil || u.State != store.Active {
		return false, err
	}
	u.State = store.Disabled
	err = l.b.o.Store.PutUser(ctx, store.System, u)
	if errors.Is(err, store.ErrRefused) {
		l.log.Warn("the last admin's account on Slack was switched off; they stay an admin of nize", "user", u.ID)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("disabling who left Slack: %w", err)
	}
	l.log.Info("a user was disabled, since their account on Slack was", "user", u.ID)
	return true, nil
}
