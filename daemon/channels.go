package daemon

import (
	"context"

	"nize/mcp"
	"nize/store"
)

// channels asks the chat platforms who is in a channel, for policies that name
// it (SPEC 11). A terminal's thread is no channel.
type channels struct{ d *Daemon }

// Member implements mcp.Channels.
func (c channels) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	if at.Surface != store.OnSlack {
		return false, nil
	}
	return c.d.slack.Member(ctx, at, user)
}

// Admins implements mcp.Channels.
func (c channels) Admins(ctx context.Context, at store.Address) ([]string, error) {
	if at.Surface != store.OnSlack {
		return nil, nil
	}
	return c.d.slack.Admins(ctx, at)
}

// audience is to whom cards are brought in private.
type audience struct {
	*mcp.Gateway
	store.Users
}
