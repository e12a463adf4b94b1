package api

import (
	"context"
	"net/url"

	"nize/store"
)

// ChannelView is how nize is set up in a channel of a chat.
type ChannelView struct {
	store.Channel
	Name      string `json:"name,omitempty"`       // as the platform calls it, where it says so
	WhoPress  string `json:"who_press,omitempty"`  // the approvers, by name
	WhoAdmins string `json:"who_admins,omitempty"` // the admins, by name
}

// SetChannel changes what is given and leaves the rest; "" is the default again.
type SetChannel struct {
	Agent      *string       `json:"agent,omitempty"`
	Model      *string       `json:"model,omitempty"`
	Mode       *string       `json:"mode,omitempty"`
	Servers    *[]string     `json:"servers,omitempty"`     // none of them for an empty list
	AllServers bool          `json:"all_servers,omitempty"` // the default again
	Approvers  *store.Policy `json:"approvers,omitempty"`
	Language   *string       `json:"language,omitempty"`
	Admins     *[]string     `json:"admins,omitempty"` // user:U, group:G; nobody for an empty list
}

func channelPath(place string) string { return "/v1/channels/" + url.PathEscape(place) }

// Channels lists the channels that are set up.
func (c *Client) Channels(ctx context.Context) ([]ChannelView, error) {
	return list[ChannelView](ctx, c, request{method: "GET", path: "/v1/channels"})
}

// SetChannel sets a channel up: slack:TEAM/CHANNEL, or CHANNEL alone.
func (c *Client) SetChannel(ctx context.Context, place string, s SetChannel) (ChannelView, error) {
	return do[ChannelView](ctx, c, request{method: "PATCH", path: channelPath(place), body: s})
}

// UnsetChannel forgets how a channel is set up.
func (c *Client) UnsetChannel(ctx context.Context, place string) error {
	return exec(ctx, c, request{method: "DELETE", path: channelPath(place)})
}
