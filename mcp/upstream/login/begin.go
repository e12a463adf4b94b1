package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"nize/mcp/upstream/oauth"
	"nize/store"
)

// Ask is what somebody says who logs in.
type Ask struct {
	ClientID string       // given by the authorization server's operator; "" for none
	Secret   store.Secret // of that client
	Scopes   []string     // no others; nil: what the server wants, and what it had
	Redirect string       // where the browser comes back
	Document string       // the address of nize's own document; "" where nobody can read one
	// PKCEUnlisted lets people sign in at a service that does not list PKCE with S256,
	// this time and later. PKCE is used all the same.
	PKCEUnlisted bool
	// NoResource leaves out the parameter resource, this time and later: there are
	// services that refuse it. Whom a token is for is then that service's to say.
	NoResource bool
}

// Begin finds out who signs people in for a server, registers nize there where
// that is needed, and returns the request for a person's browser.
func (l *Logins) Begin(ctx context.Context, by store.Caller, server store.Server, h store.Holder, a Ask) (*oauth.Request, error) {
	if server.Transport == store.Stdio {
		return nil, fmt.Errorf("%w login at %s: it is a command, and has no sign-in", store.ErrInvalid, server.Name)
	}
	for name, v := range server.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" && v.SecretKey != store.LoginName {
			return nil, fmt.Errorf("%w login at %s: its header %s is set by hand; take it out first with nizectl servers edit %s", store.ErrInvalid, server.Name, name, server.Name)
		}
	}
	client := l.opt.HTTP(ctx, server)
	challenge, asked, err := client.Probe(ctx, server.URL)
	if err != nil {
		return nil, fmt.Errorf("asking server %s: %w", server.Name, err)
	}
	kept := l.registrations(ctx, server.Name)
	s, err := client.Discover(ctx, server.URL, challenge, func(issuer string) bool {
		return a.PKCEUnlisted || slices.ContainsFunc(kept, func(r oauth.Registration) bool { return r.Unlisted && oauth.SameIdentifier(r.Issuer, issuer) })
	})
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", server.Name, err)
	}
	before, err := l.Show(ctx, server.Name, h)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if !asked && before.Service.Issuer == "" && s.Guessed {
		return nil, store.Mark(fmt.Errorf("server %s lets everybody in and names nobody who signs people in: it needs no login", server.Name), store.ErrRefused)
	}
	scopes := s.Scopes
	if oauth.SameIdentifier(before.Service.Issuer, s.Issuer) && oauth.SameIdentifier(before.Service.Resource, s.Resource) {
		scopes = union(scopes, before.Scopes, before.Wanted)
	}
	if a.Scopes != nil {
		scopes = a.Scopes
		if slices.Contains(s.Scopes, "offline_access") {
			scopes = oauth.WithOffline(slices.Clone(scopes), s.Scopes)
		}
	}
	r, err := client.Choose(ctx, s, oauth.Choice{ID: a.ClientID, Secret: a.Secret, Document: a.Document, Kept: kept, Redirect: a.Redirect, Now: l.opt.Now()})
	switch {
	case errors.Is(err, oauth.ErrUnregistered):
		return nil, store.Mark(fmt.Errorf("%w: ask who runs it for a client ID with the redirect address %s, then: nizectl servers login %s --client-id ID", err, a.Redirect, server.Name), store.ErrRefused)
	case err != nil:
		return nil, fmt.Errorf("server %s: %w", server.Name, err)
	}
	s.NoResource = a.NoResource || slices.ContainsFunc(kept, func(k oauth.Registration) bool { return k.NoResource && oauth.SameIdentifier(k.Issuer, s.Issuer) })
	r.Unlisted, r.NoResource = s.PKCEUnlisted, s.NoResource
	if err := l.keepRegistration(ctx, by, server, kept, r, a.Document); err != nil {
		return nil, err
	}
	return oauth.Begin(s, r, a.Redirect, scopes), nil
}

// Offered reports whether documents say who signs people in for a server that was
// reached and turned nize away. It asks without a token and keeps nothing.
func (l *Logins) Offered(ctx context.Context, server store.Server) bool {
	if server.Transport == store.Stdio {
		return false
	}
	client := l.opt.HTTP(ctx, server)
	challenge, _, err := client.Probe(ctx, server.URL)
	if err != nil {
		return false
	}
	s, err := client.Discover(ctx, server.URL, challenge, func(string) bool { return true })
	return err == nil && !s.Guessed
}

func union(lists ...[]string) (all []string) {
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func registrationKey(server string) store.CredentialKey {
	return store.ParseHolder("").Key(server, clientName)
}

func (l *Logins) registrations(ctx context.Context, server string) []oauth.Registration {
	c, err := l.opt.Credentials.GetCredential(ctx, registrationKey(server))
	if err != nil {
		return nil // then nize registers again
	}
	return oauth.OpenRegistrations(c.Secret)
}

// maxRegistrations is how many are kept of one server: a server that names
// another issuer each time fills nothing.
const maxRegistrations = 8

// keepRegistration keeps the newest registration of each issuer. That by the document
// needs no record, unless it says what an admin accepted of the issuer.
func (l *Logins) keepRegistration(ctx context.Context, by store.Caller, server store.Server, kept []oauth.Registration, r oauth.Registration, document string) error {
	if r.ID == document && document != "" && !r.Unlisted && !r.NoResource || slices.ContainsFunc(kept, func(k oauth.Registration) bool {
		return k.ID == r.ID && k.Issuer == r.Issuer && k.Redirect == r.Redirect && k.Secret.Reveal() == r.Secret.Reveal() && k.Unlisted == r.Unlisted && k.NoResource == r.NoResource
	}) {
		return nil
	}
	kept = slices.DeleteFunc(slices.Clone(kept), func(k oauth.Registration) bool { return oauth.SameIdentifier(k.Issuer, r.Issuer) })
	return l.putRegistrations(ctx, by, server, append(kept[max(0, len(kept)-maxRegistrations+1):], r))
}

func (l *Logins) putRegistrations(ctx context.Context, by store.Caller, server store.Server, list []oauth.Registration) error {
	secret, err := oauth.SealRegistrations(list)
	if err != nil {
		return fmt.Errorf("encoding the registration for %s: %w", server.Name, err)
	}
	if err := l.opt.Credentials.PutCredential(ctx, by, store.Credential{CredentialKey: registrationKey(server.Name), Host: hostOf(server), Secret: secret, Updated: l.opt.Now()}); err != nil {
		return fmt.Errorf("storing the registration for %s: %w", server.Name, err)
	}
	return nil
}

// Finish turns that with which a browser came back into a grant, which [Logins.Keep]
// makes a login. Who asks has compared the state, and made sure that it happens
// once.
func (l *Logins) Finish(ctx context.Context, by store.Caller, server store.Server, r *oauth.Request, answer url.Values) (oauth.Grant, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
	defer cancel()
	g, err := l.opt.HTTP(ctx, server).Finish(ctx, r, answer, l.opt.Now())
	if oauth.IsCode(err, "invalid_client") && r.Service.Resource != "" { // it forgot nize: the next login registers again
		kept := slices.DeleteFunc(l.registrations(ctx, server.Name), func(k oauth.Registration) bool { return k.ID == r.Client.ID })
		err = errors.Join(err, l.putRegistrations(ctx, by, server, kept))
	}
	if oauth.RefusesResource(err) && r.Service.Resource != "" && !r.Service.NoResource {
		err = fmt.Errorf("%w; it may refuse to be told whom the token is for: an admin adds --no-resource to the login", err)
	}
	return g, err
}

// Keep stores a login in place of the one that the holder had.
func (l *Logins) Keep(ctx context.Context, by store.Caller, server store.Server, h store.Holder, g oauth.Grant) error {
	g.Since = l.opt.Now()
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	defer end(nil)
	return l.put(context.WithoutCancel(ctx), by, server, h, g)
}

// Forget ends a login, at its authorization server too where that is possible;
// revoked says so. What could not be revoked is forgotten all the same.
func (l *Logins) Forget(ctx context.Context, by store.Caller, server store.Server, h store.Holder) (revoked bool, err error) {
	key := h.Key(server.Name, store.LoginName)
	end, err := l.exclusive(ctx, key)
	if err != nil {
		return false, err
	}
	defer end(nil)
	g, err := l.Show(ctx, server.Name, h)
	if err != nil {
		return false, err
	}
	if err := l.opt.Credentials.DeleteCredential(ctx, by, key); err != nil {
		return false, fmt.Errorf("forgetting the login at %s: %w", server.Name, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
	defer cancel()
	return l.opt.HTTP(ctx, server).Revoke(ctx, g)
}
