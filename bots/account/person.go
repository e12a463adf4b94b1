package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Users is the part of the store needed to identify people.
type Users interface {
	FindUser(ctx context.Context, identity string) (store.User, error)
	EnsureUser(ctx context.Context, identity, name string, role store.Role) (store.User, error)
}

// Person is a platform's user with access to nize, as described by the platform.
type Person struct {
	Identity, Name, Locale, Zone string
}

// Known is such a person as a nize user.
type Known struct {
	User         store.User // zero without access
	Barred       bool       // excluded by nize's own rules
	Locale, Zone string     // including their settings
}

// Know finds the user of a person. At the first contact it creates a member if admits
// returns true; the user passed to admits then has no id.
func Know(ctx context.Context, users Users, config store.Config, p Person, admits func(store.User) (bool, error)) (k Known, err error) {
	u, err := users.FindUser(ctx, p.Identity)
	known := err == nil
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = store.User{Name: p.Name, Role: store.Member, State: store.Active, Identities: []string{p.Identity}}
	case err != nil:
		return Known{Locale: p.Locale, Zone: p.Zone}, fmt.Errorf("finding the user %s: %w", p.Identity, err)
	}
	k.Locale, k.Zone = store.Language(config, u.ID, p.Locale), store.TimeZone(config, u.ID, p.Zone)
	if u.State != store.Active {
		return k, nil
	}
	admitted, err := admits(u)
	if err != nil {
		return k, fmt.Errorf("asking whether %s may talk to nize: %w", p.Identity, err)
	}
	if k.Barred = !admitted; k.Barred {
		return k, nil
	}
	if !known {
		if u, err = users.EnsureUser(ctx, p.Identity, p.Name, store.Member); err != nil {
			return k, fmt.Errorf("making the user %s: %w", p.Identity, err)
		}
	}
	if u.State == store.Active {
		k.User = u
	}
	return k, nil
}

// Notices sends the texts that precede an answer, each once.
type Notices struct {
	Surface store.Surface
	Inbox   interface {
		Accept(ctx context.Context, item store.Item) (bool, error)
		Done(ctx context.Context, id string) error
	}
	Users interface {
		RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error
	}
	Config store.Config // retention.conversations
	Now    func() time.Time
	Log    *slog.Logger
}

// FirstToday reports whether this is the first call with that key within a day.
func (n *Notices) FirstToday(ctx context.Context, what string) (bool, error) {
	name := string(n.Surface)
	item := store.Item{ID: store.NewID(n.Now()), Kind: name + ".once", Keys: []string{name + ":" + what}, Payload: []byte("{}"), At: n.Now()}
	first, err := n.Inbox.Accept(ctx, item)
	if err != nil || !first {
		return false, err
	}
	return true, n.Inbox.Done(ctx, item.ID)
}

// Welcome tells a person once what data is kept about them. It never prevents an answer; if
// it fails, it is repeated the next day.
func (n *Notices) Welcome(ctx context.Context, by store.Caller, u store.User, w phrases.Catalogue, tell func(text string) error) {
	if u.ID == "" || !u.PrivacyNotice.IsZero() {
		return
	}
	// Several of their first messages may be processed at once.
	if first, err := n.FirstToday(ctx, "welcomed:"+u.ID); err != nil || !first {
		return
	}
	err := tell(w.Say(phrases.FirstContact, w.Span(n.Config.Get("", "retention.conversations"))))
	if err == nil {
		err = n.Users.RecordPrivacyNotice(ctx, by, u.ID)
	}
	if err != nil && ctx.Err() == nil {
		n.Log.Warn("welcoming somebody", "user", u.ID, "err", err)
	}
}

// MaskedKey tells a person once, in private, that their message contained a key; key
// identifies the message. It never prevents an answer.
func (n *Notices) MaskedKey(ctx context.Context, key string, w phrases.Catalogue, tell func(text string) error) {
	first, err := n.FirstToday(ctx, "masked:"+key)
	if err == nil && first {
		err = tell(w.Say(phrases.SecretMasked))
	}
	if err != nil && ctx.Err() == nil {
		n.Log.Warn("telling somebody of a key that was masked", "err", err)
	}
}
