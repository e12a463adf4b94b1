package credential

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// SignIns gives what signing in gave. Both are safe for concurrent use and wait for
// no person.
type SignIns interface {
	// DeclaredToken is the access token of the first of the holders who is signed in;
	// d.Missing() where nobody is.
	DeclaredToken(ctx context.Context, d Declaration, holders []store.Holder) (store.Secret, store.Holder, error)
	// DeclaredSignedIn says whether one of them is signed in.
	DeclaredSignedIn(ctx context.Context, d Declaration, holders []store.Holder) (bool, error)
}

// Resolver finds the values of declared credentials. It holds no state of its own.
type Resolver struct {
	Declarations Store
	Values       interface {
		GetCredential(ctx context.Context, key store.CredentialKey) (store.Credential, error)
	}
	Members interface {
		ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	}
	SignIns SignIns // nil: nobody is signed in to anything
}

// Get returns a declaration. What needs one that is not there is refused.
func (r *Resolver) Get(ctx context.Context, id string) (Declaration, error) {
	d, err := r.Declarations.GetDeclaration(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return d, NotDeclared(id)
	}
	return d, err
}

// Find gives the declaration, and the value that a call of somebody's uses: their own
// or their team's, as its mode says, and of a project what was set for that. The error
// is d.Missing() where there is none.
func (r *Resolver) Find(ctx context.Context, user, id string) (d Declaration, v Value, err error) {
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

// Of is the value that one holder has.
func (r *Resolver) Of(ctx context.Context, id string, h store.Holder) (d Declaration, v Value, err error) {
	if d, err = r.Get(ctx, id); err != nil {
		return d, v, err
	}
	v, err = r.value(ctx, d, []store.Holder{h})
	return d, v, err
}

// Offered are the declarations by id, and whether somebody is offered what is called
// with them: they have a value, or are to be told that they lack it.
func (r *Resolver) Offered(ctx context.Context, user string) (map[string]State, error) {
	list, err := r.Declarations.ListDeclarations(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	of := make(map[string]State, len(list))
	for _, d := range list {
		s := State{d, d.WhenMissing == Fail}
		if !s.Offered {
			if s.Offered, err = r.Has(ctx, d, user); err != nil {
				return nil, err
			}
		}
		of[d.ID] = s
	}
	return of, nil
}

// State is a declaration as one person meets it.
type State struct {
	Declaration
	Offered bool // what is called with it is there for them
}

// NotDeclared is what a call says that needs a credential which is not declared.
func NotDeclared(id string) *store.CallError {
	return &store.CallError{Code: store.CodeRefused, Message: store.Textf("the credential %s, which it needs, is not declared: an admin does that with nizectl credentials declare %s", id, id)}
}

// Has says whether a call of somebody's would have a value.
func (r *Resolver) Has(ctx context.Context, d Declaration, user string) (bool, error) {
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

// holders lists whose value a call of somebody's may use.
func (r *Resolver) holders(ctx context.Context, d Declaration, user string) ([]store.Holder, error) {
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

func (r *Resolver) value(ctx context.Context, d Declaration, holders []store.Holder) (v Value, err error) {
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
	return Value{APIKey: c.Secret, Sealed: c, Holder: store.Holder{Scope: c.Scope, Owner: c.Owner}}, nil
}

// key is the first key that one of the holders has; ErrNotFound where nobody has one.
func (r *Resolver) key(ctx context.Context, d Declaration, holders []store.Holder) (store.Credential, error) {
	for _, h := range holders {
		c, err := r.Values.GetCredential(ctx, h.Key(d.ID, KeyName))
		if !errors.Is(err, store.ErrNotFound) {
			return c, err
		}
	}
	return store.Credential{}, store.ErrNotFound
}
