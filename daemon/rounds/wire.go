package rounds

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"nize/store"
	"nize/store/project"
)

// Request begins a round, or goes on with one that waits: then it has a RoundID,
// and of the rest Approvals and ToolOutputs alone.
type Request struct {
	Model          string    `json:"model"`
	Messages       []Message `json:"messages"`
	Tools          []Tool    `json:"tools"`
	Temperature    *float64  `json:"temperature"`
	MaxTokens      int       `json:"max_tokens"`
	MaxSteps       int       `json:"max_steps"`
	ConversationID string    `json:"conversation_id"`

	RoundID     string     `json:"round_id"`
	Approvals   []Approval `json:"approvals"`
	ToolOutputs []Output   `json:"tool_outputs"`
}

// Message is one of OpenAI's chat form. Content is a text, a list of parts of type
// text, or null.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []MessageCall   `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
}

// MessageCall is a call in a message of the assistant's.
type MessageCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is what the model may use: the tools of an MCP server that the request
// brings (mcp), a tool that is registered with nize (callable), or one that the
// caller runs itself (function).
type Tool struct {
	Type string `json:"type"`

	ServerLabel     string                    `json:"server_label"`
	ServerURL       string                    `json:"server_url"`
	AllowedTools    *[]string                 `json:"allowed_tools"` // [] is all of them
	RequireApproval store.Approval            `json:"require_approval"`
	Headers         map[string]project.Header `json:"headers"`

	CallableID string    `json:"callable_id"`
	Function   *Function `json:"function"`
}

// Function is a function of OpenAI's.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// Approval is the caller's decision about a proposed call.
type Approval struct {
	ID      string `json:"id"`
	Digest  string `json:"digest"`
	Approve *bool  `json:"approve"`
}

// Output is what a function of the caller's came to.
type Output struct {
	ID     string  `json:"id"`
	Output *string `json:"output"`
}

// The states of a round.
const (
	Completed        = "completed"
	RequiresApproval = "requires_approval"
	RequiresAction   = "requires_action"
	MaxSteps         = "max_steps"
	Failed           = "failed"
)

// Answer is what a round came to so far.
type Answer struct {
	ID             string     `json:"id"`
	ConversationID string     `json:"conversation_id"`
	Status         string     `json:"status"`
	Message        *Said      `json:"message"`
	ProposedCalls  []Proposed `json:"proposed_calls"`
	Usage          Usage      `json:"usage"`
	Steps          int        `json:"steps"`
	Error          *Error     `json:"error,omitempty"`
	Warnings       []string   `json:"warnings,omitempty"`
}

// Said is the assistant's message.
type Said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Proposed is a call that waits for the caller: for a yes, or for its output.
type Proposed struct {
	ID          string          `json:"id"`
	Tool        string          `json:"tool"` // the name that the model used
	ServerLabel *string         `json:"server_label"`
	Arguments   json.RawMessage `json:"arguments"`
	Digest      string          `json:"digest"`
}

// Usage is what a round has cost so far. CostUSD is null where a price is unknown.
type Usage struct {
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
	TotalTokens      int64    `json:"total_tokens"`
	CachedTokens     int64    `json:"cached_tokens"`
	CostUSD          *float64 `json:"cost_usd"`
	Estimated        bool     `json:"estimated"`
}

// Error is what the caller is told where something can't be done.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	status  int
}

func (e *Error) Error() string { return e.Message }

// Status is that of HTTP.
func (e *Error) Status() int { return e.status }

// The types of an [Error].
const (
	InvalidRequest = "invalid_request"
	Authentication = "authentication"
	NotFound       = "not_found"
	Conflict       = "conflict"
	Budget         = "budget"
	Upstream       = "upstream"
	Internal       = "internal"
)

// Invalid says what is wrong with a request, and where.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Type: InvalidRequest, Message: fmt.Sprintf(format, args...), Param: param, status: http.StatusBadRequest}
}

// Unauthenticated says why nobody knows who the caller is.
func Unauthenticated(message string) *Error {
	return &Error{Type: Authentication, Message: message, status: http.StatusUnauthorized}
}

// InternalError is for what only the log says.
func InternalError() *Error {
	return &Error{Type: Internal, Message: "internal error", status: http.StatusInternalServerError}
}

func missing(what, id, param string) *Error {
	return &Error{Type: NotFound, Message: fmt.Sprintf("%s %q not found", what, store.Clip(id, 200)), Param: param, status: http.StatusNotFound}
}

func conflict(param, format string, args ...any) *Error {
	return &Error{Type: Conflict, Message: fmt.Sprintf(format, args...), Param: param, status: http.StatusConflict}
}

// text is the content of a message.
func (m Message) text(param string) (string, *Error) {
	var text string
	if len(m.Content) == 0 || string(m.Content) == "null" || json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", Invalid(param+".content", "%s.content must be a text or a list of parts", param)
	}
	var all []string
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", Invalid(fmt.Sprintf("%s.content[%d].type", param, i), "%s.content[%d].type must be text", param, i)
		}
		all = append(all, *p.Text)
	}
	return strings.Join(all, "\n"), nil
}
