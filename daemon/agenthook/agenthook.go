// Package agenthook parses the hook events of coding agents and formats the responses.
//
// An agent starts a hook, or posts to it, before it runs one of its own tools. Each agent
// has its own formats; this package converts them to and from an [Event] and a [Decision].
// A decision that an agent's format can't express, such as changed arguments, becomes a
// denial with that reason, so that a step never runs that was not approved exactly as it
// is.
package agenthook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// Client is a coding agent.
type Client struct {
	Name  string // also the name of its source of asks
	Title string
	// Skip are the tools that only read, or only talk to the agent's user, as names or
	// patterns that end with *.
	Skip []string

	read   func(*event) (Event, error)
	answer func(Event, Decision) any
}

// Clients are the known agents.
var Clients = []Client{
	{Name: "claude-code", Title: "Claude Code", read: readClaude, answer: answerClaude,
		Skip: []string{"Read", "Glob", "Grep", "LS", "NotebookRead", "TodoRead", "TodoWrite", "Task", "Agent", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "BashOutput", "WebSearch", "ToolSearch", "Skill", "EnterPlanMode", "ExitPlanMode", "AskUserQuestion", "ListMcpResourcesTool", "ReadMcpResourceTool"}},
	{Name: "codex", Title: "Codex", read: readCodex, answer: answerCodex,
		Skip: []string{"read_file", "list_dir", "grep_files", "view_image", "update_plan", "request_user_input", "web_search"}},
	{Name: "cursor", Title: "Cursor", read: readCursor, answer: answerCursor, Skip: []string{"Read", "Grep", "List"}},
	{Name: "gemini-cli", Title: "Gemini CLI", read: readGemini, answer: answerGemini,
		Skip: []string{"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "save_memory", "write_todos", "google_web_search", "get_internal_docs", "ask_user"}},
}

// Find returns a client by its name.
func Find(name string) (Client, bool) {
	i := slices.IndexFunc(Clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return Clients[i], true
}

// Event is a step that an agent is about to take.
type Event struct {
	Tool    string
	Title   string // the agent's description of the step
	Args    json.RawMessage
	Cwd     string
	Session string
	Key     string // the agent's own id of the step

	// UnsureDir is true if the step may run in a directory other than Cwd, which the event
	// doesn't contain.
	UnsureDir bool

	name    string // the event's name in the agent's format
	rewrite bool   // the agent accepts changed arguments
}

// Decision is the decision on an event.
type Decision struct {
	Verdict Verdict
	Reason  string
	Args    json.RawMessage // the approved arguments, if they differ from the event's; else nil
}

// Verdict is the kind of a decision.
type Verdict int

const (
	Deny Verdict = iota
	Allow
	Ask // leave the question to the agent's own prompt
)

// ErrOther is returned for an event that isn't about an upcoming step.
var ErrOther = errors.New("the event is not about a tool that is about to run")

// event has the fields of all agents' events.
type event struct {
	Name         string          `json:"hook_event_name"`
	Session      string          `json:"session_id"`
	Conversation string          `json:"conversation_id"`
	Cwd          string          `json:"cwd"`
	Roots        []string        `json:"workspace_roots"`
	Tool         string          `json:"tool_name"`
	Input        json.RawMessage `json:"tool_input"`
	UseID        string          `json:"tool_use_id"`
	Command      string          `json:"command"`
	URL          string          `json:"url"`
}

// Read parses an event in the agent's format. It returns ErrOther for an event that needs
// no decision.
func (c Client) Read(raw []byte) (Event, error) {
	var e event
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &e); err != nil {
		return Event{}, fmt.Errorf("the hook event is not JSON of the expected form: %w", err)
	}
	if e.Name == "" {
		return Event{}, errors.New("the hook event has no hook_event_name")
	}
	ev, err := c.read(&e)
	if err != nil {
		return Event{}, err
	}
	ev.name = e.Name
	if ev.Tool == "" {
		return Event{}, fmt.Errorf("the hook event %s names no tool", e.Name)
	}
	if args := bytes.TrimSpace(ev.Args); len(args) == 0 || string(args) == "null" {
		ev.Args = json.RawMessage("{}")
	}
	return ev, nil
}

// Skips reports whether a step is left to the agent's own rules: its tool is read-only or
// in skip, or only is not empty and doesn't contain it.
func (c Client) Skips(tool string, only, skip []string) bool {
	if len(only) > 0 {
		return !matches(only, tool) || matches(skip, tool)
	}
	return matches(c.Skip, tool) || matches(skip, tool)
}

// CheckPattern returns an error for a pattern that Skips can't match. If such a pattern
// were ignored, steps would run without a decision.
func CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return fmt.Errorf("%q is not a pattern: use the name of a tool, or one with *, such as mcp__*", pattern)
	}
	return nil
}

func matches(patterns []string, tool string) bool {
	flat := strings.NewReplacer("/", "\x00") // a * must also match slashes, which tools' names may contain
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(flat.Replace(p), flat.Replace(tool))
		return err == nil && ok
	})
}

// DecisionOf converts the state of an ask to a decision; args are the arguments that the
// agent sent.
func DecisionOf(got api.Ask, args json.RawMessage) Decision {
	reason := got.Reason
	if got.DecidedBy != "" && !strings.Contains(reason, got.DecidedBy) {
		reason = strings.TrimSpace(reason + " (" + got.DecidedBy + ")")
	}
	switch got.State {
	case string(store.Approved):
		approved, err := store.Canonical(got.Arguments)
		if err != nil || approved[0] != '{' {
			return Decision{Verdict: Deny, Reason: "nize can't decide: its response does not contain the approved arguments"}
		}
		d := Decision{Verdict: Allow, Reason: "nize: " + cmp.Or(reason, "approved")}
		sent, err := store.Canonical(args)
		if err != nil || string(sent) != string(got.Arguments) {
			d.Args = got.Arguments
		}
		return d
	case string(store.Pending):
		return Decision{Verdict: Deny, Reason: "nize: no decision was made in time; ask again if it is still needed (" + got.ID + ")"}
	case string(store.Refused), string(store.Expired), string(store.Cancelled):
		return Decision{Verdict: Deny, Reason: "nize: " + cmp.Or(reason, got.State)}
	}
	return Decision{Verdict: Deny, Reason: fmt.Sprintf("nize can't decide: %q in its response is not a state of an ask", got.State)}
}

// Answer formats a decision for the agent; it returns nil if nothing must be written.
func (c Client) Answer(e Event, d Decision) []byte {
	if d.Verdict == Allow && d.Args != nil && !e.rewrite {
		d = Decision{Verdict: Deny, Reason: fmt.Sprintf("it was approved with other arguments, which %s can't be given; run it with these instead: %s", c.Title, d.Args)}
	}
	v := c.answer(e, d)
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil { // can't fail: only strings and valid JSON
		return nil
	}
	return append(b, '\n')
}

// Claude Code and Codex.

func readClaude(e *event) (Event, error) {
	if e.Name != "PreToolUse" && e.Name != "PermissionRequest" {
		return Event{}, ErrOther
	}
	return Event{Tool: e.Tool, Title: titleOf(e.Input), Args: e.Input, Cwd: e.Cwd, Session: e.Session, Key: e.UseID, rewrite: true}, nil
}

// readCodex parses an event that contains the session's directory, but not the one in which
// the model wants to run a command.
func readCodex(e *event) (Event, error) {
	ev, err := readClaude(e)
	ev.UnsureDir = true
	return ev, err
}

// titleOf returns the agent's description of its step.
func titleOf(input json.RawMessage) string {
	var said struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(input, &said) // "" if it has another type
	return said.Description
}

type claudeSpecific struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Behavior *behavior       `json:"decision,omitempty"`
}

type behavior struct {
	Behavior string          `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
}

type claudeAnswer struct {
	Specific claudeSpecific `json:"hookSpecificOutput"`
}

func answerClaude(e Event, d Decision) any {
	if e.name == "PermissionRequest" {
		return permission(d, d.Args)
	}
	word := [...]string{Deny: "deny", Allow: "allow", Ask: "ask"}[d.Verdict]
	return claudeAnswer{claudeSpecific{Event: cmp.Or(e.name, "PreToolUse"), Decision: word, Reason: d.Reason, Input: d.Args}}
}

// permission formats the response to a PermissionRequest; without one the agent shows its
// own prompt.
func permission(d Decision, args json.RawMessage) any {
	switch d.Verdict {
	case Allow:
		return claudeAnswer{claudeSpecific{Event: "PermissionRequest", Behavior: &behavior{Behavior: "allow", Input: args}}}
	case Deny:
		return claudeAnswer{claudeSpecific{Event: "PermissionRequest", Behavior: &behavior{Behavior: "deny", Message: d.Reason}}}
	}
	return nil
}

// answerCodex avoids any response that Codex treats as a failed hook, after which it runs
// the step: for PreToolUse it accepts only deny, and no response allows the step.
func answerCodex(e Event, d Decision) any {
	if d.Verdict == Allow && d.Args != nil {
		return answerCodex(e, Decision{Verdict: Deny, Reason: "it was approved with other arguments, which Codex can't be given; run it with these instead: " + string(d.Args)})
	}
	if e.name == "PermissionRequest" {
		return permission(d, nil)
	}
	switch d.Verdict {
	case Allow:
		return nil
	case Ask: // Codex has no prompt to fall back to
		d.Reason = "nize could not decide, and Codex has no prompt at this point: " + d.Reason
	}
	return claudeAnswer{claudeSpecific{Event: e.name, Decision: "deny", Reason: d.Reason}}
}

// Cursor.

func readCursor(e *event) (Event, error) {
	cwd := e.Cwd
	if cwd == "" && len(e.Roots) > 0 {
		cwd = e.Roots[0]
	}
	ev := Event{Cwd: cwd, Session: e.Conversation, Key: e.UseID, UnsureDir: e.Cwd == ""}
	switch e.Name {
	case "beforeShellExecution":
		args, err := json.Marshal(map[string]string{"command": e.Command})
		ev.Tool, ev.Args = "Shell", args
		return ev, err
	case "beforeMCPExecution":
		ev.Tool, ev.Args = "MCP:"+e.Tool, e.Input
		var text string
		if json.Unmarshal(e.Input, &text) == nil { // its arguments are a string
			ev.Args = json.RawMessage(text)
		}
		if e.Tool == "" {
			ev.Tool = ""
		}
		return ev, nil
	case "preToolUse":
		ev.Tool, ev.Args, ev.rewrite = e.Tool, e.Input, true
		return ev, nil
	}
	return Event{}, ErrOther
}

func answerCursor(_ Event, d Decision) any {
	return struct {
		Permission string          `json:"permission"`
		User       string          `json:"user_message,omitempty"`
		Agent      string          `json:"agent_message,omitempty"`
		Input      json.RawMessage `json:"updated_input,omitempty"`
	}{[...]string{Deny: "deny", Allow: "allow", Ask: "ask"}[d.Verdict], d.Reason, d.Reason, d.Args}
}

// Gemini CLI.

func readGemini(e *event) (Event, error) {
	if e.Name != "BeforeTool" {
		return Event{}, ErrOther
	}
	return Event{Tool: e.Tool, Title: titleOf(e.Input), Args: e.Input, Cwd: e.Cwd, Session: e.Session, rewrite: true}, nil
}

func answerGemini(_ Event, d Decision) any {
	type specific struct {
		Event string          `json:"hookEventName"`
		Input json.RawMessage `json:"tool_input,omitempty"`
	}
	type answer struct {
		Decision string    `json:"decision"`
		Reason   string    `json:"reason,omitempty"`
		Specific *specific `json:"hookSpecificOutput,omitempty"`
	}
	a := answer{Decision: [...]string{Deny: "deny", Allow: "allow", Ask: "ask"}[d.Verdict], Reason: strings.TrimSpace(d.Reason)}
	if d.Verdict == Allow && d.Args != nil {
		a.Specific = &specific{"BeforeTool", d.Args}
	}
	return a
}
