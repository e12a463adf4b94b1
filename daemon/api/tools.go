package api

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"nize/store"
)

// ToolView is a tool in a list.
type ToolView struct {
	ID          string          `json:"tool_id"`
	Server      string          `json:"server_id"`
	Name        string          `json:"tool_name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Domain      string          `json:"domain,omitempty"`
	State       store.ToolState `json:"state"`
	Findings    []string        `json:"findings,omitempty"`
}

// ToolSchema is one tool whole.
type ToolSchema struct {
	ToolView
	InputSchema   json.RawMessage   `json:"input_schema"`
	OutputSchema  json.RawMessage   `json:"output_schema,omitempty"`
	Annotations   store.Annotations `json:"annotations,omitzero"`
	Pin           string            `json:"pin"`
	Accepted      string            `json:"accepted,omitempty"`
	NeedsApproval bool              `json:"needs_approval"`
	Why           string            `json:"approval_reason,omitempty"` // the rule that decided
	Private       bool              `json:"private,omitempty"`         // what it returns to the caller is for them alone
}

// Search asks for tools by what they do. Zero values are the
// defaults of the index.
type Search struct {
	Query  string
	Domain string
	TopK   int
	Min    float64
	// Explain asks for each answer's shares.
	Explain bool
}

// Found is the answer to a search; the order is the rank.
type Found struct {
	Tools    []FoundTool `json:"tools"`
	Degraded bool        `json:"degraded,omitempty"`
	Note     string      `json:"note,omitempty"`
}

// FoundTool is one answer.
type FoundTool struct {
	ID                string  `json:"tool_id"`
	Name              string  `json:"tool_name"`
	Description       string  `json:"description"`
	Domain            string  `json:"domain"`
	ServerID          string  `json:"server_id"`
	ServerName        string  `json:"server_name"`
	ServerDescription string  `json:"server_description,omitempty"`
	Score             float64 `json:"score"`
	Shares            []Share `json:"shares,omitempty"` // where they were asked for
}

// Share is what one signal adds to a tool's place in the ranking, in units of
// what the request's words give the best tool. The score is another measure:
// how much of the request the tool covers.
type Share struct {
	Signal string  `json:"signal"`
	Value  float64 `json:"value"`
}

// CallTool runs a tool. Args are JSON as the person wrote them.
type CallTool struct {
	Args json.RawMessage `json:"args"`
}

// Domain is a field that tools belong to.
type Domain struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	ToolCount   int    `json:"tool_count"`
}

// DomainTools is a page of a domain.
type DomainTools struct {
	Items      []ToolView `json:"items"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// Tools lists the tools of one server, or of all for "".
func (c *Client) Tools(ctx context.Context, server string) ([]ToolView, error) {
	return list[ToolView](ctx, c, request{method: "GET", path: "/v1/tools", query: query("server", server)})
}

// SearchTools finds tools.
func (c *Client) SearchTools(ctx context.Context, s Search) (Found, error) {
	q := query("q", s.Query, "domain", s.Domain)
	if s.TopK > 0 {
		q.Set("top_k", strconv.Itoa(s.TopK))
	}
	if s.Min > 0 {
		q.Set("min", strconv.FormatFloat(s.Min, 'g', -1, 64))
	}
	if s.Explain {
		q.Set("explain", "1")
	}
	return do[Found](ctx, c, request{method: "GET", path: "/v1/tools/search", query: q})
}

// Tool shows one tool by its id.
func (c *Client) Tool(ctx context.Context, id string) (ToolSchema, error) {
	return do[ToolSchema](ctx, c, request{method: "GET", path: "/v1/tools/" + url.PathEscape(id)})
}

// CallTool runs one tool and waits for its end. The caller at the socket is the
// approver where they may approve; a call that then still waits comes back as
// pending. A call that was refused or failed is a record, not an error.
func (c *Client) CallTool(ctx context.Context, id string, t CallTool) (store.Call, error) {
	return do[store.Call](ctx, c, request{method: "POST", path: "/v1/tools/" + url.PathEscape(id) + "/call", body: t})
}

// Domains lists the domains.
func (c *Client) Domains(ctx context.Context) ([]Domain, error) {
	return list[Domain](ctx, c, request{method: "GET", path: "/v1/domains"})
}

// Domain lists the tools of one domain, from cursor ("" is the start).
func (c *Client) Domain(ctx context.Context, id, cursor string) (DomainTools, error) {
	return do[DomainTools](ctx, c, request{method: "GET", path: "/v1/domains/" + url.PathEscape(id), query: query("cursor", cursor)})
}
