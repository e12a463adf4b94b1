package company

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/signin"
	"nize/store"
	"nize/store/identity"
	"nize/store/oauth"
)

// flowCookie is the cookie with the secret of the browser's most recent sign-in.
const flowCookie = "nize-oidc"

// flow is one sign-in of one browser. Everything sent to the provider is derived from the
// secret; the secret itself is never sent.
type flow struct{ secret, revision string }

func (f flow) derive(what string) string {
	sum := sha256.Sum256([]byte(what + "\x00" + f.revision + "\x00" + f.secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (f flow) state() string    { return f.derive("oidc state") }
func (f flow) nonce() string    { return f.derive("oidc nonce") }
func (f flow) verifier() string { return f.derive("oidc verifier") }
func (f flow) used() oauth.Hash { return oauth.HashOf("oidc flow " + f.secret) }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// start redirects a browser to the provider.
func (c *Company) start(w http.ResponseWriter, r *http.Request) {
	if !signin.Navigates(r) {
		c.SignIn.Problem(w, r, http.StatusForbidden, store.Textf("A sign-in must start in a window of its own. Open this address in your browser."))
		return
	}
	m, err := c.current(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	f := flow{signin.NewSecret(), m.Revision}
	origin := c.SignIn.Origin(r)
	signin.SetCookie(w, origin, flowCookie, f.secret, http.SameSiteLaxMode, oauth.RequestLife)
	http.Redirect(w, r, m.at(origin).AuthCodeURL(f.state(), oidc.Nonce(f.nonce()), oauth2.S256ChallengeOption(f.verifier())), http.StatusSeeOther)
}

// at returns the OAuth configuration for people who use that origin.
func (m *party) at(origin string) *oauth2.Config {
	o := m.oauth
	o.RedirectURL = origin + redirectPath
	return &o
}

// finish handles the provider's redirect back to nize.
func (c *Company) finish(w http.ResponseWriter, r *http.Request) {
	m, err := c.current(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	origin := c.SignIn.Origin(r)
	f := flow{signin.ReadCookie(r, origin, flowCookie), m.Revision}
	q := r.URL.Query()
	for _, values := range q {
		if len(values) > 1 {
			c.fail(w, r, foreign(errors.New("a parameter of the callback stands there twice")))
			return
		}
	}
	if f.secret == "" || !same(q.Get("state"), f.state()) {
		c.fail(w, r, foreign(errors.New("the state of the callback is not the one of this browser's sign-in")))
		return
	}
	signin.SetCookie(w, origin, flowCookie, "", http.SameSiteLaxMode, -1)
	if iss := q.Get("iss"); iss != m.Issuer && (iss != "" || m.document.IssAnswer) {
		c.fail(w, r, m.untrusted(fmt.Errorf("the callback names the issuer %q, want %q", store.Clip(iss, 200), m.Issuer)))
		return
	}
	if err := c.Store.UseOnce(r.Context(), f.used(), c.Now().Add(oauth.RequestLife)); err != nil {
		if errors.Is(err, store.ErrDecided) {
			err = foreign(fmt.Errorf("the callback was used before"))
		}
		c.fail(w, r, err)
		return
	}
	p, session, err := c.redeem(r.Context(), m, origin, f, q.Get("code"), q.Get("error"))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	by := signin.Anybody(r)
	u, err := c.Store.SignInPerson(r.Context(), by, p, c.rules())
	if err != nil {
		c.fail(w, r, m.refused(err, p))
		return
	}
	c.Log.Info("a person signed in with the identity provider", "user", u.ID, "identity", p.Identity(), "groups", len(p.Groups))
	if err := c.SignIn.Admit(w, r, u.ID, store.SignedIn{Identity: p.Identity(), Session: session}); err != nil {
		c.fail(w, r, err)
	}
}

// redeem exchanges the code of a callback. It returns the person and the provider's id of
// the session.
func (c *Company) redeem(ctx context.Context, m *party, origin string, f flow, code, refused string) (p identity.Person, session string, err error) {
	switch {
	case refused == "access_denied":
		return p, "", &pageError{http.StatusForbidden, store.Textf("%s did not let you in. Its administrator has to assign you to nize.", m.Name), errors.New("the provider answered access_denied")}
	case refused != "" || code == "":
		return p, "", m.rejected(refused)
	}
	asking := oidc.ClientContext(ctx, m.http)
	token, err := m.at(origin).Exchange(asking, code, oauth2.VerifierOption(f.verifier()))
	if err != nil {
		return p, "", m.notExchanged(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, c1, err := c.verify(asking, m, raw, f.nonce())
	if err != nil {
		return p, "", err
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return p, "", m.untrusted(err)
		}
	}
	// Some providers put the claims of a scope into the ID token, others return them only
	// from this endpoint.
	if _, ok := c1["email"]; (!ok || c1.at(m.GroupsClaim) == nil) && m.oidc.UserInfoEndpoint() != "" {
		more, err := m.oidc.UserInfo(asking, oauth2.StaticTokenSource(token))
		var c2 claims
		switch {
		case err != nil:
			c.Log.Warn("the identity provider did not say more about a person", "err", err)
		case more.Subject != id.Subject:
			return p, "", m.untrusted(errors.New("the userinfo endpoint answered about another subject"))
		case more.Claims(&c2) == nil:
			c1.add(c2)
		}
	}
	p, err = readPerson(m.Issuer, id.Subject, c1, m.GroupsClaim)
	if err != nil {
		return p, "", &pageError{http.StatusForbidden, store.Textf("%s sent data about you that nize can't store. An admin can find the details in the log of nized.", m.Name), err}
	}
	if token.RefreshToken != "" {
		p.Refresh = store.NewSecret(token.RefreshToken)
	}
	p.IDToken = store.NewSecret(raw)
	return p, store.Clip(c1.text("sid"), identity.MaxSubject), nil
}

// verify checks an ID token and returns its claims.
func (c *Company) verify(ctx context.Context, m *party, raw, nonce string) (*oidc.IDToken, claims, error) {
	if raw == "" {
		return nil, nil, m.untrusted(errors.New("the provider's answer has no ID token"))
	}
	m, id, err := c.verifySigned(ctx, m, raw, func(m *party) *oidc.IDTokenVerifier { return m.verifier })
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, nil, m.clocks(fmt.Errorf("the ID token ended at %s", expired.Expiry.UTC().Format(time.RFC3339)))
	case err != nil:
		return nil, nil, m.untrusted(err)
	case id.IssuedAt.After(c.Now().Add(skew)):
		return nil, nil, m.clocks(fmt.Errorf("the ID token was issued at %s, which is in the future", id.IssuedAt.UTC().Format(time.RFC3339)))
	case !same(id.Nonce, nonce):
		return nil, nil, m.untrusted(errors.New("the ID token has the nonce of another sign-in"))
	case id.Issuer != m.Issuer: // go-oidc accepts another issuer for one provider
		return nil, nil, m.untrusted(fmt.Errorf("the ID token is of the issuer %q", id.Issuer))
	}
	var all claims
	if err := id.Claims(&all); err != nil {
		return nil, nil, m.untrusted(err)
	}
	if azp := all.text("azp"); azp != m.Client && (azp != "" || len(id.Audience) > 1) {
		return nil, nil, m.untrusted(fmt.Errorf("the ID token is for the party %q among %q", azp, id.Audience))
	}
	return id, all, nil
}

// verifySigned verifies a token of the provider with a verifier of m. If that fails, it
// reads the provider's document again and retries, because the provider may have changed
// its algorithm or the address of its keys. It returns the party that verified the token.
func (c *Company) verifySigned(ctx context.Context, m *party, raw string, of func(*party) *oidc.IDTokenVerifier) (*party, *oidc.IDToken, error) {
	id, err := of(m).Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	if err != nil && !errors.As(err, &expired) {
		if fresh := c.renewed(ctx, m); fresh != m {
			m = fresh
			id, err = of(m).Verify(ctx, raw)
		}
	}
	return m, id, err
}

func foreign(err error) *pageError {
	return &pageError{http.StatusForbidden, store.Textf("This sign-in belongs to another browser or another tab, or it has ended. Begin again where you came from."), err}
}

func (m *party) untrusted(err error) *pageError {
	return &pageError{http.StatusBadGateway, store.Textf("The answer of %s can't be trusted, so you are not signed in. An admin can find the reason in the log of nized.", m.Name), err}
}

func (m *party) clocks(err error) *pageError {
	return &pageError{http.StatusBadGateway, store.Textf("The clocks of %s and of nize differ too much, so you are not signed in. An admin has to set the clock of the machine that runs nize.", m.Name), err}
}

// errorCode matches an OAuth error code.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// rejected returns the failure for an error in the provider's callback.
func (m *party) rejected(code string) *pageError {
	if !errorCode.MatchString(code) {
		code = "unknown"
	}
	return &pageError{http.StatusBadGateway, store.Textf("%s refused this sign-in (%s). An admin can look that up at %s, and compare the registration there with nizectl identity oidc test.", m.Name, code, m.Name), fmt.Errorf("the provider answered the error %q", code)}
}

// notExchanged returns the failure for a code that the provider did not exchange.
func (m *party) notExchanged(err error) *pageError {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return unreachable(m.Provider, err)
	}
	// The response may repeat what it was sent, so only its error code is logged.
	code := answer.ErrorCode
	if !errorCode.MatchString(code) {
		code = fmt.Sprintf("status %d", answer.Response.StatusCode)
	}
	err = fmt.Errorf("the provider's token endpoint answered %s", code)
	if answer.Response.StatusCode >= http.StatusInternalServerError {
		return unreachable(m.Provider, err)
	}
	switch code {
	case "invalid_client", "unauthorized_client":
		return &pageError{http.StatusBadGateway, store.Textf("%s does not accept nize as its client, so signing in doesn't work. An admin has to set client id and secret again with nizectl identity oidc set.", m.Name), err}
	case "invalid_grant":
		return &pageError{http.StatusForbidden, store.Textf("%s did not accept this sign-in: it took too long, or was used before. Try again; if it fails again, an admin should compare the redirect address with nizectl identity oidc test.", m.Name), err}
	}
	return &pageError{http.StatusBadGateway, store.Textf("%s refused this sign-in (%s). An admin can look that up at %s, and compare the registration there with nizectl identity oidc test.", m.Name, code, m.Name), err}
}

// refused returns the failure for a person whom the provider authenticated and nize does
// not let in.
func (m *party) refused(err error, p identity.Person) error {
	err = fmt.Errorf("%s: %w", p.Identity(), err)
	switch {
	case errors.Is(err, identity.ErrNotAllowed) && !p.GroupsKnown:
		return &pageError{http.StatusForbidden, store.Textf("%s did not send your groups, and only some groups may use nize. An admin has to make %s send the claim that nizectl identity oidc show prints.", m.Name, m.Name), err}
	case errors.Is(err, identity.ErrNotAllowed):
		return &pageError{http.StatusForbidden, store.Textf("Your account at %s is in no group that may use nize. An admin can add you to a group of the setting oidc.allowed_groups, or change that setting.", m.Name), err}
	case errors.Is(err, identity.ErrDisabled):
		return &pageError{http.StatusForbidden, store.Textf("Your account in nize is disabled. An admin can enable it with nizectl users enable."), err}
	case errors.Is(err, identity.ErrAmbiguous):
		return &pageError{http.StatusForbidden, store.Textf("Several people in nize have your email address, so it is not clear which of them you are. An admin can find them with nizectl users list, and remove or link them."), err}
	}
	return err
}

// fail writes the page that says what an admin has to do, and logs why the sign-in failed.
func (c *Company) fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *pageError
	switch {
	case errors.As(err, &f):
	case errors.Is(err, store.ErrNotFound):
		f = &pageError{http.StatusNotFound, store.Textf("No identity provider is set up here. An admin can set one with nizectl identity oidc set."), err}
	default:
		f = &pageError{http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."), err}
	}
	level := c.Log.Warn
	if f.status == http.StatusInternalServerError {
		level = c.Log.Error
	}
	level("a sign-in with the identity provider failed", "err", f.err, "status", f.status)
	c.SignIn.Problem(w, r, f.status, f.text)
}

// logout handles a logout token of the provider (OpenID Connect Back-Channel Logout).
func (c *Company) logout(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if !c.logouts.Take(signin.Address(r), c.Now()) {
		failure.Text.Write(w, &api.Error{Code: "rate_limited", Message: "too many sign-outs", Retry: 60})
		return
	}
	ended, err := c.endSessions(r.Context(), r.PostFormValue("logout_token"))
	var f *pageError
	switch {
	case err == nil:
		c.Log.Info("the identity provider signed a person out", "browsers", ended)
		w.WriteHeader(http.StatusOK)
	case errors.As(err, &f):
		c.Log.Warn("a sign-out of the identity provider was refused", "err", err)
		failure.Text.Write(w, &api.Error{Code: "invalid_request", Message: `{"error":"invalid_request"}`})
	default:
		c.Log.Error("signing a person out for the identity provider", "err", err)
		failure.Text.Write(w, &api.Error{Code: "server_error", Message: `{"error":"server_error"}`})
	}
}

// endSessions ends the browser sessions that a logout token names, and returns their
// number.
func (c *Company) endSessions(ctx context.Context, raw string) (ended int, err error) {
	m, err := c.current(ctx)
	if err != nil {
		return 0, err
	}
	t, err := m.verifier.VerifyLogout(oidc.ClientContext(ctx, m.http), raw)
	if err != nil {
		if fresh := c.renewed(ctx, m); fresh != m {
			m = fresh
			t, err = m.verifier.VerifyLogout(oidc.ClientContext(ctx, m.http), raw)
		}
	}
	switch {
	case err != nil:
		return 0, m.untrusted(err)
	case t.IssuedAt.After(c.Now().Add(skew)) || t.Expiry.After(c.Now().Add(time.Hour)):
		return 0, m.untrusted(errors.New("the logout token is valid too late or too long"))
	}
	err = c.Store.UseOnce(ctx, oauth.HashOf("oidc logout "+t.TokenID), t.Expiry.Add(skew))
	if errors.Is(err, store.ErrDecided) {
		return 0, m.untrusted(errors.New("the logout token was used before"))
	}
	if err != nil {
		return 0, err
	}
	query := oauth.TokenQuery{Kinds: []string{oauth.Browser}, Active: true, Limit: 200}
	who := ""
	if t.Subject != "" {
		who = identity.Of(m.Issuer, t.Subject)
		u, err := c.Store.FindUser(ctx, who)
		if errors.Is(err, store.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		query.User = u.ID
	}
	for {
		page, next, err := c.Store.PageTokens(ctx, query)
		if err != nil {
			return ended, err
		}
		for _, tok := range page {
			in := tok.SignedIn
			if in == nil || in.Identity == "" || who != "" && in.Identity != who || t.SessionID != "" && in.Session != t.SessionID {
				continue
			}
			if who == "" && !strings.HasPrefix(in.Identity, identity.Of(m.Issuer, "")) {
				continue // a session of another provider with the same id
			}
			if err := c.Store.RevokeSignIn(ctx, store.System, tok.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
				return ended, err
			}
			ended++
		}
		if query.Before = next; next == "" {
			return ended, nil
		}
	}
}
