package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"time"

	"nize/store"
)

// Decide is a person's decision on a waiting call.
type Decide struct {
	Verb   store.Verb      `json:"verb"`             // approve, deny, cancel or edit
	Digest string          `json:"digest,omitempty"` // of the card that was shown; another one is ErrConflict
	Args   json.RawMessage `json:"args,omitempty"`   // for edit
	Always bool            `json:"always,omitempty"` // also from now on
	Reason string          `json:"reason,omitempty"`
}

// AuditQuery selects events of the audit trail.
type AuditQuery struct {
	Since   time.Time
	User    string
	Tool    string // server:tool or server:*
	Outcome store.State
	Kind    string // or its head before the dot
	Limit   int    // the newest so many; 0 is 100
	Follow  bool   // and go on with what comes
}

// Verified is the state of the audit chain.
type Verified struct {
	OK     bool   `json:"ok"`
	Events int    `json:"events"` // that hold, from the first
	Error  string `json:"error,omitempty"`
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

// RevokeGrant removes a standing answer.
func (c *Client) RevokeGrant(ctx context.Context, id string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/grants/" + url.PathEscape(id)})
}

// Call shows one call.
func (c *Client) Call(ctx context.Context, id string) (store.Call, error) {
	return do[store.Call](ctx, c, request{method: "GET", path: "/v1/calls/" + url.PathEscape(id)})
}

// Audit yields events, oldest first: the newest Limit ones that match and, with
// Follow, what comes.
func (c *Client) Audit(ctx context.Context, q AuditQuery) iter.Seq2[store.Event, error] {
	v := query("since", stamp(q.Since), "user", q.User, "tool", q.Tool, "outcome", string(q.Outcome), "kind", q.Kind, "follow", flag(q.Follow))
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return stream[store.Event](ctx, c, request{method: "GET", path: "/v1/audit", query: v})
}

// VerifyAudit recomputes the chain.
func (c *Client) VerifyAudit(ctx context.Context) (Verified, error) {
	return do[Verified](ctx, c, request{method: "GET", path: "/v1/audit/verify"})
}
