package api

import (
	"encoding/json"

	"nize/store"
)

// ListUsers lists everybody.
var ListUsers = Op[Empty, List[store.User]]{"GET", "/v1/users", true, "list users"}

// UserView is a person and what acts in their name: what a disabling ends.
type UserView struct {
	store.User
	Teams       []string `json:"teams"` // NAME:TEAM of a platform, or local
	Groups      []string `json:"groups"`
	Tokens      []string `json:"tokens"`      // names of the active ones
	Waiting     int      `json:"waiting"`     // calls that wait for a yes
	Grants      int      `json:"grants"`      // standing answers
	Credentials int      `json:"credentials"` // personal ones
	// Emptied are groups, and so audiences and approvers, in which nobody who
	// can act is left after a change.
	Emptied []string `json:"emptied,omitempty"`
	// Lacking are servers and channels (by place) for whose calls too few
	// approvers are left after a change; approvals.approvers stands for that
	// setting.
	Lacking []string `json:"lacking,omitempty"`
}

// AddUser names a person. A name that somebody has is ErrExists.
var AddUser = Op[AddUserRequest, UserView]{"POST", "/v1/users", true, "name a person"}

// AddUserRequest names a person before they are met in a chat, so that there
// can be tokens for them.
type AddUserRequest struct {
	Name string     `json:"name"`
	Role store.Role `json:"role,omitempty"` // "" is member
}

// GetUser shows one person.
var GetUser = Op[GetUserRequest, UserView]{"GET", "/v1/users/{id}", true, "show a person and what acts in their name"}

// GetUserRequest names a person by id, name or identity, as all do.
type GetUserRequest struct {
	ID string `path:"id" json:"-"`
}

// PatchUser changes a person. The last admin stays one: ErrRefused.
var PatchUser = Op[PatchUserRequest, UserView]{"PATCH", "/v1/users/{id}", true, "change a person's role or state"}

// PatchUserRequest changes what is set.
type PatchUserRequest struct {
	ID    string           `path:"id" json:"-"`
	Role  *store.Role      `json:"role,omitempty"`
	State *store.UserState `json:"state,omitempty"`
}

// RemoveUser ends a person's access and forgets the record; what they did
// stays until its retention ends.
var RemoveUser = Op[RemoveUserRequest, UserView]{"DELETE", "/v1/users/{id}", true, "remove a person"}

// RemoveUserRequest names a person.
type RemoveUserRequest struct {
	ID string `path:"id" json:"-"`
}

// ForgetUser erases a person.
var ForgetUser = Op[ForgetUserRequest, store.Forgotten]{"POST", "/v1/users/{id}/forget", true, "erase a person"}

// ForgetUserRequest names a person; one who was removed by id.
type ForgetUserRequest struct {
	ID string `path:"id" json:"-"`
}

// ExportUser yields everything that is kept about a person.
var ExportUser = Stream[ExportUserRequest, UserRecord]{"GET", "/v1/users/{id}/export", false, "everything kept about a person"}

// ExportUserRequest names a person; one who was removed by id. Admins who export
// others need a reason.
type ExportUserRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// UserRecord is one record of what is kept about a person.
type UserRecord struct {
	Kind   string          `json:"kind"` // user, membership, group, setting, token, credential, grant, conversation, turn, call, usage, event
	Record json.RawMessage `json:"record"`
}

// Unlink takes an identity from a person.
var Unlink = Op[UnlinkRequest, UserView]{"DELETE", "/v1/users/{id}/identities/{identity}", true, "take an identity away"}

// UnlinkRequest names an identity of a person.
type UnlinkRequest struct {
	ID       string `path:"id" json:"-"`
	Identity string `path:"identity" json:"-"`
}
