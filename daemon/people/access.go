package people

import (
	"context"

	"nize/store"
)

// Access decides who may talk to nize in chats.
type Access struct {
	Config store.Config
	Groups *LiveGroups
}

// Admits reports whether bots.access admits a person whom their platform admits. If the
// person was not in any of the required groups at the last check, the groups are checked
// again, since they may have just joined.
func (a *Access) Admits(ctx context.Context, u store.User) (bool, error) {
	access := store.AccessOf(a.Config)
	if access.Admits(u, nil) {
		return true, nil
	}
	in, err := a.groupsOf(ctx, u)
	if err != nil || access.Admits(u, in) {
		return err == nil, err
	}
	a.Groups.Refresh(ctx, access)
	in, err = a.groupsOf(ctx, u)
	return err == nil && access.Admits(u, in), err
}

// groupsOf returns a person's groups. If they are not a user yet, it returns the platform's
// groups that contain their identity.
func (a *Access) groupsOf(ctx context.Context, u store.User) (names []string, err error) {
	if u.ID != "" {
		return a.Groups.GroupsOf(ctx, u.ID)
	}
	for _, identity := range u.Identities {
		in, err := a.Groups.store.GroupsAwaiting(ctx, identity)
		if err != nil {
			return nil, err
		}
		names = append(names, in...)
	}
	return names, nil
}
