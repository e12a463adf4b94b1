package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/bots"
	"nize/mcp/policy"
	"nize/store"
)

// channels asks the chat platforms who is in a channel, for policies that name
// it. A terminal's thread is no channel.
type channels struct{ d *Daemon }

// Member implements policy.Channels.
func (c channels) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	if on, ok := bots.On[bots.ChannelDirectory](c.d.bots, at.Surface); ok {
		return on.Member(ctx, at, user)
	}
	return false, nil
}

// Admins implements policy.Channels: the platform's, and those whom nize's admins
// named, who count also while the platform does not answer.
func (c channels) Admins(ctx context.Context, at store.Address) ([]string, error) {
	on, ok := bots.On[bots.ChannelDirectory](c.d.bots, at.Surface)
	if !ok {
		return nil, nil
	}
	named, err := c.named(ctx, at)
	admins, askErr := on.Admins(ctx, at)
	if err = errors.Join(err, askErr); err != nil {
		if len(named) == 0 {
			return nil, err
		}
		c.d.log.Warn("asking who administers a channel; only those count who were named", "channel", at.Channel, "err", err)
	}
	for _, id := range named {
		if !slices.Contains(admins, id) {
			admins = append(admins[:len(admins):len(admins)], id)
		}
	}
	return admins, nil
}

// named are the users whom nize's admins let administer the channel.
func (c channels) named(ctx context.Context, at store.Address) ([]string, error) {
	room, err := c.d.db.GetChannel(ctx, at.Place())
	if err != nil || len(room.Admins) == 0 {
		return nil, err
	}
	users, err := c.d.db.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	c.d.groups.Refresh(ctx, room.Admins)
	var ids []string
	for _, u := range users {
		if u.State != store.Active {
			continue
		}
		groups, err := c.d.groups.GroupsOf(ctx, u.ID)
		if err != nil { // a group only allows: who can't be looked up is in none
			c.d.log.Warn("reading groups; the user counts as in none", "user", u.ID, "err", err)
		}
		if store.Among(room.Admins, u.ID, groups) {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// audience is to whom cards are brought in private.
type audience struct {
	store.Users
	calls  store.Calls
	policy *policy.Engine
}

// Approvers implements [bots.Audience].
func (a audience) Approvers(ctx context.Context, call string) ([]store.User, error) {
	c, err := a.calls.GetCall(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", call, err)
	}
	return a.policy.OtherApprovers(ctx, c)
}

// Sees implements [bots.Audience].
func (a audience) Sees(ctx context.Context, by store.Caller, c store.Call) bool {
	return a.policy.Sees(ctx, by, c)
}
