package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"nize/store"
)

// Decide is a person's decision on a waiting call.
type Decide struct {
	Verb    store.Verb       `json:"verb"`              // approve, run_all, deny, cancel, edit, retry or again
	Digest  string           `json:"digest,omitempty"`  // of the card that was shown; another one is ErrConflict
	Args    json.RawMessage  `json:"args,omitempty"`    // for edit
	Always  bool             `json:"always,omitempty"`  // also from now on
	For     store.GrantScope `json:"for,omitempty"`     // of that: me (the default), channel or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // of that: only where the arguments fit it
	Until   time.Time        `json:"until,omitzero"`    // of that: when it ends
	Exact   bool             `json:"exact,omitempty"`   // of that: only for these very arguments
	Reason  string           `json:"reason,omitempty"`
}

// AddGrant is a standing answer: a yes to this exact definition of a tool, or a
// no to the tool.
type AddGrant struct {
	Tool    string           `json:"tool"`
	Deny    bool             `json:"deny,omitempty"`
	For     store.GrantScope `json:"for,omitempty"`     // me (the default) or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // of arguments; see store.MatchArgs
	Expires time.Time        `json:"expires,omitzero"`
}

// Approvals lists the cards of waiting calls that the caller may see.
func (c *Client) Approvals(ctx context.Context) ([]store.Card, error) {
	return list[store.Card](ctx, c, request{method: "GET", path: "/v1/approvals"})
}

// Approval shows one card, also of a call that is decided.
func (c *Client) Approval(ctx context.Context, id string) (store.Card, error) {
	return do[store.Card](ctx, c, request{method: "GET", path: "/v1/approvals/" + url.PathEscape(id)})
}

// Decide settles a waiting call. First answer stands: later ones are
// ErrDecided, after expiry ErrExpired. After an edit it is the new call that
// comes back.
func (c *Client) Decide(ctx context.Context, id string, d Decide) (store.Call, error) {
	return do[store.Call](ctx, c, request{method: "POST", path: "/v1/approvals/" + url.PathEscape(id), body: d})
}

// Grants lists standing answers; user "" is all that the caller may see.
func (c *Client) Grants(ctx context.Context, user string) ([]store.Grant, error) {
	return list[store.Grant](ctx, c, request{method: "GET", path: "/v1/grants", query: query("user", user)})
}

// AddGrant makes a standing answer about a tool. Members answer for themselves.
func (c *Client) AddGrant(ctx context.Context, g AddGrant) (store.Grant, error) {
	return do[store.Grant](ctx, c, request{method: "POST", path: "/v1/grants", body: g})
}

// RevokeGrant removes a standing answer.
func (c *Client) RevokeGrant(ctx context.Context, id string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/grants/" + url.PathEscape(id)})
}

// Call shows one call.
func (c *Client) Call(ctx context.Context, id string) (store.Call, error) {
	return do[store.Call](ctx, c, request{method: "GET", path: "/v1/calls/" + url.PathEscape(id)})
}
