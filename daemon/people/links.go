package people

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// Links merges a person's identities: a code created under one is redeemed under another,
// and the two become one user.
type Links struct {
	Store     store.Links
	Users     store.Users
	Directory *Directory
	Joined    func(context.Context) error // reloads what moved with a user
	Log       *slog.Logger
}

// Mount registers the operations.
func (l *Links) Mount(m *mux.Mux) {
	mux.Handle(m, api.MakeLink, l.Make)
	mux.Handle(m, api.Join, l.Join)
	mux.Handle(m, api.ShowLink, l.Show)
}

// Make creates a code.
func (l *Links) Make(ctx context.Context, by store.Caller, req api.MakeLinkRequest) (none api.LinkCode, err error) {
	id, err := l.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	u, err := l.user(ctx, id)
	if err != nil {
		return none, err
	}
	code, expires, err := l.NewCode(ctx, by, u.ID)
	if err != nil {
		return none, fmt.Errorf("a code for %s: %w", u.Name, err)
	}
	return api.LinkCode{Code: api.Secret{Secret: code}, User: u, Expires: expires}, nil
}

// NewCode creates a code. Whoever redeems it is merged with the user.
func (l *Links) NewCode(ctx context.Context, by store.Caller, user string) (code store.Secret, expires time.Time, err error) {
	code, hash := store.NewCode()
	expires, err = l.Store.PutLink(ctx, by, user, hash)
	return code, expires, err
}

func (l *Links) user(ctx context.Context, id string) (store.User, error) {
	u, err := l.Users.GetUser(ctx, id)
	if err != nil {
		return u, fmt.Errorf("reading user %s: %w", id, err)
	}
	return u, nil
}

// Show returns the users that would be merged. A text that can't be a code doesn't count as
// a wrong guess, since it reveals nothing about existing codes.
func (l *Links) Show(ctx context.Context, by store.Caller, req api.UseLinkRequest) (v api.LinkView, err error) {
	hash, err := store.ReadCode(req.Code.Reveal())
	if err != nil {
		return v, err
	}
	if v.Other, err = l.Store.FindLink(ctx, by, hash); err != nil {
		return v, err
	}
	v.You, err = l.user(ctx, by.User)
	return v, err
}

// Join merges the caller with the user who made the code.
func (l *Links) Join(ctx context.Context, by store.Caller, req api.UseLinkRequest) (none store.Joined, err error) {
	hash, err := store.ReadCode(req.Code.Reveal())
	if err != nil {
		return none, err
	}
	j, err := l.Store.Join(ctx, by, hash, req.Role)
	if err != nil {
		return none, err
	}
	if err := l.Joined(context.WithoutCancel(ctx)); err != nil {
		return none, err
	}
	l.Log.Info("identities joined", "user", j.User.ID, "absorbed", j.Absorbed.ID)
	return j, nil
}
