package api

import (
	"context"
	"net/url"

	"nize/store"
)

// AddUser names a person before they are met in a chat, so that there can be
// tokens for them.
type AddUser struct {
	Name string     `json:"name"`
	Role store.Role `json:"role,omitempty"` // "" is member
}

// PatchUser changes what is set.
type PatchUser struct {
	Role  *store.Role      `json:"role,omitempty"`
	State *store.UserState `json:"state,omitempty"`
}

// UserView is a person and what acts in their name: what a disabling ends.
type UserView struct {
	store.User
	Teams       []string `json:"teams"` // slack:…, discord:…, local
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

// User shows one person, by id, name or identity.
func (c *Client) User(ctx context.Context, who string) (UserView, error) {
	return do[UserView](ctx, c, request{method: "GET", path: "/v1/users/" + url.PathEscape(who)})
}

// AddUser names a person. A name that somebody has is ErrExists.
func (c *Client) AddUser(ctx context.Context, u AddUser) (UserView, error) {
	return do[UserView](ctx, c, request{method: "POST", path: "/v1/users", body: u})
}

// PatchUser changes a person. The last admin stays one: ErrRefused.
func (c *Client) PatchUser(ctx context.Context, who string, p PatchUser) (UserView, error) {
	return do[UserView](ctx, c, request{method: "PATCH", path: "/v1/users/" + url.PathEscape(who), body: p})
}
