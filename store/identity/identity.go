// Package identity is the words of a company's identity provider: how nize is
// registered there, what the provider says about a person, and what a sign-in
// through it may do.
//
// A person from the provider has the identity [Of] issuer and subject. Neither a
// name nor an email address identifies anybody: both can be given to somebody
// else. The groups that the provider names are kept by identity, as they were at
// the last sign-in.
//
// The client secret is a [store.Secret] and sealed where it is kept.
package identity

import (
	"context"
	"errors"
	"strings"
	"time"

	"nize/store"
	"nize/store/oauth"
)

// Prefix begins the identity of a person whom an OIDC provider knows.
const Prefix = "oidc:"

// Of is the identity of a subject at an issuer. An issuer has no fragment, so that
// no two pairs have the same identity.
func Of(issuer, subject string) string { return Prefix + issuer + "#" + subject }

// Bounds of what a provider says.
const (
	MaxSubject = 255   // bytes of a subject, as OpenID Connect has it
	MaxGroup   = 256   // bytes of a group's name
	MaxGroups  = 2_000 // of one person
	MaxName    = 100   // bytes of a person's name
	MaxEmail   = 254
)

// Provider is how nize is registered at an OIDC provider.
type Provider struct {
	Issuer      string       `json:"issuer"`
	Client      string       `json:"client_id"`
	Name        string       `json:"name"` // how people call it
	Scopes      []string     `json:"scopes,omitempty"`
	GroupsClaim string       `json:"groups_claim"`
	Secret      store.Secret `json:"-"` // zero for a public client
	Revision    string       `json:"revision"`
	Updated     time.Time    `json:"updated"`
}

// Person is what a provider says about somebody, after all checks.
type Person struct {
	Issuer, Subject string
	Name            string
	Email           string // "" unless the provider verified it
	Groups          []string
	GroupsKnown     bool // the provider named the groups, perhaps none
}

// Identity is the identity of the person.
func (p Person) Identity() string { return Of(p.Issuer, p.Subject) }

// Rules are the settings that decide what a sign-in may do.
type Rules struct {
	LinkByEmail bool     // oidc.link_by_email
	Allowed     []string // oidc.allowed_groups; none allows everybody
	Admins      []string // oidc.admin_groups
}

// Why a sign-in is refused.
var (
	ErrNotAllowed = errors.New("the person is in none of oidc.allowed_groups")
	ErrDisabled   = errors.New("the user is disabled")
	ErrAmbiguous  = errors.New("several users have that email address")
)

// Record is what is kept about a person from a provider.
type Record struct {
	Name     string    `json:"name,omitempty"`
	Email    string    `json:"email,omitempty"`
	Groups   []string  `json:"groups,omitempty"` // sorted
	SignedIn time.Time `json:"signed_in"`
}

// Store keeps it.
type Store interface {
	// PutIdentityProvider stores the provider under a new revision. With another issuer or
	// client than before, what the old provider said about groups is deleted, and
	// roles that came from them end.
	PutIdentityProvider(ctx context.Context, by store.Caller, p Provider) (Provider, error)
	// GetIdentityProvider returns the provider with its secret. ErrNotFound.
	GetIdentityProvider(ctx context.Context) (Provider, error)
	// DeleteIdentityProvider deletes it, as PutIdentityProvider does for another issuer. ErrNotFound.
	DeleteIdentityProvider(ctx context.Context, by store.Caller) error

	// SignInPerson returns the user that a person from the provider is, in one
	// transaction: the one with that identity, or, if the rules allow it, the one with
	// that verified email address, or a new member. It stores the person's groups and
	// the role that follows from them. A person who is not allowed, with ErrNotAllowed,
	// loses at once what is signed in as them. ErrDisabled and ErrAmbiguous change
	// nothing.
	SignInPerson(ctx context.Context, by store.Caller, p Person, rules Rules) (store.User, error)
	// GetPerson returns the record of an identity. ErrNotFound.
	GetPerson(ctx context.Context, identity string) (Record, error)
	// EndGroupAdmins takes the role back from admins by group who are in none of the groups.
	EndGroupAdmins(ctx context.Context, by store.Caller, admins []string) error

	// UseOnce notes that something that may be used once was used; until is when
	// it could not be used any more in any case. ErrDecided if it was used before.
	UseOnce(ctx context.Context, what oauth.Hash, until time.Time) error
}

// LinkableEmail returns an email address in the form in which two are compared, or ""
// if it can't link anybody. Only ASCII counts: other letters can look or fold alike.
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
