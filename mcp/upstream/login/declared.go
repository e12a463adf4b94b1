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

var _ credential.SignIns = (*Logins)(nil)

// ServerOf is a declared credential as logins have servers: by its id, and where its
// tokens come from. No server is named so.
func ServerOf(d credential.Declaration) store.Server {
	return store.Server{Name: d.ID, Transport: store.HTTP, URL: d.OAuth.TokenURL, Auth: d.Mode.Auth()}
}

// serviceOf is what an admin said of who signs people in. Nothing is asked about it: it
// is for no resource, and its issuer is the origin that people are sent to.
func serviceOf(d credential.Declaration) oauth.Service {
	s := oauth.Service{Issuer: d.OAuth.Issued(), Authorization: d.OAuth.AuthorizationURL, Token: d.OAuth.TokenURL, Revocation: d.OAuth.RevocationURL}
	if d.OAuth.ClientAuth != "" {
		s.AuthMethods = []string{d.OAuth.ClientAuth}
	}
	return s
}

// PutClient keeps the secret of the client that a declaration names, for the addresses
// that it names; without one nize has none any more.
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

// BeginDeclared returns the request for the browser of who signs in for a declared
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

// signedIn is the first of the holders who is signed in, as it is declared now.
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

// DeclaredToken implements [credential.SignIns].
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

// DeclaredSignedIn implements [credential.SignIns].
func (l *Logins) DeclaredSignedIn(ctx context.Context, d credential.Declaration, holders []store.Holder) (bool, error) {
	_, ok, err := l.signedIn(ctx, d, holders)
	return ok, err
}

// ForgetDeclared ends what somebody's signing in gave, at the service too where that
// can be. The error says where that failed; then it is forgotten here all the same.
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

// DeclaredDenied says what follows from an answer 401 to a request with somebody's
// token of a declared credential, as [Logins.Denied] does.
func (l *Logins) DeclaredDenied(ctx context.Context, d credential.Declaration, h store.Holder, denial oauth.Denial) (again bool, err error) {
	if denial.Status != http.StatusUnauthorized { // which scopes are asked for, the declaration alone says
		return false, nil
	}
	again, err = l.Denied(ctx, ServerOf(d), []store.Holder{h}, denial)
	if errors.As(err, new(*oauth.LoginError)) {
		err = d.Missing()
	}
	return again, err
}
