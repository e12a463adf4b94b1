// Package authtest is a test double of an authorization server in front of an MCP server.
//
// It doesn't depend on nize, and enforces the requirements of OAuth 2.1 and MCP on a
// client: an exactly matching registered redirect URL, PKCE with S256, the resource in both
// requests, single-use codes, and refresh tokens that are rotated and invalidate their
// family if an old one is reused. Every user with a browser is signed in immediately.
// [Faults] makes it misbehave.
package authtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Faults configures a service's misbehaviour and variants. They may be changed while it
// runs, with [Service.Set].
type Faults struct {
	// Edit changes a document before it is sent; name is resource or server.
	Edit func(name string, doc map[string]any)
	// Serve handles a request instead of the service if it returns true.
	Serve func(w http.ResponseWriter, r *http.Request) bool
	// Answer changes the parameters with which a browser is sent back.
	Answer func(q url.Values)
	// Life is the lifetime of access tokens; 0 means an hour.
	Life time.Duration
	// Scopes lists the scopes that the MCP server requires; may be nil.
	Scopes []string
	// NoRefresh issues no refresh tokens.
	NoRefresh bool
	// Refreshed is called after a refresh and before its response is sent.
	Refreshed func()
	// Answered is called when the whole response to a refresh has been sent.
	Answered func()
	// Plain makes it a service without support for resources: it refuses a request with a
	// resource.
	Plain bool
	// Open also accepts requests without a token.
	Open bool
	// Challenge, if set, replaces the WWW-Authenticate of a 401; empty means none.
	Challenge *string
	// Deny makes the MCP server refuse every token.
	Deny bool
	// Trusts makes it announce and accept assertions of an identity provider (RFC 7523). It
	// returns the person that an assertion is about.
	Trusts func(assertion, client string) (person string, err error)
}

// Service is a running authorization server.
type Service struct {
	URL string // its issuer
	MCP string // the server behind it
	// Close stops it.
	Close func()

	mu       sync.Mutex
	faults   Faults
	clients  map[string]client
	codes    map[string]grant
	access   map[string]grant // with the expiry
	refresh  map[string]grant
	families map[string]bool // valid families
	counts   map[string]int
}

type client struct {
	secret, method string
	redirects      []string
}

type grant struct {
	client, redirect, challenge, resource, family string
	person                                        string // of an assertion
	scopes                                        []string
	ends                                          time.Time
	used                                          bool
}

// New starts a service in front of the MCP server at upstream.
func New(upstream string) *Service {
	s := &Service{clients: map[string]client{}, codes: map[string]grant{}, access: map[string]grant{}, refresh: map[string]grant{}, families: map[string]bool{}, counts: map[string]int{}}
	to, err := url.Parse(upstream)
	if err != nil {
		panic(err) // a mistake in the test
	}
	behind := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = to.Scheme, to.Host, to.Host
		p.Out.URL.Path = to.Path
		p.Out.Header.Del("Authorization")
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.resource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	mux.Handle("/mcp", s.guard(behind))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.counts[r.Method+" "+r.URL.Path]++
		serve := s.faults.Serve
		s.mu.Unlock()
		if serve == nil || !serve(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	s.URL, s.MCP = web.URL, web.URL+"/mcp"
	s.Close = web.Close
	return s
}

// Set changes the faults.
func (s *Service) Set(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

func (s *Service) now() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Count returns the number of requests to a route, such as "POST /token", or to the MCP
// server by a person of an assertion, such as "as ana".
func (s *Service) Count(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[route]
}

// EndAccess expires all access tokens now.
func (s *Service) EndAccess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// EndAll ends every grant.
func (s *Service) EndAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.families)
}

// AddClient adds a client whose id an operator issues; without a secret it is public. It
// authenticates with the header, or with the given method.
func (s *Service) AddClient(id, secret, redirect string, method ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how := "client_secret_basic"
	switch {
	case secret == "":
		how = "none"
	case len(method) > 0:
		how = method[0]
	}
	s.clients[id] = client{secret, how, []string{redirect}}
}

// Clients returns the number of registered clients.
func (s *Service) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Families returns the number of valid grants.
func (s *Service) Families() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.families)
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake in the test
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has left
}

func fail(w http.ResponseWriter, code, text string) {
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": text})
}

func random(prefix string) string {
	b := make([]byte, 16)
	rand.Read(b)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

func (s *Service) send(w http.ResponseWriter, name string, doc map[string]any) {
	if edit := s.now().Edit; edit != nil {
		doc = maps.Clone(doc)
		edit(name, doc)
	}
	answer(w, http.StatusOK, doc)
}

func (s *Service) resource(w http.ResponseWriter, _ *http.Request) {
	doc := map[string]any{"resource": s.MCP, "authorization_servers": []string{s.URL}}
	if scopes := s.now().Scopes; scopes != nil {
		doc["scopes_supported"] = scopes
	}
	s.send(w, "resource", doc)
}

func (s *Service) metadata(w http.ResponseWriter, _ *http.Request) {
	doc := map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
	}
	if s.now().Trusts != nil {
		doc["authorization_grant_profiles_supported"] = []string{"urn:ietf:params:oauth:grant-profile:id-jag"}
	}
	s.send(w, "server", doc)
}

func (s *Service) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Kind      string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || len(m.Redirects) == 0 {
		fail(w, "invalid_client_metadata", "no redirect_uris")
		return
	}
	loopback := strings.HasPrefix(m.Redirects[0], "http://127.0.0.1:")
	if loopback != (m.Kind == "native") || !slices.Contains(m.Grants, "refresh_token") {
		fail(w, "invalid_client_metadata", "application_type or grant_types")
		return
	}
	id, c := random("client-"), client{method: m.Method, redirects: m.Redirects}
	got := map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": m.Method}
	if m.Method != "none" {
		c.secret = random("secret-")
		got["client_secret"], got["client_secret_expires_at"] = c.secret, 0
	}
	s.mu.Lock()
	s.clients[id] = c
	s.mu.Unlock()
	answer(w, http.StatusCreated, got)
}

func (s *Service) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	c, ok := s.clients[q.Get("client_id")]
	s.mu.Unlock()
	back, err := url.Parse(q.Get("redirect_uri"))
	if !ok || err != nil || !slices.Contains(c.redirects, q.Get("redirect_uri")) {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	a := url.Values{"state": {q.Get("state")}, "iss": {s.URL}}
	switch {
	case q.Get("response_type") != "code", len(q.Get("code_challenge")) != 43, q.Get("code_challenge_method") != "S256", len(q.Get("state")) < 32:
		a.Set("error", "invalid_request")
	case !s.isResource(q):
		a.Set("error", "invalid_target")
	default:
		code, family := random("code-"), random("family-")
		a.Set("code", code)
		s.mu.Lock()
		s.families[family] = true
		s.codes[code] = grant{client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), resource: q.Get("resource"), family: family, scopes: strings.Fields(q.Get("scope")), ends: time.Now().Add(time.Minute)}
		s.mu.Unlock()
	}
	if edit := s.now().Answer; edit != nil {
		edit(a)
	}
	back.RawQuery = a.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// isResource reports whether a request names the right resource for its token.
func (s *Service) isResource(q url.Values) bool {
	if s.now().Plain {
		return !q.Has("resource")
	}
	return q.Get("resource") == s.MCP
}

// caller returns the client of a request to the token endpoint.
func (s *Service) caller(r *http.Request) (id string, ok bool) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[id]
	return id, known && c.secret == secret && basic == (c.method == "client_secret_basic")
}

func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	id, ok := s.caller(r)
	if !ok {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	if _ = r.ParseForm(); !s.isResource(r.PostForm) {
		fail(w, "invalid_target", "resource is "+r.PostFormValue("resource"))
		return
	}
	f := s.now()
	s.mu.Lock()
	var g grant
	why := ""
	refreshed := false
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		g = s.codes[code]
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		switch {
		case g.client != id || time.Now().After(g.ends):
			why = "no such code"
		case g.used:
			delete(s.families, g.family)
			why = "the code was used"
		case g.redirect != r.PostFormValue("redirect_uri"):
			why = "another redirect_uri"
		case base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
			why = "the verifier is wrong"
		}
		used := g
		used.used = true
		s.codes[code] = used
	case "refresh_token":
		old := r.PostFormValue("refresh_token")
		g = s.refresh[old]
		switch {
		case g.client != id || !s.families[g.family]:
			why = "no such refresh token"
		case g.used:
			delete(s.families, g.family)
			why = "the refresh token was used before: its family ends"
		}
		used := g
		used.used = true
		s.refresh[old] = used
		refreshed = why == ""
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if f.Trusts == nil {
			why = "grant_type"
			break
		}
		person, err := f.Trusts(r.PostFormValue("assertion"), id)
		if err != nil {
			why = err.Error()
			break
		}
		g = grant{client: id, resource: s.MCP, family: random("family-"), scopes: strings.Fields(r.PostFormValue("scope")), person: person}
		s.families[g.family] = true
	default:
		why = "grant_type"
	}
	if why != "" {
		s.mu.Unlock()
		fail(w, "invalid_grant", why)
		return
	}
	life := f.Life
	if life == 0 {
		life = time.Hour
	}
	g.used, g.ends = false, time.Now().Add(life)
	access := random("access-")
	s.access[access] = g
	got := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": int(life / time.Second), "scope": strings.Join(g.scopes, " ")}
	if !f.NoRefresh {
		next := random("refresh-")
		s.refresh[next] = g
		got["refresh_token"] = next
	}
	s.mu.Unlock()
	if refreshed && f.Refreshed != nil {
		f.Refreshed()
	}
	answer(w, http.StatusOK, got)
	if refreshed && f.Answered != nil {
		_ = http.NewResponseController(w).Flush() // the client has left
		f.Answered()
	}
}

func (s *Service) revoke(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.caller(r); !ok {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.families, s.refresh[r.PostFormValue("token")].family)
	w.WriteHeader(http.StatusOK)
}

// guard accepts requests with a valid token for this server.
func (s *Service) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		f := s.now()
		s.mu.Lock()
		g, ok := s.access[bearer]
		ok = ok && s.families[g.family] && time.Now().Before(g.ends) && !f.Deny
		s.mu.Unlock()
		challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.URL)
		if len(f.Scopes) > 0 {
			challenge += fmt.Sprintf(`, scope="%s"`, strings.Join(f.Scopes, " "))
		}
		if f.Open && bearer == "" {
			next.ServeHTTP(w, r)
			return
		}
		if ok {
			s.mu.Lock()
			s.counts["as "+g.person]++
			s.mu.Unlock()
		}
		if !ok {
			switch {
			case f.Challenge == nil:
				w.Header().Set("WWW-Authenticate", challenge)
			case *f.Challenge != "":
				w.Header().Set("WWW-Authenticate", *f.Challenge)
			}
			answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
			return
		}
		for _, scope := range f.Scopes {
			if !slices.Contains(g.scopes, scope) {
				w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
				answer(w, http.StatusForbidden, map[string]string{"error": "insufficient_scope"})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
