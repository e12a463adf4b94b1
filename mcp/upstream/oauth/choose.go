package oauth

import (
	"context"
	"slices"
	"time"

	"nize/store"
)

// Choice is what nize can be for an authorization server.
type Choice struct {
	ID       string // given by an admin; "" for none
	Secret   store.Secret
	Document string // where nize's own document is; "" where nobody can read one
	Kept     []Registration
	Redirect string
	Now      time.Time
}

// Choose says as whom nize signs in: as the client that an admin gave, now or
// before, else by its document where that is taken, else as it is registered, or
// is being registered. ErrUnregistered where none of it can be had.
func (c *Client) Choose(ctx context.Context, s Service, o Choice) (Registration, error) {
	if o.ID != "" {
		return GivenClient(s, o.Redirect, o.ID, o.Secret), nil
	}
	kept := func(given bool) int {
		return slices.IndexFunc(o.Kept, func(r Registration) bool { return r.Given == given && r.Fits(s, o.Redirect, o.Now) })
	}
	if i := kept(true); i >= 0 {
		return o.Kept[i], nil
	}
	if s.Documents && o.Document != "" {
		return DocumentClient(s, o.Redirect, o.Document), nil
	}
	if i := kept(false); i >= 0 {
		return o.Kept[i], nil
	}
	if s.Registration == "" {
		return Registration{}, &unregistered{issuer: s.Issuer}
	}
	return c.Register(ctx, s, o.Redirect)
}

// Denial is an answer 401 or 403 to a request of ours.
type Denial struct {
	Status    int
	Challenge Challenge
	Token     store.Secret // that was sent; zero for none
	Again     bool         // it is the answer to the same request with a fresh token
}

// LoginError says that a server can't be called until somebody logs in. Its text
// is for the person whose call it was.
type LoginError struct{ Call *store.CallError }

func (e *LoginError) Error() string { return e.Call.Error() }
func (e *LoginError) Unwrap() error { return e.Call }
