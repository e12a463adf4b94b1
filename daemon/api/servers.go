package api

import (
	"time"

	"nize/store"
)

// ListServers lists the registered servers.
var ListServers = Op[Empty, List[ServerView]]{"GET", "/v1/servers", false, "list servers"}

// ServerRequest names a server.
type ServerRequest struct {
	Name string `path:"name" json:"-"`
}

// NotAdded is the state of an entry in the servers file that could not be added. Admins see
// it in lists, but it can't be read or changed, since the server doesn't exist.
const NotAdded = "not added"

// GetServer returns one server and its tools.
var GetServer = Op[ServerRequest, ServerView]{"GET", "/v1/servers/{name}", false, "show a server and its tools"}

// AddServer registers a server. The daemon connects to it, lists its tools and stores both.
// If it can't be reached, AddServer stores nothing and returns ErrUnavailable, unless Force
// is set.
var AddServer = Op[AddServerRequest, ServerView]{"POST", "/v1/servers", true, "register a server"}

// AddServerRequest is a server to register.
type AddServerRequest struct {
	Server store.Server `json:"server"`
	Force  bool         `json:"force,omitempty"`
}

// PatchServer changes the fields that are not nil.
var PatchServer = Op[PatchServerRequest, ServerView]{"PATCH", "/v1/servers/{name}", true, "change a server"}

// PatchServerRequest is a change of a server. Revision is the one that the caller read; 0
// skips the check.
type PatchServerRequest struct {
	Name     string `path:"name" json:"-"`
	Revision uint64 `json:"revision,omitempty"`
	Disabled *bool  `json:"disabled,omitempty"`
	PatchAbout
	Domain           *string                 `json:"domain,omitempty"`
	Timeout          *store.Duration         `json:"timeout,omitempty"`
	StartTimeout     *store.Duration         `json:"start_timeout,omitempty"` // 0 restores the default
	MaxConcurrency   *int                    `json:"max_concurrency,omitempty"`
	Approval         *store.Approval         `json:"approval,omitempty"`
	Auth             *store.Auth             `json:"auth,omitempty"`
	Enterprise       *bool                   `json:"enterprise,omitempty"`
	Approvers        *store.Policy           `json:"approvers,omitempty"` // "" restores the default
	TrustAnnotations *bool                   `json:"trust_annotations,omitempty"`
	UntrustedOutput  *bool                   `json:"untrusted_output,omitempty"`
	Private          *bool                   `json:"private,omitempty"`
	AcceptNew        *bool                   `json:"accept_new,omitempty"`
	AllowedTools     *[]string               `json:"allowed_tools,omitempty"`
	Visibility       *[]string               `json:"visibility,omitempty"`
	Env              *map[string]store.Value `json:"env,omitempty"`
	Headers          *map[string]store.Value `json:"headers,omitempty"`
	KeepAlive        *bool                   `json:"keep_alive,omitempty"`
	IdleTimeout      *store.Duration         `json:"idle_timeout,omitempty"` // 0 restores the default
	MemoryLimit      *store.Size             `json:"memory_limit,omitempty"` // 0 restores the default
	RateLimit        *store.Rate             `json:"rate_limit,omitempty"`   // 0 means unlimited
	Transport        *store.Transport        `json:"transport,omitempty"`
	Command          *string                 `json:"command,omitempty"`
	Args             *[]string               `json:"args,omitempty"`
	Cwd              *string                 `json:"cwd,omitempty"`
	URL              *string                 `json:"url,omitempty"` // for an OpenAPI server, "" is the URL in its document
	Document         *string                 `json:"document,omitempty"`
}

// PatchAbout is a change of [store.About].
type PatchAbout struct {
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
}

// RemoveServer removes a server and its tools.
var RemoveServer = Op[ServerRequest, Empty]{"DELETE", "/v1/servers/{name}", true, "remove a server"}

// TestServer tests a server with a connection separate from its live session.
var TestServer = Op[ServerRequest, Probe]{"POST", "/v1/servers/{name}/test", true, "test a server, step by step"}

// RestartServer closes the server's sessions and opens new ones.
var RestartServer = Op[ServerRequest, ServerView]{"POST", "/v1/servers/{name}/restart", true, "restart a server"}

// ListUntrusted lists the tools of a server whose definitions need an admin's acceptance.
var ListUntrusted = Op[ListUntrustedRequest, List[TrustView]]{"GET", "/v1/servers/{name}/trust", true, "show definitions that need acceptance"}

// ListUntrustedRequest names a server and, unless Tool is "", one of its tools by the
// tool's own name.
type ListUntrustedRequest struct {
	Name string `path:"name" json:"-"`
	Tool string `query:"tool" json:"-"`
}

// TrustTools accepts definitions that an admin has reviewed and returns the tools' new
// state. If a pin is no longer current, it accepts nothing and returns ErrConflict.
var TrustTools = Op[TrustToolsRequest, List[ToolView]]{"POST", "/v1/servers/{name}/trust", true, "accept tools' definitions"}

// TrustToolsRequest lists the definitions.
type TrustToolsRequest struct {
	Name  string       `path:"name" json:"-"`
	Tools []AcceptTool `json:"tools"`
}

// ServerLogs yields the last 64 KiB of standard error and, with Follow, new output as it
// arrives.
var ServerLogs = Stream[ServerLogsRequest, LogLine]{"GET", "/v1/servers/{name}/logs", true, "read or follow a server's stderr"}

// ServerLogsRequest names a stdio server.
type ServerLogsRequest struct {
	Name   string `path:"name" json:"-"`
	Follow bool   `query:"follow" json:"-"`
}

// Health is the state of a server. It is embedded in [ServerView].
type Health struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // ready, connecting, unreachable, idle (until the next call), open (the circuit), disabled, login needed, not added (in the servers file)
	ToolCount int       `json:"tool_count"`
	Held      int       `json:"held,omitempty"`       // tools that need an admin's acceptance
	Refused   int       `json:"refused,omitempty"`    // tools with dangerous schemas
	LatencyMS float64   `json:"latency_ms,omitempty"` // of recent responses
	LastError string    `json:"last_error,omitempty"`
	Restarts  int       `json:"restarts,omitempty"`
	Since     time.Time `json:"since,omitzero"` // start of this state
}

// ServerView is a server with its health. Tools is set for a single server, not in lists.
type ServerView struct {
	Health
	Server      store.Server `json:"server"`
	Tools       []ToolView   `json:"tools,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`    // one sentence each
	Unreachable bool         `json:"unreachable,omitempty"` // stored although unreachable, by Force
}

// Probe is the result of testing a server: the steps spawn or resolve, connect, initialize,
// list.
type Probe struct {
	OK     bool        `json:"ok"`
	Steps  []ProbeStep `json:"steps"`
	Tools  int         `json:"tools"`
	Stderr string      `json:"stderr,omitempty"` // its tail, for stdio
}

// ProbeStep is one step; the first with an Error is the last.
type ProbeStep struct {
	Name   string  `json:"name"`
	TookMS float64 `json:"took_ms"`
	Error  string  `json:"error,omitempty"`
	Hint   string  `json:"hint,omitempty"` // what to do about it
}

// TrustView is a tool whose definition needs an admin's acceptance.
type TrustView struct {
	Tool        string          `json:"tool"` // server:tool
	State       store.ToolState `json:"state"`
	Pin         string          `json:"pin"`                // of the current definition
	Accepted    string          `json:"accepted,omitempty"` // pin of the accepted one, "" if there never was one
	Findings    []string        `json:"findings,omitempty"`
	Diff        string          `json:"diff,omitempty"` // unified, accepted to current; "" if the accepted text is unknown
	Description string          `json:"description,omitempty"`
	Changes     []TrustChange   `json:"changes,omitempty"` // accepted to current, if the accepted one is known
	// ViewSends lists the ways in which the tool's view, if it has one, can send its data
	// to hosts that it doesn't declare.
	ViewSends []string `json:"view_sends,omitempty"`
}

// TrustChange is one part of a definition that differs from the accepted one.
type TrustChange struct {
	Part string `json:"part"` // command, instructions, title, description, input schema, output schema, annotations, metadata or icons
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// AcceptTool names one tool's definition.
type AcceptTool struct {
	Tool string `json:"tool"`
	Pin  string `json:"pin"`
}

// LogLine is one line that a stdio server wrote to stderr. It is untrusted.
type LogLine struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// ImportServers registers the servers in an MCP client's file and yields a line for each
// entry, in the file's order. The daemon parses the text, so ${VAR} refers to the daemon's
// environment.
var ImportServers = Stream[ImportServersRequest, ImportLine]{"POST", "/v1/servers/import", true, "register the servers of an MCP client's file"}

// ImportServersRequest is the text of a file.
type ImportServersRequest struct {
	Text   string `json:"text"`
	Force  bool   `json:"force,omitempty"`   // keep servers that are unreachable now
	DryRun bool   `json:"dry_run,omitempty"` // validate, without connecting or storing
}

// Values of ImportLine.Status.
const (
	ImportAdded       = "added"
	ImportNew         = "new" // dry run: would be added if reachable
	ImportExists      = "exists"
	ImportInvalid     = "invalid"
	ImportUnreachable = "unreachable"
)

// ImportLine is the result for one entry of the file.
type ImportLine struct {
	Entry   string   `json:"entry"`             // its name in the file
	Name    string   `json:"name"`              // the server's slug
	Project string   `json:"project,omitempty"` // folder it applies to
	Status  string   `json:"status"`
	Reason  string   `json:"reason,omitempty"`
	Where   string   `json:"where,omitempty"`  // command line or URL
	Stored  bool     `json:"stored,omitempty"` // unreachable but kept
	Tools   int      `json:"tools,omitempty"`
	Held    int      `json:"held,omitempty"`
	Sealed  []string `json:"sealed,omitempty"` // credentials created from the file's secrets
	Notes   []string `json:"notes,omitempty"`  // one sentence each
}
