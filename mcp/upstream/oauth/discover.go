package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"nize/store"
)

// Challenge is what a server says of signing in with a 401 or 403.
type Challenge struct {
	Bearer   bool   // it wants a bearer token
	Metadata string // where its own document is; "" where it does not say
	Scopes   []string
	Error    string // insufficient_scope, invalid_token …
}

// ParseChallenge reads WWW-Authenticate. What can't be read says nothing.
func ParseChallenge(headers []string) (c Challenge) {
	for _, h := range headers {
		if len(h) > 8<<10 {
			continue
		}
		list, err := oauthex.ParseWWWAuthenticate([]string{h})
		if err != nil {
			continue
		}
		for _, one := range list {
			if one.Scheme != "bearer" || c.Bearer {
				continue
			}
			c = Challenge{Bearer: true, Metadata: one.Params["resource_metadata"], Scopes: splitScopes(one.Params["scope"]), Error: one.Params["error"]}
		}
	}
	return c
}

// maxScopes is how many are asked for at once.
const maxScopes = 100

func splitScopes(text string) []string {
	list := strings.Fields(text)
	return list[:min(len(list), maxScopes)]
}

// hellos are first requests of the two wires. A server of one of them alone turns
// the other away before it asks who is there.
var hellos = []struct{ version, method, body string }{
	{"2026-07-28", "server/discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"nize","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{"2025-11-25", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"nize","version":"1"}}}`},
}

// Probe asks a server without a token what it wants of one. ok is false where
// it lets everybody in, and the challenge is then empty.
func (c *Client) Probe(ctx context.Context, server string) (ch Challenge, ok bool, err error) {
	for _, hello := range hellos {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, strings.NewReader(hello.body))
		if err != nil {
			return ch, false, fmt.Errorf("%w URL of the server", store.ErrInvalid)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", hello.version)
		if hello.method != "" {
			req.Header.Set("Mcp-Method", hello.method)
		}
		resp, err := c.HTTP.Do(req)
		if err != nil {
			return ch, false, hideURL(err)
		}
		_ = resp.Body.Close() // its head says it all
		if resp.StatusCode == http.StatusUnauthorized {
			return ParseChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
		}
	}
	return ch, false, nil
}

// Service is who signs people in for a server, as both documents say.
type Service struct {
	Resource      string   `json:"resource"` // what tokens are asked for; "" where an admin said who signs people in
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint,omitempty"`
	Revocation    string   `json:"revocation_endpoint,omitempty"`
	AuthMethods   []string `json:"token_endpoint_auth_methods,omitempty"` // of clients; nil where it does not say
	Documents     bool     `json:"client_id_documents,omitempty"`         // it takes the address of a document as a client's id
	NamesItself   bool     `json:"iss,omitempty"`                         // it promises iss with each answer
	Scopes        []string `json:"-"`                                     // to be asked for
}

// resourceMetadata is what is read of a protected resource's document.
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// serverMetadata is what is read of an authorization server's document.
type serverMetadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Methods       []string `json:"code_challenge_methods_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`
}

// Discover finds who signs people in for a server: by the document that its
// challenge names, else by the well-known one for its path, else by that of its
// host; and where it has none, as the protocol of 2025-03-26 had it: its own
// host, by metadata or by the paths of that time.
func (c *Client) Discover(ctx context.Context, server string, ch Challenge) (s Service, err error) {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return s, fmt.Errorf("%w URL of the server", store.ErrInvalid)
	}
	at.Fragment = ""
	res, err := c.resource(ctx, at, ch.Metadata)
	if err != nil {
		return s, err
	}
	if res == nil {
		return c.discoverOld(ctx, at, ch)
	}
	if len(res.Servers) == 0 {
		return s, errors.New("the server's document names nobody who signs people in (authorization_servers)")
	}
	issuer := res.Servers[0]
	meta, err := c.serverMetadata(ctx, issuer)
	switch {
	case err != nil:
		return s, fmt.Errorf("asking %s who signs people in: %w", store.Clip(issuer, 200), err)
	case meta == nil:
		return s, fmt.Errorf("%s, which signs people in, has none of the well-known documents", store.Clip(issuer, 200))
	}
	if err := checkService(meta, issuer); err != nil {
		return s, err
	}
	s = meta.service(res.Resource)
	s.Scopes = wantedScopes(ch.Scopes, res.Scopes, meta.Scopes)
	return s, nil
}

// wantedScopes are those of the challenge, else all that the server has, else
// none; and what a refresh token needs, where there is such a scope.
func wantedScopes(challenge, resource, offered []string) []string {
	scopes := challenge
	if len(scopes) == 0 {
		scopes = resource
	}
	scopes = slices.Clone(scopes[:min(len(scopes), maxScopes)])
	return WithOffline(scopes, offered)
}

// offline is the scope that OpenID Connect has for refresh tokens.
const offline = "offline_access"

// WithOffline adds the scope for refresh tokens where it is offered.
func WithOffline(scopes, offered []string) []string {
	if slices.Contains(offered, offline) && !slices.Contains(scopes, offline) {
		return append(scopes, offline)
	}
	return scopes
}

func (m *serverMetadata) service(resource string) Service {
	return Service{Resource: resource, Issuer: m.Issuer, Authorization: m.Authorization, Token: m.Token, Registration: m.Registration, Revocation: m.Revocation,
		AuthMethods: m.AuthMethods, Documents: m.Documents, NamesItself: m.NamesItself}
}

// resource finds the server's own document; nil where it has none.
func (c *Client) resource(ctx context.Context, at *url.URL, named string) (*resourceMetadata, error) {
	origin := url.URL{Scheme: at.Scheme, Host: at.Host}
	self := at.String()
	type candidate struct {
		address string
		root    bool
	}
	var list []candidate
	if named != "" {
		list = append(list, candidate{address: named})
	}
	const known = "/.well-known/oauth-protected-resource"
	if path := strings.TrimSuffix(at.EscapedPath(), "/"); path != "" {
		list = append(list, candidate{address: origin.String() + known + path})
	}
	list = append(list, candidate{origin.String() + known, true})
	for _, one := range list {
		if _, err := checkAddress("address of the server's document", one.address); err != nil {
			if one.address != named && at.Scheme == "http" { // the server is reached so, too
				continue
			}
			return nil, err
		}
		var doc resourceMetadata
		err := c.getJSON(ctx, one.address, &doc)
		if status := statusError(0); errors.As(err, &status) && status >= 400 && status < 500 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", store.Clip(one.address, 200), err)
		}
		if !sameResource(doc.Resource, self) && !(one.root && sameResource(doc.Resource, origin.String())) {
			return nil, fmt.Errorf("%s is about %q and not about this server: a token for it must not be sent here", store.Clip(one.address, 200), store.Clip(doc.Resource, 200))
		}
		return &doc, nil
	}
	return nil, nil
}

// sameResource compares two identifiers byte for byte, but for the slash that an
// address without a path may have.
func sameResource(a, b string) bool {
	return a == b || strings.TrimSuffix(a, "/") == b && strings.Count(b, "/") == 2 || strings.TrimSuffix(b, "/") == a && strings.Count(a, "/") == 2
}

// serverMetadata finds the document of an issuer in the protocol's order; nil
// where there is none.
func (c *Client) serverMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	u, err := checkAddress("issuer", issuer)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, fmt.Errorf("%w issuer %q: it has a query", store.ErrInvalid, store.Clip(issuer, 200))
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	list := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		list = append(list, origin+path+"/.well-known/openid-configuration")
	}
	for _, address := range list {
		var doc serverMetadata
		err := c.getJSON(ctx, address, &doc)
		if status := statusError(0); errors.As(err, &status) && status >= 400 && status < 500 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &doc, nil
	}
	return nil, nil
}

// checkService refuses the document of an authorization server that is not the
// one that was asked for, or with which signing in would not be safe.
func checkService(m *serverMetadata, issuer string) error {
	if m.Issuer != issuer {
		return fmt.Errorf("the document of %s is that of another issuer, %q: nothing of it is used", store.Clip(issuer, 200), store.Clip(m.Issuer, 200))
	}
	for _, e := range []struct {
		what, address string
		needed        bool
	}{{"authorization_endpoint", m.Authorization, true}, {"token_endpoint", m.Token, true}, {"registration_endpoint", m.Registration, false}, {"revocation_endpoint", m.Revocation, false}} {
		if e.address == "" && !e.needed {
			continue
		}
		if _, err := checkAddress(e.what, e.address); err != nil {
			return err
		}
	}
	if !slices.Contains(m.Methods, "S256") {
		return fmt.Errorf("%s does not say that it supports PKCE with S256 (code_challenge_methods_supported): a stolen code could be used, so nize does not sign in there", store.Clip(issuer, 200))
	}
	return nil
}

// discoverOld is discovery as 2025-03-26 had it, for a server without a document
// of its own: it signs people in itself.
func (c *Client) discoverOld(ctx context.Context, at *url.URL, ch Challenge) (s Service, err error) {
	origin := at.Scheme + "://" + at.Host
	if _, err := checkAddress("URL of the server", origin); err != nil {
		return s, err
	}
	var doc serverMetadata
	err = c.getJSON(ctx, origin+"/.well-known/oauth-authorization-server", &doc)
	status := statusError(0)
	switch {
	case errors.As(err, &status) && status >= 400 && status < 500:
		return Service{Resource: at.String(), Issuer: origin, Authorization: origin + "/authorize", Token: origin + "/token", Registration: origin + "/register", Scopes: ch.Scopes}, nil
	case err != nil:
		return s, fmt.Errorf("asking %s who signs people in: %w", origin, err)
	}
	issuer := origin
	if doc.Issuer == origin+"/" {
		issuer = doc.Issuer
	}
	if err := checkService(&doc, issuer); err != nil {
		return s, err
	}
	s = doc.service(at.String())
	s.Scopes = wantedScopes(ch.Scopes, nil, doc.Scopes)
	return s, nil
}
