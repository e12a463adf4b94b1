package api

import (
	"context"
	"iter"
	"net/url"
	"time"

	"nize/store"
)

// AddServer registers a server. The daemon contacts it, lists its tools and
// stores both; if it can't be reached nothing is stored (ErrUnavailable),
// unless Force.
type AddServer struct {
	Server store.Server `json:"server"`
	Force  bool         `json:"force,omitempty"`
}

// PatchServer changes what is not nil. Revision is the one that the caller
// read; 0 changes whatever is there.
type PatchServer struct {
	Revision         uint64                  `json:"revision,omitempty"`
	Disabled         *bool                   `json:"disabled,omitempty"`
	Description      *string                 `json:"description,omitempty"`
	Domain           *string                 `json:"domain,omitempty"`
	Timeout          *store.Duration         `json:"timeout,omitempty"`
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
	URL              *string                 `json:"url,omitempty"`
}

// Health is how a server is. It is flat in [ServerView].
type Health struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // ready, connecting, unreachable, idle (until the next call), open (the circuit), disabled
	ToolCount int       `json:"tool_count"`
	Held      int       `json:"held,omitempty"`       // tools in quarantine or refused
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
	Unreachable bool         `json:"unreachable,omitempty"` // kept by Force only
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
}

// Accept names the definitions that an admin has seen and accepts. A pin that
// is no longer the present one is ErrConflict, and nothing is accepted.
type Accept struct {
	Tools []AcceptTool `json:"tools"`
}

// AcceptTool is one of them.
type AcceptTool struct {
	Tool string `json:"tool"`
	Pin  string `json:"pin"`
}

// LogLine is one line that a stdio server wrote to stderr, untrusted.
type LogLine struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// Servers lists the registered servers.
func (c *Client) Servers(ctx context.Context) ([]ServerView, error) {
	return list[ServerView](ctx, c, request{method: "GET", path: "/v1/servers"})
}

// AddServer registers a server.
func (c *Client) AddServer(ctx context.Context, a AddServer) (ServerView, error) {
	return do[ServerView](ctx, c, request{method: "POST", path: "/v1/servers", body: a})
}

// Server shows one server and its tools.
func (c *Client) Server(ctx context.Context, name string) (ServerView, error) {
	return do[ServerView](ctx, c, request{method: "GET", path: serverPath(name, "")})
}

// PatchServer changes one server.
func (c *Client) PatchServer(ctx context.Context, name string, p PatchServer) (ServerView, error) {
	return do[ServerView](ctx, c, request{method: "PATCH", path: serverPath(name, ""), body: p})
}

// RemoveServer removes a server and its tools.
func (c *Client) RemoveServer(ctx context.Context, name string) error {
	return exec(ctx, c, request{method: "DELETE", path: serverPath(name, "")})
}

// TestServer probes a server beside its live session.
func (c *Client) TestServer(ctx context.Context, name string) (Probe, error) {
	return do[Probe](ctx, c, request{method: "POST", path: serverPath(name, "/test")})
}

// RestartServer closes the server's sessions and makes them anew.
func (c *Client) RestartServer(ctx context.Context, name string) (ServerView, error) {
	return do[ServerView](ctx, c, request{method: "POST", path: serverPath(name, "/restart")})
}

// Untrusted lists the tools of a server that wait for acceptance; tool "" is
// all, else one tool's own name.
func (c *Client) Untrusted(ctx context.Context, name, tool string) ([]TrustView, error) {
	return list[TrustView](ctx, c, request{method: "GET", path: serverPath(name, "/trust"), query: query("tool", tool)})
}

// Trust accepts definitions and returns the tools as they are then.
func (c *Client) Trust(ctx context.Context, name string, a Accept) ([]ToolView, error) {
	return list[ToolView](ctx, c, request{method: "POST", path: serverPath(name, "/trust"), body: a})
}

// ServerLogs yields the last 64 KiB of stderr and, with follow, what comes.
func (c *Client) ServerLogs(ctx context.Context, name string, follow bool) iter.Seq2[LogLine, error] {
	return stream[LogLine](ctx, c, request{method: "GET", path: serverPath(name, "/logs"), query: query("follow", flag(follow))})
}

func serverPath(name, rest string) string { return "/v1/servers/" + url.PathEscape(name) + rest }
