package daemon

import (
	"context"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

// What members, who may come in by socket.group, learn of servers: those that
// are shared with them exist, and how they are; how they are run (commands,
// environment, addresses, last words) is for admins. A server that is not
// shared gives the same error as one that is not there.

// mayKnow refuses a server that is not shared with the caller; a miss names
// the nearest of those that are.
func (d *Daemon) mayKnow(ctx context.Context, by store.Caller, name string) error {
	if by.IsAdmin() {
		return nil
	}
	all, err := d.db.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	var names []string
	for _, s := range all {
		if s.SharedWith(by, groups) {
			names = append(names, s.Name)
		}
	}
	if slices.Contains(names, name) {
		return nil
	}
	return store.Unknown("server", name, names)
}

// forCaller is a view without what is for admins.
func forCaller(by store.Caller, v api.ServerView) api.ServerView {
	if by.IsAdmin() {
		return v
	}
	v.LastError, v.Warnings = "", nil
	v.Server = store.Server{Name: v.Server.Name, Transport: v.Server.Transport, Description: v.Server.Description, Domain: v.Server.Domain, Disabled: v.Server.Disabled, Created: v.Server.Created, Revision: v.Server.Revision}
	v.Tools = slices.DeleteFunc(v.Tools, func(t api.ToolView) bool { return t.State != store.ToolAccepted })
	return v
}

// mayUse refuses the name of a server that there is not, for the caller.
func (d *Daemon) mayUse(ctx context.Context, by store.Caller, name string) error {
	if err := d.mayKnow(ctx, by, name); err != nil {
		return err
	}
	_, err := d.server(ctx, name)
	return err
}
