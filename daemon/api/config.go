package api

import (
	"context"
	"net/url"
)

// Explanation is why a setting is what it is: every layer's value in the order
// in which they are asked.
type Explanation struct {
	Setting
	Layers []Layer `json:"layers"`
	Change string  `json:"change"` // how to change it, as a command where there is one
}

// Layer is one place where a setting can be set.
type Layer struct {
	Name    string `json:"layer"` // flag, environment, file, system, default or user
	Set     bool   `json:"set"`
	Value   string `json:"value,omitempty"`
	Where   string `json:"where,omitempty"` // the flag's or variable's name, file and line, a command
	Decides bool   `json:"decides,omitempty"`
	Note    string `json:"note,omitempty"`
}

// ExplainSetting tells where a setting comes from; user "" is the system's
// view.
func (c *Client) ExplainSetting(ctx context.Context, user, key string) (Explanation, error) {
	return do[Explanation](ctx, c, request{method: "GET", path: "/v1/config/" + url.PathEscape(key), query: query("user", user)})
}
