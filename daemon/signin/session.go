package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nize/store"
	"nize/store/oauth"
	"nize/store/outage"
)

// The cookies. Over TLS each has the prefix __Host-, so that only this host can set it. On
// plain loopback, where several nizeds may run on one machine, the name ends with the port.
const (
	sessionCookie = "nize"
	requestCookie = "nize-auth"
)

// Sessions are browsers in which people are signed in. Each is a token with audience web,
// whose secret is in a cookie.
type Sessions struct {
	Tokens  store.Tokens
	Notices oauth.Notices
	Config  store.Config
	// Origin returns the origin at which a request's client reaches nize; "" if sign-in is
	// not allowed because the request came in clear text over a network.
	Origin func(*http.Request) string
	Now    func() time.Time
}

// CookieName returns the name of a cookie at an origin.
func CookieName(origin, base string) string {
	u, err := url.Parse(origin)
	if err == nil && u.Scheme == "https" {
		return "__Host-" + base
	}
	if err != nil || u.Port() == "" {
		return base + "-80"
	}
	return base + "-" + u.Port()
}

// ReadCookie returns the value of an origin's cookie, "" if there is none.
func ReadCookie(r *http.Request, origin, base string) string {
	c, err := r.Cookie(CookieName(origin, base))
	if err != nil {
		return ""
	}
	return c.Value
}

// SetCookie sets a cookie; a negative life deletes it.
func SetCookie(w http.ResponseWriter, origin, base, value string, site http.SameSite, life time.Duration) {
	age := int(life / time.Second)
	if life < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: CookieName(origin, base), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: site, Secure: strings.HasPrefix(origin, "https:"),
	})
}

// NewSecret returns 32 random bytes as text.
func NewSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b)
}

// Person returns the user who is signed in to the browser that sent a request. ok is false
// for a request from another site's page, since the browser doesn't send the cookie with
// it.
func (s *Sessions) Person(r *http.Request) (by store.Caller, ok bool) {
	by, err := s.Find(r)
	return by, err == nil
}

// Find is Person with an error, which distinguishes a person who is not signed in
// ([store.ErrRefused]) from an unreachable database.
func (s *Sessions) Find(r *http.Request) (by store.Caller, err error) {
	origin := s.Origin(r)
	secret := ReadCookie(r, origin, sessionCookie)
	if origin == "" || secret == "" {
		return by, store.ErrRefused
	}
	t, u, err := s.Tokens.Authenticate(r.Context(), oauth.HashOf(secret))
	if outage.Is(err) {
		return by, err
	}
	if err != nil || t.Audience != store.ForWeb || s.idle(t) {
		return by, store.ErrRefused
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnHTTP, Token: t.ID, Address: Address(r)}, nil
}

func (s *Sessions) idle(t store.Token) bool {
	last := t.LastUsed
	if last.IsZero() {
		last = t.Created
	}
	return s.Now().Sub(last) >= store.GetSpan(s.Config, "", "web.session_idle")
}

// Begin signs a person in at the request's browser. It always creates a new secret,
// whatever cookie the request has, to prevent session fixation. The person is notified
// where they confirmed the sign-in.
func (s *Sessions) Begin(ctx context.Context, w http.ResponseWriter, r *http.Request, asked oauth.Request) (store.Token, error) {
	return s.beginAs(ctx, w, r, asked, store.SignedIn{})
}

// beginAs is Begin for a person whom an identity provider may have authenticated.
func (s *Sessions) beginAs(ctx context.Context, w http.ResponseWriter, r *http.Request, asked oauth.Request, in store.SignedIn) (store.Token, error) {
	user := asked.User
	in.Address, in.Browser = Address(r), agent(r)
	origin := s.Origin(r)
	if origin == "" {
		return store.Token{}, errors.New("signing in needs TLS, or a browser on this machine")
	}
	if err := s.end(r, origin); err != nil {
		return store.Token{}, err
	}
	secret, now := NewSecret(), s.Now()
	life := store.GetSpan(s.Config, "", "web.session_max")
	id := store.NewID(now)
	t, err := s.Tokens.CreateToken(ctx, store.Caller{User: user, Surface: store.OnHTTP, Address: Address(r)}, store.Token{
		ID: id, Name: "browser:" + id, User: user, Hash: oauth.HashOf(secret), Audience: store.ForWeb, Created: now, Expires: now.Add(life),
		SignedIn: &in,
	}, false)
	if err != nil {
		return t, fmt.Errorf("beginning a session: %w", err)
	}
	err = s.Notices.PutNotice(ctx, oauth.Notice{ID: id, Kind: oauth.NewBrowser, User: user, Surface: asked.Surface, Address: Address(r), Agent: agent(r), Since: now})
	if err != nil {
		return t, fmt.Errorf("noting a new browser: %w", err)
	}
	SetCookie(w, origin, sessionCookie, secret, http.SameSiteStrictMode, life)
	return t, nil
}

// End signs out the request's browser.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) error {
	origin := s.Origin(r)
	SetCookie(w, origin, sessionCookie, "", http.SameSiteStrictMode, -1)
	return s.end(r, origin)
}

func (s *Sessions) end(r *http.Request, origin string) error {
	secret := ReadCookie(r, origin, sessionCookie)
	if secret == "" {
		return nil
	}
	t, u, err := s.Tokens.Authenticate(r.Context(), oauth.HashOf(secret))
	if err != nil || t.Audience != store.ForWeb {
		return nil // the session has already ended, or never existed
	}
	if _, err := s.Tokens.RevokeTokens(r.Context(), store.Caller{User: u.ID, Name: u.Name, Surface: store.OnHTTP, Address: Address(r)}, u.ID, t.Name); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// FormToken returns the CSRF token for forms shown to the browser with that cookie; no
// other site can know it.
func FormToken(cookie string) string {
	sum := sha256.Sum256([]byte("form\x00" + cookie))
	return hex.EncodeToString(sum[:16])
}

// Genuine reports whether a POST came from one of nize's own forms: the browser's headers
// say so, and it has the cookie's form token.
func Genuine(r *http.Request, cookie string) bool {
	if !sameSite(r) || cookie == "" {
		return false
	}
	return oauth.HashOf(r.PostFormValue("form")).Is(oauth.HashOf(FormToken(cookie)))
}

// Form returns the token for forms shown to a signed-in person.
func (s *Sessions) Form(r *http.Request) string {
	return FormToken(ReadCookie(r, s.Origin(r), sessionCookie))
}

// Genuine reports whether a POST came from a form shown to a signed-in person.
func (s *Sessions) Genuine(r *http.Request) bool {
	return Genuine(r, ReadCookie(r, s.Origin(r), sessionCookie))
}

// sameSite returns false if the browser's headers show that another site's page sent the
// request.
func sameSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// Address returns the address of a request's client, without the port.
func Address(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
