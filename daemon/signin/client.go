package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/limit"
	"nize/store"
	"nize/store/oauth"
	"nize/store/printable"
)

const (
	documentTime  = 5 * time.Second
	documentBytes = 64 << 10
	leastCached   = time.Minute
	mostCached    = 24 * time.Hour
	maxDocuments  = 1000 // cached documents
	maxRedirects  = 20
	maxName       = 80 // bytes of a client's name
)

// client is an OAuth client.
type client struct {
	ID, Name  string
	Host      string // host that vouches for the name; "" if the client chose it itself
	Redirects []string
}

// oauthError is an error in the form of RFC 6749.
type oauthError struct{ code, text string }

func (e *oauthError) Error() string { return e.code + ": " + e.text }

// clients looks up clients, by their documents or among the registered ones.
type clients struct {
	store  oauth.Store
	config store.Config
	http   *http.Client // with egress checks: it connects only to public addresses and follows no redirects
	now    func() time.Time
	// fetches limits how many documents a client address may cause to be fetched: no
	// sign-in is needed, and the caller chooses the URL.
	fetches limit.Limit

	mu    sync.Mutex // guards documents
	known map[string]document
}

type document struct {
	client client
	until  time.Time
}

// find returns a client by its id. It returns errTooMany if the address from which the
// request came exceeds its limit.
func (c *clients) find(ctx context.Context, id, from string) (client, error) {
	if strings.HasPrefix(id, "https://") {
		return c.document(ctx, id, from)
	}
	r, err := c.store.GetClient(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return client{}, &oauthError{"invalid_client", "the client is unknown; it may register again"}
	}
	return client{ID: r.ID, Name: r.Name, Redirects: r.Redirects}, err
}

// document returns a client whose id is the URL of its metadata document.
func (c *clients) document(ctx context.Context, id, from string) (client, error) {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.Path == "" || u.Path == "/" || u.User != nil || u.Fragment != "" || strings.Contains(u.Path, "/.") {
		return client{}, &oauthError{"invalid_client", "client_id is no address of a metadata document"}
	}
	c.mu.Lock()
	d, ok := c.known[id]
	c.mu.Unlock()
	if now := c.now(); ok && now.Before(d.until) && d.until.Sub(now) <= mostCached {
		return d.client, nil
	}
	if !c.fetches.Take(oauth.Network(from), c.now()) {
		return client{}, errTooMany
	}
	one, life, err := c.fetch(ctx, id)
	if err != nil {
		return client{}, &oauthError{"invalid_client", "the client's metadata document can't be used: " + err.Error()}
	}
	one.Host = u.Hostname()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxDocuments || c.known == nil {
		c.known = map[string]document{}
	}
	c.known[id] = document{one, c.now().Add(life)}
	return one, nil
}

// fetch reads a client's document. Its errors contain nothing of the server's response.
func (c *clients) fetch(ctx context.Context, id string) (one client, life time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return one, 0, errors.New("its address can't be read")
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return one, 0, errors.New("it can't be fetched")
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return one, 0, errors.New("it is no JSON, or its address answers otherwise than 200")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, documentBytes+1))
	if err != nil || len(body) > documentBytes {
		return one, 0, errors.New("it has more than 64 KiB, or can't be read")
	}
	var doc struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return one, 0, errors.New("it is no JSON of the right form")
	}
	switch {
	case doc.ID != id:
		return one, 0, errors.New("its client_id is not its address")
	case strings.TrimSpace(doc.Name) == "" || len(doc.Redirects) == 0:
		return one, 0, errors.New("it lacks client_name or redirect_uris")
	case doc.Method != "" && doc.Method != "none" && doc.Method != "private_key_jwt":
		return one, 0, errors.New("its token_endpoint_auth_method is not none")
	}
	one = client{ID: id, Name: nameOf(doc.Name), Redirects: c.allowed(doc.Redirects)}
	if len(one.Redirects) == 0 {
		return one, 0, errors.New("none of its redirect_uris is allowed here")
	}
	return one, cacheTime(res.Header), nil
}

// cacheTime returns how long a document is cached.
func cacheTime(h http.Header) time.Duration {
	for part := range strings.SplitSeq(strings.ToLower(h.Get("Cache-Control")), ",") {
		part = strings.TrimSpace(part)
		if part == "no-store" || part == "no-cache" {
			return leastCached
		}
		if text, ok := strings.CutPrefix(part, "max-age="); ok {
			if n, err := strconv.Atoi(text); err == nil {
				return min(max(time.Duration(min(n, int(mostCached/time.Second)))*time.Second, leastCached), mostCached)
			}
		}
	}
	return leastCached
}

// nameOf returns a name in a form that is safe to display.
func nameOf(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	return cmp.Or(store.Clip(strings.TrimSpace(printable.Escape(text)), maxName), "a client without a name")
}

// allowed returns the redirect URIs that are acceptable; it omits the others.
func (c *clients) allowed(list []string) []string {
	var kept []string
	for _, text := range list {
		if len(kept) < maxRedirects && c.allows(text) && !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}

func (c *clients) allows(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2000 || u.Fragment != "" || strings.Contains(text, "#") || u.User != nil || u.Opaque != "" {
		return false
	}
	for _, r := range text {
		if r <= ' ' || r >= 0x7f || r == '\\' || r == '"' || r == '<' || r == '>' {
			return false
		}
	}
	switch u.Scheme {
	case "https":
		return u.Hostname() != ""
	case "http":
		return isLoopback(u.Hostname())
	case "javascript", "data", "vbscript", "file", "blob", "about":
		return false
	}
	return slices.Contains(store.GetList(c.config, "", "oauth.redirect_schemes"), u.Scheme)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// redirect reports whether a request's redirect URI is a registered one: the same string
// or, if it leads to a program on the person's machine, the same except for the port.
func (one client) redirect(asked string) bool {
	if slices.Contains(one.Redirects, asked) {
		return true
	}
	u, err := url.Parse(asked)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) {
		return false
	}
	return slices.ContainsFunc(one.Redirects, func(known string) bool { return withoutPort(known) == withoutPort(asked) })
}

// withoutPort removes the port from a URL and leaves every other byte.
func withoutPort(text string) string {
	head, rest, _ := strings.Cut(text, "://")
	host, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, tail = rest[:i], rest[i:]
	}
	if name, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		if host = name; strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
	}
	return head + "://" + host + tail
}

// admits reports whether the setting oauth.clients admits a client.
func (c *clients) admits(one client, redirect string) bool {
	hosts := store.GetList(c.config, "", "oauth.clients")
	host := one.Host
	if u, err := url.Parse(redirect); host == "" && err == nil {
		host = u.Hostname()
	}
	return len(hosts) == 0 || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// register registers a client that has no document.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	if !store.GetBool(s.Config, "", "oauth.registration") {
		s.fail(w, &oauthError{"access_denied", "clients don't register here; use a client ID metadata document"})
		return
	}
	if !s.registrations.Take(oauth.Network(Address(r)), s.Now()) {
		w.Header().Set("Retry-After", "60")
		s.fail(w, &oauthError{"temporarily_unavailable", "too many registrations; try again in a minute"})
		return
	}
	var asked struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
		Scope     string   `json:"scope"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, documentBytes)).Decode(&asked); err != nil {
		s.fail(w, &oauthError{"invalid_client_metadata", "the body is no JSON of a client's metadata"})
		return
	}
	kept := s.clients.allowed(asked.Redirects)
	if len(kept) == 0 {
		s.fail(w, &oauthError{"invalid_redirect_uri", "none of redirect_uris is allowed: use https, or http on a loopback host"})
		return
	}
	one := oauth.Client{ID: "c_" + NewSecret()[:22], Name: nameOf(asked.Name), Redirects: kept, Address: Address(r)}
	leave, err := s.enterStranger(r.Context())
	if err != nil {
		return // the client has disconnected
	}
	err = s.Store.PutClient(r.Context(), Anybody(r), one)
	leave()
	if errors.Is(err, store.ErrRefused) {
		s.fail(w, &oauthError{"temporarily_unavailable", "too many clients have registered; try again tomorrow"})
		return
	} else if err != nil {
		s.internal(w, "registering a client", err)
		return
	}
	writeJSON(w, http.StatusCreated, struct {
		ID        string   `json:"client_id"`
		Issued    int64    `json:"client_id_issued_at"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
		Method    string   `json:"token_endpoint_auth_method"`
		Scope     string   `json:"scope"`
	}{one.ID, s.Now().Unix(), one.Name, kept, []string{"authorization_code", "refresh_token"}, []string{"code"}, "none", scopeMCP})
}

// Anybody returns the caller of a request that is not authenticated yet.
func Anybody(r *http.Request) store.Caller {
	by := store.System
	by.Surface, by.Address = store.OnHTTP, Address(r)
	return by
}

func (s *Server) fail(w http.ResponseWriter, e *oauthError) {
	w.Header().Set("Cache-Control", "no-store")
	failure.OAuth.Write(w, &api.Error{Code: e.code, Message: e.text})
}

func (s *Server) internal(w http.ResponseWriter, what string, err error) {
	s.Log.Error(what, "err", err)
	s.fail(w, &oauthError{"server_error", "internal error"})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		failure.Internal(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
