package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"nize/store"
)

// Request is one authorization request in progress.
type Request struct {
	Service  Service
	Client   Registration
	Redirect string
	Scopes   []string
	State    string

	verifier string
}

// Begin returns a request with a new state and verifier.
func Begin(s Service, r Registration, redirect string, scopes []string) *Request {
	return &Request{Service: s, Client: r, Redirect: redirect, Scopes: scopes, State: RandomText(), verifier: RandomText()}
}

// RandomText returns 32 random bytes as text.
func RandomText() string { return oauth2.GenerateVerifier() }

// URL returns the URL that the person's browser opens.
func (r *Request) URL() string {
	u, err := url.Parse(r.Service.Authorization)
	if err != nil {
		panic(err) // unreachable: Discover has checked it
	}
	conf := oauth2.Config{ClientID: r.Client.ID, RedirectURL: r.Redirect, Scopes: r.Scopes}
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(r.verifier)}
	if r.Service.Resource != "" && !r.Service.NoResource {
		opts = append(opts, oauth2.SetAuthURLParam("resource", r.Service.Resource))
	}
	if slices.Contains(r.Scopes, offline) { // without it OpenID services omit the scope
		opts = append(opts, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	own, err := url.ParseQuery(strings.TrimPrefix(conf.AuthCodeURL(r.State, opts...), "?"))
	if err != nil {
		panic(err) // unreachable: it was just encoded
	}
	q := u.Query() // oauth2.Config would add ours to parameters of the same name
	maps.Copy(q, own)
	u.RawQuery = q.Encode()
	return u.String()
}

// ErrIssuer is returned if a response is from another authorization server than the one
// that was asked. No other part of the response may be used or shown.
var ErrIssuer = errors.New("the answer is from another sign-in service than the one that was asked; nothing of it was used")

// Finish exchanges the parameters with which a browser returned for tokens. The caller must
// have compared the state.
func (c *Client) Finish(ctx context.Context, r *Request, answer url.Values, now time.Time) (g Grant, err error) {
	iss, came := answer["iss"]
	if came && (len(iss) != 1 || iss[0] != r.Service.Issuer) || !came && r.Service.NamesItself {
		return g, ErrIssuer
	}
	if code := answer.Get("error"); code != "" {
		return g, &Error{code, answer.Get("error_description")}
	}
	code := answer.Get("code")
	if code == "" {
		return g, errors.New("the answer has neither a code nor an error")
	}
	g = Grant{Service: r.Service, Client: r.Client}
	err = c.token(ctx, &g, r.Scopes, now, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {r.Redirect}, "code_verifier": {r.verifier},
	})
	return g, err
}

// Grant is the result of a login: tokens for one resource, from one issuer, for one client.
// Its tokens can't be printed.
type Grant struct {
	Service Service
	Client  Registration
	Access  store.Secret
	Refresh store.Secret // zero if there is none
	Scopes  []string
	Expires time.Time // expiry of Access; zero if unknown
	Since   time.Time // time of the login
	// Wanted lists scopes that the server has required since: the next login requests them,
	// too.
	Wanted []string
	// Lost is the reason why the login is no longer usable; "" while it is.
	Lost string
	// Person is the user for whom the company's identity provider gave the grant, without a
	// browser; "" for a login. It is renewed by asking the provider again.
	Person string
}

// sealed is the stored form of a grant or a registration. It is not used elsewhere, because
// its tokens are in clear text.
type sealed struct {
	Service Service      `json:"service"`
	Client  sealedClient `json:"client"`
	Access  string       `json:"access_token"`
	Refresh string       `json:"refresh_token,omitempty"`
	Scopes  []string     `json:"scopes,omitempty"`
	Expires time.Time    `json:"expires,omitzero"`
	Since   time.Time    `json:"since"`
	Wanted  []string     `json:"wanted,omitempty"`
	Lost    string       `json:"lost,omitempty"`
	Person  string       `json:"person,omitempty"`
}

type sealedClient struct {
	Issuer   string    `json:"issuer"`
	Redirect string    `json:"redirect_uri"`
	ID       string    `json:"client_id"`
	Secret   string    `json:"client_secret,omitempty"`
	Method   string    `json:"method"`
	Given    bool      `json:"given,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Unlisted bool      `json:"pkce_unlisted,omitempty"`

	NoResource bool `json:"no_resource,omitempty"`
	Company    bool `json:"company,omitempty"`
}

func (r Registration) plain() sealedClient {
	return sealedClient{r.Issuer, r.Redirect, r.ID, r.Secret.Reveal(), r.Method, r.Given, r.Expires, r.Unlisted, r.NoResource, r.Company}
}

func (p sealedClient) open() Registration {
	return Registration{p.Issuer, p.Redirect, p.ID, store.NewSecret(p.Secret), p.Method, p.Given, p.Expires, p.Unlisted, p.NoResource, p.Company}
}

// Seal returns the grant as a credential's value.
func (g Grant) Seal() (store.Secret, error) {
	b, err := json.Marshal(sealed{g.Service, g.Client.plain(), g.Access.Reveal(), g.Refresh.Reveal(), g.Scopes, g.Expires, g.Since, g.Wanted, g.Lost, g.Person})
	return store.NewSecret(string(b)), err
}

// OpenGrant reads the result of Seal. It returns ErrNotFound for any other value, such as a
// key that was set under the same name.
func OpenGrant(s store.Secret) (Grant, error) {
	var p sealed
	if json.Unmarshal([]byte(s.Reveal()), &p) != nil || p.Service.Issuer == "" || p.Client.ID == "" {
		return Grant{}, fmt.Errorf("login %w", store.ErrNotFound)
	}
	return Grant{p.Service, p.Client.open(), store.NewSecret(p.Access), store.NewSecret(p.Refresh), p.Scopes, p.Expires, p.Since, p.Wanted, p.Lost, p.Person}, nil
}

// SealRegistrations returns a list of registrations as a credential's value.
func SealRegistrations(list []Registration) (store.Secret, error) {
	plain := make([]sealedClient, len(list))
	for i, r := range list {
		plain[i] = r.plain()
	}
	b, err := json.Marshal(plain)
	return store.NewSecret(string(b)), err
}

// OpenRegistrations reads the result of SealRegistrations. It returns nil for any other
// value.
func OpenRegistrations(s store.Secret) (list []Registration) {
	var plain []sealedClient
	if json.Unmarshal([]byte(s.Reveal()), &plain) != nil {
		return nil
	}
	for _, p := range plain {
		list = append(list, p.open())
	}
	return list
}

// early is how long before its expiry a token is refreshed.
const early = time.Minute

// Due reports whether the access token must be refreshed before it is used.
func (g Grant) Due(now time.Time) bool {
	return (!g.Refresh.IsZero() || g.Person != "") && !g.Expires.IsZero() && !now.Before(g.Expires.Add(-early))
}

// Renew returns the grant with fresh tokens. If the authorization server rotates refresh
// tokens, the old one becomes invalid, so store the result before using it.
func (c *Client) Renew(ctx context.Context, g Grant, now time.Time) (Grant, error) {
	err := c.token(ctx, &g, g.Scopes, now, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh.Reveal()}})
	return g, err
}

// token calls the token endpoint and stores the tokens in g.
func (c *Client) token(ctx context.Context, g *Grant, asked []string, now time.Time, form url.Values) error {
	if g.Service.Resource != "" && !g.Service.NoResource {
		form.Set("resource", g.Service.Resource)
	}
	status, body, err := c.post(ctx, g, g.Service.Token, form)
	if err == nil && g.Client.Method == authBasic && !g.Client.Secret.IsZero() && refusesBasic(body) && (g.Service.AuthMethods == nil || slices.Contains(g.Service.AuthMethods, authPost)) {
		// Some services only read the secret from the form, whatever they declare. It is
		// sent to the same URL, and the refused request has consumed nothing.
		g.Client.Method = authPost
		if status, body, err = c.post(ctx, g, g.Service.Token, form); err != nil || refusesBasic(body) {
			g.Client.Method = authBasic
		}
	}
	if err != nil {
		return fmt.Errorf("asking %s for a token: %w", g.Service.Issuer, err)
	}
	got, err := readTokens(status, body)
	switch {
	case err != nil:
		return fmt.Errorf("asking %s for a token: %w", g.Service.Issuer, err)
	case got.access == "" && looksLikePage(body):
		return fmt.Errorf("%s answered with a web page and without an access token", g.Service.Issuer)
	case got.access == "":
		return fmt.Errorf("%s answered without an access token", g.Service.Issuer)
	case !isBearer(got.kind):
		return fmt.Errorf("%s gave a token of the type %q, which nize can't send", g.Service.Issuer, store.Clip(got.kind, 40))
	case strings.ContainsFunc(got.access, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fmt.Errorf("%s gave a token that can't be sent in a header", g.Service.Issuer)
	}
	g.Access, g.Lost, g.Expires = store.NewSecret(got.access), "", time.Time{}
	if got.refresh != "" {
		g.Refresh = store.NewSecret(got.refresh)
	}
	if got.seconds > 0 {
		g.Expires = now.Add(time.Duration(min(got.seconds, 10*365*24*3600) * float64(time.Second)))
	}
	if g.Scopes = asked; got.scopes != nil {
		g.Scopes = got.scopes
	}
	return nil
}

// refusesBasic reports whether a token endpoint ignored the client in the header.
func refusesBasic(body []byte) bool {
	err := errorIn(body)
	var e *Error
	return IsCode(err, "invalid_client") || errors.As(err, &e) && e.Code == "invalid_request" && strings.Contains(e.Description, "client")
}

// isBearer reports whether a token of that type is sent as it is. Other types require a key
// or a signature.
func isBearer(kind string) bool {
	switch strings.ToLower(strings.ReplaceAll(kind, " ", "")) {
	case "", "bearer", "bearertoken", "jwt", "access_token", "urn:ietf:params:oauth:token-type:access_token", "user", "bot": // the last two are Slack's
		return true
	}
	return false
}

// post sends a form as the client of the grant.
func (c *Client) post(ctx context.Context, g *Grant, address string, form url.Values) (status int, body []byte, err error) {
	if _, err := checkAddress("endpoint", address); err != nil {
		return 0, nil, err
	}
	if g.Client.Method != authBasic {
		form.Set("client_id", g.Client.ID)
	}
	if g.Client.Method == authPost {
		form.Set("client_secret", g.Client.Secret.Reveal())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, fmt.Errorf("%w endpoint", store.ErrInvalid)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.Client.Method == authBasic {
		req.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret.Reveal()))
	}
	status, _, body, err = c.do(req)
	return status, body, err
}

// Revoke revokes a grant. It returns ok false if the authorization server doesn't support
// that.
func (c *Client) Revoke(ctx context.Context, g Grant) (ok bool, err error) {
	if g.Service.Revocation == "" {
		return false, nil
	}
	token, hint := g.Refresh, "refresh_token"
	if token.IsZero() {
		token, hint = g.Access, "access_token"
	}
	status, body, err := c.post(ctx, &g, g.Service.Revocation, url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}})
	if err == nil && status/100 != 2 {
		err = refusal(status, body)
	}
	if err != nil {
		return true, fmt.Errorf("revoking at %s: %w", g.Service.Issuer, err)
	}
	return true, nil
}
