package api

import (
	"context"
	"net/url"
	"time"

	"nize/store"
)

// AddGroup makes a group of people, by id, name or identity, or of those who
// are in a Slack user group, by its id or handle: either, not both.
type AddGroup struct {
	Name           string   `json:"name"`
	Members        []string `json:"members,omitempty"`
	SlackUsergroup string   `json:"slack_usergroup,omitempty"`
}

// PatchGroup takes people in and out.
type PatchGroup struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// GroupView is a group with its members' names and what it may use.
type GroupView struct {
	Name    string        `json:"name"`
	Members []GroupMember `json:"members"`
	Servers []string      `json:"servers"` // shared with it
	Created time.Time     `json:"created"`
	// Of a group whose members a chat platform knows; see [store.Group].
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

// Groups lists the groups.
func (c *Client) Groups(ctx context.Context) ([]GroupView, error) {
	return list[GroupView](ctx, c, request{method: "GET", path: "/v1/groups"})
}

// Group shows one group.
func (c *Client) Group(ctx context.Context, name string) (GroupView, error) {
	return do[GroupView](ctx, c, request{method: "GET", path: "/v1/groups/" + url.PathEscape(name)})
}

// AddGroup makes a group. A name that is taken is ErrExists.
func (c *Client) AddGroup(ctx context.Context, g AddGroup) (GroupView, error) {
	return do[GroupView](ctx, c, request{method: "POST", path: "/v1/groups", body: g})
}

// PatchGroup changes who is in a group.
func (c *Client) PatchGroup(ctx context.Context, name string, p PatchGroup) (GroupView, error) {
	return do[GroupView](ctx, c, request{method: "PATCH", path: "/v1/groups/" + url.PathEscape(name), body: p})
}

// RemoveGroup removes a group with which no server is shared.
func (c *Client) RemoveGroup(ctx context.Context, name string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/groups/" + url.PathEscape(name)})
}
