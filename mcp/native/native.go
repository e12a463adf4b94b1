// Package native runs the tools that are part of nized, and those that extend it:
// native:NAME.
//
// A [Registry] is a Runner like the pool of servers: the gateway applies its rules, hooks,
// budgets and approvals before a call gets here, and records its outcome. No user has a
// native tool by default: the list of an agent, a token or a request must name it
// (native:NAME, native:*).
//
// Tools can be added and removed while nized runs ([Registry.Put], [Registry.Remove]).
// nize's own code is trusted. A tool that declares its code ([Tool.Code]) is not: its pin
// covers the definition and the code, and it is held, neither found nor callable, until an
// admin has accepted exactly that pin.
//
// A package that is compiled into nized adds its tools with [Register].
package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/credential"
)

const (
	defaultTime   = 30 * time.Second
	defaultAtOnce = 8
)

// Tool is one native tool.
type Tool struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage // optional
	Annotations  store.Annotations
	Meta         json.RawMessage // optional
	// Template is HTML that shows the structured result, written for window.openai and
	// including its styles and scripts; "" if there is none.
	Template string
	// Renderer shows the structured result in each chat, in the format of package
	// mcp/view; "" if there is none.
	Renderer string

	// Untrusted means that other people may have written the tool's results: after one,
	// every call in the conversation that changes something needs approval.
	Untrusted bool
	Private   bool // results are only for the requester
	// CredentialID is the id of a declared credential: a call gets its requester's value,
	// and the tool is not offered to users without one.
	CredentialID string
	Timeout      time.Duration // per call; default 30 s
	AtOnce       int           // maximum number of concurrent calls; default 8

	// Code identifies code that is not nize's own, for example by the hash of a file.
	// Accepted is then the pin ([Tool.Pin]) that was accepted.
	Code     string
	Accepted string

	// Run runs the tool. It returns an error that the caller may see as a result with
	// IsError or as a *store.CallError; any other error is reported as an internal one.
	Run func(ctx context.Context, c Context, input json.RawMessage) (Result, error)
}

// Context describes for whom and where a call runs. Fields that don't apply are empty: a
// project has no user, and a call outside of a conversation no thread.
type Context struct {
	User    string `json:"userId,omitempty"`
	Team    string `json:"teamId,omitempty"`
	Thread  string `json:"threadId,omitempty"`
	Agent   string `json:"agentId,omitempty"`
	Project string `json:"projectId,omitempty"`

	Credential credential.Value `json:"-"` // of a tool with a CredentialID
}

// Owner returns the user, or project:ID, for which a call runs.
func (c Context) Owner() string {
	if c.User == "" && c.Project != "" {
		return projectPrefix + c.Project
	}
	return c.User
}

const projectPrefix = "project:"

// Result is a tool's result, in MCP's form.
type Result struct {
	Content           []Content       `json:"content"`
	IsError           bool            `json:"isError,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
}

// Content is one content item: a text, an image, or a resource.
type Content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     []byte    `json:"data,omitempty"`
	MimeType string    `json:"mimeType,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// Resource is a resource embedded in a result.
type Resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// Text returns a result with one text.
func Text(s string) Result { return Result{Content: []Content{{Type: "text", Text: s}}} }

// Failed returns an error result with one text.
func Failed(s string) Result {
	r := Text(s)
	r.IsError = true
	return r
}

// check returns an error for an invalid result, which an extension may have written.
func (r Result) check() error {
	for i, c := range r.Content {
		switch {
		case c.Type == "text":
		case c.Type == "image" && len(c.Data) > 0 && c.MimeType != "":
		case c.Type == "image":
			return fmt.Errorf("content[%d]: an image has data and mimeType", i)
		case c.Type == "resource" && c.Resource != nil && c.Resource.URI != "":
		case c.Type == "resource":
			return fmt.Errorf("content[%d]: a resource has a uri", i)
		default:
			return fmt.Errorf("content[%d].type must be text, image or resource", i)
		}
	}
	if s := strings.TrimSpace(string(r.StructuredContent)); s != "" && (s[0] != '{' || !json.Valid(r.StructuredContent)) {
		return errors.New("structuredContent must be an object")
	}
	return nil
}

// raw returns the result encoded for MCP. An empty text keeps its type and its text.
func (r Result) raw() (json.RawMessage, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(r.Content))
	for i, c := range r.Content {
		item := any(c)
		if c.Type == "text" {
			item = struct {
				Type string `json:"type"`
				Text string `json:"text"`
			}{c.Type, c.Text}
		}
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		items[i] = raw
	}
	return json.Marshal(struct {
		Content           []json.RawMessage `json:"content"`
		IsError           bool              `json:"isError,omitempty"`
		StructuredContent json.RawMessage   `json:"structuredContent,omitempty"`
	}{items, r.IsError, r.StructuredContent})
}

// definition returns the tool as the gateway sees it.
func (t Tool) definition() store.Tool {
	return store.Tool{
		Server: policy.NativeServer, Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations, Meta: t.Meta,
	}
}

// Template returns the view of a native tool that is not held, or "".
func (r *Registry) Template(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tools[name]; t != nil && t.seen.State == store.ToolAccepted {
		return t.Tool.Template
	}
	return ""
}

// Pin returns the hash that an admin accepts.
func (t Tool) Pin() string {
	raw, err := json.Marshal(struct {
		*store.Definition
		Name, Code         string
		Untrusted, Private bool
		CredentialID       string `json:",omitempty"`
	}{t.definition().Definition(), t.Name, t.Code, t.Untrusted, t.Private, t.CredentialID})
	if err != nil { // unreachable: check refuses an invalid schema
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// check returns an error for an invalid tool.
func (t Tool) check() error {
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case !names.MatchString(t.Name):
		return fmt.Errorf("%w name %q: use 1 to 63 letters, digits, _, - and ., starting with a letter or digit", store.ErrInvalid, t.Name)
	case strings.TrimSpace(t.Description) == "":
		return fmt.Errorf("%w description of %s: say what it does", store.ErrInvalid, t.Name)
	case json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object":
		return fmt.Errorf(`%w inputSchema of %s: it must be a JSON Schema whose root has "type": "object"`, store.ErrInvalid, t.Name)
	case t.CredentialID != "" && store.CheckSlug(t.CredentialID) != nil:
		return fmt.Errorf("%w credential of %s: %q is not a valid id", store.ErrInvalid, t.Name, t.CredentialID)
	case len(t.Template) > view.MaxTemplate:
		return fmt.Errorf("%w template of %s: it is over %d KiB", store.ErrInvalid, t.Name, view.MaxTemplate>>10)
	case len(t.Meta) > 0 && json.Unmarshal(t.Meta, new(map[string]json.RawMessage)) != nil:
		return fmt.Errorf("%w meta of %s: it must be an object", store.ErrInvalid, t.Name)
	case t.Timeout < 0 || t.AtOnce < 0:
		return fmt.Errorf("%w limits of %s: they must not be negative", store.ErrInvalid, t.Name)
	case t.Run == nil:
		return fmt.Errorf("%w tool %s: it has nothing to run", store.ErrInvalid, t.Name)
	}
	return nil
}

// kept is a registered tool with its state.
type kept struct {
	Tool
	seen  *policy.Tool
	slots chan struct{} // capacity: the number of concurrent calls
}

// Options configures a registry.
type Options struct {
	Tools []Tool // in addition to those added with Register
	// Publish is called with all tools after each change, sequentially.
	Publish func(server *store.Server, tools []*policy.Tool)
	// TeamOf returns the team for which a caller acts in a conversation, "" if none.
	TeamOf func(ctx context.Context, by store.Caller, thread string) (string, error)
	// Credential returns a user's value of a declared credential.
	Credential func(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
}

// Registry holds native tools and runs their calls. It is safe for concurrent use.
type Registry struct {
	opt Options

	publishing sync.Mutex // held during Publish; locked before mu
	mu         sync.Mutex
	tools      map[string]*kept
}

var (
	builtinMu sync.Mutex
	builtin   []Tool // added by Register
)

// Register adds a tool of a package that is compiled into nized; call it from an init
// function. It panics if the tool is invalid, which is a programmer's mistake.
func Register(t Tool) {
	if err := t.check(); err != nil {
		panic("native.Register: " + err.Error())
	}
	builtinMu.Lock()
	defer builtinMu.Unlock()
	builtin = append(builtin, t)
}

// New returns a registry with the registered tools and those of the options.
func New(opt Options) *Registry {
	r := &Registry{opt: opt, tools: map[string]*kept{}}
	builtinMu.Lock()
	defer builtinMu.Unlock()
	for _, t := range slices.Concat(builtin, opt.Tools) {
		r.tools[t.Name] = newKept(t)
	}
	return r
}

func newKept(t Tool) *kept {
	if t.Timeout == 0 {
		t.Timeout = defaultTime
	}
	if t.AtOnce == 0 {
		t.AtOnce = defaultAtOnce
	}
	record := &store.Server{
		Name: policy.NativeServer, About: store.About{Title: "nize", Description: "tools of nize's own: web pages, documents, usage, and what extends them"},
		TrustAnnotations: t.Code == "", UntrustedOutput: t.Untrusted, Private: t.Private, Timeout: store.Duration(t.Timeout), Visibility: []string{"all"},
	}
	*record = record.Normal()
	d := t.definition()
	d.Pin, d.State = t.Pin(), store.ToolAccepted
	d.Accepted = d.Pin
	if t.Code != "" && t.Accepted != d.Pin {
		d.State, d.Accepted = store.ToolQuarantined, t.Accepted
		d.Findings = []string{"no admin has accepted it yet"}
		if t.Accepted != "" {
			d.Findings = []string{"its definition or its code changed"}
		}
	}
	return &kept{t, policy.NewNativeTool(d, record, t.CredentialID), make(chan struct{}, t.AtOnce)}
}

// Put adds a tool, or replaces the one with its name. nize's own tools and others can't
// replace each other.
func (r *Registry) Put(t Tool) error {
	if err := t.check(); err != nil {
		return err
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	if old := r.tools[t.Name]; old != nil && (old.Code == "") != (t.Code == "") {
		r.mu.Unlock()
		return fmt.Errorf("native:%s %w", t.Name, store.ErrExists)
	}
	r.tools[t.Name] = newKept(t)
	r.mu.Unlock()
	r.publish()
	return nil
}

// Remove removes a tool; running calls of it continue.
func (r *Registry) Remove(name string) {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	delete(r.tools, name)
	r.mu.Unlock()
	r.publish()
}

// Count returns the number of tools that are not held.
func (r *Registry) Count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tools {
		if t.seen.State == store.ToolAccepted {
			n++
		}
	}
	return n
}

// Publish publishes all tools, at start.
func (r *Registry) Publish() {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.publish()
}

func (r *Registry) publish() {
	r.mu.Lock()
	tools := make([]*policy.Tool, 0, len(r.tools))
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		tools = append(tools, r.tools[name].seen)
	}
	r.mu.Unlock()
	server := store.Server{Name: policy.NativeServer, Visibility: []string{"all"}, TrustAnnotations: true}.Normal()
	if len(tools) > 0 {
		server.About = tools[0].Record.About
	}
	r.opt.Publish(&server, tools)
}

// CheckPattern returns an error for a pattern of native tools without a match.
func (r *Registry) CheckPattern(pattern string) error {
	if !strings.HasPrefix(pattern, policy.NativeServer+":") {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for name := range r.tools {
		id := policy.NativeServer + ":" + name
		if store.MatchTool(pattern, id) {
			return nil
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return store.Unknown("tool", pattern, ids)
}

// Run runs one call; it is the mcp.Runner of native tools. It checks again that the tool is
// the one for which the call was made.
func (r *Registry) Run(ctx context.Context, by store.Caller, c *store.Call, _ store.ProgressFunc) (*store.Result, error) {
	r.mu.Lock()
	t := r.tools[c.Tool]
	r.mu.Unlock()
	switch {
	case t == nil:
		return nil, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("tool %s not found", c.ToolID())}
	case t.seen.State != store.ToolAccepted || t.seen.Pin != c.Pin:
		return nil, &store.CallError{Code: store.CodeRefused, Message: store.Textf("the definition of %s differs from the one that the call was made for", c.ToolID())}
	}
	of, err := r.contextOf(ctx, by, c)
	if err != nil {
		return nil, err
	}
	result := Failed("Authentication required")
	if of.Owner() != "" {
		if t.CredentialID != "" {
			if _, of.Credential, err = r.opt.Credential(ctx, of.Owner(), t.CredentialID); err != nil {
				return nil, err
			}
		}
		if result, err = t.run(ctx, of, c.Args); err != nil {
			return nil, err
		}
	}
	raw, err := result.raw()
	if err != nil {
		return nil, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s did not return a valid result: %s", c.ToolID(), err.Error())}
	}
	return &store.Result{Raw: raw, IsError: result.IsError}, nil
}

func (t *kept) run(ctx context.Context, of Context, input json.RawMessage) (none Result, _ error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return none, &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("%d calls of native:%s are under way, and none ended in time", t.AtOnce, t.Name)}
	}
	result, err := t.Run(ctx, of, input)
	if err != nil && ctx.Err() != nil { // whatever error the tool returned
		return none, ctx.Err()
	}
	return result, err
}

// contextOf reads the context of a call once.
func (r *Registry) contextOf(ctx context.Context, by store.Caller, c *store.Call) (of Context, err error) {
	if by.User == "" || by.User == store.System.User {
		return of, nil
	}
	of = Context{User: by.User, Thread: c.Thread, Agent: c.Agent}
	if id, ok := strings.CutPrefix(by.User, projectPrefix); ok {
		of.User, of.Project = "", id
		return of, nil
	}
	of.Team, err = r.opt.TeamOf(ctx, by, c.Thread)
	return of, err
}
