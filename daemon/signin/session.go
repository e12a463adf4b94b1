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

// The cookies. Each has the prefix __Host- where pages come over TLS, so that
// nobody but this very host can set it; on plain loopback, where one machine may
// run several nizeds, the port stands behind its name.
const (
	sessionCookie = "nize"
	requestCookie = "nize-auth"
)

// Sessions are browsers in which people are signed in. Each is a token of the
// audience web, whose secret is a cookie.
type Sessions struct {
	Tokens  store.Tokens
	Notices oauth.Notices
	Config  store.Config
	// Origin is the address under which a request's client knows nize; "" where
	// nobody may sign in, since it came in clear text over a network.
	Origin func(*http.Request) string
	Now    func() time.Time
}

// CookieName is how a cookie is called at an origin.
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

// ReadCookie is the value of a cookie of an origin, "" where there is none.
func ReadCookie(r *http.Request, origin, base string) string {
	c, err := r.Cookie(CookieName(origin, base))
	if err != nil {
		return ""
	}
	return c.Value
}

// SetCookie sets one; a negative life deletes it.
func SetCookie(w http.ResponseWriter, origin, base, value string, site http.SameSite, life time.Duration) {
	age := int(life / time.Second)
	if life < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: CookieName(origin, base), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: site, Secure: strings.HasPrefix(origin, "https:"),
	})
}

// NewSecret is 32 random bytes as text.
func NewSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b)
}

// Person is who is signed in where a request comes from. Nobody is where it
// comes from a page of another site.
func (s *Sessions) Person(r *http.Request) (by store.Caller, ok bool) {
	by, err := s.Find(r)
	return by, err == nil
}

// Find is Person that tells who is not signed in ([store.ErrRefused]) from a database
// that could not be asked.
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

// Begin signs a person in at the browser that asks: always under a new secret,
// whatever cookie it came with, so that nobody can have put it there before. The
// person is told of it where they confirmed it.
func (s *Sessions) Begin(ctx context.Context, w http.ResponseWriter, r *http.Request, asked oauth.Request) (store.Token, error) {
	return s.beginAs(ctx, w, r, asked, store.SignedIn{})
}

// beginAs is Begin for a person whom an identity provider may have signed in.
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

// End signs out at the browser that asks.
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
		return nil // it has ended, or never was
	}
	if _, err := s.Tokens.RevokeTokens(r.Context(), store.Caller{User: u.ID, Name: u.Name, Surface: store.OnHTTP, Address: Address(r)}, u.ID, t.Name); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// FormToken is what a form carries that a page shows to the browser which has a
// cookie: no other site can know it.
func FormToken(cookie string) string {
	sum := sha256.Sum256([]byte("form\x00" + cookie))
	return hex.EncodeToString(sum[:16])
}

// Genuine says whether a POST came from a form of nize's own: its browser says
// so, and it carries the token of the cookie.
func Genuine(r *http.Request, cookie string) bool {
	if !sameSite(r) || cookie == "" {
		return false
	}
	return oauth.HashOf(r.PostFormValue("form")).Is(oauth.HashOf(FormToken(cookie)))
}

// Form is the token of the forms that a signed-in person is shown.
func (s *Sessions) Form(r *http.Request) string {
	return FormToken(ReadCookie(r, s.Origin(r), sessionCookie))
}

// Genuine says whether a POST came from a form that a signed-in person was shown.
func (s *Sessions) Genuine(r *http.Request) bool {
	return Genuine(r, ReadCookie(r, s.Origin(r), sessionCookie))
}

// sameSite is false where a browser says that a page of another site asks.
func sameSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// Address is where a request came from, without the port.
func Address(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
