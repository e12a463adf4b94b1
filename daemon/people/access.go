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

// Admits says whether bots.access lets somebody talk to nize whose platform lets
// them in. Anyone who was not in a group that it names when it was last looked
// at is looked up again: they may have just come in.
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

// groupsOf names somebody's groups; one who comes for the first time is in those
// of their platform.
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
