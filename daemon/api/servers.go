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

// NotAdded is the state of an entry of the servers file that is no server. Lists have it
// for admins; the entry can't be got or changed, since there is no such server.
const NotAdded = "not added"

// GetServer shows one server and its tools.
var GetServer = Op[ServerRequest, ServerView]{"GET", "/v1/servers/{name}", false, "show a server and its tools"}

// AddServer registers a server. The daemon contacts it, lists its tools and
// stores both; if it can't be reached nothing is stored (ErrUnavailable),
// unless Force.
var AddServer = Op[AddServerRequest, ServerView]{"POST", "/v1/servers", true, "register a server"}

// AddServerRequest is a server to register.
type AddServerRequest struct {
	Server store.Server `json:"server"`
	Force  bool         `json:"force,omitempty"`
}

// PatchServer changes what is not nil.
var PatchServer = Op[PatchServerRequest, ServerView]{"PATCH", "/v1/servers/{name}", true, "change a server"}

// PatchServerRequest is what may be changed of a server. Revision is the one
// that the caller read; 0 changes whatever is there.
type PatchServerRequest struct {
	Name     string `path:"name" json:"-"`
	Revision uint64 `json:"revision,omitempty"`
	Disabled *bool  `json:"disabled,omitempty"`
	PatchAbout
	Domain           *string                 `json:"domain,omitempty"`
	Timeout          *store.Duration         `json:"timeout,omitempty"`
	StartTimeout     *store.Duration         `json:"start_timeout,omitempty"` // 0 is the default again
	MaxConcurrency   *int                    `json:"max_concurrency,omitempty"`
	Approval         *store.Approval         `json:"approval,omitempty"`
	Auth             *store.Auth             `json:"auth,omitempty"`
	Approvers        *store.Policy           `json:"approvers,omitempty"` // "" is the default again
	TrustAnnotations *bool                   `json:"trust_annotations,omitempty"`
	UntrustedOutput  *bool                   `json:"untrusted_output,omitempty"`
	Private          *bool                   `json:"private,omitempty"`
	AcceptNew        *bool                   `json:"accept_new,omitempty"`
	AllowedTools     *[]string               `json:"allowed_tools,omitempty"`
	Visibility       *[]string               `json:"visibility,omitempty"`
	Env              *map[string]store.Value `json:"env,omitempty"`
	Headers          *map[string]store.Value `json:"headers,omitempty"`
	KeepAlive        *bool                   `json:"keep_alive,omitempty"`
	IdleTimeout      *store.Duration         `json:"idle_timeout,omitempty"` // 0 is the default again
	MemoryLimit      *store.Size             `json:"memory_limit,omitempty"` // 0 is the default again
	RateLimit        *store.Rate             `json:"rate_limit,omitempty"`   // 0 is none
	Transport        *store.Transport        `json:"transport,omitempty"`
	Command          *string                 `json:"command,omitempty"`
	Args             *[]string               `json:"args,omitempty"`
	Cwd              *string                 `json:"cwd,omitempty"`
	URL              *string                 `json:"url,omitempty"` // "" of an OpenAPI server is what its document says
	Document         *string                 `json:"document,omitempty"`
}

// PatchAbout is what of [store.About] changes.
type PatchAbout struct {
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
}

// RemoveServer removes a server and its tools.
var RemoveServer = Op[ServerRequest, Empty]{"DELETE", "/v1/servers/{name}", true, "remove a server"}

// TestServer probes a server beside its live session.
var TestServer = Op[ServerRequest, Probe]{"POST", "/v1/servers/{name}/test", true, "test a server, step by step"}

// RestartServer closes the server's sessions and opens new ones.
var RestartServer = Op[ServerRequest, ServerView]{"POST", "/v1/servers/{name}/restart", true, "restart a server"}

// ListUntrusted lists the tools of a server whose definitions wait for an
// admin.
var ListUntrusted = Op[ListUntrustedRequest, List[TrustView]]{"GET", "/v1/servers/{name}/trust", true, "show what waits for acceptance"}

// ListUntrustedRequest names a server and, unless it is "", one tool of it by
// the tool's own name.
type ListUntrustedRequest struct {
	Name string `path:"name" json:"-"`
	Tool string `query:"tool" json:"-"`
}

// TrustTools accepts definitions that an admin has seen and answers with the
// tools as they are then. A pin that is no longer the present one is
// ErrConflict, and nothing is accepted.
var TrustTools = Op[TrustToolsRequest, List[ToolView]]{"POST", "/v1/servers/{name}/trust", true, "accept tools' definitions"}

// TrustToolsRequest names the definitions.
type TrustToolsRequest struct {
	Name  string       `path:"name" json:"-"`
	Tools []AcceptTool `json:"tools"`
}

// ServerLogs yields the last 64 KiB of standard error and, with Follow, what
// comes.
var ServerLogs = Stream[ServerLogsRequest, LogLine]{"GET", "/v1/servers/{name}/logs", true, "read or follow a server's stderr"}

// ServerLogsRequest names a stdio server.
type ServerLogsRequest struct {
	Name   string `path:"name" json:"-"`
	Follow bool   `query:"follow" json:"-"`
}

// Health is how a server is. It is flat in [ServerView].
type Health struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // ready, connecting, unreachable, idle (until the next call), open (the circuit), disabled, login needed, not added (of a servers file)
	ToolCount int       `json:"tool_count"`
	Held      int       `json:"held,omitempty"`       // tools that wait for an admin's acceptance
	Refused   int       `json:"refused,omitempty"`    // tools whose schemas are dangerous
	LatencyMS float64   `json:"latency_ms,omitempty"` // of the last answers
	LastError string    `json:"last_error,omitempty"`
	Restarts  int       `json:"restarts,omitempty"`
	Since     time.Time `json:"since,omitzero"` // in this state
}

// ServerView is a server with its health; Tools is filled for one server, not
// in lists.
type ServerView struct {
	Health
	Server      store.Server `json:"server"`
	Tools       []ToolView   `json:"tools,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`    // one sentence each
	Unreachable bool         `json:"unreachable,omitempty"` // stored all the same, by Force
}

// Probe is a test of a server, step by step: spawn or resolve, connect,
// initialize, list.
type Probe struct {
	OK     bool        `json:"ok"`
	Steps  []ProbeStep `json:"steps"`
	Tools  int         `json:"tools"`
	Stderr string      `json:"stderr,omitempty"` // the tail, for stdio
}

// ProbeStep is one step; the first with an Error is the last.
type ProbeStep struct {
	Name   string  `json:"name"`
	TookMS float64 `json:"took_ms"`
	Error  string  `json:"error,omitempty"`
	Hint   string  `json:"hint,omitempty"` // what to do about it
}

// TrustView is a tool whose definition waits for an admin.
type TrustView struct {
	Tool        string          `json:"tool"` // server:tool
	State       store.ToolState `json:"state"`
	Pin         string          `json:"pin"`                // of the definition as it is now
	Accepted    string          `json:"accepted,omitempty"` // of the accepted one, "" if there never was one
	Findings    []string        `json:"findings,omitempty"`
	Diff        string          `json:"diff,omitempty"` // unified, accepted against present; "" where the old text is not known
	Description string          `json:"description,omitempty"`
	Changes     []TrustChange   `json:"changes,omitempty"` // accepted against present, where the accepted one is known
	// ViewSends is how its view, if it has one, can send what it is given to other
	// hosts than those it declares.
	ViewSends []string `json:"view_sends,omitempty"`
}

// TrustChange is one part of a definition that is not as it was accepted.
type TrustChange struct {
	Part string `json:"part"` // command, instructions, title, description, input schema, output schema, annotations, metadata or icons
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// AcceptTool is the definition of one tool.
type AcceptTool struct {
	Tool string `json:"tool"`
	Pin  string `json:"pin"`
}

// LogLine is one line that a stdio server wrote to stderr, untrusted.
type LogLine struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// ImportServers takes over the servers of an MCP client's file and answers with
// a line for each entry, in the file's order. The daemon reads the text, so that
// ${VAR} means its own environment.
var ImportServers = Stream[ImportServersRequest, ImportLine]{"POST", "/v1/servers/import", true, "register the servers of an MCP client's file"}

// ImportServersRequest is the text of a file.
type ImportServersRequest struct {
	Text   string `json:"text"`
	Force  bool   `json:"force,omitempty"`   // keep those that can't be reached now
	DryRun bool   `json:"dry_run,omitempty"` // judge, but contact and store nothing
}

// What became of an entry.
const (
	ImportAdded       = "added"
	ImportNew         = "new" // would be added, if it can be reached: a dry run
	ImportExists      = "exists"
	ImportInvalid     = "invalid"
	ImportUnreachable = "unreachable"
)

// ImportLine is one entry of the file and what became of it.
type ImportLine struct {
	Entry   string   `json:"entry"`             // its name in the file
	Name    string   `json:"name"`              // the slug that the server has
	Project string   `json:"project,omitempty"` // the folder that it is for
	Status  string   `json:"status"`
	Reason  string   `json:"reason,omitempty"`
	Where   string   `json:"where,omitempty"`  // command line or URL
	Stored  bool     `json:"stored,omitempty"` // unreachable and kept all the same
	Tools   int      `json:"tools,omitempty"`
	Held    int      `json:"held,omitempty"`
	Sealed  []string `json:"sealed,omitempty"` // credentials made of the file's secrets
	Notes   []string `json:"notes,omitempty"`  // one sentence each
}
