package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Group is named users; group:NAME is valid wherever user:ID is (SPEC 1).
type Group struct {
	Name    string    `json:"name"`
	Members []string  `json:"members"` // ids of users, sorted
	Created time.Time `json:"created"`
}

// Groups keeps named users (SPEC 22).
type Groups interface {
	// AddGroup stores a new group. ErrExists if the name is taken, ErrNotFound
	// if a member is no user.
	AddGroup(ctx context.Context, by Caller, g Group) (Group, error)
	// EditGroup takes members in and out, in one step; who is in already, or
	// out, stays so.
	EditGroup(ctx context.Context, by Caller, name string, in, out []string) (Group, error)
	// DeleteGroup removes a group. ErrRefused while something is shared with
	// it: one of that name that is made later would get what it had.
	DeleteGroup(ctx context.Context, by Caller, name string) error
	// ListGroups returns all groups, by name.
	ListGroups(ctx context.Context) ([]Group, error)
	// GroupsOf names the groups that a user is in.
	GroupsOf(ctx context.Context, user string) ([]string, error)
}

// SharedWith says whether the server is there for the caller, who is in the
// groups named: admins see all, others what was shared with them (SPEC 22).
func (s Server) SharedWith(by Caller, groups []string) bool {
	return by.IsAdmin() || Among(s.Visibility, by.User, groups)
}

// Among says whether the user, who is in the groups named, is one of those
// listed: all, user:ID or group:NAME.
func Among(list []string, user string, groups []string) bool {
	for _, who := range list { // a search asks this of every tool
		if who == "all" {
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
