package api

import (
	"context"
	"net/url"

	"nize/store"
)

// Why is what the gateway's rules say of a tool for one person.
type Why struct {
	Tool     string       `json:"tool_id"`
	User     string       `json:"user"`
	UserName string       `json:"user_name"`
	Usable   bool         `json:"usable"`
	Rules    []WhyRule    `json:"rules"`              // in the order in which they are asked
	Approval *WhyApproval `json:"approval,omitempty"` // absent where the tool is not usable
}

// WhyRule is one rule and what it says.
type WhyRule struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"` // allows or denies; of an approval: asks, asks unless lifted, lifts, or "" for nothing
	Says    string `json:"says,omitempty"`
	Decides bool   `json:"decides,omitempty"`
	Command string `json:"command,omitempty"` // that changes it
}

// WhyApproval says whether a call would need a yes, and whose.
type WhyApproval struct {
	Asks      bool      `json:"asks"`
	Reason    string    `json:"reason,omitempty"`
	RunsAs    string    `json:"runs_as"`
	Private   bool      `json:"private,omitempty"` // its results are for who asks alone
	Approvers string    `json:"approvers,omitempty"`
	Rules     []WhyRule `json:"rules"`
	Deciders  []WhyRule `json:"deciders,omitempty"` // by which rule they may press: the verdict is the policy
}

// WhyQuery says for whom; zero values narrow nothing.
type WhyQuery struct {
	User  string // id, name or identity; "" is the caller
	Agent string
	Token string // the name of a token of that person

	Channel string // slack:TEAM/CHANNEL, or CHANNEL alone
}

// Forgotten counts what was forgotten.
type Forgotten struct {
	Forgotten int `json:"forgotten"`
}

// Why asks the gateway's rules. Members may ask about themselves.
func (c *Client) Why(ctx context.Context, tool string, q WhyQuery) (Why, error) {
	return do[Why](ctx, c, request{method: "GET", path: "/v1/tools/" + url.PathEscape(tool) + "/why", query: query("user", q.User, "agent", q.Agent, "token", q.Token, "channel", q.Channel)})
}

// Wanted ranks what was asked for and no tool could do, within 30 days.
func (c *Client) Wanted(ctx context.Context) ([]store.UnmetRequest, error) {
	return list[store.UnmetRequest](ctx, c, request{method: "GET", path: "/v1/tools/wanted"})
}

// ForgetWanted forgets what text would count for, or all for "".
func (c *Client) ForgetWanted(ctx context.Context, text string) (Forgotten, error) {
	return do[Forgotten](ctx, c, request{method: "DELETE", path: "/v1/tools/wanted", query: query("text", text, "all", flag(text == ""))})
}
