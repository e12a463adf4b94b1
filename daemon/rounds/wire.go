package rounds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/store"
	"nize/store/project"
)

// Request starts a round, or continues one that waits.
type Request struct {
	Begin    `oneof:"" doc:"starts a round"`
	Continue `oneof:"" doc:"continues a round that waits or was interrupted; with round_id alone it checks whether another person has decided"`
}

// Begin starts a round.
type Begin struct {
	Model          string    `json:"model" doc:"a model of nize's, by its logical name or as provider/model"`
	Messages       []Message `json:"messages" doc:"messages, oldest first; with conversation_id only new ones"`
	Tools          []Tool    `json:"tools,omitempty" doc:"tools that the model may use"`
	Temperature    *float64  `json:"temperature,omitempty" doc:"from 0 to 2"`
	MaxTokens      int       `json:"max_tokens,omitempty" doc:"limit for one response of the model"`
	MaxSteps       int       `json:"max_steps,omitempty" doc:"maximum number of model calls; at most agent.tools.maxSteps, with a warning if that is less"`
	ConversationID string    `json:"conversation_id,omitempty" doc:"continues a conversation whose last round has ended"`
}

// Continue continues a round that waits or was interrupted.
type Continue struct {
	RoundID     string     `json:"round_id" doc:"the round's id"`
	Approvals   []Approval `json:"approvals,omitempty" doc:"decisions on calls that nize would run"`
	ToolOutputs []Output   `json:"tool_outputs,omitempty" doc:"outputs of the caller's own functions"`
}

// Message is a message in OpenAI's chat format.
type Message struct {
	Role       string        `json:"role" enum:"system,developer,user,assistant,tool"`
	Content    Content       `json:"content,omitempty"`
	ToolCalls  []MessageCall `json:"tool_calls,omitempty" doc:"calls in a message of the assistant's; each needs a message of role tool"`
	ToolCallID string        `json:"tool_call_id,omitempty" doc:"for role tool: the call that it answers"`
	Name       string        `json:"name,omitempty"`
}

// Content is the content of a message.
type Content struct{ json.RawMessage }

// OneOf returns the alternatives for the OpenAPI document: a string, parts, or null.
func (Content) OneOf() []any { return []any{"", []Part{}, nil} }

// Part is a part of a message.
type Part struct {
	Type string  `json:"type" enum:"text"`
	Text *string `json:"text"`
}

// MessageCall is a call in an assistant's message.
type MessageCall struct {
	ID       string     `json:"id"`
	Type     string     `json:"type,omitempty" enum:"function"`
	Function CallByName `json:"function"`
}

// CallByName is a call as the model wrote it.
type CallByName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty" doc:"JSON, as a string"`
}

// Tool is a tool that the model may use.
type Tool struct {
	Type         string `json:"type"`
	MCPTool      `oneof:"mcp" doc:"the tools of an MCP server that the request brings"`
	CallableTool `oneof:"callable" doc:"a tool that is registered with nize and shared with the project, or an agent"`
	FunctionTool `oneof:"function" doc:"a function that the caller runs itself"`
}

// MCPTool offers the tools of an MCP server that the request brings.
type MCPTool struct {
	ServerLabel     string                    `json:"server_label" doc:"the caller's name for the server; the project's credentials are stored under it"`
	ServerURL       string                    `json:"server_url" doc:"its http or https URL"`
	AllowedTools    *[]string                 `json:"allowed_tools" doc:"names of its tools; [] is all of them"`
	RequireApproval store.Approval            `json:"require_approval" enum:"always,never,auto" doc:"auto requires approval; never does not, if an admin lets the project run the tool unattended or approvals.allow_request_never is set"`
	Headers         map[string]project.Header `json:"headers,omitempty" doc:"sent with each request to the server"`
}

// CallableTool offers a tool or an agent that is registered with nize.
type CallableTool struct {
	CallableID string `json:"callable_id" doc:"server:tool, or agent:ID of an agent that the project may use"`
}

// FunctionTool offers a function that the caller runs itself.
type FunctionTool struct {
	Function *Function `json:"function"`
}

// Function is a function in OpenAI's format.
type Function struct {
	Name        string          `json:"name" doc:"1 to 64 of a-z, A-Z, 0-9, _ and -"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" jsontype:"object" doc:"a JSON Schema"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Approval is the caller's decision about a proposed call.
type Approval struct {
	ID      string `json:"id" doc:"the call's id"`
	Digest  string `json:"digest" doc:"the digest of what was proposed"`
	Approve *bool  `json:"approve" doc:"whether it may run"`
}

// Output is the output of one of the caller's functions.
type Output struct {
	ID     string  `json:"id" doc:"the call's id"`
	Output *string `json:"output" doc:"the text for the model"`
}

// The states of a round.
const (
	Completed        = "completed"
	RequiresApproval = "requires_approval"
	RequiresAction   = "requires_action"
	MaxSteps         = "max_steps"
	Failed           = "failed"
)

// Answer is the result of a round so far.
type Answer struct {
	ID             string     `json:"id" doc:"the round's id"`
	ConversationID string     `json:"conversation_id"`
	Status         string     `json:"status" enum:"completed,requires_approval,requires_action,max_steps,failed"`
	Message        *Said      `json:"message"`
	ProposedCalls  []Proposed `json:"proposed_calls" doc:"calls that wait for the caller"`
	Usage          Usage      `json:"usage"`
	Steps          int        `json:"steps" doc:"number of model calls"`
	Error          *Error     `json:"error,omitempty" doc:"why it failed"`
	Finish         string     `json:"finish_reason,omitempty" enum:"stop,length,cut,content_filter" doc:"of the message of a completed round; any value but stop is why it is incomplete"`
	Warnings       []string   `json:"warnings,omitempty" doc:"omitted tools, what the message is missing, and how a pending call could run without approval; one sentence each"`
}

// Said is the assistant's message.
type Said struct {
	Role    string `json:"role" enum:"assistant"`
	Content string `json:"content"`
}

// Proposed is a call that waits for the caller's approval, or for its output.
type Proposed struct {
	ID          string          `json:"id"`
	Tool        string          `json:"tool" doc:"the name that the model used"`
	ServerLabel *string         `json:"server_label" doc:"of a server that the request brought"`
	Arguments   json.RawMessage `json:"arguments" jsontype:"object"`
	Digest      string          `json:"digest" doc:"to be sent back with the decision"`
}

// Usage is the cost of a round so far.
type Usage struct {
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
	TotalTokens      int64    `json:"total_tokens"`
	CachedTokens     int64    `json:"cached_tokens"`
	CostUSD          *float64 `json:"cost_usd" doc:"null if a price is unknown"`
	Estimated        bool     `json:"estimated" doc:"the service did not report the number of tokens"`
}

// Failure is the body of an error response.
type Failure struct {
	Error *Error `json:"error"`
}

// Error is an error in the form for programs.
type Error struct {
	Type    string `json:"type" enum:"invalid_request,authentication,not_found,conflict,rate_limited,budget,upstream,internal"`
	Message string `json:"message"`
	Param   Param  `json:"param" doc:"the field in question, or null"`
}

// Form is the form of errors for programs and chat clients.
var Form = failure.Form{Type: failure.JSON, Body: func(e *api.Error) any { return FailureOf(e) }}

// FailureOf returns an error in the form for programs.
func FailureOf(e *api.Error) Failure { return Failure{shown(e)} }

func shown(e *api.Error) *Error {
	return &Error{Type: e.Row().Type, Message: e.Message, Param: Param(e.Param)}
}

// Param names a field of a request; "" is null in JSON.
type Param string

// MarshalJSON writes "" as null.
func (p Param) MarshalJSON() ([]byte, error) {
	if p == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(p))
}

// OneOf returns the alternatives for the OpenAPI document.
func (Param) OneOf() []any { return []any{"", nil} }

// Invalid returns the error for an invalid field of a request.
func Invalid(param, format string, args ...any) *api.Error {
	return &api.Error{Code: "invalid", Message: fmt.Sprintf(format, args...), Param: param}
}

// Unauthenticated returns the error for a request without valid credentials.
func Unauthenticated(message string) *api.Error {
	return &api.Error{Code: "authentication", Message: message}
}

// TooManyStreams returns the error if no more requests may follow rounds.
func TooManyStreams(why error) *api.Error {
	return &api.Error{Code: "rate_limited", Message: why.Error(), Retry: 1}
}

// tooMany returns the error if the limit of rounds is reached.
func tooMany(whose string, most int) *api.Error {
	return &api.Error{Code: "rate_limited", Message: fmt.Sprintf("%s has %d rounds in progress, which is the limit; send it again in a moment", whose, most), Retry: 1}
}

// InternalError returns the error for a cause that only the log shows.
func InternalError() *api.Error { return &api.Error{Code: "internal", Message: "internal error"} }

// AwayError returns the error if the database can't be reached.
func AwayError() *api.Error {
	return &api.Error{Code: "no_database", Message: store.ErrNoDatabase.Error(), Retry: 1}
}

func missing(what, id, param string) *api.Error {
	return &api.Error{Code: "not_found", Message: fmt.Sprintf("%s %q not found", what, store.Clip(id, 200)), Param: param}
}

func conflict(param, format string, args ...any) *api.Error {
	return &api.Error{Code: "conflict", Message: fmt.Sprintf(format, args...), Param: param}
}

// text returns the text of a message.
func (m Message) text(param string) (string, *api.Error) {
	var text string
	raw := m.Content.RawMessage
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return "", Invalid(param+".content", "%s.content must be a text or a list of parts", param)
	}
	var all []string
	for i, part := range parts {
		var p Part
		if err := json.Unmarshal(part, &p); err != nil {
			at, want := fmt.Sprintf("%s.content[%d]", param, i), "an object"
			var misfit *json.UnmarshalTypeError
			if errors.As(err, &misfit) && misfit.Field != "" {
				at, want = at+"."+misfit.Field, "a string"
			}
			return "", Invalid(at, "%s must be %s", at, want)
		}
		if p.Type != "text" {
			return "", Invalid(fmt.Sprintf("%s.content[%d].type", param, i), "%s.content[%d].type must be text", param, i)
		}
		if p.Text == nil {
			return "", Invalid(fmt.Sprintf("%s.content[%d].text", param, i), "%s.content[%d].text is required", param, i)
		}
		all = append(all, *p.Text)
	}
	return strings.Join(all, "\n"), nil
}
