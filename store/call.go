package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a call.
//
//	planned ─┬─────────────► running ─┬─► done
//	         │                  ▲     ├─► failed
//	         ├─► pending ─ yes ─┘     └─► lost      the daemon crashed meanwhile; never repeated automatically
//	         │      ├─► refused                     a person denied it
//	         │      ├─► cancelled                   the caller left, or it was edited
//	         │      └─► expired                     no answer in time
//	         └─► refused                            denied by a policy or a hook
//
// A call that nize only decides on ([Call.Decides]) never runs here: an approval moves it
// to approved, which is final.
type State string

const (
	Planned   State = "planned"
	Pending   State = "pending"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Refused   State = "refused"
	Expired   State = "expired"
	Cancelled State = "cancelled"
	Lost      State = "lost"     // shown as "outcome unknown"
	Approved  State = "approved" // of a call that nize only decides on: its asker may go on
)

// Final reports whether the state can no longer change.
func (s State) Final() bool {
	switch s {
	case Done, Failed, Refused, Expired, Cancelled, Lost, Approved:
		return true
	}
	return false
}

// Word returns the state as shown to people.
func (s State) Word() Text {
	words := map[State]Text{
		Planned: Textf("planned"), Pending: Textf("pending"), Running: Textf("running"), Done: Textf("done"), Failed: Textf("failed"),
		Refused: Textf("refused"), Expired: Textf("expired"), Cancelled: Textf("cancelled"), Lost: Textf("outcome unknown"),
		Approved: Textf("approved"),
	}
	return cmp.Or(words[s], Plain(string(s)))
}

// Request is a request for one call of one tool.
type Request struct {
	ID   string          // chosen by the caller before anything happens; a second use is refused
	New  bool            // the ID was made by this process and not used yet
	Tool string          // server:tool
	Args json.RawMessage // as received; the gateway makes them canonical
	// Beside holds arguments found in the wrong place: of execute_tool outside params, of a
	// tools/call by the tool's name outside its arguments. The gateway places them by the
	// tool's schema or refuses them.
	Beside   map[string]json.RawMessage
	Thread   string // the conversation, "" outside one
	Agent    string
	Why      string   // the model's own words, shown as such
	Approval Approval // of the request; "" is auto
	// Unattended reports that an admin lets the caller run this tool with [ApproveNever].
	Unattended bool
	Replaces   string   // the call that this one edits, retries or repeats
	Step       string   // the model's turn that proposes it, "" outside one
	Named      []string // patterns of the native tools that the request itself names
	Allowed    []string // servers that the conversation allows; empty is all
	Ask        *Ask     // set if the caller runs the step itself; nil is an ordinary call
	Asked
}

// Call is one execution of one tool; it is the only record of it.
type Call struct {
	ID       string          `json:"id"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"` // the tool's own name, without the server
	Args     json.RawMessage `json:"args"` // canonical; sealed at rest
	Digest   string          `json:"digest"`
	Pin      string          `json:"pin"`             // the accepted definition that it is bound to
	Hooks    []HookRef       `json:"hooks,omitempty"` // each before-hook that ran, in order
	Thread   string          `json:"thread,omitempty"`
	Place    string          `json:"-"` // [Scope.Place], if only the rules are evaluated
	Agent    string          `json:"agent,omitempty"`
	Why      string          `json:"why,omitempty"`
	By       string          `json:"by"` // the requester's user id
	ByName   string          `json:"by_name,omitempty"`
	Surface  Surface         `json:"surface"`
	Token    string          `json:"token,omitempty"` // the requester's token, if one was used
	RunsAs   Text            `json:"runs_as"`         // whose credential the server is called with, in words
	ReadOnly bool            `json:"read_only,omitempty"`
	Taints   bool            `json:"taints,omitempty"`  // its output is untrusted text, by the server's settings at that time
	Private  bool            `json:"private,omitempty"` // its result is only for the requester
	Policy   Policy          `json:"policy,omitempty"`
	Asked
	Ask       *Ask       `json:"ask,omitempty"`      // of a call that its asker runs
	Question  *Question  `json:"question,omitempty"` // of a call that is a question of a server
	Warnings  []Text     `json:"warnings,omitempty"`
	Replaces  string     `json:"replaces,omitempty"`
	Successor string     `json:"successor,omitempty"` // the call that replaced this one
	Step      string     `json:"step,omitempty"`      // the model's turn that proposed it; its calls can be approved together
	Reminded  time.Time  `json:"reminded,omitzero"`   // when people were reminded that it still waits
	State     State      `json:"state"`
	Reason    Text       `json:"reason,omitzero"`   // why it is in that state, in one sentence
	Approved  time.Time  `json:"approved,omitzero"` // if set on a pending call, only Start is missing
	Decisions []Decision `json:"decisions,omitempty"`
	Result    *Result    `json:"result,omitempty"` // sealed at rest
	Created   time.Time  `json:"created"`
	Expires   time.Time  `json:"expires,omitzero"` // while pending
	Started   time.Time  `json:"started,omitzero"`
	Finished  time.Time  `json:"finished,omitzero"`
	Owner     string     `json:"owner,omitempty"` // the daemon instance that runs it, or waits for the answer to a question
	// Remote is the task by which its server runs it, so that another instance can go
	// on waiting for it.
	Remote *RemoteTask `json:"remote,omitempty"`
}

// RemoteTask is the task at the server that runs a call.
type RemoteTask struct {
	ID     string `json:"id"`
	Legacy bool   `json:"legacy,omitempty"` // in the form of 2025-11-25
}

// Asked is how a call was requested.
type Asked struct {
	InPrivateTurn bool   `json:"aside,omitempty"`   // it was proposed in a private turn: it and its result are private
	ByMeta        bool   `json:"by_meta,omitempty"` // by execute_tool, whose hooks also apply
	Task          bool   `json:"task,omitempty"`    // its client returns for the result and need not stay connected
	View          string `json:"view,omitempty"`    // the tool, server:tool, whose view requested it
	// Asks lists how its client can pass a server's questions to its user: "form", "url",
	// or both, separated by blanks; "" is not at all. "session" is added if it can only be
	// asked over the session that made the call.
	Asks string `json:"asks,omitempty"`
}

// ClientAsks reports whether the call's client can ask its user in that mode.
func (a Asked) ClientAsks(mode string) bool { return slices.Contains(strings.Fields(a.Asks), mode) }

// ToolID returns server:tool.
func (c Call) ToolID() string { return c.Server + ":" + c.Tool }

// Waiting reports whether the call waits for a person.
func (c Call) Waiting() bool { return c.State == Pending && c.Approved.IsZero() }

// HookRef names a hook, the revision of it that ran, and its effect.
type HookRef struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision,omitempty"`
	Name     string `json:"name,omitempty"`     // of a configured hook
	Personal bool   `json:"personal,omitempty"` // a person set it for their own calls
	Meta     bool   `json:"meta,omitempty"`     // it ran around the meta-tool that called the tool
	Before   string `json:"did,omitempty"`      // changed, denied or failed
	After    string `json:"after,omitempty"`    // the same, of the result
}

// Verb is a person's decision.
type Verb string

const (
	Approve Verb = "approve"
	Deny    Verb = "deny"
	Cancel  Verb = "cancel"  // by the requester, or because the caller left
	Expire  Verb = "expire"  // by nize, at the time of expiry
	Edit    Verb = "edit"    // approve with other arguments: a new call replaces this one
	Retry   Verb = "retry"   // make the call that failed again
	Again   Verb = "again"   // request approval again for a call that expired unanswered
	RunAll  Verb = "run_all" // approve this call and the others of its step
)

// Decision is one person's decision on one call.
type Decision struct {
	Verb    Verb            `json:"verb"`
	By      string          `json:"by"`
	Name    string          `json:"name,omitempty"`
	Surface Surface         `json:"surface,omitempty"`
	At      time.Time       `json:"at"`
	Digest  string          `json:"digest,omitempty"` // what the person saw; must equal the call's
	Reason  Text            `json:"reason,omitzero"`
	Args    json.RawMessage `json:"args,omitempty"`    // for Edit, and the answer to a question
	Calls   []string        `json:"calls,omitempty"`   // for RunAll: those of the step that the person was shown; nil is all of it
	Always  bool            `json:"always,omitempty"`  // also make a grant: allow or deny from now on
	For     GrantScope      `json:"for,omitempty"`     // of that grant; "" is me
	Pattern json.RawMessage `json:"pattern,omitempty"` // of that grant, see [MatchArgs]; none is any arguments
	Until   time.Time       `json:"until,omitzero"`    // of that grant; zero is until it is revoked
	Exact   bool            `json:"exact,omitempty"`   // of that grant: only for exactly the arguments of this call
	Line    bool            `json:"line,omitempty"`    // of that grant: only for exactly the command line of this ask
	Here    bool            `json:"here,omitempty"`    // of that grant: only in the repository of this ask
	Auto    bool            `json:"auto,omitempty"`    // without a button press: By's turn was stopped, they wrote something else, or their client left
	Voids   []string        `json:"voids,omitempty"`   // people whose earlier approval no longer counts because they may no longer decide

	Standing *Grant `json:"-"` // that grant, stored together with the decision
}

// Outcome is how a call ended.
type Outcome struct {
	State   State
	Reason  Text
	Result  *Result
	Private bool // makes the call private if it was not
	Hooks   []HookRef
}

// Code is the kind of an error of a call.
type Code string

const (
	CodeInvalid     Code = "invalid_arguments"
	CodeNotFound    Code = "not_found"
	CodeRefused     Code = "refused"
	CodeExpired     Code = "expired"
	CodeCancelled   Code = "cancelled"
	CodeRateLimited Code = "rate_limited"
	CodeUnavailable Code = "unavailable"
	CodeTimeout     Code = "timeout"
	CodeUnknown     Code = "outcome_unknown"
	CodeTool        Code = "tool_error"
	CodeInternal    Code = "internal"
)

// CallError is the error that a caller and a model get when a call did not succeed.
type CallError struct {
	Code      Code `json:"code"`
	Message   Text `json:"message"`
	Retryable bool `json:"retryable"`
	// Misfits are the errors in the arguments, each with its place, for a form that shows
	// them there.
	Misfits []Misfit `json:"-"`
}

// Misfit is an error at one place of a call's arguments. The place is a path of property
// names and item indices; it is empty for the arguments as a whole.
type Misfit struct {
	At   []string
	Text Text
}

func (e *CallError) Error() string { return e.Message.String() }

// Text returns the message.
func (e *CallError) Text() Text { return e.Message }

// Is makes errors.Is match the sentinels.
func (e *CallError) Is(target error) bool {
	switch e.Code {
	case CodeInvalid:
		return target == ErrInvalid
	case CodeNotFound:
		return target == ErrNotFound
	case CodeRefused:
		return target == ErrRefused
	case CodeExpired:
		return target == ErrExpired
	}
	return false
}

// Result is the result of a call. Raw is the upstream's result object (an MCP
// CallToolResult) exactly as received, except for masked secrets; our own errors have Error
// and no Raw.
type Result struct {
	Raw json.RawMessage `json:"raw,omitempty"`
	// Shown is what is passed on if a hook cut Raw; the rest can be read from the stored
	// call.
	Shown   json.RawMessage `json:"shown,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Error   *CallError      `json:"error,omitempty"`
	View    json.RawMessage `json:"view,omitempty"`   // how a renderer shows it (store/display)
	Masked  bool            `json:"masked,omitempty"` // the server repeated a secret that it was given; it is replaced by dots
	// Late reports that the record of the call's end waits for space on a full disk: if
	// nized crashes before it is written, the outcome is unknown. It is not stored.
	Late bool `json:"late,omitempty"`
}

// Passed returns the result object that is passed on: Shown, or else Raw.
func (r *Result) Passed() json.RawMessage {
	if len(r.Shown) > 0 {
		return r.Shown
	}
	return r.Raw
}

// content is the part of a CallToolResult that Text reads.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
	Resource *struct {
		URI      string `json:"uri"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// contentOf parses an item of a result. If members have other types than in the protocol,
// it parses only type and text.
func contentOf(item json.RawMessage) (c content) {
	if json.Unmarshal(item, &c) == nil {
		return c
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(item, &members) != nil {
		var text string
		if json.Unmarshal(item, &text) == nil { // some servers send a string instead of a list of items
			return content{Type: "text", Text: text}
		}
		return content{}
	}
	c = content{}
	_ = json.Unmarshal(members["type"], &c.Type) // if it has another type, it stays empty
	if text := members["text"]; len(text) > 0 && json.Unmarshal(text, &c.Text) != nil {
		if text[0] == '{' || text[0] == '[' {
			c.Type = "" // then the item is shown as it is
		} else {
			c.Text = string(text) // a number, or true or false
		}
	}
	return c
}

// Text returns the result that is passed on, as plain text for a model or a terminal: the
// text items, a line in brackets for each other item, and structuredContent only if no item
// has text.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	return r.text(r.Passed())
}

// Whole returns the Text of the result as received, before a hook cut it.
func (r *Result) Whole() string {
	if r == nil {
		return ""
	}
	return r.text(r.Raw)
}

func (r *Result) text(raw json.RawMessage) string {
	if r.Error != nil {
		return r.Error.Message.String()
	}
	var parsed struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return string(raw)
	}
	var items []json.RawMessage
	if json.Unmarshal(parsed.Content, &items) != nil && len(parsed.Content) > 0 {
		items = []json.RawMessage{parsed.Content} // one item instead of a list
	}
	var parts []string
	for _, item := range items {
		c := contentOf(item)
		switch {
		case string(item) == "null":
		case c.Type == "text":
			parts = append(parts, c.Text)
		case c.Resource != nil && c.Resource.Text != "":
			parts = append(parts, c.Resource.Text)
		case c.Resource != nil:
			parts = append(parts, fmt.Sprintf("[resource %s %s, %d bytes]", c.Resource.URI, c.Resource.MimeType, len(c.Resource.Blob)*3/4))
		case c.Type == "resource_link":
			parts = append(parts, "[link "+c.URI+"]")
		case c.Text != "" && c.Type != "image" && c.Type != "audio": // of an unknown type
			parts = append(parts, c.Text)
		case c.Data == "" && c.Type != "image" && c.Type != "audio": // neither is its content
			parts = append(parts, string(item))
		default:
			parts = append(parts, fmt.Sprintf("[%s %s, %d bytes]", c.Type, c.MimeType, len(c.Data)*3/4))
		}
	}
	if len(parts) == 0 && len(parsed.Structured) > 0 {
		return string(parsed.Structured)
	}
	return strings.Join(parts, "\n")
}

// ComputeDigest returns the hash that an approval is bound to: hex SHA-256 of the canonical
// JSON of {call id, requester, conversation, accepted pin, arguments}. It returns "" if the
// arguments have no canonical form; they match no digest. The keys are in the order of
// [Canonical].
func (c Call) ComputeDigest() string {
	var err error
	if c.Args, err = Canonical(c.Args); err != nil {
		return ""
	}
	return c.CanonicalDigest()
}

// CanonicalDigest is ComputeDigest for a call whose arguments were just made canonical.
func (c Call) CanonicalDigest() string {
	doc := append(make([]byte, 0, len(c.Args)+320), `{"arguments":`...)
	doc = append(doc, c.Args...)
	for _, m := range [...][2]string{{"call", c.ID}, {"conversation", c.Thread}, {"pin", c.Pin}, {"requester", c.By}} {
		doc = append(append(append(doc, `,"`...), m[0]...), `":`...)
		doc = appendText(doc, m[1])
	}
	sum := sha256.Sum256(append(doc, '}'))
	return hex.EncodeToString(sum[:])
}

// CallQuery selects calls, newest first.
type CallQuery struct {
	Waiting bool // only calls that wait for a person
	States  []State
	User    string // requester
	Thread  string
	Tainted bool   // only calls whose output is in Thread and untrusted
	Asks    bool   // only asks
	AskKey  string // only User's asks with that key
	Exact   bool   // include every known end; if the disk is full this may return ErrDiskFull
	Limit   int    // 0 is 100
}

// ProgressFunc is called for an upstream's progress notifications. A nil ProgressFunc is
// allowed everywhere and ignored.
type ProgressFunc func(done, total float64, message string)

// Scope narrows a caller's view of the tools; empty Servers are all.
type Scope struct {
	Agent   string
	Servers []string
	Thread  string
	Tools   []string // patterns of the native tools that the request itself names
	View    bool     // a view requests it
	Ask     bool     // the asker runs it
	Session string   // [Call.Session] of an ask
	Place   string   // [Address.Place] of a channel, if there is no conversation yet
}

// Function is a tool as a model sees it.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}
