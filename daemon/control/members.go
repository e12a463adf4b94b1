package control

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"nize/bots"
	"nize/store"
)

// ChannelMembers looks up the members of channels on the chat platforms, for policies that
// name them. A terminal's thread is not a channel.
type ChannelMembers struct {
	Store interface {
		GetChannel(ctx context.Context, place string) (store.Channel, error)
		ListUsers(ctx context.Context) ([]store.User, error)
	}
	Bots   *bots.Registry
	Groups interface {
		GroupsOf(ctx context.Context, user string) ([]string, error)
		// Refresh reloads the groups in who, before they are used for a decision.
		Refresh(ctx context.Context, who []string)
	}
	Log *slog.Logger
}

// Member implements mcp.Channels.
func (c *ChannelMembers) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	if on, ok := bots.On[bots.ChannelDirectory](c.Bots, at.Surface); ok {
		return on.Member(ctx, at, user)
	}
	return false, nil
}

// Admins implements mcp.Channels. It returns the platform's channel admins, and those that
// nize's admins named, who count even if the platform does not respond.
func (c *ChannelMembers) Admins(ctx context.Context, at store.Address) ([]string, error) {
	on, ok := bots.On[bots.ChannelDirectory](c.Bots, at.Surface)
	if !ok {
		return nil, nil
	}
	named, err := c.named(ctx, at)
	admins, askErr := on.Admins(ctx, at)
	if err = errors.Join(err, askErr); err != nil {
		if len(named) == 0 {
			return nil, err
		}
		c.Log.Warn("looking up a channel's admins; only those named in its settings count", "channel", at.Channel, "err", err)
	}
	for _, id := range named {
		if !slices.Contains(admins, id) {
			admins = append(admins[:len(admins):len(admins)], id)
		}
	}
	return admins, nil
}

// named returns the users whom nize's admins named as the channel's admins.
func (c *ChannelMembers) named(ctx context.Context, at store.Address) ([]string, error) {
	channel, err := c.Store.GetChannel(ctx, at.Place())
	if err != nil || len(channel.Admins) == 0 {
		return nil, err
	}
	users, err := c.Store.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	c.Groups.Refresh(ctx, channel.Admins)
	var ids []string
	for _, u := range users {
		if u.State != store.Active {
			continue
		}
		groups, err := c.Groups.GroupsOf(ctx, u.ID)
		if err != nil { // Fail closed: a group only allows, so if the lookup fails the user is in none.
			c.Log.Warn("reading groups; treating the user as in none", "user", u.ID, "err", err)
		}
		if store.Among(channel.Admins, u.ID, groups) {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// Administers reports whether a person may change a channel's settings: nize's admins and
// the channel's may. It returns false if the lookup fails.
func (c *ChannelMembers) Administers(ctx context.Context, by store.Caller, at store.Address) bool {
	if by.IsAdmin() {
		return true
	}
	admins, err := c.Admins(ctx, at)
	if err != nil {
		c.Log.Warn("looking up a channel's admins; treating the channel as without any", "channel", at.Channel, "err", err)
		return false
	}
	return slices.Contains(admins, by.User)
}
