// Package identity defines the records of a company's identity provider and its directory.
//
// They are the registration of nize at the provider, the provider's data about a person,
// and the rules for a sign-in.
//
// A person from the provider has the identity [Of] issuer and subject. Neither a name nor
// an email address identifies a person: both can be reassigned. The provider's groups are
// stored by identity, as of the last sign-in.
//
// The client secret is a [store.Secret] and sealed at rest.
package identity

import (
	"context"
	"errors"
	"strings"
	"time"

	"nize/store"
	"nize/store/oauth"
)

// Prefix is the prefix of the identity of a person known by an OIDC provider.
const Prefix = "oidc:"

// Of returns the identity of a subject at an issuer. An issuer has no fragment, so
// different pairs have different identities.
func Of(issuer, subject string) string { return Prefix + issuer + "#" + subject }

// Limits of a provider's data.
const (
	MaxSubject = 255   // bytes of a subject, as in OpenID Connect
	MaxGroup   = 256   // bytes of a group's name
	MaxGroups  = 2_000 // of one person
	MaxName    = 100   // bytes of a person's name
	MaxEmail   = 254
)

// Provider is the registration of nize at an OIDC provider.
type Provider struct {
	Issuer      string       `json:"issuer"`
	Client      string       `json:"client_id"`
	Name        string       `json:"name"` // its name for people
	Scopes      []string     `json:"scopes,omitempty"`
	GroupsClaim string       `json:"groups_claim"`
	Secret      store.Secret `json:"-"` // zero for a public client
	Revision    string       `json:"revision"`
	Updated     time.Time    `json:"updated"`
}

// Person is a provider's data about a person, after all checks.
type Person struct {
	Issuer, Subject string
	Name            string
	Email           string // "" unless the provider verified it
	Groups          []string
	Partial         bool         // it is no full sign-in: what it leaves out is unchanged
	GroupsKnown     bool         // the provider named the groups, possibly none
	Refresh         store.Secret // the provider's refresh token, zero if it gave none
	IDToken         store.Secret // of this sign-in; stored only if there is no refresh token
}

// Membership is how current the groups of a user are.
type Membership struct {
	Identity, Subject string       // at the provider; "" if no provider knows the user
	Read              time.Time    // when the provider last named the groups
	Refresh           store.Secret // zero if the provider gave none
	IDToken           store.Secret // of the last sign-in, perhaps expired; zero if there is a refresh token
	Directory         bool         // a directory keeps the groups current
}

// NotSignedIn tells a person that nize needs their account at the company's identity
// provider, or a new sign-in with it.
var NotSignedIn = store.Textf("This is used with your company's account: sign in to nize with it in your browser, then try again.")

// Identity returns the identity of the person.
func (p Person) Identity() string { return Of(p.Issuer, p.Subject) }

// Rules are the settings for sign-ins.
type Rules struct {
	LinkByEmail bool     // oidc.link_by_email
	Allowed     []string // oidc.allowed_groups; empty allows everyone
	Admins      []string // oidc.admin_groups
}

// Reasons for refusing a sign-in.
var (
	ErrNotAllowed = errors.New("the person is in none of oidc.allowed_groups")
	ErrDisabled   = errors.New("the user is disabled")
	ErrAmbiguous  = errors.New("several users have that email address")
)

// Record is the stored data about a person from a provider.
type Record struct {
	Name     string    `json:"name,omitempty"`
	Email    string    `json:"email,omitempty"`
	Groups   []string  `json:"groups,omitempty"` // sorted
	SignedIn time.Time `json:"signed_in"`
}

// Store stores the provider and its people.
type Store interface {
	// PutIdentityProvider stores the provider under a new revision. If the issuer or client
	// changes, the old provider's groups are deleted, and the roles that came from them
	// end.
	PutIdentityProvider(ctx context.Context, by store.Caller, p Provider) (Provider, error)
	// GetIdentityProvider returns the provider with its secret, or ErrNotFound.
	GetIdentityProvider(ctx context.Context) (Provider, error)
	// DeleteIdentityProvider deletes the provider, its groups and the roles that came from
	// them. It returns ErrNotFound if there is none.
	DeleteIdentityProvider(ctx context.Context, by store.Caller) error

	// SignInPerson returns the user for a person from the provider, in one transaction: the
	// user with that identity, or, if the rules allow it, the one with that verified email
	// address, or a new member. It stores the person's groups and the resulting role. If
	// the person is not allowed, it ends their sessions and tokens at once and returns
	// ErrNotAllowed. With ErrDisabled and ErrAmbiguous it changes nothing.
	SignInPerson(ctx context.Context, by store.Caller, p Person, rules Rules) (store.User, error)
	// GetPerson returns the record of an identity, or ErrNotFound.
	GetPerson(ctx context.Context, identity string) (Record, error)
	// MembershipOf returns how current the groups of a user are, or ErrNotFound.
	MembershipOf(ctx context.Context, user string) (Membership, error)
	// KeepRefresh replaces the provider's refresh token for an identity.
	KeepRefresh(ctx context.Context, identity string, refresh store.Secret) error
	// EndMembership deletes the groups of an identity and its refresh token, and ends the
	// role that came from the groups.
	EndMembership(ctx context.Context, by store.Caller, identity string, rules Rules) error
	// EndGroupAdmins ends the role of admins by group who are in none of the given groups.
	EndGroupAdmins(ctx context.Context, by store.Caller, admins []string) error

	// UseOnce records the use of something that may be used once; until is when it would
	// expire in any case. It returns ErrDecided if it was used before.
	UseOnce(ctx context.Context, what oauth.Hash, until time.Time) error
}

// LinkableEmail returns an email address in the form used for comparison, or "" if it can't
// link users. Only ASCII is accepted: other letters can look or fold alike.
func LinkableEmail(text string) string {
	text = strings.TrimSpace(text)
	local, host, ok := strings.Cut(text, "@")
	if !ok || local == "" || host == "" || strings.Contains(host, "@") || len(text) > MaxEmail {
		return ""
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			return ""
		}
	}
	return strings.ToLower(text)
}
