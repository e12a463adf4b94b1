package company

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"nize/store"
	"nize/store/identity"
)

// refreshTime limits one request for a person's groups. The requester waits for it.
const refreshTime = 10 * time.Second

// refreshing is held while the groups of one identity are read again.
type refreshing struct {
	mu     sync.Mutex
	failed time.Time // the last time, if it failed
}

// errUnconfirmed is why a membership of a group counts for no decision.
var errUnconfirmed = errors.New("the identity provider doesn't confirm the person's groups; they have to sign in again")

// Confirm makes the groups of a user current before a decision that depends on them. If the
// provider gave nize a refresh token for the user, groups older than [store.GroupAge] are
// read again. Otherwise they count for as long as a browser session lasts after the sign-in.
// A directory pushes each change itself. An error means that the groups don't count.
func (c *Company) Confirm(ctx context.Context, user string) error {
	m, err := c.Store.MembershipOf(ctx, user)
	if err != nil || m.Identity == "" || m.Directory {
		return err
	}
	if m.Refresh.IsZero() {
		if life := store.GetSpan(c.Config, "", "web.session_max"); c.Now().Sub(m.Read) > life {
			return fmt.Errorf("%w: the last sign-in was %s", errUnconfirmed, m.Read.UTC().Format(time.DateOnly))
		}
		return nil
	}
	if c.isCurrent(m) {
		return nil
	}
	one := c.lockRefreshing(m.Identity)
	defer one.mu.Unlock()
	// A request that ends with its caller could lose a token that was rotated for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
	defer cancel()
	if m, err = c.Store.MembershipOf(ctx, user); err != nil || m.Refresh.IsZero() || c.isCurrent(m) {
		return err
	}
	if now := c.Now(); now.Sub(one.failed) < failedLife && now.Sub(one.failed) >= 0 {
		return errUnconfirmed
	}
	if err := c.refresh(ctx, m); err != nil {
		one.failed = c.Now()
		c.Log.Warn("a person's groups can't be read again, so they decide nothing", "user", user, "identity", m.Identity, "err", err)
		return errUnconfirmed
	}
	return nil
}

// lockRefreshing returns the state of an identity with its lock held: a refresh token may
// work only once.
func (c *Company) lockRefreshing(identity string) *refreshing {
	kept, _ := c.refreshing.LoadOrStore(identity, new(refreshing))
	one, _ := kept.(*refreshing)
	one.mu.Lock()
	return one
}

func (c *Company) isCurrent(m identity.Membership) bool {
	age := c.Now().Sub(m.Read)
	return age >= 0 && age < store.GroupAge
}

// refresh reads a person's groups again and stores them. If the provider ended the refresh
// token, it ends the membership.
func (c *Company) refresh(ctx context.Context, m identity.Membership) error {
	p, err := c.current(ctx)
	if err != nil {
		return err
	}
	asking := oidc.ClientContext(ctx, p.http)
	token, refresh, err := c.renewTokens(ctx, p, m)
	if err != nil {
		return err
	}
	all := claims{}
	if raw, _ := token.Extra("id_token").(string); raw != "" {
		_, id, err := c.verifySigned(asking, p, raw, func(m *party) *oidc.IDTokenVerifier { return m.verifier })
		switch {
		case err != nil:
			return err
		case identity.Of(id.Issuer, id.Subject) != m.Identity:
			return fmt.Errorf("the provider answered about %s", identity.Of(id.Issuer, id.Subject))
		}
		if err := id.Claims(&all); err != nil {
			return err
		}
	}
	if all.at(p.GroupsClaim) == nil && p.oidc.UserInfoEndpoint() != "" {
		more, err := p.oidc.UserInfo(asking, oauth2.StaticTokenSource(token))
		if err != nil {
			return err
		}
		if identity.Of(p.Issuer, more.Subject) != m.Identity {
			return fmt.Errorf("the userinfo endpoint answered about %s", identity.Of(p.Issuer, more.Subject))
		}
		var told claims
		if err := more.Claims(&told); err != nil {
			return err
		}
		all.add(told)
	}
	person := identity.Person{Issuer: p.Issuer, Subject: m.Subject, Partial: true, Refresh: refresh}
	if person.Groups, person.GroupsKnown, err = readGroups(all.at(p.GroupsClaim)); err != nil {
		return err
	}
	if !person.GroupsKnown {
		return errors.New("the provider sent no groups")
	}
	_, err = c.Store.SignInPerson(ctx, store.System, person, c.rules())
	return err
}

// errEnded means that the provider ended the person's session with nize.
var errEnded = errors.New("the provider ended the person's session (invalid_grant)")

// renewTokens uses the refresh token of a person, and returns the new tokens and the refresh
// token that is valid now, which is stored. If the provider ended the refresh token, it ends
// the membership. The caller must hold lockRefreshing.
func (c *Company) renewTokens(ctx context.Context, p *party, m identity.Membership) (token *oauth2.Token, refresh store.Secret, err error) {
	refresh = m.Refresh
	token, err = p.oauth.TokenSource(oidc.ClientContext(ctx, p.http), &oauth2.Token{RefreshToken: refresh.Reveal()}).Token()
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) {
		if answer.ErrorCode == "invalid_grant" {
			return nil, refresh, errors.Join(errEnded, c.Store.EndMembership(ctx, store.System, m.Identity, c.rules()))
		}
		return nil, refresh, p.notExchanged(err)
	}
	if err != nil {
		return nil, refresh, err
	}
	if token.RefreshToken != "" && token.RefreshToken != refresh.Reveal() { // stored first: the old one may be void
		refresh = store.NewSecret(token.RefreshToken)
		err = c.Store.KeepRefresh(ctx, m.Identity, refresh)
	}
	return token, refresh, err
}
