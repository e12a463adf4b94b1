package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// GroupAge is how long a look at a group on a chat platform allows anything.
const GroupAge = 5 * time.Minute

// Group is named users; group:NAME is valid wherever user:ID is. They
// are those of a list, or, where there is a Source, those of a group on a chat
// platform, as they were when it was looked at last.
type Group struct {
	Name    string    `json:"name"`
	Members []string  `json:"members"`          // ids of users, sorted
	Source  string    `json:"source,omitempty"` // slack:<team>:<S>, a Slack user group; oidc:<name>, a group of the identity provider; "" is a list
	Handle  string    `json:"handle,omitempty"` // how people there call it
	Checked time.Time `json:"looked,omitzero"`  // when it was looked at last
	Error   string    `json:"error,omitempty"`  // why the last try since then failed
	Created time.Time `json:"created"`
}

// OIDCSource begins the source of a group that an identity provider fills.
const OIDCSource = "oidc:"

// Live says whether a chat platform knows who is in the group.
func (g Group) Live() bool { return g.Source != "" && !g.Provided() }

// Provided reports whether an identity provider names the members of the group. What
// it last named holds until it names something else: at a sign-in, for example.
func (g Group) Provided() bool { return strings.HasPrefix(g.Source, OIDCSource) }

// GroupCheck is the result of a check of a live group.
type GroupCheck struct {
	Source     string   // what was looked at
	Identities []string // of those in it, the people whom nize knows
	Error      string   // why it failed, if it did
}

// Groups keeps named users.
type Groups interface {
	// AddGroup stores a new group: a list, or a live one, in which nobody is
	// until [LiveGroups.RecordGroupCheck]. ErrExists if the name is taken, ErrNotFound
	// if a member is no user.
	AddGroup(ctx context.Context, by Caller, g Group) (Group, error)
	// EditGroup takes members in and out, in one step; who is in already, or
	// out, stays so. ErrRefused for a live group.
	EditGroup(ctx context.Context, by Caller, name string, in, out []string) (Group, error)
	// DeleteGroup removes a group. ErrRefused while something is shared with
	// it: one of that name that is made later would get what it had.
	DeleteGroup(ctx context.Context, by Caller, name string) error
	// ListGroups returns all groups, by name.
	ListGroups(ctx context.Context) ([]Group, error)
	// GroupsOf names the groups that a user is in, for what that allows: one
	// that was not looked at for [GroupAge] has nobody in it. Where groups deny
	// (budgets), it has everybody.
	GroupsOf(ctx context.Context, user string) ([]string, error)
}

// LiveGroups keeps what was seen of groups on chat platforms.
type LiveGroups interface {
	// RecordGroupCheck notes what came of a look. A failed one leaves who is in the
	// group; so does one that found the same, without an event. ErrNotFound for
	// no such group, ErrInvalid for one of another source.
	RecordGroupCheck(ctx context.Context, by Caller, name string, s GroupCheck) (Group, error)
	// GroupsAwaiting names the live groups that somebody with that identity is
	// in, who may be no user yet, for what they allow: see [Groups.GroupsOf].
	GroupsAwaiting(ctx context.Context, identity string) ([]string, error)
}

// SharedWith says whether the server is there for the caller, who is in the
// groups named: admins see all, others what was shared with them.
func (s Server) SharedWith(by Caller, groups []string) bool {
	return by.IsAdmin() || Among(s.Visibility, by.User, groups)
}

// Among says whether the user, who is in the groups named, is one of those
// listed: all, user:ID or group:NAME; a project's id is listed as it is.
func Among(list []string, user string, groups []string) bool {
	for _, who := range list { // a search asks this of every tool
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
