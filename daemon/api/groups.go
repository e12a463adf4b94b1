package api

import (
	"time"

	"nize/store"
)

// ListGroups lists the groups.
var ListGroups = Op[Empty, List[GroupView]]{"GET", "/v1/groups", true, "list groups"}

// GroupView is a group with its members' names and what it may use.
type GroupView struct {
	Name    string        `json:"name"`
	Members []GroupMember `json:"members"`
	Servers []string      `json:"servers"` // shared with it
	Created time.Time     `json:"created"`
	// Of a group whose members a chat platform or the identity provider knows; see
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

// AddGroup makes a group. A name that is taken is ErrExists.
var AddGroup = Op[AddGroupRequest, GroupView]{"POST", "/v1/groups", true, "make a group"}

// AddGroupRequest is a group of people, by id, name or identity, or of those who
// are in a group on a chat platform or at the identity provider: one of these.
type AddGroupRequest struct {
	Name    string   `json:"name"`
	Members []string `json:"members,omitempty"`
	// Usergroup is that group by its id or handle, or NAME:GROUP where several
	// platforms have groups. Its name on the wire is from when one had.
	Usergroup string `json:"slack_usergroup,omitempty"`
	// OIDCGroup is a group as the identity provider names it, instead.
	OIDCGroup string `json:"oidc_group,omitempty"`
}

// GetGroup shows one group.
var GetGroup = Op[GetGroupRequest, GroupView]{"GET", "/v1/groups/{name}", true, "show a group"}

// GetGroupRequest names a group.
type GetGroupRequest struct {
	Name string `path:"name" json:"-"`
}

// PatchGroup changes who is in a group.
var PatchGroup = Op[PatchGroupRequest, GroupView]{"PATCH", "/v1/groups/{name}", true, "take people in and out"}

// PatchGroupRequest takes people in and out.
type PatchGroupRequest struct {
	Name   string   `path:"name" json:"-"`
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// RemoveGroup removes a group with which no server is shared.
var RemoveGroup = Op[RemoveGroupRequest, Empty]{"DELETE", "/v1/groups/{name}", true, "remove a group"}

// RemoveGroupRequest names a group.
type RemoveGroupRequest struct {
	Name string `path:"name" json:"-"`
}
