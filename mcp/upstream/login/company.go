package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/mcp/upstream/oauth"
	"nize/store"
)

// A server with the field Enterprise gets its tokens without a browser: the company's
// identity provider issues an assertion about a person for the server's authorization
// server, which exchanges it for a token. The provider decides about each token anew. If a
// person leaves the company, their access ends with their last token.
//
// A server chooses its authorization server itself. An assertion is requested only for the
// one that an admin accepted with [Logins.Adopt]; any other one needs an admin again.

// Company issues assertions about people; daemon/company implements it.
type Company interface {
	// Assertion returns an identity assertion authorization grant about a user. If the
	// provider doesn't know the user, or refuses, the error is a [*store.CallError] for the
	// user.
	Assertion(ctx context.Context, user string, want oauth.AssertionRequest) (store.Secret, error)
}

// ErrNotAnnounced means that a server's authorization server doesn't say that it accepts
// assertions, so people sign in there themselves.
var ErrNotAnnounced = errors.New("its authorization server does not announce enterprise-managed authorization")

// refusal is a failed attempt to get a token with an assertion.
type refusal struct {
	at  time.Time
	err error
}

// refusedLife is how long an attempt that failed is not repeated, so that many calls don't
// cause many requests to the provider.
const refusedLife = 5 * time.Second

// Adopt accepts the authorization server of a server for assertions, and stores nize's
// client registration there. Only admins may do this.
func (l *Logins) Adopt(ctx context.Context, by store.Caller, server store.Server, a Ask) (issuer string, err error) {
	client := l.opt.HTTP(ctx, server)
	s, err := l.discoverCompany(ctx, client, server)
	if err != nil {
		return "", err
	}
	kept := l.registrations(ctx, server.Name)
	r, err := client.Choose(ctx, s, oauth.Choice{ID: a.ClientID, Secret: a.Secret, Document: a.Document, Kept: kept, Redirect: a.Redirect, Now: l.opt.Now()})
	switch {
	case errors.Is(err, oauth.ErrUnregistered):
		return "", store.Mark(fmt.Errorf("%w: register nize there and at the identity provider, then: nizectl servers login %s --client-id ID", err, server.Name), store.ErrRefused)
	case err != nil:
		return "", fmt.Errorf("server %s: %w", server.Name, err)
	}
	r.Company = true
	return s.Issuer, l.keepRegistration(ctx, by, server, kept, r, a.Document)
}

// discoverCompany returns the authorization server of a server. It returns ErrNotAnnounced
// if that doesn't accept assertions.
func (l *Logins) discoverCompany(ctx context.Context, client *oauth.Client, server store.Server) (s oauth.Service, err error) {
	challenge, _, err := client.Probe(ctx, server.URL)
	if err != nil {
		return s, fmt.Errorf("asking server %s: %w", server.Name, err)
	}
	// PKCE protects a code, and no code is involved here.
	s, err = client.Discover(ctx, server.URL, challenge, func(string) bool { return true })
	if err == nil && !s.Assertions {
		err = ErrNotAnnounced
	}
	if err != nil {
		return s, fmt.Errorf("server %s: %w", server.Name, err)
	}
	s.Scopes = slices.DeleteFunc(s.Scopes, oauth.IsOffline)
	return s, nil
}

// Join signs a user in at a server with an assertion, and stores the login for a holder.
func (l *Logins) Join(ctx context.Context, server store.Server, h store.Holder, user string) error {
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	done := make(chan error, 1) // capacity 1: the waiting caller may have left
	go func() {                 // ends within refreshTime; an assertion works once, so its token must be stored
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
		defer cancel()
		g, err := l.Show(ctx, server.Name, h)
		if err == nil && g.Lost == "" && g.Person != "" && !g.Due(l.opt.Now()) { // another goroutine was first
			end(nil)
			done <- nil
			return
		}
		if g, err = l.assert(ctx, server, user); err == nil {
			g.Since = l.opt.Now()
			err = l.put(ctx, store.System, server, h, g)
		}
		end(err)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// joinFirst returns the token of the first holder, who is not signed in. If the server gets
// its tokens from the company's identity provider, it signs the person in.
func (l *Logins) joinFirst(ctx context.Context, server store.Server, holders []store.Holder) (none store.Secret, err error) {
	if !server.Enterprise || l.opt.Company == nil || len(holders) == 0 || holders[0].Scope != "user" {
		return none, needed(server)
	}
	h := holders[0]
	key := h.Key(server.Name, store.LoginName)
	l.mu.Lock()
	before, ok := l.refused[key]
	l.mu.Unlock()
	if since := l.opt.Now().Sub(before.at); ok && since >= 0 && since < refusedLife {
		return none, before.err
	}
	if err := l.Join(ctx, server, h, h.Owner); err != nil {
		return none, err
	}
	g, err := l.Show(ctx, server.Name, h)
	return g.Access, err
}

// assert gets a token for a user with an assertion. The error for the user is a
// [*oauth.LoginError], which also ends the session.
func (l *Logins) assert(ctx context.Context, server store.Server, user string) (g oauth.Grant, err error) {
	key := store.Holder{Scope: "user", Owner: user}.Key(server.Name, store.LoginName)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.refused, key); err != nil {
			l.refused[key] = refusal{l.opt.Now(), err}
		}
	}()
	var call *store.CallError
	g, err = l.assertOnce(ctx, server, user)
	switch {
	case err == nil, errors.As(err, new(*oauth.LoginError)):
		return g, err
	case errors.As(err, &call):
		return g, &oauth.LoginError{Call: call}
	}
	l.opt.Log.Warn("signing a person in at a server with the identity provider", "server", server.Name, "user", user, "err", err)
	return g, fmt.Errorf("signing in at %s with the company's identity provider: %w", server.Name, err)
}

func (l *Logins) assertOnce(ctx context.Context, server store.Server, user string) (g oauth.Grant, err error) {
	if !server.Enterprise || l.opt.Company == nil {
		return g, needed(server)
	}
	client := l.opt.HTTP(ctx, server)
	s, err := l.discoverCompany(ctx, client, server)
	if errors.Is(err, ErrNotAnnounced) {
		return g, needed(server)
	}
	if err != nil {
		return g, err
	}
	kept := l.registrations(ctx, server.Name)
	i := slices.IndexFunc(kept, func(r oauth.Registration) bool {
		return r.Company && oauth.SameIdentifier(r.Issuer, s.Issuer) && (r.Expires.IsZero() || l.opt.Now().Before(r.Expires))
	})
	if i < 0 {
		l.opt.Log.Warn("a server names an authorization server that no admin accepted", "server", server.Name, "issuer", s.Issuer)
		return g, &oauth.LoginError{Call: &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("An admin has to accept where %s signs people in: nizectl servers login %s", server.Name, server.Name)}}
	}
	assertion, err := l.opt.Company.Assertion(ctx, user, oauth.AssertionRequest{Issuer: s.Issuer, Resource: s.Resource, Client: kept[i].ID, Scopes: s.Scopes, Server: server.Name})
	if err != nil {
		return g, err
	}
	s.NoResource = kept[i].NoResource
	return client.Redeem(ctx, s, kept[i], user, assertion, l.opt.Now())
}
