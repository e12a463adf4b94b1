package store

import (
	"slices"
	"strings"
	"time"
)

// Role is the role of a user: admins administer nize, members use it.
type Role string

const (
	Admin  Role = "admin"
	Member Role = "member"
)

// UserState determines whether a user may act at all.
type UserState string

const (
	Active   UserState = "active"
	Disabled UserState = "disabled"
)

// User is a person.
type User struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Role          Role      `json:"role"`
	State         UserState `json:"state"`
	Identities    []string  `json:"identities"`        // slack:<team>:<U>, discord:<U>, local:<uid>, named:<name>, oidc:<issuer>#<subject>
	Aliases       []string  `json:"aliases,omitempty"` // ids of users who were joined with this one
	Created       time.Time `json:"created"`
	PrivacyNotice time.Time `json:"told,omitzero"` // when they were shown the privacy notice

	// Email is an address of the person: verified by an identity provider, or entered by an
	// admin.
	Email string `json:"email,omitempty"`
	// AdminByGroup reports that the role comes from a group of the identity provider, and
	// ends with the membership.
	AdminByGroup bool `json:"admin_by_group,omitempty"`
}

// CanAdminister reports whether the user is an admin who can act as one. A person who was
// only named by an admin can use bearer tokens only, never the socket or a chat, so such a
// person must not be the only admin left.
func (u User) CanAdminister() bool {
	return u.Role == Admin && u.CanApprove()
}

// CanApprove reports whether the user can decide on calls: in a chat, at the socket or in a
// signed-in browser. Bearer tokens alone aren't enough.
func (u User) CanApprove() bool {
	return u.State == Active && slices.ContainsFunc(u.Identities, func(id string) bool {
		return !strings.HasPrefix(id, NamedIdentity) && !strings.HasPrefix(id, SCIMIdentity)
	})
}

// NamedIdentity is the prefix of the identity of a person whom an admin named before they
// used nize.
const NamedIdentity = "named:"

// SCIMIdentity is the prefix of the identity of a person created by a company's directory.
const SCIMIdentity = "scim:"

// Surface is the medium through which a person uses nize.
type Surface string

const (
	OnTerminal Surface = "terminal"
	OnMCP      Surface = "mcp"
	OnHTTP     Surface = "http"
	OnCLI      Surface = "cli"
	OnSlack    Surface = "slack"
	OnDiscord  Surface = "discord"
	OnWeb      Surface = "web"
	OnSystem   Surface = "system" // nize itself: schedules, startup, expiry
)

// Surfaces lists all surfaces.
var Surfaces = []Surface{OnCLI, OnTerminal, OnSlack, OnDiscord, OnMCP, OnHTTP, OnWeb, OnSystem}

// ChatSurfaces are the platforms on which nize can have an account.
var ChatSurfaces = []Surface{OnSlack, OnDiscord}

// Caller is the acting user. It is determined once when a request enters and passed as an
// argument, never through a context.
type Caller struct {
	User     string   `json:"user"` // a user's id; "system" for nize itself
	Name     string   `json:"name,omitempty"`
	Role     Role     `json:"role,omitempty"`
	Surface  Surface  `json:"surface,omitempty"`
	Identity string   `json:"identity,omitempty"` // local:<uid> at the socket
	Address  string   `json:"address,omitempty"`  // of the client on the network, as reported by trusted proxies
	Token    string   `json:"token,omitempty"`    // the id of the bearer token, if one was used
	Scopes   []string `json:"scopes,omitempty"`   // of that token: tools:PATTERN, expose:MODE
	Guest    bool     `json:"guest,omitempty"`    // a bot, a guest, or a member of another workspace: never approves
}

// TeamOf returns the team that a caller acts in at an address: NAME:TEAM with the name of
// its surface, or local.
func TeamOf(by Caller, at Address) string {
	if at.Team != "" {
		return string(at.Surface) + ":" + at.Team
	}
	if parts := strings.SplitN(by.Identity, ":", 3); len(parts) == 3 {
		return parts[0] + ":" + parts[1]
	}
	return "local"
}

// System is the caller for what nize does by itself.
var System = Caller{User: "system", Name: "nize", Role: Admin, Surface: OnSystem}

// IsAdmin reports whether the caller may administer nize.
func (c Caller) IsAdmin() bool { return c.Role == Admin }

// The audiences of a token. A token is refused on the routes of other audiences.
const (
	ForMCP  = "mcp"  // /mcp
	ForAPI  = "api"  // the rest of the HTTP listener
	ForWeb  = "web"  // pages, as a browser's cookie
	ForSCIM = "scim" // /scim/v2, for a company's directory
)

// Token is a bearer token; only the hash of its secret is stored.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	User     string    `json:"user"`
	Prefix   string    `json:"prefix"` // the beginning of the secret, to recognize it
	Hash     [32]byte  `json:"-"`
	Audience string    `json:"audience"` // [ForMCP] or [ForAPI]
	Scopes   []string  `json:"scopes,omitempty"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	LastUsed time.Time `json:"last_used,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"` // in the future while a rotated token has grace
	Maker    string    `json:"maker,omitempty"`  // id of the token that created this one, which ends with it

	SignedIn *SignedIn `json:"signed_in,omitempty"` // set if a person signed in for it
}

// SignedIn is the origin of a token that was never shown to a person: a family of access
// tokens that an MCP client obtained by OAuth, or a browser's session.
type SignedIn struct {
	Client   string `json:"client,omitempty"`        // its id; "" is a browser
	Redirect string `json:"redirect_host,omitempty"` // the host to which the client's code was sent
	Address  string `json:"address,omitempty"`       // of the browser
	Browser  string `json:"browser,omitempty"`       // its User-Agent

	// Set if an identity provider signed the browser in.
	Identity string `json:"identity,omitempty"` // of the person there
	Session  string `json:"session,omitempty"`  // the provider's id of the session
}

// Ends returns when the token stops working, by its expiry or a rotation's grace.
func (t Token) Ends() time.Time {
	if !t.Revoked.IsZero() && t.Revoked.Before(t.Expires) {
		return t.Revoked
	}
	return t.Expires
}

// TokenSecret is the part of a token that a rotation replaces.
type TokenSecret struct {
	ID, Prefix string
	Hash       [32]byte
}

// Rotation replaces a token: its user, its name, the new secret, and how long the old one
// stays valid.
type Rotation struct {
	User, Name string
	Next       TokenSecret
	Grace      time.Duration // negative counts as 0
	Quota      Quota         // of tokens; the zero value is unlimited
}

// State returns active, expired or revoked, at the given time. A token in its grace time is
// active.
func (t Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero() && !now.Before(t.Revoked):
		return "revoked"
	case !now.Before(t.Expires):
		return "expired"
	}
	return "active"
}

// Rotated returns until when a token that a newer one has replaced stays valid; ok is false
// if it was not replaced, or is no longer valid.
func (t Token) Rotated(now time.Time) (until time.Time, ok bool) {
	return t.Revoked, t.State(now) == "active" && !t.Revoked.IsZero()
}

// CredentialKey names a credential. Lookup order: user, project, team, system.
type CredentialKey struct {
	Scope   string `json:"scope"` // system, team, project or user
	Owner   string `json:"owner,omitempty"`
	Service string `json:"service"` // a server's name or a declared credential's id
	Name    string `json:"name"`
}

// Credential is a sealed value that a server or tool needs.
type Credential struct {
	CredentialKey
	Host    string    `json:"host,omitempty"` // the only host it may be sent to; "" until first bound
	Secret  Secret    `json:"-"`
	Updated time.Time `json:"updated"`
}
