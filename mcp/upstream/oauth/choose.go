package oauth

import (
	"context"
	"slices"
	"time"

	"nize/store"
)

// Choice holds the client identities that nize can use at an authorization server.
type Choice struct {
	ID       string // entered by an admin; "" if none
	Secret   store.Secret
	Document string // URL of nize's own document; "" if it is not reachable from outside
	Kept     []Registration
	Redirect string
	Now      time.Time
}

// Choose returns the client with which nize signs in: the client that an admin entered, now
// or earlier; otherwise its document, if the service accepts one; otherwise its existing
// registration, or a new one. It returns ErrUnregistered if none is possible.
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

// Denial is a 401 or 403 response to one of our requests.
type Denial struct {
	Status    int
	Challenge Challenge
	Token     store.Secret // the token sent; zero if none
	Again     bool         // the request was already repeated with a fresh token
}

// LoginError means that a server can't be called until a user logs in. Its text is for the
// requester of the call.
type LoginError struct{ Call *store.CallError }

func (e *LoginError) Error() string { return e.Call.Error() }
func (e *LoginError) Unwrap() error { return e.Call }
