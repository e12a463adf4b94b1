package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/wire"
	"nize/store"
)

// Members and admins of a channel as Slack has them now: approvals ask at every press.

const (
	// freshMembers is how long a channel's list of members is used.
	freshMembers = 10 * time.Second
	// maxMemberPages limits that list to 20,000 people.
	maxMemberPages = 20
)

// Member reports whether a nize user is in the channel and a full member of the workspace.
func (d *Directory) Member(ctx context.Context, channel, user string) (bool, error) {
	u, err := d.o.Store.GetUser(ctx, user)
	if err != nil {
		return false, err
	}
	in, err := d.Members(ctx, channel)
	if err != nil {
		return false, err
	}
	for _, id := range IDs(u) {
		if !slices.Contains(in, id) {
			continue
		}
		p, err := d.LookUp(ctx, id, Fresh)
		if err != nil {
			return false, err
		}
		if p.Member {
			return true, nil
		}
	}
	return false, nil
}

// Admins returns the nize users who administer a channel: the workspace's admins and
// owners, and the channel's creator.
func (d *Directory) Admins(ctx context.Context, channel string) ([]string, error) {
	creator, err := d.rosters.Get("creator "+channel, Recent, func() ([]string, error) { return d.creator(ctx, channel) })
	if err != nil {
		return nil, err
	}
	return d.adminsAnd(ctx, creator)
}

// TeamAdmins returns the nize users who are admins or owners of the workspace.
func (d *Directory) TeamAdmins(ctx context.Context) ([]string, error) { return d.adminsAnd(ctx, nil) }

// adminsAnd returns the workspace's admins and owners, and the given people.
func (d *Directory) adminsAnd(ctx context.Context, creator []string) ([]string, error) {
	ids, err := d.rosters.Get("admins", Recent, func() ([]string, error) { return d.workspaceAdmins(ctx) })
	if err != nil {
		return nil, err
	}
	users, err := d.o.Store.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, u := range users {
		admin := slices.ContainsFunc(IDs(u), func(id string) bool {
			return slices.Contains(ids, id) && !d.lowered(id, true) || slices.Contains(creator, id) && !d.lowered(id, false)
		})
		if admin && u.State == store.Active {
			found = append(found, u.ID)
		}
	}
	return found, nil
}

// lowered reports whether a listed person was more recently seen without the rights that
// the list implies: not an admin, or not a full member. The lists may be minutes old, while
// a person who presses was just looked up.
func (d *Directory) lowered(id string, admin bool) bool {
	p, ok := d.known.Known(id, Fresh)
	return ok && (!p.Member || admin && !p.admin)
}

// IDs returns a user's Slack ids.
func IDs(u store.User) []string {
	var ids []string
	for _, identity := range u.Identities {
		parts := strings.Split(identity, ":")
		if len(parts) == 3 && parts[0] == "slack" {
			ids = append(ids, parts[2])
		}
	}
	return ids
}

func (d *Directory) Members(ctx context.Context, channel string) ([]string, error) {
	return d.rosters.Get("members "+channel, freshMembers, func() (all []string, err error) {
		cursor := ""
		for range maxMemberPages {
			err := d.o.Wire.Call(ctx, func(ctx context.Context) error {
				page, next, err := d.o.Wire.API.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: channel, Cursor: cursor, Limit: 1000})
				all, cursor = append(all, page...), next
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("asking Slack who is in %s: %w", channel, err)
			}
			if cursor == "" {
				break
			}
		}
		return all, nil
	})
}

func (d *Directory) workspaceAdmins(ctx context.Context) (ids []string, err error) {
	var all []slackgo.User
	err = d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
		all, err = d.o.Wire.API.GetUsersContext(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack for the workspace's admins: %w", err)
	}
	for _, u := range all {
		if (u.IsAdmin || u.IsOwner || u.IsPrimaryOwner) && !u.Deleted && !u.IsBot {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// ChannelName returns a channel's name, or ErrNotFound if nize can't see a channel with
// that id because it doesn't exist or is private.
func (d *Directory) ChannelName(ctx context.Context, channel string) (string, error) {
	names, err := d.rosters.Get("name "+channel, Recent, func() ([]string, error) {
		var c *slackgo.Channel
		err := d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
			c, err = d.o.Wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
			return err
		})
		switch {
		case wire.Code(err) == "channel_not_found":
			return nil, fmt.Errorf("channel %s: %w on Slack, or it is a private one without nize: invite it there first", channel, store.ErrNotFound)
		case err != nil:
			return nil, fmt.Errorf("asking Slack for the name of %s: %w", channel, err)
		}
		return []string{c.Name}, nil
	})
	if err != nil {
		return "", err
	}
	return names[0], nil
}

func (d *Directory) creator(ctx context.Context, channel string) (ids []string, err error) {
	err = d.o.Wire.Call(ctx, func(ctx context.Context) error {
		c, err := d.o.Wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
		if err == nil && c.Creator != "" {
			ids = []string{c.Creator}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack who made %s: %w", channel, err)
	}
	for _, id := range ids {
		p, err := d.LookUp(ctx, id, Recent)
		if err != nil {
			return nil, err
		}
		if !p.Member {
			return []string{}, nil
		}
	}
	return ids, nil
}
