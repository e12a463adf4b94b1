// Package oidctest is a strict OpenID Connect provider for tests.
//
// It compares registered redirect addresses byte for byte, requires PKCE and client
// authentication, and accepts a code once and only from its client. It shares no code with
// the client under test, so that a mistake in either shows.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are claims of a token or a document.
type Claims map[string]any

// Provider is a provider with one client.
type Provider struct {
	*httptest.Server
	Client, Secret string

	mu        sync.Mutex
	redirects []string
	key       *ecdsa.PrivateKey
	kid       int
	person    Claims
	userinfo  Claims
	codes     map[string]grant
	clients   map[string]string // by the issuer of an authorization server: nize's client id there
	access    map[string]bool
	ahead     time.Duration               // of its clock
	refresh   map[string]bool             // valid refresh tokens; nil gives none
	change    func(header, claims Claims) // of the next ID tokens
	raw       func(claims Claims) string  // instead of signing
	document  func(Claims)
	down      bool
	exchanges int
	keyReads  int
}

type grant struct{ redirect, nonce, challenge string }

// New starts a provider that accepts those redirect addresses.
func New(t testing.TB, redirects ...string) *Provider {
	p := &Provider{Client: "nize", Secret: "the secret of nize", redirects: redirects, codes: map[string]grant{}, access: map[string]bool{}, person: Claims{"sub": "1"}}
	p.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /auth", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /me", p.me)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Server.Close)
	return p
}

// Person sets the claims of the person who signs in next.
func (p *Provider) Person(c Claims) { p.set(func() { p.person, p.userinfo = c, nil }) }

// UserInfo sets claims that only the userinfo endpoint returns.
func (p *Provider) UserInfo(c Claims) { p.set(func() { p.userinfo = c }) }

// Register adds a redirect address.
func (p *Provider) Register(address string) {
	p.set(func() { p.redirects = append(p.redirects, address) })
}

// Change sets a function that changes the header and claims of ID tokens before signing.
func (p *Provider) Change(f func(header, claims Claims)) { p.set(func() { p.change = f }) }

// Raw sets a function that returns ID tokens instead of signing them. It must not call the
// provider.
func (p *Provider) Raw(f func(Claims) string) { p.set(func() { p.raw = f }) }

// Document sets a function that changes the discovery document.
func (p *Provider) Document(f func(Claims)) { p.set(func() { p.document = f }) }

// Down makes the provider answer every request with 503.
func (p *Provider) Down(down bool) { p.set(func() { p.down = down }) }

// Advance moves the provider's clock forward.
func (p *Provider) Advance(d time.Duration) { p.set(func() { p.ahead += d }) }

// Refreshes makes the provider give refresh tokens, which work once. Those that it gave are
// void if it doesn't any more.
func (p *Provider) Refreshes(on bool) {
	p.set(func() {
		p.refresh = nil
		if on {
			p.refresh = map[string]bool{}
		}
	})
}

// Allow makes the provider issue assertions for the authorization server with that issuer,
// where nize has that client id; "" forbids it.
func (p *Provider) Allow(issuer, client string) {
	p.set(func() {
		if p.clients == nil {
			p.clients = map[string]string{}
		}
		p.clients[issuer] = client
	})
}

// Rotate replaces the signing key.
func (p *Provider) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.set(func() { p.key, p.kid = key, p.kid+1 })
}

// Counts returns how many codes were exchanged and how often the keys were read.
func (p *Provider) Counts() (exchanges, keyReads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exchanges, p.keyReads
}

func (p *Provider) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// JWK returns the public key, as the provider publishes it.
func (p *Provider) JWK() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jwkLocked()
}

func (p *Provider) jwkLocked() jose.JSONWebKey {
	return jose.JSONWebKey{Key: p.key.Public(), KeyID: fmt.Sprint("key-", p.kid), Algorithm: "ES256", Use: "sig"}
}

// Sign signs claims; header may add to the token's header.
func (p *Provider) Sign(header, claims Claims) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signLocked(header, claims)
}

func (p *Provider) signLocked(header, claims Claims) string {
	opt := (&jose.SignerOptions{}).WithHeader("kid", p.jwkLocked().KeyID)
	for k, v := range header {
		opt = opt.WithHeader(jose.HeaderKey(k), v)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, opt)
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	doc := Claims{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/me",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "authorization_response_iss_parameter_supported": true,
	}
	p.mu.Lock()
	if p.document != nil {
		p.document(doc)
	}
	p.mu.Unlock()
	reply(w, http.StatusOK, doc)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.set(func() { p.keyReads++ })
	reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.JWK()}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	redirect := q.Get("redirect_uri")
	switch {
	case q.Get("client_id") != p.Client || !slices.Contains(p.redirects, redirect):
		http.Error(w, "unknown client or redirect_uri "+redirect, http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || !slices.Contains(strings.Fields(q.Get("scope")), "openid") || q.Get("state") == "" || q.Get("nonce") == "" ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		http.Error(w, "not an OpenID Connect request with PKCE: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = grant{redirect, q.Get("nonce"), q.Get("code_challenge")}
	http.Redirect(w, r, redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges++
	user, pass, ok := r.BasicAuth()
	user, _ = url.QueryUnescape(user)
	pass, _ = url.QueryUnescape(pass)
	if !ok || user != p.Client || pass != p.Secret {
		reply(w, http.StatusUnauthorized, Claims{"error": "invalid_client"})
		return
	}
	if r.PostFormValue("grant_type") == "refresh_token" {
		given := r.PostFormValue("refresh_token")
		if !p.refresh[given] {
			reply(w, http.StatusBadRequest, Claims{"error": "invalid_grant"})
			return
		}
		delete(p.refresh, given)
		p.answerLocked(w, "")
		return
	}
	if r.PostFormValue("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange" {
		p.exchangeLocked(w, r.PostForm)
		return
	}
	code := r.PostFormValue("code")
	g, ok := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != g.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
		reply(w, http.StatusBadRequest, Claims{"error": "invalid_grant"})
		return
	}
	p.answerLocked(w, g.nonce)
}

// exchangeLocked exchanges an ID token for an identity assertion authorization grant. p.mu
// must be held.
func (p *Provider) exchangeLocked(w http.ResponseWriter, f url.Values) {
	fail := func(code string) { reply(w, http.StatusBadRequest, Claims{"error": code}) }
	if f.Get("requested_token_type") != "urn:ietf:params:oauth:token-type:id-jag" || f.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token" || f.Get("resource") == "" {
		fail("invalid_request")
		return
	}
	var claims struct {
		Audience string `json:"aud"`
		Subject  string `json:"sub"`
		Expires  int64  `json:"exp"`
	}
	now := time.Now().Add(p.ahead)
	token, err := jose.ParseSignedCompact(f.Get("subject_token"), []jose.SignatureAlgorithm{jose.ES256})
	if err == nil {
		var body []byte
		if body, err = token.Verify(p.key.Public()); err == nil {
			err = json.Unmarshal(body, &claims)
		}
	}
	if err != nil || claims.Audience != p.Client || now.Unix() > claims.Expires {
		fail("invalid_grant")
		return
	}
	client := p.clients[f.Get("audience")]
	if client == "" {
		fail("access_denied")
		return
	}
	raw := p.signLocked(Claims{"typ": "oauth-id-jag+jwt"}, Claims{"iss": p.URL, "aud": f.Get("audience"), "sub": claims.Subject, "client_id": client, "resource": f.Get("resource"),
		"jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()})
	reply(w, http.StatusOK, Claims{"access_token": raw, "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A", "expires_in": 300})
}

// answerLocked gives tokens of the person. p.mu must be held.
func (p *Provider) answerLocked(w http.ResponseWriter, nonce string) {
	now := time.Now().Add(p.ahead)
	claims, header := Claims{"iss": p.URL, "aud": p.Client, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}, Claims{}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	maps.Copy(claims, p.person)
	if p.change != nil {
		p.change(header, claims)
	}
	raw := ""
	if p.raw != nil {
		raw = p.raw(claims)
	} else {
		raw = p.signLocked(header, claims)
	}
	access := rand.Text()
	p.access[access] = true
	given := Claims{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": raw}
	if p.refresh != nil {
		next := rand.Text()
		p.refresh[next] = true
		given["refresh_token"] = next
	}
	reply(w, http.StatusOK, given)
}

func (p *Provider) me(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		reply(w, http.StatusUnauthorized, Claims{"error": "invalid_token"})
		return
	}
	answer := Claims{"sub": p.person["sub"]}
	maps.Copy(answer, p.userinfo)
	reply(w, http.StatusOK, answer)
}
