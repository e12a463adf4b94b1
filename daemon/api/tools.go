package api

import (
	"encoding/json"
	"time"

	"nize/store"
	"nize/store/display"
)

// ListTools lists the tools of one server, or of all for "".
var ListTools = Op[ListToolsRequest, List[ToolView]]{"GET", "/v1/tools", false, "list tools"}

// ListToolsRequest names a server, or none.
type ListToolsRequest struct {
	Server string `query:"server" json:"-"`
}

// ToolView is a tool in a list.
type ToolView struct {
	ID          string          `json:"id"`
	ToolID      string          `json:"tool_id"` // the same value, for older scripts
	Server      string          `json:"server_id"`
	Name        string          `json:"tool_name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Domain      string          `json:"domain,omitempty"`
	State       store.ToolState `json:"state"`
	Findings    []string        `json:"findings,omitempty"`
	ViewDomains []string        `json:"view_domains,omitempty"` // external origins that its view declares
}

// ToolRequest names a tool by its id.
type ToolRequest struct {
	ID string `path:"id" json:"-"`
}

// GetIndex returns which tools are embedded, and by which model.
var GetIndex = Op[Empty, IndexView]{"GET", "/v1/tools/index", true, "show the state of the tool index"}

// IndexView is the index of tools.
type IndexView struct {
	Model     string        `json:"model"`            // model whose vectors are in use
	Wanted    string        `json:"wanted,omitempty"` // model that will replace it, if any
	State     string        `json:"state"`            // complete, embedding or failing
	Tools     int           `json:"tools"`
	Embedded  int           `json:"embedded"`
	Computed  int           `json:"computed"` // vectors since the start
	Failures  int           `json:"failures"` // consecutive failures of the model
	LastError string        `json:"last_error,omitempty"`
	FailedAt  time.Time     `json:"failed_at,omitzero"`
	Servers   []IndexServer `json:"servers"`
}

// IndexServer is the index of one server's tools.
type IndexServer struct {
	Name      string    `json:"name"`
	Tools     int       `json:"tools"` // searchable ones
	Embedded  int       `json:"embedded"`
	Pending   int       `json:"pending"`              // not yet embedded by the wanted model
	Without   int       `json:"without"`              // without a usable vector: found by words only
	Held      int       `json:"held,omitempty"`       // awaiting acceptance, not searchable
	Taken     time.Time `json:"taken,omitzero"`       // when its tools were last read
	Filled    time.Time `json:"embedded_at,omitzero"` // when the newest vector was computed
	LastError string    `json:"last_error,omitempty"` // why its tools can't be read now
}

// GetTool returns one tool by its id.
var GetTool = Op[ToolRequest, ToolSchema]{"GET", "/v1/tools/{id}", false, "show a tool and its schema"}

// ToolSchema is a whole tool.
type ToolSchema struct {
	ToolView
	InputSchema   json.RawMessage   `json:"input_schema"`
	OutputSchema  json.RawMessage   `json:"output_schema,omitempty"`
	Annotations   store.Annotations `json:"annotations,omitzero"`
	Pin           string            `json:"pin"`
	Accepted      string            `json:"accepted,omitempty"`
	NeedsApproval bool              `json:"needs_approval"`
	Why           string            `json:"approval_reason,omitempty"` // the deciding rule
	Private       bool              `json:"private,omitempty"`         // its results are visible to the caller only
}

// SearchTools finds tools by what they do.
var SearchTools = Op[SearchToolsRequest, Found]{"GET", "/v1/tools/search", false, "find tools by what they do"}

// SearchToolsRequest describes what a tool should do. Zero values are the defaults of the
// index.
type SearchToolsRequest struct {
	Query  string  `query:"q" json:"-"`
	Domain string  `query:"domain" json:"-"`
	TopK   int     `query:"top_k" json:"-"`
	Min    float64 `query:"min" json:"-"`
	// Explain adds the shares to each result.
	Explain bool `query:"explain" json:"-"`
	// User is the person whose tools are searched; "" is the caller, and only admins may
	// name others.
	User string `query:"user" json:"-"`
}

// Found is the result of a search, ranked.
type Found struct {
	Tools    []FoundTool `json:"tools"`
	Near     []FoundTool `json:"near,omitempty"` // if none fits, the nearest ones; they may do something else
	Degraded bool        `json:"degraded,omitempty"`
	Note     string      `json:"note,omitempty"`
}

// FoundTool is one result.
type FoundTool struct {
	ID                string  `json:"id"`
	ToolID            string  `json:"tool_id"` // the same value, for older scripts
	Name              string  `json:"tool_name"`
	Description       string  `json:"description"`
	Domain            string  `json:"domain"`
	ServerID          string  `json:"server_id"`
	ServerName        string  `json:"server_name"`
	ServerDescription string  `json:"server_description,omitempty"`
	Score             float64 `json:"score"`
	Shares            []Share `json:"shares,omitempty"` // if requested
}

// Share is one signal's contribution to a tool's rank, in units of what the request's words
// contribute to the best tool. The score is a different measure: the probability, 0 to 1,
// that the tool does what is asked for.
type Share struct {
	Signal string  `json:"signal"`
	Value  float64 `json:"value"`
}

// CallTool runs one tool and waits until it ends. The caller at the socket approves the
// call if they may; if it is still pending after that, it is returned as pending. A call
// that was denied or failed is returned as a record, not an error.
var CallTool = Op[CallToolRequest, store.Call]{"POST", "/v1/tools/{id}/call", false, "call a tool"}

// CallToolRequest is a call. Args is the JSON as the person wrote it.
type CallToolRequest struct {
	ID   string          `path:"id" json:"-"`
	Args json.RawMessage `json:"args"`
	// Follow, if set, is a name of the caller's choice for following the call's progress
	// with [FollowProgress].
	Follow string `json:"follow,omitempty"`
}

// FollowProgress yields the progress notifications of a running call, starting with the
// latest, until the call ends. If no call of that name is running, the stream ends
// immediately.
var FollowProgress = Stream[FollowProgressRequest, Progress]{"GET", "/v1/progress/{follow}", false, "follow the progress of the caller's own call"}

// FollowProgressRequest names a [CallToolRequest].Follow.
type FollowProgressRequest struct {
	Follow string `path:"follow" json:"-"`
}

// Progress is the progress of a call, out of Total unless that is 0.
type Progress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"` // as the server wrote it
}

// ListDomains lists the domains.
var ListDomains = Op[Empty, List[Domain]]{"GET", "/v1/domains", false, "list tool domains"}

// Domain is a category of tools.
type Domain struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	ToolCount   int    `json:"tool_count"`
}

// BrowseDomain lists the tools of one domain, page by page.
var BrowseDomain = Op[BrowseDomainRequest, DomainTools]{"GET", "/v1/domains/{id}", false, "browse a tool domain"}

// BrowseDomainRequest names a domain and the start of a page; "" is the first.
type BrowseDomainRequest struct {
	ID     string `path:"id" json:"-"`
	Cursor string `query:"cursor" json:"-"`
}

// DomainTools is a page of a domain.
type DomainTools struct {
	Items      []ToolView `json:"items"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// ServeMCP serves MCP on the connection, line by line as over standard input and output,
// with the caller's own tools and without a token.
var ServeMCP = Duplex{"GET", "/v1/mcp", false, "serve MCP on this connection"}

// ExplainTool evaluates the gateway's rules for a person's use of a tool. Members may
// explain their own.
var ExplainTool = Op[ExplainToolRequest, Why]{"GET", "/v1/tools/{id}/why", false, "explain which rules apply to a person's use of a tool"}

// ExplainToolRequest names a tool and a person; the other fields, if set, narrow the
// question.
type ExplainToolRequest struct {
	ID      string `path:"id" json:"-"`
	User    string `query:"user" json:"-"` // id, name or identity; "" is the caller
	Agent   string `query:"agent" json:"-"`
	Token   string `query:"token" json:"-"`   // name of one of that person's tokens
	Channel string `query:"channel" json:"-"` // NAME:TEAM/CHANNEL, or CHANNEL alone
}

// Why is the gateway's rules for one tool and one person.
type Why struct {
	ID       string       `json:"id"`      // the tool's
	Tool     string       `json:"tool_id"` // the same value, for older scripts
	User     string       `json:"user"`
	UserName string       `json:"user_name"`
	Usable   bool         `json:"usable"`
	Rules    []WhyRule    `json:"rules"`              // in the order of evaluation
	Approval *WhyApproval `json:"approval,omitempty"` // nil if the tool is not usable
	Hooks    []WhyHook    `json:"hooks,omitempty"`    // in the order in which they run before a call
	Budgets  []Budget     `json:"budgets,omitempty"`  // to which a call would count
}

// WhyRule is one rule and its verdict.
type WhyRule struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"` // allows or denies; of an approval: asks, asks unless lifted, lifts, or "" for nothing
	Says    string `json:"says,omitempty"`
	Decides bool   `json:"decides,omitempty"`
	Command string `json:"command,omitempty"` // command that changes it
}

// WhyApproval is whether a call would need approval, and by whom.
type WhyApproval struct {
	Asks      bool      `json:"asks"`
	Reason    string    `json:"reason,omitempty"`
	RunsAs    string    `json:"runs_as"`
	Private   bool      `json:"private,omitempty"` // its results are visible to the caller only
	Approvers string    `json:"approvers,omitempty"`
	Rules     []WhyRule `json:"rules"`
	Deciders  []WhyRule `json:"deciders,omitempty"` // the rules that allow them to decide: the verdict is the policy
}

// Reindex refreshes tools and vectors and yields progress.
var Reindex = Stream[ReindexRequest, ReindexLine]{"POST", "/v1/reindex", true, "refresh tools and vectors"}

// ReindexRequest selects a refresh. Server "" is all; Full recomputes the vectors;
// ForgetUsage first erases what every server's index learned from use.
type ReindexRequest struct {
	Server      string `json:"server,omitempty"`
	Full        bool   `json:"full,omitempty"`
	ForgetUsage bool   `json:"forget_usage,omitempty"`
}

// ReindexLine is one line of progress: a server that is finished, the number of items
// computed so far, or last the Summary.
type ReindexLine struct {
	Server   string          `json:"server,omitempty"`
	Added    []string        `json:"added,omitempty"` // tool ids
	Changed  []string        `json:"changed,omitempty"`
	Removed  []string        `json:"removed,omitempty"`
	Held     []string        `json:"held,omitempty"`
	Examples int             `json:"examples,omitempty"` // tools for which a model wrote example requests; on a line of its own
	Embedded int             `json:"embedded,omitempty"` // vectors computed so far; on a line of its own
	Error    string          `json:"error,omitempty"`
	Summary  *ReindexSummary `json:"summary,omitempty"`
}

// ReindexSummary is the result of a refresh.
type ReindexSummary struct {
	Servers   int     `json:"servers"`
	Failed    int     `json:"failed"`
	Tools     int     `json:"tools"`
	Embedded  int     `json:"embedded"`            // vectors computed
	Examples  int     `json:"examples,omitempty"`  // tools for which a model wrote example requests
	Forgotten int     `json:"forgotten,omitempty"` // learned requests that were erased
	TookMS    float64 `json:"took_ms"`
}

// ListUnmetRequests ranks the requests of the last 30 days that no tool could fulfil.
var ListUnmetRequests = Op[Empty, List[store.UnmetRequest]]{"GET", "/v1/tools/wanted", true, "rank requests that no tool could fulfil"}

// ForgetUnmetRequests deletes the requests that a text counts towards, or all.
var ForgetUnmetRequests = Op[ForgetUnmetRequestsRequest, Forgotten]{"DELETE", "/v1/tools/wanted", true, "delete requests that no tool could fulfil"}

// ForgetUnmetRequestsRequest selects requests by text, or all.
type ForgetUnmetRequestsRequest struct {
	Text string `query:"text" json:"-"`
	All  bool   `query:"all" json:"-"`
}

// Forgotten is the number of deleted requests.
type Forgotten struct {
	Forgotten int `json:"forgotten"`
}

// GetRenderer returns the renderer that was set for a tool.
var GetRenderer = Op[ToolRequest, display.Renderer]{"GET", "/v1/renderers/{id}", true, "show the renderer of a tool"}

// PutRenderer sets how a tool's results are displayed.
var PutRenderer = Op[PutRendererRequest, display.Renderer]{"PUT", "/v1/renderers/{id}", true, "set the renderer of a tool"}

// PutRendererRequest is a renderer for the tool of that id.
type PutRendererRequest struct {
	ID       string `path:"id" json:"-"`
	Document string `json:"document"`
}

// RemoveRenderer removes a tool's renderer.
var RemoveRenderer = Op[ToolRequest, Empty]{"DELETE", "/v1/renderers/{id}", true, "remove the renderer of a tool"}
