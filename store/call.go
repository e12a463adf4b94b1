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

// State is where a call stands.
//
//	planned ─┬─────────────► running ─┬─► done
//	         │                  ▲     ├─► failed
//	         ├─► pending ─ yes ─┘     └─► lost      the daemon died meanwhile; never run again by itself
//	         │      ├─► refused                     a person said no
//	         │      ├─► cancelled                   the caller left, or it was edited
//	         │      └─► expired                     nobody answered
//	         └─► refused                            policy or a hook said no
//
// An ask ([Call.Ask]) never runs here: a yes makes it approved, which is its end.
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
	Approved  State = "approved" // of an ask alone: its asker may run it
)

// Final says whether nothing more can happen to a call in this state.
func (s State) Final() bool {
	switch s {
	case Done, Failed, Refused, Expired, Cancelled, Lost, Approved:
		return true
	}
	return false
}

// Word is the state as people read it.
func (s State) Word() Text {
	words := map[State]Text{
		Planned: Textf("planned"), Pending: Textf("pending"), Running: Textf("running"), Done: Textf("done"), Failed: Textf("failed"),
		Refused: Textf("refused"), Expired: Textf("expired"), Cancelled: Textf("cancelled"), Lost: Textf("outcome unknown"),
		Approved: Textf("approved"),
	}
	return cmp.Or(words[s], Plain(string(s)))
}

// Request asks for one call of one tool.
type Request struct {
	ID   string          // chosen by the caller before anything happens; a second use is refused
	New  bool            // the ID was made by this process and not used yet
	Tool string          // server:tool
	Args json.RawMessage // as they came; the gateway makes them canonical
	// Beside are arguments that stand elsewhere: of execute_tool outside params, of a
	// tools/call by the tool's name outside its arguments. The gateway places them by
	// the tool's schema or refuses them.
	Beside   map[string]json.RawMessage
	Thread   string // the conversation, "" outside one
	Agent    string
	Why      string   // the model's own words, shown as such
	Approval Approval // of the request; "" is auto
	// Unattended says that an admin lets the caller run this tool with [ApproveNever].
	Unattended bool
	Replaces   string   // the call that this one edits, retries or asks again
	Step       string   // the model's turn that proposes it, "" outside one
	Named      []string // patterns of the native tools that the request itself names
	Allowed    []string // servers that the conversation allows; empty is all
	Ask        *Ask     // of what its asker runs; nil is a call
	Asked
}

// Call is the state of one execution of one tool, the one record for that fact.
type Call struct {
	ID       string          `json:"id"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"` // the tool's own name, without the server
	Args     json.RawMessage `json:"args"` // canonical; sealed at rest
	Digest   string          `json:"digest"`
	Pin      string          `json:"pin"`             // the accepted definition that it is bound to
	Hooks    []HookRef       `json:"hooks,omitempty"` // each before-hook that ran, in order
	Thread   string          `json:"thread,omitempty"`
	Place    string          `json:"-"` // [Scope.Place], of one that only the rules are asked about
	Agent    string          `json:"agent,omitempty"`
	Why      string          `json:"why,omitempty"`
	By       string          `json:"by"` // the requester's user id
	ByName   string          `json:"by_name,omitempty"`
	Surface  Surface         `json:"surface"`
	Token    string          `json:"token,omitempty"` // the requester's token, if one was used
	RunsAs   Text            `json:"runs_as"`         // whose credential the server is called with, in words
	ReadOnly bool            `json:"read_only,omitempty"`
	Taints   bool            `json:"taints,omitempty"`  // its output is untrusted text, by its server as it was then
	Private  bool            `json:"private,omitempty"` // its result is for the requester alone
	Policy   Policy          `json:"policy,omitempty"`
	Asked
	Ask       *Ask       `json:"ask,omitempty"` // of a call that its asker runs
	Warnings  []Text     `json:"warnings,omitempty"`
	Replaces  string     `json:"replaces,omitempty"`
	Successor string     `json:"successor,omitempty"` // the call that replaced this one
	Step      string     `json:"step,omitempty"`      // the model's turn that proposed it; its calls can be approved together
	Reminded  time.Time  `json:"reminded,omitzero"`   // when people were told that it still waits
	State     State      `json:"state"`
	Reason    Text       `json:"reason,omitzero"`   // why it is in that state, in one sentence
	Approved  time.Time  `json:"approved,omitzero"` // a pending call with this set waits for Start only
	Decisions []Decision `json:"decisions,omitempty"`
	Result    *Result    `json:"result,omitempty"` // sealed at rest
	Created   time.Time  `json:"created"`
	Expires   time.Time  `json:"expires,omitzero"` // while pending
	Started   time.Time  `json:"started,omitzero"`
	Finished  time.Time  `json:"finished,omitzero"`
	Owner     string     `json:"owner,omitempty"` // the daemon instance that runs it
	// Remote is the task by which its server runs it, so that another instance can go
	// on waiting for it.
	Remote *RemoteTask `json:"remote,omitempty"`
}

// RemoteTask is a task at the server of a call that runs.
type RemoteTask struct {
	ID     string `json:"id"`
	Legacy bool   `json:"legacy,omitempty"` // in the form of 2025-11-25
}

// Asked says how a call was asked for.
type Asked struct {
	InPrivateTurn bool   `json:"aside,omitempty"`   // it was proposed in a private turn: it and what comes of it are private
	ByMeta        bool   `json:"by_meta,omitempty"` // by execute_tool, whose hooks hold for it, too
	Task          bool   `json:"task,omitempty"`    // its client comes back for the result, so nobody need be attached
	View          string `json:"view,omitempty"`    // the tool, server:tool, whose view asked
	// Asks is how its client can ask its person what a server asks: "form", "url", or
	// both with a blank between them. "" is not at all.
	Asks string `json:"asks,omitempty"`
}

// ClientAsks reports whether the call's client can ask its person in that mode.
func (a Asked) ClientAsks(mode string) bool { return slices.Contains(strings.Fields(a.Asks), mode) }

// ToolID is server:tool.
func (c Call) ToolID() string { return c.Server + ":" + c.Tool }

// Waiting says whether the call waits for a person.
func (c Call) Waiting() bool { return c.State == Pending && c.Approved.IsZero() }

// HookRef names a hook and the revision of it that ran, and says what it did.
type HookRef struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision,omitempty"`
	Name     string `json:"name,omitempty"`     // of a configured one
	Personal bool   `json:"personal,omitempty"` // a person set it for their own calls
	Meta     bool   `json:"meta,omitempty"`     // it stood around the meta-tool by which the tool was called
	Before   string `json:"did,omitempty"`      // changed, denied or failed
	After    string `json:"after,omitempty"`    // the same, of the result
}

// Verb is what a person decided.
type Verb string

const (
	Approve Verb = "approve"
	Deny    Verb = "deny"
	Cancel  Verb = "cancel"  // by the requester, or because the caller left
	Expire  Verb = "expire"  // by nize, at the time of expiry
	Edit    Verb = "edit"    // approve with other arguments: a new call replaces this one
	Retry   Verb = "retry"   // make the call that failed again
	Again   Verb = "again"   // ask again for a call that nobody answered
	RunAll  Verb = "run_all" // approve this call and the others of its step
)

// Decision is what one person said about one call.
type Decision struct {
	Verb    Verb            `json:"verb"`
	By      string          `json:"by"`
	Name    string          `json:"name,omitempty"`
	Surface Surface         `json:"surface,omitempty"`
	At      time.Time       `json:"at"`
	Digest  string          `json:"digest,omitempty"` // what the person saw; must be the call's
	Reason  Text            `json:"reason,omitzero"`
	Args    json.RawMessage `json:"args,omitempty"`    // for Edit
	Calls   []string        `json:"calls,omitempty"`   // for RunAll: those of the step that the person was shown; nil is all of it
	Always  bool            `json:"always,omitempty"`  // also make a grant: allow or deny from now on
	For     GrantScope      `json:"for,omitempty"`     // of that grant; "" is me
	Pattern json.RawMessage `json:"pattern,omitempty"` // of that grant, see [MatchArgs]; none is any arguments
	Until   time.Time       `json:"until,omitzero"`    // of that grant; zero is until it is revoked
	Exact   bool            `json:"exact,omitempty"`   // of that grant: only for the very arguments of this call
	Line    bool            `json:"line,omitempty"`    // of that grant: only for the very command line of this ask
	Here    bool            `json:"here,omitempty"`    // of that grant: only in the repository of this ask
	Auto    bool            `json:"auto,omitempty"`    // nobody pressed: By's turn was stopped, they wrote something else, or their client left
	Voids   []string        `json:"voids,omitempty"`   // people whose earlier yes no longer counts, since they may not press any more

	Standing *Grant `json:"-"` // that grant: stored with the decision, or not at all
}

// Outcome is how a call ended.
type Outcome struct {
	State   State
	Reason  Text
	Result  *Result
	Private bool // the call becomes private with it, if it was not
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

// CallError is what a caller and a model are told when a call did not succeed.
type CallError struct {
	Code      Code `json:"code"`
	Message   Text `json:"message"`
	Retryable bool `json:"retryable"`
	// Misfits are what Message says of arguments, each at its place, for a form that
	// shows them there.
	Misfits []Misfit `json:"-"`
}

// Misfit is what is wrong at one place of a call's arguments: names of properties
// and places of items, none for the arguments themselves.
type Misfit struct {
	At   []string
	Text Text
}

func (e *CallError) Error() string { return e.Message.String() }

// Text is what it says.
func (e *CallError) Text() Text { return e.Message }

// Is lets errors.Is meet the sentinels.
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

// Result is what a call gave. Raw is the upstream's result object (an MCP
// CallToolResult) exactly as it came but for secrets; our own errors have Error and no Raw.
type Result struct {
	Raw json.RawMessage `json:"raw,omitempty"`
	// Shown is what is passed on where a hook cut Raw; the rest can be read
	// from the stored call.
	Shown   json.RawMessage `json:"shown,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Error   *CallError      `json:"error,omitempty"`
	View    json.RawMessage `json:"view,omitempty"`   // how a renderer shows it (store/display)
	Masked  bool            `json:"masked,omitempty"` // the server repeated a secret that it was given; dots stand in its place
	// Late says that the record of the call's end waits for room on a full disk:
	// after a crash before that its outcome is unknown. It is not stored.
	Late bool `json:"late,omitempty"`
}

// Passed is the result object that is passed on: Shown, or else Raw.
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

// contentOf reads an item of a result. Of one whose members have other types than the
// protocol's, its type and text are read.
func contentOf(item json.RawMessage) (c content) {
	if json.Unmarshal(item, &c) == nil {
		return c
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(item, &members) != nil {
		var text string
		if json.Unmarshal(item, &text) == nil { // some write a text where a list of items should be
			return content{Type: "text", Text: text}
		}
		return content{}
	}
	c = content{}
	_ = json.Unmarshal(members["type"], &c.Type) // one of another type stays empty
	if text := members["text"]; len(text) > 0 && json.Unmarshal(text, &c.Text) != nil {
		if text[0] == '{' || text[0] == '[' {
			c.Type = "" // then the item is shown as it stands
		} else {
			c.Text = string(text) // a number, or true or false
		}
	}
	return c
}

// Text is the result that is passed on, as plain text for a model or a
// terminal: the text items, a line in brackets for what is no text, and
// structuredContent only where no item says anything.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	return r.text(r.Passed())
}

// Whole is Text of the result as it came, before a hook cut it.
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
		items = []json.RawMessage{parsed.Content} // one item in place of the list
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
		case c.Text != "" && c.Type != "image" && c.Type != "audio": // of a type that is not known
			parts = append(parts, c.Text)
		case c.Data == "" && c.Type != "image" && c.Type != "audio": // nor is what it holds
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

// ComputeDigest is the hash that an approval is bound to: hex
// SHA-256 of the canonical JSON of {call id, requester, conversation, accepted
// pin, arguments}, or "" for arguments that have no canonical form: they match
// no digest. The keys stand in the order that [Canonical] gives them.
func (c Call) ComputeDigest() string {
	args, err := Canonical(c.Args)
	if err != nil {
		return ""
	}
	doc := append(make([]byte, 0, len(args)+320), `{"arguments":`...)
	doc = append(doc, args...)
	for _, m := range [...][2]string{{"call", c.ID}, {"conversation", c.Thread}, {"pin", c.Pin}, {"requester", c.By}} {
		doc = append(append(append(doc, `,"`...), m[0]...), `":`...)
		doc = appendText(doc, m[1])
	}
	sum := sha256.Sum256(append(doc, '}'))
	return hex.EncodeToString(sum[:])
}

// CallQuery selects calls, newest first.
type CallQuery struct {
	Waiting bool // only those that wait for a person
	States  []State
	User    string // requester
	Thread  string
	Tainted bool   // only those whose output is in Thread and untrusted
	Asks    bool   // only asks
	AskKey  string // only User's asks with that key
	Exact   bool   // with each end that is known: on a full disk it may be ErrDiskFull instead
	Limit   int    // 0 is 100
}

// ProgressFunc is called for an upstream's progress notifications. A nil one is
// allowed everywhere and is not called.
type ProgressFunc func(done, total float64, message string)

// Scope is what narrows a caller's view of the tools; empty Servers are all.
type Scope struct {
	Agent   string
	Servers []string
	Thread  string
	Tools   []string // patterns of the native tools that the request itself names
	View    bool     // a view asks
	Ask     bool     // what is asked about is run by its asker
	Session string   // [Call.Session] of an ask
	Place   string   // [Address.Place] of a channel, where there is no conversation yet
}

// Function is a tool as a model sees it.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}
