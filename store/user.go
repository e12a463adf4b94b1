package store

import (
	"slices"
	"strings"
	"time"
)

// Role is what a user may do: admins steer nize, members use it.
type Role string

const (
	Admin  Role = "admin"
	Member Role = "member"
)

// UserState is whether a user may act at all.
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
	PrivacyNotice time.Time `json:"told,omitzero"` // when they were told what is kept of them

	// Email is an address that belongs to the person: an identity provider verified it,
	// or an admin entered it.
	Email string `json:"email,omitempty"`
	// AdminByGroup says that the role came from a group of the identity provider, and
	// ends with it.
	AdminByGroup bool `json:"admin_by_group,omitempty"`
}

// CanAdminister says whether the user is an admin who can act as one. A person whom
// an admin only named comes in with bearer tokens alone, never at the socket or
// in a chat, so nize must not be left to them.
func (u User) CanAdminister() bool {
	return u.Role == Admin && u.CanApprove()
}

// CanApprove says whether the user has a place to decide about calls: a chat or
// the socket, not bearer tokens alone. A browser they are signed in at is one too.
func (u User) CanApprove() bool {
	return u.State == Active && slices.ContainsFunc(u.Identities, func(id string) bool {
		return !strings.HasPrefix(id, NamedIdentity) && !strings.HasPrefix(id, SCIMIdentity)
	})
}

// NamedIdentity heads the identity of a person whom an admin named before they
// were met anywhere.
const NamedIdentity = "named:"

// SCIMIdentity heads the identity of a person whom a company's directory made here.
const SCIMIdentity = "scim:"

// Surface is where a person meets nize.
type Surface string

const (
	OnTerminal Surface = "terminal"
	OnMCP      Surface = "mcp"
	OnHTTP     Surface = "http"
	OnCLI      Surface = "cli"
	OnSlack    Surface = "slack"
	OnDiscord  Surface = "discord"
	OnWeb      Surface = "web"
	OnSystem   Surface = "system" // nize itself: schedules, start-up, expiry
)

// Surfaces are all of them.
var Surfaces = []Surface{OnCLI, OnTerminal, OnSlack, OnDiscord, OnMCP, OnHTTP, OnWeb, OnSystem}

// ChatSurfaces are the platforms on which nize can have an account.
var ChatSurfaces = []Surface{OnSlack, OnDiscord}

// Caller is who acts. It is read once at the edge and passed on; it is never
// dug out of a context inside the house.
type Caller struct {
	User     string   `json:"user"` // a user's id; "system" for nize itself
	Name     string   `json:"name,omitempty"`
	Role     Role     `json:"role,omitempty"`
	Surface  Surface  `json:"surface,omitempty"`
	Identity string   `json:"identity,omitempty"` // local:<uid> at the socket
	Address  string   `json:"address,omitempty"`  // of the client on the network, as trusted proxies tell it
	Token    string   `json:"token,omitempty"`    // the id of the bearer token, if one was used
	Scopes   []string `json:"scopes,omitempty"`   // of that token: tools:PATTERN, expose:MODE
	Guest    bool     `json:"guest,omitempty"`    // a bot, a guest, or somebody from another workspace: never approves
}

// TeamOf is the team that a caller acts in at an address: NAME:TEAM with the
// name of its surface, or local.
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

// IsAdmin says whether the caller may steer nize.
func (c Caller) IsAdmin() bool { return c.Role == Admin }

// The audiences of a token: neither works on the other's routes.
const (
	ForMCP  = "mcp"  // /mcp
	ForAPI  = "api"  // the rest of the HTTP listener
	ForWeb  = "web"  // pages, as a browser's cookie
	ForSCIM = "scim" // /scim/v2, for a company's directory
)

// Token is a bearer token; its secret is kept as a hash only.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	User     string    `json:"user"`
	Prefix   string    `json:"prefix"` // the head of the secret, to recognise it by
	Hash     [32]byte  `json:"-"`
	Audience string    `json:"audience"` // [ForMCP] or [ForAPI]
	Scopes   []string  `json:"scopes,omitempty"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	LastUsed time.Time `json:"last_used,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"` // in the future while a rotated token has grace
	Maker    string    `json:"maker,omitempty"`  // id of the token that made this one, which ends with it

	SignedIn *SignedIn `json:"signed_in,omitempty"` // of one that a person signed in for
}

// SignedIn is how somebody came by a token that nobody was shown: a family of
// access tokens that an MCP client has by OAuth, or a browser's session.
type SignedIn struct {
	Client   string `json:"client,omitempty"`        // its id; "" is a browser
	Redirect string `json:"redirect_host,omitempty"` // where the client took its code
	Address  string `json:"address,omitempty"`       // of the browser
	Browser  string `json:"browser,omitempty"`       // as it calls itself

	// Of a browser that an identity provider signed in.
	Identity string `json:"identity,omitempty"` // of the person there
	Session  string `json:"session,omitempty"`  // as the provider calls it
}

// Ends is when the token stops working, by its expiry or a rotation's grace.
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

// Rotation replaces a token: whose, its name, what is new, and how long the old
// one works on.
type Rotation struct {
	User, Name string
	Next       TokenSecret
	Grace      time.Duration // less than 0 counts as 0
	Quota      Quota         // of tokens; the zero value is none
}

// State is active, expired or revoked, at the time given. A token in its grace
// time is active.
func (t Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero() && !now.Before(t.Revoked):
		return "revoked"
	case !now.Before(t.Expires):
		return "expired"
	}
	return "active"
}

// Rotated returns until when a token still works that a newer one has replaced; false
// for one that was not replaced, or works no more.
func (t Token) Rotated(now time.Time) (until time.Time, ok bool) {
	return t.Revoked, t.State(now) == "active" && !t.Revoked.IsZero()
}

// CredentialKey names a credential: looked up user, project, team, system.
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
