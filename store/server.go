package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Transport is how a server is reached.
type Transport string

const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http" // Streamable HTTP
	SSE   Transport = "sse"  // the older HTTP+SSE
	// OpenAPI is not an MCP server but a service described by an OpenAPI document.
	OpenAPI Transport = "openapi"
	// External is a source of asks: nize never connects to it, and its tools are whatever
	// it asks about.
	External Transport = "external"
)

// Value is an env or header value: plain text, the name of a credential of the server,
// written {"secret_key":"NAME"} in JSON, or the id of a declared credential, which several
// servers and tools may share, {"credential":"ID"}.
type Value struct {
	Text       string
	SecretKey  string
	Credential string
}

func (v Value) MarshalJSON() ([]byte, error) {
	if v.SecretKey != "" {
		return json.Marshal(map[string]string{"secret_key": v.SecretKey})
	}
	if v.Credential != "" {
		return json.Marshal(map[string]string{"credential": v.Credential})
	}
	return json.Marshal(v.Text)
}

func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &v.Text)
	}
	var ref struct {
		SecretKey  string `json:"secret_key"`
		Credential string `json:"credential"`
	}
	if err := json.Unmarshal(b, &ref); err != nil || (ref.SecretKey == "") == (ref.Credential == "") {
		return fmt.Errorf(`%w value: want a string, {"secret_key":"NAME"} or {"credential":"ID"}`, ErrInvalid)
	}
	v.SecretKey, v.Credential = ref.SecretKey, ref.Credential
	return nil
}

// QueryPrefix is the prefix of a header name of an OpenAPI server that stands for a query
// parameter, as in "query:api_key". This makes a key in the query a credential like any
// other.
const QueryPrefix = "query:"

// Hidden reports that the record contains a reference to a credential instead of the value.
func (v Value) Hidden() bool { return v.SecretKey != "" || v.Credential != "" }

// Approval is the approval mode of a server or a request.
type Approval string

const (
	ApproveAuto   Approval = "auto"
	ApproveAlways Approval = "always"
	ApproveNever  Approval = "never"
)

// Server is a registered MCP server. Zero values stand for the defaults; Normal fills them
// in.
type Server struct {
	Name      string           `json:"name"`
	Transport Transport        `json:"transport"`
	Command   string           `json:"command,omitempty"` // resolved to an absolute path
	Args      []string         `json:"args,omitempty"`
	Cwd       string           `json:"cwd,omitempty"`
	Env       map[string]Value `json:"env,omitempty"`
	URL       string           `json:"url,omitempty"`
	Headers   map[string]Value `json:"headers,omitempty"`
	// Document is the URL or the absolute path of the OpenAPI document whose operations are
	// the tools; they are called below URL.
	Document string `json:"document,omitempty"`
	// URLFromDocument reports that URL comes from the document, not from a person.
	URLFromDocument bool `json:"url_from_document,omitempty"`
	About
	Domain           string    `json:"domain,omitempty"` // default: the name
	Disabled         bool      `json:"disabled,omitempty"`
	Timeout          Duration  `json:"timeout,omitempty"`         // of one call; default 30 s
	StartTimeout     Duration  `json:"start_timeout,omitempty"`   // to spawn or connect and initialize; the default depends on the command
	MaxConcurrency   int       `json:"max_concurrency,omitempty"` // concurrent calls; default 8
	Approval         Approval  `json:"approval,omitempty"`
	Auth             Auth      `json:"auth,omitempty"`
	Enterprise       bool      `json:"enterprise,omitempty"` // the company's identity provider signs people in there, without a browser
	Approvers        Policy    `json:"approvers,omitempty"`  // who may decide; "" is the setting approvals.approvers, or the default
	TrustAnnotations bool      `json:"trust_annotations,omitempty"`
	UntrustedOutput  bool      `json:"untrusted_output,omitempty"`
	Private          bool      `json:"private,omitempty"` // its tools' results are only for the requester
	AcceptNew        bool      `json:"accept_new,omitempty"`
	AllowedTools     []string  `json:"allowed_tools,omitempty"` // names or patterns; empty is all
	KeepAlive        bool      `json:"keep_alive,omitempty"`    // never closed when idle
	IdleTimeout      Duration  `json:"idle_timeout,omitempty"`  // after which the session is closed; default 10 min for stdio, else never
	MemoryLimit      Size      `json:"memory_limit,omitempty"`  // resident memory of a stdio server and all its descendants; default 512 MiB
	RateLimit        Rate      `json:"rate_limit,omitzero"`     // of all users' calls together; default unlimited
	Origin           Origin    `json:"origin,omitzero"`         // the watched file that defines it
	Visibility       []string  `json:"visibility,omitempty"`    // all, user:ID or group:NAME; empty is admins only
	Created          time.Time `json:"created"`
	Revision         uint64    `json:"revision"` // incremented by every change
}

// About describes a server to people and models, in addition to its name: an admin's words,
// or the server's own as of its registration.
type About struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// Defaults of a server's fields.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultConcurrency = 8
	DefaultIdle        = 10 * time.Minute
	DefaultMemory      = Size(512 << 20)
)

// Normal returns s with its defaults filled in.
func (s Server) Normal() Server {
	if s.Domain == "" {
		s.Domain = s.Name
	}
	if s.Timeout == 0 {
		s.Timeout = Duration(DefaultTimeout)
	}
	if s.MaxConcurrency == 0 {
		s.MaxConcurrency = DefaultConcurrency
	}
	if s.Approval == "" {
		s.Approval = ApproveAuto
	}
	if s.Transport == Stdio && s.IdleTimeout == 0 {
		s.IdleTimeout = Duration(DefaultIdle)
	}
	if s.Transport == Stdio && s.MemoryLimit == 0 {
		s.MemoryLimit = DefaultMemory
	}
	return s
}

// Declared returns the id of the declared credential that the server is called with, "" for
// none. It returns ErrInvalid if there are several, or other credentials beside it, because
// a session belongs to one holder.
func (s Server) Declared() (id string, err error) {
	other := false
	for _, values := range []map[string]Value{s.Headers, s.Env} {
		for _, v := range values {
			other = other || v.SecretKey != "" || v.Credential != "" && id != "" && v.Credential != id
			if v.Credential != "" {
				id = v.Credential
			}
		}
	}
	if id != "" && (other || s.Auth != AuthAny) {
		return id, fmt.Errorf("%w server %s: with the declared credential %s it has no other credential, and no auth of its own", ErrInvalid, s.Name, id)
	}
	return id, nil
}

// Where returns what a person would call the server's address: its command line or its URL.
func (s Server) Where() string {
	if s.Transport == Stdio {
		return strings.Join(append([]string{s.Command}, s.Args...), " ")
	}
	if s.Transport == OpenAPI && s.URL == "" {
		return s.Document
	}
	if s.Transport == OpenAPI {
		return s.URL + " (" + s.Document + ")"
	}
	return s.URL
}

var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckSlug returns an error if name is not a valid server name.
func CheckSlug(name string) error {
	if !slug.MatchString(name) {
		return fmt.Errorf("%w name %q: use 1 to 63 of a-z, 0-9 and -, not starting with -", ErrInvalid, name)
	}
	switch name {
	case "native", "agent", "nize":
		return fmt.Errorf("%w name %q: it is reserved", ErrInvalid, name)
	}
	return nil
}

// Duration is a time.Duration encoded as text in JSON ("30s").
type Duration time.Duration

func (d Duration) String() string               { return time.Duration(d).String() }
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%w duration %q: write 90s, 10m or 2h", ErrInvalid, b)
	}
	*d = Duration(v)
	return nil
}

// ToolState determines whether a tool may be found and called.
type ToolState string

const (
	ToolAccepted    ToolState = "accepted"
	ToolQuarantined ToolState = "quarantined" // its definition differs from the accepted one, or a scan reported a finding
	ToolRefused     ToolState = "refused"     // its schema failed validation
)

// Tool is one tool of one server as last listed. Its schemas are the server's own bytes.
type Tool struct {
	Server       string          `json:"server"`
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  Annotations     `json:"annotations,omitzero"`
	Meta         json.RawMessage `json:"meta,omitempty"`
	Icons        json.RawMessage `json:"icons,omitempty"` // as listed
	State        ToolState       `json:"state"`
	Pin          string          `json:"pin"`                // hash of the definition as listed
	Accepted     string          `json:"accepted,omitempty"` // hash that an admin accepted; compared at every list and call
	Findings     []string        `json:"findings,omitempty"` // why it is quarantined or refused, one sentence each
	Around       Around          `json:"around,omitzero"`
	Was          *Definition     `json:"was,omitempty"` // the accepted definition, while another one waits for an admin
}

// Around is the part of a definition that belongs to the server: it is part of each tool's
// pin.
type Around struct {
	Launch       string `json:"launch,omitempty"`       // command line and directory, or URL
	Instructions string `json:"instructions,omitempty"` // the first [MaxInstructions] of them
}

// MaxInstructions limits how much of a server's instructions is stored with each of its
// tools, in bytes.
const MaxInstructions = 4 << 10

// Definition is the part of a tool that an admin accepts.
type Definition struct {
	Around
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  Annotations     `json:"annotations,omitzero"`
	Meta         json.RawMessage `json:"meta,omitempty"`
	Icons        json.RawMessage `json:"icons,omitempty"`
}

// Definition returns the tool's current definition.
func (t Tool) Definition() *Definition {
	return &Definition{t.Around, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations, t.Meta, t.Icons}
}

// ID returns server:name.
func (t Tool) ID() string { return t.Server + ":" + t.Name }

// Equal reports whether both are equal byte for byte. Nil findings equal an empty list.
func (t Tool) Equal(o Tool) bool {
	return t.Server == o.Server && t.Name == o.Name && t.Title == o.Title && t.Description == o.Description &&
		bytes.Equal(t.InputSchema, o.InputSchema) && bytes.Equal(t.OutputSchema, o.OutputSchema) && bytes.Equal(t.Meta, o.Meta) && bytes.Equal(t.Icons, o.Icons) &&
		t.Annotations.equal(o.Annotations) && t.State == o.State && t.Pin == o.Pin && t.Accepted == o.Accepted && slices.Equal(t.Findings, o.Findings) &&
		t.Around == o.Around && (t.Was == nil) == (o.Was == nil)
}

// SplitToolID splits server:name. ok is false if there is no colon.
func SplitToolID(id string) (server, name string, ok bool) {
	return strings.Cut(id, ":")
}

// Annotations are a server's own claims about a tool; they count only if the server's
// trust_annotations is set. A nil pointer means that the server makes no claim.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

func (a Annotations) equal(b Annotations) bool {
	same := func(x, y *bool) bool { return x == y || x != nil && y != nil && *x == *y }
	return a.Title == b.Title && same(a.ReadOnly, b.ReadOnly) && same(a.Destructive, b.Destructive) && same(a.Idempotent, b.Idempotent) && same(a.OpenWorld, b.OpenWorld)
}

// ToolDiff is the difference between two lists of a server's tools.
type ToolDiff struct {
	Added, Changed, Removed, Held []string // tool ids
}

// Hit is one result of a search.
type Hit struct {
	Tool  Tool
	Score float64 // how well the request is covered, 0 to 1
}

// MatchTool reports whether a tool pattern matches a tool id: "github:*",
// "github:create_issue", "native:*", and "*", which never matches native: or agent:.
func MatchTool(pattern, id string) bool {
	if pattern == "*" {
		return !strings.HasPrefix(id, "native:") && !strings.HasPrefix(id, "agent:")
	}
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(id, head) && strings.Contains(head, ":")
	}
	return pattern == id
}

// ExposePatterns returns the patterns for an expose: scope of a token, by the mode after
// the colon: all tools of MCP servers and the native ones, only the native ones, one native
// tool by its name, or a pattern. The mode meta returns none.
func ExposePatterns(mode string) []string {
	switch {
	case mode == "meta":
		return nil
	case mode == "native":
		return []string{"native:*"}
	case mode == "all":
		return []string{"*", "native:*"}
	case mode != "*" && !strings.Contains(mode, ":"):
		return []string{"native:" + mode}
	}
	return []string{mode}
}

// MatchAny reports whether one of the patterns matches.
func MatchAny(patterns []string, id string) bool {
	for _, p := range patterns {
		if MatchTool(p, id) {
			return true
		}
	}
	return false
}
