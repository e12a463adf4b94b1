package company

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	upstream "nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/identity"
)

// Assertion returns an identity assertion authorization grant about a user: the provider
// exchanges the user's ID token for it (RFC 8693, draft-ietf-oauth-identity-assertion-authz-grant).
// The provider decides whether this user may use that server. The error for the user is a
// [*store.CallError].
func (c *Company) Assertion(ctx context.Context, user string, want upstream.AssertionRequest) (none store.Secret, err error) {
	p, err := c.current(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return none, &store.CallError{Code: store.CodeUnavailable, Message: identity.NotSignedIn}
	}
	if err != nil {
		return none, err
	}
	idToken, err := c.idToken(ctx, p, user)
	if err != nil {
		return none, err
	}
	exchange := upstream.Exchange{HTTP: p.http, URL: p.oauth.Endpoint.TokenURL, Client: p.Client, Secret: p.Secret, InHeader: p.oauth.Endpoint.AuthStyle == oauth2.AuthStyleInHeader}
	assertion, err := exchange.Assertion(ctx, idToken, want)
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return assertion, err
	}
	code := answer.ErrorCode
	if !errorCode.MatchString(code) {
		code = fmt.Sprintf("status %d", answer.Response.StatusCode)
	}
	c.Log.Warn("the identity provider gave no assertion", "user", user, "server", want.Server, "audience", want.Issuer, "client", want.Client, "code", code)
	switch code {
	case "access_denied", "invalid_target", "unauthorized_client", "invalid_scope", "consent_required", "interaction_required":
		return none, &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("%s doesn't let you use %s (%s). Its administrator can change that.", p.Name, want.Server, code)}
	case "invalid_grant":
		return none, &store.CallError{Code: store.CodeUnavailable, Message: identity.NotSignedIn}
	}
	return none, fmt.Errorf("the provider's token endpoint answered %s", code)
}

// idToken returns a valid ID token of a user: a new one if the provider gave nize a refresh
// token, else that of the last sign-in.
func (c *Company) idToken(ctx context.Context, p *party, user string) (none store.Secret, err error) {
	signIn := &store.CallError{Code: store.CodeUnavailable, Message: identity.NotSignedIn}
	m, err := c.Store.MembershipOf(ctx, user)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // a program has no account
		return none, err
	}
	if m.Identity == "" || m.Identity != identity.Of(p.Issuer, m.Subject) {
		return none, signIn
	}
	raw := m.IDToken.Reveal()
	if !m.Refresh.IsZero() {
		one := c.lockRefreshing(m.Identity)
		defer one.mu.Unlock()
		// A request that ends with its caller could lose a token that was rotated for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
		defer cancel()
		if m, err = c.Store.MembershipOf(ctx, user); err != nil {
			return none, err
		}
		if m.Refresh.IsZero() {
			return none, signIn
		}
		token, _, err := c.renewTokens(ctx, p, m)
		if errors.Is(err, errEnded) {
			return none, signIn
		}
		if err != nil {
			return none, err
		}
		if raw, _ = token.Extra("id_token").(string); raw == "" {
			return none, fmt.Errorf("the provider %s sends no ID token for a refresh token; without the scope offline_access nize uses the one of the last sign-in", p.Name)
		}
	}
	if raw == "" {
		return none, signIn
	}
	_, id, err := c.verifySigned(oidc.ClientContext(ctx, p.http), p, raw, func(m *party) *oidc.IDTokenVerifier { return m.verifier })
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return none, signIn
	case err != nil:
		return none, err
	case identity.Of(id.Issuer, id.Subject) != m.Identity:
		return none, fmt.Errorf("the provider answered about %s", identity.Of(id.Issuer, id.Subject))
	}
	return store.NewSecret(raw), nil
}
