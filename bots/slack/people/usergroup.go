package people

import (
	"context"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/account"
	"nize/bots/slack/incoming"
	"nize/bots/slack/manifest"
	"nize/bots/slack/wire"
	"nize/store"
)

// Slack's user groups, as members of nize's groups.

const (
	// fewPeople is the maximum number of group members who are looked up one by one; for
	// more, listing the whole workspace takes fewer requests.
	fewPeople = 50
	fullList  = "full members"
)

// UserGroup finds a user group of the workspace by its id or handle, and returns the source
// under which it is stored. If there is none, the error suggests the nearest handle.
func (d *Directory) UserGroup(ctx context.Context, name string) (source, handle string, err error) {
	var all []slackgo.UserGroup
	err = d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
		all, err = d.o.Wire.API.GetUserGroupsContext(ctx)
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("asking Slack for its user groups: %w", lackingScope(err))
	}
	name = strings.TrimPrefix(name, "@")
	var handles []string
	for _, g := range all {
		if g.DateDelete != 0 || !incoming.IDForm.MatchString(g.ID) {
			continue // disabled, so it has no members
		}
		if g.ID == name || g.Handle == name {
			return "slack:" + d.o.Team + ":" + g.ID, g.Handle, nil
		}
		handles = append(handles, g.Handle)
	}
	return "", "", store.Unknown("user group", name, handles)
}

// InUserGroup lists the identities of the current members of a user group, by its source.
// Of the people whom nize knows, it lists only full members of the workspace; others are
// checked at their first contact.
func (d *Directory) InUserGroup(ctx context.Context, group string) ([]string, error) {
	var ids []string
	err := d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
		ids, err = d.o.Wire.API.GetUserGroupMembersContext(ctx, group)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack who is in the user group %s: %w", group, lackingScope(err))
	}
	users, err := d.o.Store.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, u := range users {
		for _, identity := range u.Identities {
			if id := idOf(identity); id != "" {
				known[id] = identity
			}
		}
	}
	return d.fullMembers(ctx, ids, known)
}

// idOf returns the Slack id of an identity, "" for another platform's.
func idOf(identity string) string {
	if parts := strings.Split(identity, ":"); len(parts) == 3 && parts[0] == string(store.OnSlack) {
		return parts[2]
	}
	return ""
}

// fullMembers returns the identities of ids, without the known people who are guests, bots,
// in another workspace or deactivated.
func (d *Directory) fullMembers(ctx context.Context, ids []string, known map[string]string) ([]string, error) {
	asked := 0
	for _, id := range ids {
		if known[id] != "" {
			asked++
		}
	}
	isFull := func(id string) (bool, error) {
		p, err := d.LookUp(ctx, id, Recent)
		if wire.Code(err) == "user_not_found" {
			return false, nil
		}
		return p.Member, err
	}
	if asked > fewPeople {
		full, err := d.rosters.Get(fullList, Recent, func() ([]string, error) { return d.everyMember(ctx) })
		if err != nil {
			return nil, err
		}
		members := map[string]bool{}
		for _, id := range full {
			members[id] = true
		}
		isFull = func(id string) (bool, error) { return members[id], nil }
	}
	in := []string{}
	for _, id := range ids {
		if !incoming.IDForm.MatchString(id) {
			return nil, fmt.Errorf("%w user group: a member %.40q", store.ErrInvalid, id)
		}
		identity := known[id]
		if identity == "" {
			in = append(in, "slack:"+d.homeOf(id)+":"+id)
			continue
		}
		full, err := isFull(id)
		if err != nil {
			return nil, err
		}
		if full {
			in = append(in, identity)
		}
	}
	return in, nil
}

// homeOf returns the home workspace of a person whom nize may have looked up; people of
// another one are not members.
func (d *Directory) homeOf(id string) string {
	if p, ok := d.known.Known(id, account.Ever); ok {
		return p.Team
	}
	return d.o.Team
}

// everyMember lists the full members of the workspace.
func (d *Directory) everyMember(ctx context.Context) (ids []string, err error) {
	var all []slackgo.User
	err = d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
		all, err = d.o.Wire.API.GetUsersContext(ctx, slackgo.GetUsersOptionLimit(1000), slackgo.GetUsersOptionIncludeLocale(false))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack for its members: %w", err)
	}
	for _, u := range all {
		if fullMember(&u, d.o.Team) {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// lackingScope adds what to do if the app was installed before it requested a scope.
func lackingScope(err error) error {
	if wire.Code(err) != "missing_scope" {
		return err
	}
	return fmt.Errorf("%w: the installed app lacks a scope of %s: compare it with nizectl bots slack manifest, then install it again", err, strings.Join(manifest.Scopes(), ", "))
}
