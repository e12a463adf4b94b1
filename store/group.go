package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// GroupAge is how long the last check of a group on a chat platform is valid for granting
// rights.
const GroupAge = 5 * time.Minute

// Group is a named set of users; group:NAME is valid wherever user:ID is. Its members are a
// list, or, if it has a Source, those of a group on a chat platform as of the last check.
type Group struct {
	Name    string    `json:"name"`
	Members []string  `json:"members"`          // ids of users, sorted
	Source  string    `json:"source,omitempty"` // slack:<team>:<S>, a Slack user group; oidc:<name>, a group of the identity provider; "" is a list
	Handle  string    `json:"handle,omitempty"` // its name on the platform
	Checked time.Time `json:"looked,omitzero"`  // time of the last successful check
	Error   string    `json:"error,omitempty"`  // why the latest check failed
	Created time.Time `json:"created"`
}

// OIDCSource is the prefix of the source of a group that an identity provider fills.
const OIDCSource = "oidc:"

// Live reports whether the members come from a chat platform.
func (g Group) Live() bool { return g.Source != "" && !g.Provided() }

// Provided reports whether an identity provider names the members of the group. Its latest
// list applies until it sends another, for example at a sign-in.
func (g Group) Provided() bool { return strings.HasPrefix(g.Source, OIDCSource) }

// GroupCheck is the result of a check of a live group.
type GroupCheck struct {
	Source     string   // the source that was checked
	Identities []string // its members that are known to nize
	Error      string   // why it failed, if it did
}

// Groups stores groups.
type Groups interface {
	// AddGroup stores a new group: a list, or a live group, which is empty until
	// [LiveGroups.RecordGroupCheck]. It returns ErrExists if the name is taken, and
	// ErrNotFound if a member is not a user.
	AddGroup(ctx context.Context, by Caller, g Group) (Group, error)
	// EditGroup adds and removes members in one transaction. Adding a member or removing a
	// non-member has no effect. It returns ErrRefused for a live group.
	EditGroup(ctx context.Context, by Caller, name string, in, out []string) (Group, error)
	// DeleteGroup removes a group. It returns ErrRefused while anything is shared with it,
	// because a later group of that name would inherit the access.
	DeleteGroup(ctx context.Context, by Caller, name string) error
	// ListGroups returns all groups, by name.
	ListGroups(ctx context.Context) ([]Group, error)
	// GroupsOf returns the names of the groups that a user is in, for granting rights: a
	// live group that was not checked within [GroupAge] counts as empty. For denials
	// (budgets) its stored members count.
	GroupsOf(ctx context.Context, user string) ([]string, error)
}

// LiveGroups stores the checks of groups on chat platforms.
type LiveGroups interface {
	// RecordGroupCheck stores the result of a check. A failed check keeps the members; one
	// that found the same members appends no event. It returns ErrNotFound if there is no
	// such group, and ErrInvalid if its source differs.
	RecordGroupCheck(ctx context.Context, by Caller, name string, s GroupCheck) (Group, error)
	// IsProvided reports whether an identity provider names the members of the group; see
	// [Group.Provided]. It returns false if there is no such group.
	IsProvided(ctx context.Context, name string) (bool, error)
	// GroupsAwaiting returns the names of the live groups that contain the identity, even
	// if it belongs to no user yet, for granting rights: see [Groups.GroupsOf].
	GroupsAwaiting(ctx context.Context, identity string) ([]string, error)
}

// SharedWith reports whether the caller, a member of the given groups, may see the server:
// admins see all servers, others only those shared with them.
func (s Server) SharedWith(by Caller, groups []string) bool {
	return by.IsAdmin() || Among(s.Visibility, by.User, groups)
}

// Among reports whether list names the user, a member of the given groups: all, user:ID or
// group:NAME; a project's id is listed as it is.
func Among(list []string, user string, groups []string) bool {
	for _, who := range list { // runs for every tool of a search
		if who == "all" || who == user {
			return true
		}
		if id, ok := strings.CutPrefix(who, "user:"); ok && id == user {
			return true
		}
		if name, ok := strings.CutPrefix(who, "group:"); ok && slices.Contains(groups, name) {
			return true
		}
	}
	return false
}
