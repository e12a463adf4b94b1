package api

import "nize/store"

// ListChannels lists the channels that have settings.
var ListChannels = Op[Empty, List[ChannelView]]{"GET", "/v1/channels", true, "list channels that have settings"}

// ChannelView is the settings of a chat channel.
type ChannelView struct {
	store.Channel
	Name      string `json:"name,omitempty"`       // the platform's name for it, if known
	WhoPress  string `json:"who_press,omitempty"`  // the approvers, by name
	WhoAdmins string `json:"who_admins,omitempty"` // the admins, by name
}

// SetChannel changes a channel's settings.
var SetChannel = Op[SetChannelRequest, ChannelView]{"PATCH", "/v1/channels/{place}", true, "change a channel's settings"}

// SetChannelRequest changes the fields that are set and leaves the rest; "" restores the
// default.
type SetChannelRequest struct {
	Place      string        `path:"place" json:"-"` // NAME:TEAM/CHANNEL, or CHANNEL alone
	Agent      *string       `json:"agent,omitempty"`
	Model      *string       `json:"model,omitempty"`
	Mode       *string       `json:"mode,omitempty"`
	Servers    *[]string     `json:"servers,omitempty"`     // an empty list allows none
	AllServers bool          `json:"all_servers,omitempty"` // restore the default
	Approvers  *store.Policy `json:"approvers,omitempty"`
	Language   *string       `json:"language,omitempty"`
	Admins     *[]string     `json:"admins,omitempty"` // user:U, group:G; an empty list is no one
}

// UnsetChannel deletes a channel's settings.
var UnsetChannel = Op[UnsetChannelRequest, Empty]{"DELETE", "/v1/channels/{place}", true, "delete a channel's settings"}

// UnsetChannelRequest names a channel.
type UnsetChannelRequest struct {
	Place string `path:"place" json:"-"`
}
