package api

import (
	"encoding/json"

	"nize/store"
)

// ListUsers lists all users.
var ListUsers = Op[Empty, List[store.User]]{"GET", "/v1/users", true, "list users"}

// UserView is a person and everything that acts in their name, which disabling them ends.
type UserView struct {
	store.User
	Teams       []string `json:"teams"` // NAME:TEAM of a platform, or local
	Groups      []string `json:"groups"`
	Tokens      []string `json:"tokens"`      // names of the active ones
	Waiting     int      `json:"waiting"`     // pending calls
	Grants      int      `json:"grants"`      // standing answers
	Credentials int      `json:"credentials"` // personal ones
	// Emptied lists the groups, and therefore audiences and approvers, that have no active
	// member left after a change.
	Emptied []string `json:"emptied,omitempty"`
	// Lacking lists the servers and channels (by place) that have too few approvers left
	// after a change; approvals.approvers stands for that setting.
	Lacking []string `json:"lacking,omitempty"`
}

// AddUser creates a user. It returns ErrExists if the name is taken.
var AddUser = Op[AddUserRequest, UserView]{"POST", "/v1/users", true, "add a person"}

// AddUserRequest names a person who hasn't used a chat yet, so that they can have tokens.
type AddUserRequest struct {
	Name string     `json:"name"`
	Role store.Role `json:"role,omitempty"` // "" is member
}

// GetUser returns one person.
var GetUser = Op[GetUserRequest, UserView]{"GET", "/v1/users/{id}", true, "show a person and what acts in their name"}

// GetUserRequest names a person by id, name or identity, as all requests do.
type GetUserRequest struct {
	ID string `path:"id" json:"-"`
}

// PatchUser changes a person. It returns ErrRefused for a change that would leave no admin.
var PatchUser = Op[PatchUserRequest, UserView]{"PATCH", "/v1/users/{id}", true, "change a person's role, state, name or email address"}

// PatchUserRequest changes the fields that are set.
type PatchUserRequest struct {
	ID    string           `path:"id" json:"-"`
	Role  *store.Role      `json:"role,omitempty"`
	State *store.UserState `json:"state,omitempty"`
	Name  *string          `json:"name,omitempty"`  // the display name
	Email *string          `json:"email,omitempty"` // "" removes it
}

// RemoveUser ends a person's access and deletes the user; records of what they did stay
// until their retention ends.
var RemoveUser = Op[RemoveUserRequest, UserView]{"DELETE", "/v1/users/{id}", true, "remove a person"}

// RemoveUserRequest names a person.
type RemoveUserRequest struct {
	ID string `path:"id" json:"-"`
}

// ForgetUser erases a person's data.
var ForgetUser = Op[ForgetUserRequest, store.Forgotten]{"POST", "/v1/users/{id}/forget", true, "erase a person"}

// ForgetUserRequest names a person; a removed one by id.
type ForgetUserRequest struct {
	ID string `path:"id" json:"-"`
}

// ExportUser yields all data about a person.
var ExportUser = Stream[ExportUserRequest, UserRecord]{"GET", "/v1/users/{id}/export", false, "export everything stored about a person"}

// ExportUserRequest names a person; a removed one by id. An admin who exports another
// person's data must give a reason.
type ExportUserRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// UserRecord is one record about a person.
type UserRecord struct {
	Kind   string          `json:"kind"` // user, membership, group, setting, token, credential, grant, conversation, turn, call, usage, event
	Record json.RawMessage `json:"record"`
}

// Unlink removes an identity from a person.
var Unlink = Op[UnlinkRequest, UserView]{"DELETE", "/v1/users/{id}/identities/{identity}", true, "remove an identity"}

// UnlinkRequest names an identity of a person.
type UnlinkRequest struct {
	ID       string `path:"id" json:"-"`
	Identity string `path:"identity" json:"-"`
}
