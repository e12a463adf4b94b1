package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"nize/store"
)

// A document is searched at several URLs, in the order of the standards. If a URL returns
// no usable document (a web page, an error, a redirect, another document), the next one is
// tried. If none has the right document, the first problem found is the error.
//
// The right document is recognized by its content, not by its URL: it must be about this
// server, or from this issuer. A document of another issuer is not used. If there is no
// right one, the issuer named in it is queried once, and used only if its own document is
// right: a server that may choose the first issuer may just as well choose the second, and
// no address is taken from the first document.

// Paths of documents, below an origin.
const (
	knownResource = "/.well-known/oauth-protected-resource"
	knownServer   = "/.well-known/oauth-authorization-server"
	knownOpenID   = "/.well-known/openid-configuration"
)

// maxIssuers is how many of the services that one document names are queried.
const maxIssuers = 5

// text is a string; it is empty if the value is missing, null or of another type.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// texts is a list of strings, or one string of words.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var list []text
	var one string
	switch {
	case json.Unmarshal(b, &list) == nil:
		for _, s := range list {
			if s != "" {
				*t = append(*t, string(s))
			}
		}
	case json.Unmarshal(b, &one) == nil:
		*t = strings.Fields(one)
	}
	return nil
}

// flag is a boolean, or a string that contains one.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	*f = flag(string(b) == "true" || strings.EqualFold(string(b), `"true"`))
	return nil
}

// resourceMetadata holds the fields that are read from a protected resource's document.
type resourceMetadata struct {
	Resource text  `json:"resource"`
	Servers  texts `json:"authorization_servers"`
	Scopes   texts `json:"scopes_supported"`
}

// serverMetadata holds the fields that are read from an authorization server's document.
type serverMetadata struct {
	Issuer        text  `json:"issuer"`
	Authorization text  `json:"authorization_endpoint"`
	Token         text  `json:"token_endpoint"`
	Registration  text  `json:"registration_endpoint"`
	Revocation    text  `json:"revocation_endpoint"`
	Methods       texts `json:"code_challenge_methods_supported"`
	AuthMethods   texts `json:"token_endpoint_auth_methods_supported"`
	Scopes        texts `json:"scopes_supported"`
	Documents     flag  `json:"client_id_metadata_document_supported"`
	NamesItself   flag  `json:"authorization_response_iss_parameter_supported"`
	Grants        texts `json:"grant_types_supported"`
	Profiles      texts `json:"authorization_grant_profiles_supported"`
}

func (m *serverMetadata) service(resource string) Service {
	return Service{Resource: resource, Issuer: string(m.Issuer), Authorization: string(m.Authorization), Token: string(m.Token), Registration: string(m.Registration), Revocation: string(m.Revocation),
		AuthMethods: m.AuthMethods, Documents: bool(m.Documents), NamesItself: bool(m.NamesItself), PKCEUnlisted: !m.listsPKCE(), Assertions: m.takesAssertions()}
}

func (m *serverMetadata) listsPKCE() bool {
	return slices.ContainsFunc(m.Methods, func(method string) bool { return strings.EqualFold(method, "S256") })
}

// Discover finds the authorization server of a server: with the document that its challenge
// names, or else with the well-known ones of its host. If it has none, Discover follows the
// protocol of 2025-03-26: the server's own host, with metadata or the default paths of that
// version. unlisted, if not nil, reports whether an issuer may be used that doesn't list
// PKCE with S256.
func (c *Client) Discover(ctx context.Context, server string, ch Challenge, unlisted func(issuer string) bool) (s Service, err error) {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return s, fmt.Errorf("%w URL of the server", store.ErrInvalid)
	}
	at.Fragment = ""
	d := &discovery{Client: c, server: at, origin: at.Scheme + "://" + at.Host, unlisted: unlisted}
	res, err := d.resource(ctx, ch.Metadata)
	if err != nil {
		return s, err
	}
	if res == nil {
		return d.withoutResource(ctx, ch)
	}
	if len(res.Servers) == 0 { // its own host is used if a document there says so
		if s, err = d.withoutResource(ctx, ch); err != nil || s.Guessed {
			return Service{}, errors.Join(errors.New("the server's document names no authorization server (authorization_servers)"), err)
		}
		s.Resource, s.Scopes = string(res.Resource), wantedScopes(ch.Scopes, res.Scopes, s.offered)
		return s, nil
	}
	var first error
	for _, issuer := range res.Servers[:min(len(res.Servers), maxIssuers)] {
		meta, err := d.service(ctx, issuer)
		if err == nil && meta == nil {
			err = fmt.Errorf("the authorization server %s has none of the well-known documents", store.Clip(issuer, 200))
		}
		if err == nil {
			s = meta.service(string(res.Resource))
			s.Scopes = wantedScopes(ch.Scopes, res.Scopes, meta.Scopes)
			return s, nil
		}
		if first == nil {
			first = err
		}
	}
	return s, first
}

// discovery is one search.
type discovery struct {
	*Client
	server   *url.URL
	origin   string
	unlisted func(issuer string) bool
	trouble  error // from a URL whose response was not a plain "not found"
}

// try fetches a document and reports whether there is one. It stores any other problem in
// trouble, unless it is a plain "not found".
func (d *discovery) try(ctx context.Context, address string, into any) (found, unreachable bool) {
	err := d.getJSON(ctx, address, into)
	if err == nil {
		return true, false
	}
	if status := statusError(0); !errors.As(err, &status) || status < 400 || status >= 500 {
		d.note(fmt.Errorf("%s: %w", store.Clip(address, 200), err))
	}
	var op *net.OpError
	return false, errors.As(err, &op) && op.Op == "dial" || ctx.Err() != nil
}

func (d *discovery) note(err error) {
	if d.trouble == nil {
		d.trouble = err
	}
}

// place is a URL where a server's document may be. Documents below the well-known paths of
// a host's root belong to the host's owner; others may belong to a user who controls only
// one path of a shared host.
type place struct {
	address string
	owners  bool
}

// resourcePlaces returns the possible URLs of the server's own document.
func (d *discovery) resourcePlaces(named string) (list []place) {
	add := func(address string) {
		owners := address == d.origin+knownResource || strings.HasPrefix(address, d.origin+knownResource+"/")
		if !slices.ContainsFunc(list, func(p place) bool { return p.address == address }) {
			list = append(list, place{address, owners})
		}
	}
	if named != "" {
		if u, err := d.server.Parse(named); err != nil {
			d.note(fmt.Errorf("the address of the server's document in its challenge, %q, can't be read", store.Clip(named, 200)))
		} else {
			add(u.String())
		}
	}
	path := strings.TrimSuffix(d.server.EscapedPath(), "/")
	if path != "" {
		add(d.origin + knownResource + path)
	}
	add(d.origin + knownResource)
	if path != "" {
		add(d.origin + path + knownResource)
	}
	return list
}

// resource returns the server's own document, or nil if it has none. If there is only a
// document about another server, it returns an error, because a token for another server
// must not be sent here. A document about a wider resource than the server counts only if
// it belongs to the host's owner: otherwise one path of a shared host could request tokens
// that are valid for all others.
func (d *discovery) resource(ctx context.Context, named string) (*resourceMetadata, error) {
	var other error
	self := d.server.String()
	for _, p := range d.resourcePlaces(named) {
		if _, err := checkAddress("address of the server's document", p.address); err != nil {
			if d.server.Scheme != "http" || !strings.HasPrefix(p.address, d.origin+"/") { // the server itself is reached over http, too
				d.note(err)
			}
			continue
		}
		var doc resourceMetadata
		found, unreachable := d.try(ctx, p.address, &doc)
		if unreachable && ctx.Err() != nil {
			return nil, fmt.Errorf("looking for the server's document: %w", ctx.Err())
		}
		if !found {
			continue
		}
		exact, ok := covers(string(doc.Resource), self)
		switch {
		case exact, ok && p.owners:
			return &doc, nil
		case doc.Resource == "":
			d.note(fmt.Errorf("%s: it answered with something else than that document", store.Clip(p.address, 200)))
		case other != nil:
		case ok:
			other = fmt.Errorf("%s is about %q, which is more than this server, and is not below %s: a token for it must not be sent here", store.Clip(p.address, 200), store.Clip(string(doc.Resource), 200), d.origin+knownResource)
		case d.server.Scheme == "https" && strings.HasPrefix(string(doc.Resource), "http:") && covered(strings.Replace(string(doc.Resource), "http:", "https:", 1), self):
			other = fmt.Errorf("%s is about %q, which is not encrypted, and not about this server, which is: its operator tells it its public address (a proxy before it sends X-Forwarded-Proto: https)", store.Clip(p.address, 200), store.Clip(string(doc.Resource), 200))
		default:
			other = fmt.Errorf("%s is about %q and not about this server: a token for it must not be sent here", store.Clip(p.address, 200), store.Clip(string(doc.Resource), 200))
		}
	}
	return nil, other
}

// servicePlaces returns the possible URLs of an issuer's document: those of RFC 8414 and of
// OpenID with the issuer's path inserted, then both with it appended.
func servicePlaces(origin, path string) []string {
	list := []string{origin + knownServer + path, origin + knownOpenID + path}
	if path != "" {
		list = append(list, origin+path+knownOpenID, origin+path+knownServer)
	}
	return list
}

// issuerOf returns the issuer of a document's URL, which some servers name instead of the
// issuer. It returns any other URL unchanged.
func issuerOf(address string) string {
	for _, known := range []string{knownServer, knownOpenID} {
		if before, after, found := strings.Cut(address, known); found && (after == "" || after[0] == '/') {
			return before + strings.TrimSuffix(after, "/")
		}
	}
	return address
}

// service returns the document of an issuer, or of the issuer to which that document leads,
// or nil if there is none.
func (d *discovery) service(ctx context.Context, issuer string) (*serverMetadata, error) {
	meta, other, err := d.ownDocument(ctx, issuerOf(issuer))
	if meta == nil && other != "" {
		if meta, _, _ := d.ownDocument(ctx, other); meta != nil {
			return meta, nil
		}
	}
	return meta, err
}

// ownDocument returns the document of an issuer. If it only finds another issuer's
// document, it returns that issuer as other.
func (d *discovery) ownDocument(ctx context.Context, issuer string) (meta *serverMetadata, other string, err error) {
	u, err := checkAddress("issuer", issuer)
	if err != nil {
		return nil, "", err
	}
	if u.RawQuery != "" {
		return nil, "", fmt.Errorf("%w issuer %q: it has a query", store.ErrInvalid, store.Clip(issuer, 200))
	}
	d.trouble = nil
	var wrong error
	for _, address := range servicePlaces(u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")) {
		var doc serverMetadata
		found, unreachable := d.try(ctx, address, &doc)
		if unreachable {
			break // the other URLs are on the same host
		}
		if !found {
			continue
		}
		err := d.check(&doc, issuer)
		if err == nil {
			return &doc, "", nil
		}
		if wrong == nil {
			wrong = err
		}
		if other == "" && !SameIdentifier(string(doc.Issuer), issuer) {
			other = string(doc.Issuer)
		}
	}
	if wrong == nil && d.trouble != nil {
		wrong = fmt.Errorf("asking the authorization server: %w", d.trouble)
	}
	return nil, other, wrong
}

// check returns an error if the document is not that of the given issuer, or if signing in
// with it would not be safe.
func (d *discovery) check(m *serverMetadata, issuer string) error {
	if !SameIdentifier(string(m.Issuer), issuer) {
		return fmt.Errorf("the document of %s is that of another issuer, %q: nothing of it is used", store.Clip(issuer, 200), store.Clip(string(m.Issuer), 200))
	}
	for _, e := range []struct {
		what, address string
		needed        bool
	}{{"authorization_endpoint", string(m.Authorization), !m.takesAssertions()}, {"token_endpoint", string(m.Token), true}, {"registration_endpoint", string(m.Registration), false}, {"revocation_endpoint", string(m.Revocation), false}} {
		if e.address == "" && !e.needed {
			continue
		}
		if _, err := checkAddress(e.what, e.address); err != nil {
			return err
		}
	}
	if m.Authorization != "" && !m.listsPKCE() && (d.unlisted == nil || !d.unlisted(string(m.Issuer))) {
		return fmt.Errorf("%s does not say that it supports PKCE with S256 (code_challenge_methods_supported), without which a stolen code could be used; if its operator confirms that it does, an admin adds --pkce-unlisted to the login", store.Clip(issuer, 200))
	}
	return nil
}

// withoutResource follows the discovery of 2025-03-26 for a server without its own
// document: the server signs people in itself, for its whole host or at its own path.
// Endpoints are guessed only if every URL was a plain "not found": a web page or a
// temporary error may hide a document with other endpoints.
func (d *discovery) withoutResource(ctx context.Context, ch Challenge) (s Service, err error) {
	if _, err := checkAddress("URL of the server", d.origin); err != nil {
		return s, err
	}
	trouble := d.trouble
	issuers := []string{d.origin}
	if path := strings.TrimSuffix(d.server.EscapedPath(), "/"); path != "" {
		issuers = append(issuers, d.origin+path)
	}
	var wrong error
	for _, issuer := range issuers {
		meta, err := d.service(ctx, issuer)
		if meta != nil {
			s = meta.service(d.server.String())
			s.Scopes, s.offered = wantedScopes(ch.Scopes, nil, meta.Scopes), meta.Scopes
			return s, nil
		}
		if wrong == nil {
			wrong = err
		}
	}
	switch {
	case trouble != nil:
		return s, fmt.Errorf("finding the server's authorization server: %w", trouble)
	case wrong != nil:
		return s, wrong
	}
	return Service{Resource: d.server.String(), Issuer: d.origin, Authorization: d.origin + "/authorize", Token: d.origin + "/token", Registration: d.origin + "/register", Scopes: ch.Scopes, Guessed: true}, nil
}

// looksLikePage reports whether a response is a web page.
func looksLikePage(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}
