// Package credential has the words of declared credentials: what tools and MCP
// servers want to be given, said once for all that use it. A declaration is
// shown where the value is asked for; the values are credentials of
// store.Credentials as all others, of the service ID and the name [KeyName].
package credential

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Mode says who gives the credential, and in which way.
type Mode string

const (
	UserKey   Mode = "user-apikey" // each person, a key of theirs
	UserOAuth Mode = "user-oauth"  // each person, by signing in
	TeamKey   Mode = "team-apikey" // the admins of a team, a key for all in it
	TeamOAuth Mode = "team-oauth"
)

// What becomes of tools whose credential somebody lacks.
const (
	Hide = "hide"  // they are not offered
	Fail = "error" // they are, and a call says what is missing
)

// KeyName is the name under which the value of a declared key is kept.
const KeyName = "apiKey"

// Declaration is one declared credential.
type Declaration struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Mode         Mode      `json:"authMode"`
	Instructions string    `json:"userInstructions,omitempty"` // shown where the value is asked for
	OAuth        *OAuth    `json:"oauth,omitempty"`            // of the modes that sign in
	WhenMissing  string    `json:"whenMissing"`                // hide or error
	Host         string    `json:"host,omitempty"`             // the only one that a value may be sent to; "" is the first that it is used for
	Created      time.Time `json:"created"`
}

// OAuth is how a service is signed in to.
type OAuth struct {
	AuthorizationURL string   `json:"authorizationUrl"`
	TokenURL         string   `json:"tokenUrl"`
	RevocationURL    string   `json:"revocationUrl,omitempty"` // "" where its tokens can't be revoked
	ClientID         string   `json:"clientId,omitempty"`
	ClientAuth       string   `json:"clientAuth,omitempty"` // how the client proves itself where it has a secret: [Basic], where it is "", or [Post]
	Issuer           string   `json:"issuer,omitempty"`     // as the service names itself; "" is the origin of AuthorizationURL
	Scopes           []string `json:"scopes,omitempty"`
}

// How a client proves itself: by the header Authorization, or in the form.
const (
	Basic = "client_secret_basic"
	Post  = "client_secret_post"
)

// Issued is what the service calls itself in its answers.
func (o *OAuth) Issued() string {
	if o.Issuer != "" {
		return o.Issuer
	}
	u, err := url.Parse(o.AuthorizationURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// SameClient says whether what signing in by o gave is of use by p, too, but for its
// scopes.
func (o *OAuth) SameClient(p *OAuth) bool {
	return o != nil && p != nil && o.AuthorizationURL == p.AuthorizationURL && o.TokenURL == p.TokenURL && o.RevocationURL == p.RevocationURL && o.ClientID == p.ClientID && o.Issued() == p.Issued()
}

// Store keeps declarations. store/record's Declarations is the one.
type Store interface {
	// PutDeclaration declares a credential, or changes it.
	PutDeclaration(ctx context.Context, by store.Caller, d Declaration) error
	// GetDeclaration returns one; ErrNotFound if there is none of that id.
	GetDeclaration(ctx context.Context, id string) (Declaration, error)
	// ListDeclarations lists all, by id.
	ListDeclarations(ctx context.Context) ([]Declaration, error)
	// DeleteDeclaration removes one; the values stay until they are removed.
	DeleteDeclaration(ctx context.Context, by store.Caller, id string) error
}

// Modes are all of them.
func Modes() []Mode { return []Mode{UserKey, UserOAuth, TeamKey, TeamOAuth} }

// SignsIn says whether the value is a token that signing in gives.
func (m Mode) SignsIn() bool { return m == UserOAuth || m == TeamOAuth }

// Auth is whose values are used.
func (m Mode) Auth() store.Auth {
	if m == TeamKey || m == TeamOAuth {
		return store.AuthTeam
	}
	return store.AuthUser
}

const (
	maxName         = 80
	maxInstructions = 1000
	maxClientID     = 4 << 10
	maxScopes       = 100
)

// isHTTPS says whether secrets may be sent to an address: https, or on this machine.
func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (strings.EqualFold(u.Hostname(), "localhost") || err == nil && ip.Unmap().IsLoopback())
}

// Normal returns the declaration with its defaults, or ErrInvalid, which names the
// field.
func (d Declaration) Normal() (Declaration, error) {
	bad := func(field, why string) (Declaration, error) {
		return d, fmt.Errorf("%w credential %s: %s: %s", store.ErrInvalid, d.ID, field, why)
	}
	if err := store.CheckSlug(d.ID); err != nil {
		return d, err
	}
	d.Name, d.WhenMissing = cmp.Or(d.Name, d.ID), cmp.Or(d.WhenMissing, Hide)
	switch {
	case len(d.Name) > maxName || strings.ContainsAny(d.Name, "\r\n\x00"):
		return bad("name", "use one line of at most 80 bytes")
	case !slices.Contains(Modes(), d.Mode):
		return bad("authMode", fmt.Sprintf("%q is not one of user-apikey, user-oauth, team-apikey, team-oauth", d.Mode))
	case len(d.Instructions) > maxInstructions || strings.ContainsRune(d.Instructions, 0):
		return bad("userInstructions", "use at most 1000 bytes")
	case d.WhenMissing != Hide && d.WhenMissing != Fail:
		return bad("whenMissing", fmt.Sprintf("%q is not one of hide, error", d.WhenMissing))
	case d.Mode.SignsIn() != (d.OAuth != nil):
		return bad("oauth", fmt.Sprintf("is for the modes user-oauth and team-oauth, which need it; this is %s", d.Mode))
	case strings.ContainsAny(d.Host, "/@ \r\n\x00"):
		return bad("host", "write a host name, such as api.example.com")
	}
	if d.OAuth != nil {
		for _, a := range [][2]string{{"oauth.authorizationUrl", d.OAuth.AuthorizationURL}, {"oauth.tokenUrl", d.OAuth.TokenURL}, {"oauth.revocationUrl", d.OAuth.RevocationURL}} {
			if !isHTTPS(a[1]) && (a[1] != "" || a[0] != "oauth.revocationUrl") {
				return bad(a[0], "write an https address")
			}
		}
		switch {
		case d.OAuth.Issuer != "" && (!isHTTPS(d.OAuth.Issuer) || strings.ContainsAny(d.OAuth.Issuer, "?#")):
			return bad("oauth.issuer", "write the https address by which the service names itself, without a query")
		case !slices.Contains([]string{"", Basic, Post}, d.OAuth.ClientAuth):
			return bad("oauth.clientAuth", fmt.Sprintf("%q is not one of %s, %s", d.OAuth.ClientAuth, Basic, Post))
		case d.OAuth.ClientID == "" || len(d.OAuth.ClientID) > maxClientID:
			return bad("oauth.clientId", "write the ID that the service gave out for nize")
		case len(d.OAuth.Scopes) > maxScopes || slices.ContainsFunc(d.OAuth.Scopes, func(s string) bool { return s == "" || strings.ContainsAny(s, " \r\n\x00") }):
			return bad("oauth.scopes", "write at most 100, each one word")
		case d.Host == "":
			return bad("host", "is needed where people sign in: a token goes to one host only")
		}
	}
	return d, nil
}

// Missing is what a call says that needs the credential of somebody who has none.
func (d Declaration) Missing() *store.CallError {
	text := store.Textf("%s is not connected. Please configure it in User Settings. (/nize credentials connect %s)", d.Name, d.ID)
	if d.Mode.Auth() == store.AuthTeam {
		text = store.Textf("%s is not connected. Please configure it in Team Settings. (/nize credentials connect %s)", d.Name, d.ID)
	}
	return &store.CallError{Code: store.CodeRefused, Message: text}
}

// Value is what somebody gave: a key, or what signing in gave.
type Value struct {
	APIKey      store.Secret
	AccessToken store.Secret
	TokenType   string
	Holder      store.Holder     // whose it is
	Sealed      store.Credential // as a key is kept, with the host that it is bound to
}

// Secret is what is sent.
func (v Value) Secret() store.Secret {
	if v.APIKey.IsZero() {
		return v.AccessToken
	}
	return v.APIKey
}
