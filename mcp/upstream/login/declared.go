package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/credential"
)

// ServerOf returns a declared credential as a server record for logins: its name is the
// credential's id, and its URL is the origin of its tokens. No real server has such a name.
func ServerOf(d credential.Declaration) store.Server {
	return store.Server{Name: d.ID, Transport: store.HTTP, URL: d.OAuth.TokenURL, Auth: d.Mode.Auth()}
}

// serviceOf returns the authorization server that an admin declared. No documents are read
// for it: it is for no resource, and its issuer is the origin at which people sign in.
func serviceOf(d credential.Declaration) oauth.Service {
	s := oauth.Service{Issuer: d.OAuth.Issued(), Authorization: d.OAuth.AuthorizationURL, Token: d.OAuth.TokenURL, Revocation: d.OAuth.RevocationURL}
	if d.OAuth.ClientAuth != "" {
		s.AuthMethods = []string{d.OAuth.ClientAuth}
	}
	return s
}

// PutClient stores the secret of the client that a declaration names, for the declared
// URLs. Without a secret it deletes the stored one.
func (l *Logins) PutClient(ctx context.Context, by store.Caller, d credential.Declaration, secret store.Secret) error {
	if secret.IsZero() {
		err := l.opt.Credentials.DeleteCredential(ctx, by, registrationKey(d.ID))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	return l.putRegistrations(ctx, by, ServerOf(d), []oauth.Registration{oauth.GivenClient(serviceOf(d), "", d.OAuth.ClientID, secret)})
}

// BeginDeclared returns the request for the browser of a user who signs in for a declared
// credential.
func (l *Logins) BeginDeclared(ctx context.Context, d credential.Declaration, redirect string) *oauth.Request {
	s := serviceOf(d)
	var secret store.Secret
	for _, r := range l.registrations(ctx, d.ID) {
		if r.ID == d.OAuth.ClientID && r.Fits(s, redirect, l.opt.Now()) {
			secret = r.Secret
		}
	}
	return oauth.Begin(s, oauth.GivenClient(s, redirect, d.OAuth.ClientID, secret), redirect, slices.Clone(d.OAuth.Scopes))
}

// signedIn returns the first of the holders who is signed in under the current declaration.
func (l *Logins) signedIn(ctx context.Context, d credential.Declaration, holders []store.Holder) (h store.Holder, ok bool, err error) {
	for _, h := range holders {
		g, err := l.Show(ctx, d.ID, h)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return h, false, err
		}
		s := g.Service
		if g.Lost == "" && s.Resource == "" && d.OAuth.SameClient(&credential.OAuth{AuthorizationURL: s.Authorization, TokenURL: s.Token, RevocationURL: s.Revocation, ClientID: g.Client.ID, Issuer: s.Issuer}) {
			return h, true, nil
		}
	}
	return h, false, nil
}

// DeclaredToken returns the access token of the first of the holders who is signed in, or
// d.Missing() if none is. It never waits for a person.
func (l *Logins) DeclaredToken(ctx context.Context, d credential.Declaration, holders []store.Holder) (store.Secret, store.Holder, error) {
	h, ok, err := l.signedIn(ctx, d, holders)
	switch {
	case err != nil:
		return store.Secret{}, h, err
	case !ok:
		return store.Secret{}, h, d.Missing()
	}
	token, err := l.Token(ctx, ServerOf(d), []store.Holder{h})
	if token.IsZero() && err == nil || errors.As(err, new(*oauth.LoginError)) {
		err = d.Missing()
	}
	return token, h, err
}

// DeclaredSignedIn reports whether one of the holders is signed in.
func (l *Logins) DeclaredSignedIn(ctx context.Context, d credential.Declaration, holders []store.Holder) (bool, error) {
	_, ok, err := l.signedIn(ctx, d, holders)
	return ok, err
}

// ForgetDeclared deletes a holder's login for a declared credential, and revokes it at the
// service if possible. It returns an error if revoking failed; the login is deleted all the
// same.
func (l *Logins) ForgetDeclared(ctx context.Context, by store.Caller, d credential.Declaration, h store.Holder) error {
	_, err := l.Forget(ctx, by, ServerOf(d), h)
	if err == nil {
		return nil
	}
	if _, still := l.Show(ctx, d.ID, h); errors.Is(err, store.ErrNotFound) || !errors.Is(still, store.ErrNotFound) {
		return fmt.Errorf("credential %s: %w", d.ID, err)
	}
	return &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("%s is disconnected here, but its tokens may still be good elsewhere: %s", d.Name, store.TextOf(err))}
}

// DeclaredDenied is [Logins.Denied] for a 401 response to a request with a holder's token
// of a declared credential.
func (l *Logins) DeclaredDenied(ctx context.Context, d credential.Declaration, h store.Holder, denial oauth.Denial) (again bool, err error) {
	if denial.Status != http.StatusUnauthorized { // only the declaration determines the scopes
		return false, nil
	}
	again, err = l.Denied(ctx, ServerOf(d), []store.Holder{h}, denial)
	if errors.As(err, new(*oauth.LoginError)) {
		err = d.Missing()
	}
	return again, err
}
