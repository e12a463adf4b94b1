package identity

import (
	"context"
	"time"

	"nize/store"
)

// SCIMUser is a person as stored here by a directory through SCIM. ID is the resource's;
// the user has the identity [OfSCIM] of it.
type SCIMUser struct {
	ID       string    `json:"id"`
	UserName string    `json:"user_name"`
	External string    `json:"external_id,omitempty"`
	Active   bool      `json:"active"`
	Display  string    `json:"display,omitempty"`
	Given    string    `json:"given,omitempty"`
	Family   string    `json:"family,omitempty"`
	Email    string    `json:"email,omitempty"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// OfSCIM returns the identity of a person created by a directory.
func OfSCIM(id string) string { return store.SCIMIdentity + id }

// SCIMGroup is a group of a directory. Its name is the argument of `groups add
// --oidc-group`.
type SCIMGroup struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	External string    `json:"external_id,omitempty"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// SCIMGroupChange changes a group, or creates one if ID is "". Members are ids of
// [SCIMUser]. Replace removes all others first.
type SCIMGroupChange struct {
	ID       string
	Name     *string
	External *string
	Replace  bool
	Add, Out []string
}

// SCIMQuery selects resources; Attribute "" is all of them.
type SCIMQuery struct {
	Attribute string // id, userName, displayName or externalId
	Value     string
	Skip      int
	Limit     int
}

// Directory stores what a directory provisions. Errors are store.ErrNotFound,
// store.ErrExists for a name that is taken, store.ErrInvalid.
type Directory interface {
	// PutSCIMUser stores a person, a new one if u.ID is "". A new person becomes the user
	// whom the provider of issuer knows as u.External, or, if the rules allow it, the one
	// with that email address, or a new member. A person who is not active is disabled in
	// the same transaction, with everything that this ends, even the last admin.
	PutSCIMUser(ctx context.Context, by store.Caller, u SCIMUser, issuer string, rules Rules) (SCIMUser, error)
	GetSCIMUser(ctx context.Context, id string) (SCIMUser, error)
	ListSCIMUsers(ctx context.Context, q SCIMQuery) (page []SCIMUser, total int, err error)
	// DeleteSCIMUser disables the user and deletes the person.
	DeleteSCIMUser(ctx context.Context, by store.Caller, id string) error

	// ChangeSCIMGroup changes a group; roles follow at once. Groups here that have its
	// members adopt a new name.
	ChangeSCIMGroup(ctx context.Context, by store.Caller, c SCIMGroupChange, rules Rules) (SCIMGroup, error)
	GetSCIMGroup(ctx context.Context, id string) (g SCIMGroup, members []SCIMUser, err error)
	ListSCIMGroups(ctx context.Context, q SCIMQuery) (page []SCIMGroup, total int, err error)
	DeleteSCIMGroup(ctx context.Context, by store.Caller, id string, rules Rules) error
}
