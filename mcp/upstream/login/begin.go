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

// Ask holds the options of a login.
type Ask struct {
	ClientID string       // issued by the authorization server's operator; "" if none
	Secret   store.Secret // of that client
	Scopes   []string     // exactly these; nil means those that the server requires and those of the last login
	Redirect string       // URL to which the browser returns
	Document string       // URL of nize's own document; "" if it is not reachable from outside
	// PKCEUnlisted lets people sign in at a service that doesn't list PKCE with S256, now
	// and later. PKCE is used all the same.
	PKCEUnlisted bool
	// NoResource omits the parameter resource, now and later, because some services refuse
	// it. The service then decides for which resource a token is.
	NoResource bool
}

// Begin finds the authorization server of a server, registers nize there if necessary, and
// returns the request for a person's browser.
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
	if s.Authorization == "" {
		return nil, store.Mark(fmt.Errorf("%s does not sign people in with a browser; a company's identity provider can: nizectl servers edit %s --auth user-oauth --enterprise", s.Issuer, server.Name), store.ErrRefused)
	}
	before, err := l.Show(ctx, server.Name, h)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if !asked && before.Service.Issuer == "" && s.Guessed {
		return nil, store.Mark(fmt.Errorf("server %s needs no login: it accepts requests without a token and names no authorization server", server.Name), store.ErrRefused)
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
		return nil, store.Mark(fmt.Errorf("%w: ask its operator for a client ID with the redirect address %s, then: nizectl servers login %s --client-id ID", err, a.Redirect, server.Name), store.ErrRefused)
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

// Offered reports whether documents name the authorization server of a server that rejected
// a request of nize. It sends requests without a token and stores nothing.
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
		return nil // nize then registers again
	}
	return oauth.OpenRegistrations(c.Secret)
}

// maxRegistrations is how many registrations are stored per server, so that a server that
// names another issuer each time can't fill the store.
const maxRegistrations = 8

// keepRegistration stores the newest registration of each issuer. A registration by
// document needs no record, unless it contains an admin's exceptions for the issuer.
func (l *Logins) keepRegistration(ctx context.Context, by store.Caller, server store.Server, kept []oauth.Registration, r oauth.Registration, document string) error {
	if r.ID == document && document != "" && !r.Unlisted && !r.NoResource && !r.Company || slices.ContainsFunc(kept, func(k oauth.Registration) bool {
		return k.ID == r.ID && k.Issuer == r.Issuer && k.Redirect == r.Redirect && k.Secret.Reveal() == r.Secret.Reveal() && k.Unlisted == r.Unlisted && k.NoResource == r.NoResource && k.Company == r.Company
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

// Finish exchanges the parameters with which a browser returned for a grant, which
// [Logins.Keep] stores as a login. The caller must have compared the state, and must call
// it only once.
func (l *Logins) Finish(ctx context.Context, by store.Caller, server store.Server, r *oauth.Request, answer url.Values) (oauth.Grant, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
	defer cancel()
	g, err := l.opt.HTTP(ctx, server).Finish(ctx, r, answer, l.opt.Now())
	if oauth.IsCode(err, "invalid_client") && r.Service.Resource != "" { // the service no longer knows nize: register again at the next login
		kept := slices.DeleteFunc(l.registrations(ctx, server.Name), func(k oauth.Registration) bool { return k.ID == r.Client.ID })
		err = errors.Join(err, l.putRegistrations(ctx, by, server, kept))
	}
	if oauth.RefusesResource(err) && r.Service.Resource != "" && !r.Service.NoResource {
		err = fmt.Errorf("%w; it may not support the parameter resource: an admin can add --no-resource to the login", err)
	}
	return g, err
}

// Keep stores a login and replaces the holder's previous one.
func (l *Logins) Keep(ctx context.Context, by store.Caller, server store.Server, h store.Holder, g oauth.Grant) error {
	g.Since = l.opt.Now()
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	defer end(nil)
	return l.put(context.WithoutCancel(ctx), by, server, h, g)
}

// Forget deletes a login, and revokes it at its authorization server if possible. It
// returns whether it was revoked. A login that can't be revoked is deleted all the same.
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
