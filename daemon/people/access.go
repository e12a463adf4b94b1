package daemon

import (
	"context"

	"nize/store"
)

// admits says whether bots.access lets somebody talk to nize whom their platform
// lets in. Whoever is not in a group that it names, by what was seen
// last, is looked up anew: they may have just come in.
func (d *Daemon) admits(ctx context.Context, u store.User) (bool, error) {
	access := store.AccessOf(d.config)
	if access.Admits(u, nil) {
		return true, nil
	}
	in, err := d.groupsAtDoor(ctx, u)
	if err != nil || access.Admits(u, in) {
		return err == nil, err
	}
	d.groups.refresh(ctx, access)
	in, err = d.groupsAtDoor(ctx, u)
	return err == nil && access.Admits(u, in), err
}

// groupsAtDoor names somebody's groups; who comes for the first time is in those
// of their platform.
func (d *Daemon) groupsAtDoor(ctx context.Context, u store.User) (names []string, err error) {
	if u.ID != "" {
		return d.groups.GroupsOf(ctx, u.ID)
	}
	for _, identity := range u.Identities {
		in, err := d.db.GroupsAwaiting(ctx, identity)
		if err != nil {
			return nil, err
		}
		names = append(names, in...)
	}
	return names, nil
}
