package api

import "nize/store"

// ListChannels lists the channels that are set up.
var ListChannels = Op[Empty, List[ChannelView]]{"GET", "/v1/channels", true, "list channels that are set up"}

// ChannelView is how nize is set up in a channel of a chat.
type ChannelView struct {
	store.Channel
	Name      string `json:"name,omitempty"`       // as the platform calls it, where it says so
	WhoPress  string `json:"who_press,omitempty"`  // the approvers, by name
	WhoAdmins string `json:"who_admins,omitempty"` // the admins, by name
}

// SetChannel sets a channel up.
var SetChannel = Op[SetChannelRequest, ChannelView]{"PATCH", "/v1/channels/{place}", true, "set a channel up"}

// SetChannelRequest changes what is given and leaves the rest; "" is the default
// again.
type SetChannelRequest struct {
	Place      string        `path:"place" json:"-"` // NAME:TEAM/CHANNEL, or CHANNEL alone
	Agent      *string       `json:"agent,omitempty"`
	Model      *string       `json:"model,omitempty"`
	Mode       *string       `json:"mode,omitempty"`
	Servers    *[]string     `json:"servers,omitempty"`     // none of them for an empty list
	AllServers bool          `json:"all_servers,omitempty"` // the default again
	Approvers  *store.Policy `json:"approvers,omitempty"`
	Language   *string       `json:"language,omitempty"`
	Admins     *[]string     `json:"admins,omitempty"` // user:U, group:G; nobody for an empty list
}

// UnsetChannel forgets how a channel is set up.
var UnsetChannel = Op[UnsetChannelRequest, Empty]{"DELETE", "/v1/channels/{place}", true, "forget how a channel is set up"}

// UnsetChannelRequest names a channel.
type UnsetChannelRequest struct {
	Place string `path:"place" json:"-"`
}
