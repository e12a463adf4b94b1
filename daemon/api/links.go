package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"

	"nize/store"
)

// MakeLink asks for a code that joins whoever gives it with a user.
type MakeLink struct {
	User string `json:"user,omitempty"` // "" is the caller; others for admins
}

// LinkCode is a code, shown once.
type LinkCode struct {
	Code    Secret     `json:"code"`
	User    store.User `json:"user"`
	Expires time.Time  `json:"expires"`
}

// UseLink gives a code.
type UseLink struct {
	Code Secret     `json:"code"`
	Role store.Role `json:"role,omitempty"` // of both together; "" is the lower of the two
}

// LinkView is who would be joined.
type LinkView struct {
	You   store.User `json:"you"`   // who survives
	Other store.User `json:"other"` // whose code it is
}

// UserRecord is one record of what is kept about a person.
type UserRecord struct {
	Kind   string          `json:"kind"` // user, membership, group, setting, token, credential, grant, conversation, turn, call, usage, event
	Record json.RawMessage `json:"record"`
}

// MakeLink makes a code.
func (c *Client) MakeLink(ctx context.Context, l MakeLink) (LinkCode, error) {
	return do[LinkCode](ctx, c, request{method: "POST", path: "/v1/links", body: l})
}

// LookAtLink shows who would be joined. Wrong codes are counted.
func (c *Client) LookAtLink(ctx context.Context, l UseLink) (LinkView, error) {
	return do[LinkView](ctx, c, request{method: "POST", path: "/v1/links/look", body: l})
}

// Join joins the caller with whose code it is.
func (c *Client) Join(ctx context.Context, l UseLink) (store.Joined, error) {
	return do[store.Joined](ctx, c, request{method: "POST", path: "/v1/links/join", body: l})
}

func userPath(who, rest string) string { return "/v1/users/" + url.PathEscape(who) + rest }

// Unlink takes an identity from a person.
func (c *Client) Unlink(ctx context.Context, who, identity string) (UserView, error) {
	return do[UserView](ctx, c, request{method: "DELETE", path: userPath(who, "/identities/"+url.PathEscape(identity))})
}

// RemoveUser ends a person's access and forgets the record; what they did
// stays until its retention ends.
func (c *Client) RemoveUser(ctx context.Context, who string) (UserView, error) {
	return do[UserView](ctx, c, request{method: "DELETE", path: userPath(who, "")})
}

// ForgetUser erases a person, also one who was removed, by id.
func (c *Client) ForgetUser(ctx context.Context, who string) (store.Forgotten, error) {
	return do[store.Forgotten](ctx, c, request{method: "POST", path: userPath(who, "/forget")})
}

// ExportUser yields everything that is kept about a person, also one who was
// removed, by id. Admins who export others need a reason.
func (c *Client) ExportUser(ctx context.Context, who, reason string) iter.Seq2[UserRecord, error] {
	return stream[UserRecord](ctx, c, request{method: "GET", path: userPath(who, "/export"), query: query("reason", reason)})
}
