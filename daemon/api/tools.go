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
	ToolID      string          `json:"tool_id"` // the same: older scripts read it
	Server      string          `json:"server_id"`
	Name        string          `json:"tool_name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Domain      string          `json:"domain,omitempty"`
	State       store.ToolState `json:"state"`
	Findings    []string        `json:"findings,omitempty"`
	ViewDomains []string        `json:"view_domains,omitempty"` // the outside origins that its view declares
}

// ToolRequest names a tool by its id.
type ToolRequest struct {
	ID string `path:"id" json:"-"`
}

// GetIndex shows what is embedded of the tools that may be found, and by what.
var GetIndex = Op[Empty, IndexView]{"GET", "/v1/tools/index", true, "show what is embedded of tools"}

// IndexView is the index of tools.
type IndexView struct {
	Model     string        `json:"model"`            // whose vectors serve
	Wanted    string        `json:"wanted,omitempty"` // whose will, if that is another one
	State     string        `json:"state"`            // complete, embedding or failing
	Tools     int           `json:"tools"`
	Embedded  int           `json:"embedded"`
	Computed  int           `json:"computed"` // vectors since the start
	Failures  int           `json:"failures"` // of the model in a row, since it answered last
	LastError string        `json:"last_error,omitempty"`
	FailedAt  time.Time     `json:"failed_at,omitzero"`
	Servers   []IndexServer `json:"servers"`
}

// IndexServer is what is embedded of one server.
type IndexServer struct {
	Name      string    `json:"name"`
	Tools     int       `json:"tools"` // that may be found
	Embedded  int       `json:"embedded"`
	Pending   int       `json:"pending"`              // that the wanted model has not embedded yet
	Without   int       `json:"without"`              // whose text has no usable vector: words alone find them
	Held      int       `json:"held,omitempty"`       // that wait for acceptance, and are not found
	Taken     time.Time `json:"taken,omitzero"`       // when its tools were taken in last
	Filled    time.Time `json:"embedded_at,omitzero"` // when the newest vector of them came
	LastError string    `json:"last_error,omitempty"` // why its tools can't be read now
}

// GetTool shows one tool by its id.
var GetTool = Op[ToolRequest, ToolSchema]{"GET", "/v1/tools/{id}", false, "show a tool and its schema"}

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

// SearchTools finds tools by what they do.
var SearchTools = Op[SearchToolsRequest, Found]{"GET", "/v1/tools/search", false, "find tools by what they do"}

// SearchToolsRequest says what a tool should do. Zero values are the defaults of
// the index.
type SearchToolsRequest struct {
	Query  string  `query:"q" json:"-"`
	Domain string  `query:"domain" json:"-"`
	TopK   int     `query:"top_k" json:"-"`
	Min    float64 `query:"min" json:"-"`
	// Explain asks for each answer's shares.
	Explain bool `query:"explain" json:"-"`
	// User is whose tools are searched; "" is the caller, others are for admins.
	User string `query:"user" json:"-"`
}

// Found is the answer to a search; the order is the rank.
type Found struct {
	Tools    []FoundTool `json:"tools"`
	Near     []FoundTool `json:"near,omitempty"` // the nearest where none fits; they may do something else
	Degraded bool        `json:"degraded,omitempty"`
	Note     string      `json:"note,omitempty"`
}

// FoundTool is one answer.
type FoundTool struct {
	ID                string  `json:"id"`
	ToolID            string  `json:"tool_id"` // the same: older scripts read it
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
// how likely the tool does what is asked for, 0 to 1.
type Share struct {
	Signal string  `json:"signal"`
	Value  float64 `json:"value"`
}

// CallTool runs one tool and waits for its end. The caller at the socket is the
// approver where they may approve; a call that then still waits comes back as
// pending. A call that was refused or failed is a record, not an error.
var CallTool = Op[CallToolRequest, store.Call]{"POST", "/v1/tools/{id}/call", false, "call a tool"}

// CallToolRequest is a call. Args are JSON as the person wrote them.
type CallToolRequest struct {
	ID   string          `path:"id" json:"-"`
	Args json.RawMessage `json:"args"`
	// Follow, if set, is a name of the caller's choice under which the caller follows the progress of
	// the call by [FollowProgress].
	Follow string `json:"follow,omitempty"`
}

// FollowProgress yields what the server of a tool tells about a call that runs, from the
// latest of it on, until the call ends. If no call of that name runs, it ends at once.
var FollowProgress = Stream[FollowProgressRequest, Progress]{"GET", "/v1/progress/{follow}", false, "follow the progress of one's own call"}

// FollowProgressRequest names what [CallToolRequest].Follow named.
type FollowProgressRequest struct {
	Follow string `path:"follow" json:"-"`
}

// Progress is how far a call is: of Total, if that is not 0.
type Progress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"` // as the server wrote it
}

// ListDomains lists the domains.
var ListDomains = Op[Empty, List[Domain]]{"GET", "/v1/domains", false, "list tool domains"}

// Domain is a field that tools belong to.
type Domain struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	ToolCount   int    `json:"tool_count"`
}

// BrowseDomain lists the tools of one domain, page by page.
var BrowseDomain = Op[BrowseDomainRequest, DomainTools]{"GET", "/v1/domains/{id}", false, "browse a tool domain"}

// BrowseDomainRequest names a domain and where the page begins; "" is the start.
type BrowseDomainRequest struct {
	ID     string `path:"id" json:"-"`
	Cursor string `query:"cursor" json:"-"`
}

// DomainTools is a page of a domain.
type DomainTools struct {
	Items      []ToolView `json:"items"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// ServeMCP speaks MCP on the connection, in lines as over standard input and
// output: the caller's own tools, without a token.
var ServeMCP = Duplex{"GET", "/v1/mcp", false, "speak MCP on this connection"}

// ExplainTool asks the gateway's rules about somebody's use of a tool. Members
// may ask about themselves.
var ExplainTool = Op[ExplainToolRequest, Why]{"GET", "/v1/tools/{id}/why", false, "say by which rule somebody may use a tool"}

// ExplainToolRequest names a tool and says for whom; zero values narrow nothing.
type ExplainToolRequest struct {
	ID      string `path:"id" json:"-"`
	User    string `query:"user" json:"-"` // id, name or identity; "" is the caller
	Agent   string `query:"agent" json:"-"`
	Token   string `query:"token" json:"-"`   // the name of a token of that person
	Channel string `query:"channel" json:"-"` // NAME:TEAM/CHANNEL, or CHANNEL alone
}

// Why is what the gateway's rules say of a tool for one person.
type Why struct {
	ID       string       `json:"id"`      // the tool's
	Tool     string       `json:"tool_id"` // the same: older scripts read it
	User     string       `json:"user"`
	UserName string       `json:"user_name"`
	Usable   bool         `json:"usable"`
	Rules    []WhyRule    `json:"rules"`              // in the order in which they are asked
	Approval *WhyApproval `json:"approval,omitempty"` // absent where the tool is not usable
	Hooks    []WhyHook    `json:"hooks,omitempty"`    // around a call, in the order in which they run before
	Budgets  []Budget     `json:"budgets,omitempty"`  // that a call would count for
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

// Reindex refreshes tools and vectors and yields progress.
var Reindex = Stream[ReindexRequest, ReindexLine]{"POST", "/v1/reindex", true, "refresh tools and vectors"}

// ReindexRequest asks for a refresh; Server "" is all, Full also embeds again,
// ForgetUsage first erases what was learned from use, of every server.
type ReindexRequest struct {
	Server      string `json:"server,omitempty"`
	Full        bool   `json:"full,omitempty"`
	ForgetUsage bool   `json:"forget_usage,omitempty"`
}

// ReindexLine is one line of its progress: one server that is through, what was
// computed or written since, and at last the Summary.
type ReindexLine struct {
	Server   string          `json:"server,omitempty"`
	Added    []string        `json:"added,omitempty"` // tool ids
	Changed  []string        `json:"changed,omitempty"`
	Removed  []string        `json:"removed,omitempty"`
	Held     []string        `json:"held,omitempty"`
	Examples int             `json:"examples,omitempty"` // tools for which a model wrote example requests; a line of its own
	Embedded int             `json:"embedded,omitempty"` // vectors computed so far; a line of its own
	Error    string          `json:"error,omitempty"`
	Summary  *ReindexSummary `json:"summary,omitempty"`
}

// ReindexSummary is the end of a refresh.
type ReindexSummary struct {
	Servers   int     `json:"servers"`
	Failed    int     `json:"failed"`
	Tools     int     `json:"tools"`
	Embedded  int     `json:"embedded"`            // vectors that had to be computed
	Examples  int     `json:"examples,omitempty"`  // tools for which a model wrote example requests
	Forgotten int     `json:"forgotten,omitempty"` // requests from which something had been learned
	TookMS    float64 `json:"took_ms"`
}

// ListUnmetRequests ranks what was asked for and no tool could do, within 30
// days.
var ListUnmetRequests = Op[Empty, List[store.UnmetRequest]]{"GET", "/v1/tools/wanted", true, "rank what no tool could do"}

// ForgetUnmetRequests forgets what a text would count for, or all.
var ForgetUnmetRequests = Op[ForgetUnmetRequestsRequest, Forgotten]{"DELETE", "/v1/tools/wanted", true, "forget what no tool could do"}

// ForgetUnmetRequestsRequest says which: by text, or all.
type ForgetUnmetRequestsRequest struct {
	Text string `query:"text" json:"-"`
	All  bool   `query:"all" json:"-"`
}

// Forgotten counts what was forgotten.
type Forgotten struct {
	Forgotten int `json:"forgotten"`
}

// GetRenderer shows the renderer that was set for a tool.
var GetRenderer = Op[ToolRequest, display.Renderer]{"GET", "/v1/renderers/{id}", true, "show the renderer of a tool"}

// PutRenderer sets how people see the results of a tool.
var PutRenderer = Op[PutRendererRequest, display.Renderer]{"PUT", "/v1/renderers/{id}", true, "set the renderer of a tool"}

// PutRendererRequest is a renderer for the tool of that id.
type PutRendererRequest struct {
	ID       string `path:"id" json:"-"`
	Document string `json:"document"`
}

// RemoveRenderer takes it away.
var RemoveRenderer = Op[ToolRequest, Empty]{"DELETE", "/v1/renderers/{id}", true, "remove the renderer of a tool"}
