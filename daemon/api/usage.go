package api

import (
	"context"
	"net/url"
	"strconv"

	"nize/store"
)

// PriceView is what a model costs and who says so.
type PriceView struct {
	store.Price
	Known  bool   `json:"known"`            // false: nobody knows; In, Cached and Out say nothing
	Source string `json:"source,omitempty"` // admin, table, provider (names the cost in its answers), local (costs nothing)
	AsOf   string `json:"as_of,omitempty"`  // of the table
	// Above is what calls with a prompt of more than so many tokens cost.
	Above *PriceAbove `json:"above,omitempty"`
}

// PriceAbove is a second price, for long prompts.
type PriceAbove struct {
	Tokens int64   `json:"tokens"`
	In     float64 `json:"in"`
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// SetPrice sets a price, in US dollars per million tokens.
type SetPrice struct {
	In     float64  `json:"in"`
	Out    float64  `json:"out"`
	Cached *float64 `json:"cached,omitempty"` // nil is In
}

// Usage sums what model calls (by tool: tool calls) cost since a time. Members
// get their own.
func (c *Client) Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error) {
	v := query("since", stamp(q.Since), "by", q.By, "user", q.User)
	if q.Zone != nil {
		v.Set("zone", q.Zone.String())
	}
	if q.Top > 0 {
		v.Set("top", strconv.Itoa(q.Top))
	}
	return do[store.UsageReport](ctx, c, request{method: "GET", path: "/v1/usage", query: v})
}

// Price shows what provider/model costs.
func (c *Client) Price(ctx context.Context, model string) (PriceView, error) {
	return do[PriceView](ctx, c, request{method: "GET", path: "/v1/prices/" + url.PathEscape(model)})
}

// SetPrice sets what provider/model costs.
func (c *Client) SetPrice(ctx context.Context, model string, p SetPrice) (PriceView, error) {
	return do[PriceView](ctx, c, request{method: "PUT", path: "/v1/prices/" + url.PathEscape(model), body: p})
}

// UnsetPrice forgets a price that was set and returns what holds then.
func (c *Client) UnsetPrice(ctx context.Context, model string) (PriceView, error) {
	return do[PriceView](ctx, c, request{method: "DELETE", path: "/v1/prices/" + url.PathEscape(model)})
}
