package api

import (
	"time"

	"nize/store"
)

// ListGroups lists the groups.
var ListGroups = Op[Empty, List[GroupView]]{"GET", "/v1/groups", true, "list groups"}

// GroupView is a group with its members' names and the servers it may use.
type GroupView struct {
	Name    string        `json:"name"`
	Members []GroupMember `json:"members"`
	Servers []string      `json:"servers"` // shared with it
	Created time.Time     `json:"created"`
	// Set if a chat platform or the identity provider keeps the group's members; see
	// [store.Group].
	Source string    `json:"source,omitempty"`
	Handle string    `json:"handle,omitempty"`
	Looked time.Time `json:"looked,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// GroupMember is a person in a group.
type GroupMember struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	State store.UserState `json:"state"`
}

// AddGroup creates a group. It returns ErrExists if the name is taken.
var AddGroup = Op[AddGroupRequest, GroupView]{"POST", "/v1/groups", true, "create a group"}

// AddGroupRequest is a group. Its members are either listed, by id, name or identity, or
// they are those of a group on a chat platform or at the identity provider.
type AddGroupRequest struct {
	Name    string   `json:"name"`
	Members []string `json:"members,omitempty"`
	// Usergroup is the platform's group, by id or handle, or NAME:GROUP if several
	// platforms have groups. The JSON name dates from when only Slack had any.
	Usergroup string `json:"slack_usergroup,omitempty"`
	// OIDCGroup is the identity provider's name of a group.
	OIDCGroup string `json:"oidc_group,omitempty"`
}

// GetGroup shows one group.
var GetGroup = Op[GetGroupRequest, GroupView]{"GET", "/v1/groups/{name}", true, "show a group"}

// GetGroupRequest names a group.
type GetGroupRequest struct {
	Name string `path:"name" json:"-"`
}

// PatchGroup changes a group's members.
var PatchGroup = Op[PatchGroupRequest, GroupView]{"PATCH", "/v1/groups/{name}", true, "add and remove people"}

// PatchGroupRequest adds and removes members.
type PatchGroupRequest struct {
	Name   string   `path:"name" json:"-"`
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// RemoveGroup removes a group if no server is shared with it.
var RemoveGroup = Op[RemoveGroupRequest, Empty]{"DELETE", "/v1/groups/{name}", true, "remove a group"}

// RemoveGroupRequest names a group.
type RemoveGroupRequest struct {
	Name string `path:"name" json:"-"`
}
