package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/store"
	"nize/store/credential"
)

// SignIns provides tokens obtained by signing in. Its methods are safe for concurrent use
// and never wait for a person.
type SignIns interface {
	// DeclaredToken returns the access token of the first of the holders who is signed in,
	// or d.Missing() if none is.
	DeclaredToken(ctx context.Context, d credential.Declaration, holders []store.Holder) (store.Secret, store.Holder, error)
	// DeclaredSignedIn reports whether one of them is signed in.
	DeclaredSignedIn(ctx context.Context, d credential.Declaration, holders []store.Holder) (bool, error)
}

// Resolver finds the values of declared credentials. It has no state of its own.
type Resolver struct {
	Declarations Declarations
	Values       interface {
		GetCredential(ctx context.Context, key store.CredentialKey) (store.Credential, error)
	}
	Members interface {
		ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	}
	SignIns SignIns // nil: there are no sign-ins
}

// Get returns a declaration. If there is none, the error refuses the call.
func (r *Resolver) Get(ctx context.Context, id string) (credential.Declaration, error) {
	d, err := r.Declarations.get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return d, credential.NotDeclared(id)
	}
	return d, err
}

// Find returns the declaration, and the value for a call of the user: their own or their
// team's, depending on the mode, or the project's if the caller is one. The error is
// d.Missing() if there is no value.
func (r *Resolver) Find(ctx context.Context, user, id string) (d credential.Declaration, v credential.Value, err error) {
	if d, err = r.Get(ctx, id); err != nil {
		return d, v, err
	}
	holders, err := r.holders(ctx, d, user)
	if err != nil {
		return d, v, err
	}
	v, err = r.value(ctx, d, holders)
	return d, v, err
}

// Of returns the value of one holder.
func (r *Resolver) Of(ctx context.Context, id string, h store.Holder) (d credential.Declaration, v credential.Value, err error) {
	if d, err = r.Get(ctx, id); err != nil {
		return d, v, err
	}
	v, err = r.value(ctx, d, []store.Holder{h})
	return d, v, err
}

// Offered returns the declarations by id, and for each whether its tools are offered to the
// user: the user has a value, or calls are meant to return that it is missing.
func (r *Resolver) Offered(ctx context.Context, user string) (map[string]credential.State, error) {
	list, err := r.Declarations.list(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	of := make(map[string]credential.State, len(list))
	for _, d := range list {
		s := credential.State{Declaration: d, Offered: d.WhenMissing == credential.Fail}
		if !s.Offered {
			if s.Offered, err = r.Has(ctx, d, user); err != nil {
				return nil, err
			}
		}
		of[d.ID] = s
	}
	return of, nil
}

// Has reports whether a call of the user would have a value.
func (r *Resolver) Has(ctx context.Context, d credential.Declaration, user string) (bool, error) {
	holders, err := r.holders(ctx, d, user)
	if err != nil {
		return false, err
	}
	if d.Mode.SignsIn() {
		if r.SignIns == nil {
			return false, nil
		}
		return r.SignIns.DeclaredSignedIn(ctx, d, holders)
	}
	_, err = r.key(ctx, d, holders)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// holders returns the holders whose value a call of the user may use.
func (r *Resolver) holders(ctx context.Context, d credential.Declaration, user string) ([]store.Holder, error) {
	if id, ok := strings.CutPrefix(user, "project:"); ok {
		return []store.Holder{{Scope: "project", Owner: id}}, nil
	}
	var teams []string
	if d.Mode.Auth() == store.AuthTeam {
		list, err := r.Members.ListMembers(ctx, "", user)
		if err != nil {
			return nil, fmt.Errorf("reading teams: %w", err)
		}
		for _, m := range list {
			teams = append(teams, m.Team)
		}
	}
	return d.Mode.Auth().Holders(user, teams), nil
}

func (r *Resolver) value(ctx context.Context, d credential.Declaration, holders []store.Holder) (v credential.Value, err error) {
	if d.Mode.SignsIn() {
		if r.SignIns == nil {
			return v, d.Missing()
		}
		v.TokenType = "Bearer"
		v.AccessToken, v.Holder, err = r.SignIns.DeclaredToken(ctx, d, holders)
		return v, err
	}
	c, err := r.key(ctx, d, holders)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return v, d.Missing()
	case err != nil:
		return v, err
	}
	return credential.Value{APIKey: c.Secret, Sealed: c, Holder: store.Holder{Scope: c.Scope, Owner: c.Owner}}, nil
}

// key returns the first key of the holders, or ErrNotFound.
func (r *Resolver) key(ctx context.Context, d credential.Declaration, holders []store.Holder) (store.Credential, error) {
	for _, h := range holders {
		c, err := r.Values.GetCredential(ctx, h.Key(d.ID, credential.KeyName))
		if !errors.Is(err, store.ErrNotFound) {
			return c, err
		}
	}
	return store.Credential{}, store.ErrNotFound
}
