package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// Somebody whose account on Slack is switched off may do nothing more (SPEC
// 22): what is remembered of them goes at once, and where it was their last
// live identity, they are disabled, with all that acts in their name.

// changedUser is the user_change event.
type changedUser struct {
	User struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	} `json:"user"`
}

// forgetPerson makes the next look at somebody a fresh one.
func (l *live) forgetPerson(id string) {
	l.people.mu.Lock()
	defer l.people.mu.Unlock()
	delete(l.people.known, id)
}

// left works on a user_change.
func (l *live) left(ctx context.Context, e event) error {
	l.forgetPerson(e.User)
	if !e.gone {
		return nil
	}
	p, err := l.look(ctx, e.User, freshPerson)
	if err != nil {
		return err
	}
	if p.active {
		return nil // switched on again meanwhile
	}
	users, err := l.b.o.Store.ListUsers(ctx)
	if err != nil {
		return fmt.Errorf("finding who left: %w", err)
	}
	for _, u := range users {
		if u.State == store.Active && holds(u, p.identity()) {
			return l.disable(ctx, u)
		}
	}
	return nil
}

func holds(u store.User, identity string) bool {
	for _, have := range u.Identities {
		if have == identity {
			return true
		}
	}
	return false
}

// disable disables a user, unless an identity of theirs still lives: one that
// is not of this workspace counts as alive.
func (l *live) disable(ctx context.Context, u store.User) error {
	for _, identity := range u.Identities {
		id, here := strings.CutPrefix(identity, "slack:"+l.account.Team+":")
		if !here {
			return nil
		}
		other, err := l.look(ctx, id, freshPerson)
		if err != nil {
			return err
		}
		if other.active {
			return nil
		}
	}
	u.State = store.Disabled
	err := l.b.o.Store.PutUser(ctx, store.System, u)
	if errors.Is(err, store.ErrRefused) {
		l.log.Warn("the last admin's account on Slack was switched off; they stay an admin of nize", "user", u.ID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("disabling who left Slack: %w", err)
	}
	l.log.Info("a user was disabled, since their account on Slack was", "user", u.ID)
	return nil
}
