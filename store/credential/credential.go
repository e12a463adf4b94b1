// Package credential defines declared credentials, which several tools and MCP servers can
// share.
//
// A declaration describes a credential once for everything that uses it. Its instructions
// are shown where the value is requested; the values are ordinary credentials of
// store.Credentials with the service ID and the name [KeyName].
package credential

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Mode is who provides the credential, and how.
type Mode string

const (
	UserKey   Mode = "user-apikey" // each user, with a key of their own
	UserOAuth Mode = "user-oauth"  // each user, by signing in
	TeamKey   Mode = "team-apikey" // a team's admins, with a key for all its members
	TeamOAuth Mode = "team-oauth"
)

// How tools behave for a user without their credential.
const (
	Hide = "hide"  // they are not offered
	Fail = "error" // they are offered, and a call returns what is missing
)

// KeyName is the name under which the value of a declared key is stored.
const KeyName = "apiKey"

// Declaration is one declared credential.
type Declaration struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Mode         Mode      `json:"authMode"`
	Instructions string    `json:"userInstructions,omitempty"` // shown where the value is requested
	OAuth        *OAuth    `json:"oauth,omitempty"`            // for the modes that sign in
	WhenMissing  string    `json:"whenMissing"`                // hide or error
	Host         string    `json:"host,omitempty"`             // the only host that a value may be sent to; "" is the first one that uses it
	Created      time.Time `json:"created"`
}

// OAuth is how to sign in to a service.
type OAuth struct {
	AuthorizationURL string   `json:"authorizationUrl"`
	TokenURL         string   `json:"tokenUrl"`
	RevocationURL    string   `json:"revocationUrl,omitempty"` // "" if its tokens can't be revoked
	ClientID         string   `json:"clientId,omitempty"`
	ClientAuth       string   `json:"clientAuth,omitempty"` // client authentication, if it has a secret: [Basic], also if "", or [Post]
	Issuer           string   `json:"issuer,omitempty"`     // the service's issuer; "" is the origin of AuthorizationURL
	Scopes           []string `json:"scopes,omitempty"`
}

// Methods of client authentication: the header Authorization, or the form.
const (
	Basic = "client_secret_basic"
	Post  = "client_secret_post"
)

// Issued returns the issuer that the service uses in its responses.
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

// SameClient reports whether tokens obtained with o are also valid for p, apart from
// scopes.
func (o *OAuth) SameClient(p *OAuth) bool {
	return o != nil && p != nil && o.AuthorizationURL == p.AuthorizationURL && o.TokenURL == p.TokenURL && o.RevocationURL == p.RevocationURL && o.ClientID == p.ClientID && o.Issued() == p.Issued()
}

// Modes returns all modes.
func Modes() []Mode { return []Mode{UserKey, UserOAuth, TeamKey, TeamOAuth} }

// SignsIn reports whether the value is a token obtained by signing in.
func (m Mode) SignsIn() bool { return m == UserOAuth || m == TeamOAuth }

// Auth returns whose values are used.
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

// isHTTPS reports whether secrets may be sent to a URL: https, or on this machine.
func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (strings.EqualFold(u.Hostname(), "localhost") || err == nil && ip.Unmap().IsLoopback())
}

// Normal returns the declaration with its defaults, or ErrInvalid with the name of the
// invalid field.
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

// Missing returns the error for a call by a user without this credential.
func (d Declaration) Missing() *store.CallError {
	text := store.Textf("%s is not connected. Please configure it in User Settings. (/nize credentials connect %s)", d.Name, d.ID)
	if d.Mode.Auth() == store.AuthTeam {
		text = store.Textf("%s is not connected. Please configure it in Team Settings. (/nize credentials connect %s)", d.Name, d.ID)
	}
	return &store.CallError{Code: store.CodeRefused, Message: text}
}

// Value is a user's value: a key, or a token obtained by signing in.
type Value struct {
	APIKey      store.Secret
	AccessToken store.Secret
	TokenType   string
	Holder      store.Holder     // its owner
	Sealed      store.Credential // as stored, with the host that it is bound to
}

// Secret returns the secret to send.
func (v Value) Secret() store.Secret {
	if v.APIKey.IsZero() {
		return v.AccessToken
	}
	return v.APIKey
}

// State is a declaration and its state for one user.
type State struct {
	Declaration
	Offered bool // tools that use it are offered to them
}

// NotDeclared returns the error for a call that needs an undeclared credential.
func NotDeclared(id string) *store.CallError {
	return &store.CallError{Code: store.CodeRefused, Message: store.Textf("the credential %s, which it needs, is not declared: an admin does that with nizectl credentials declare %s", id, id)}
}
