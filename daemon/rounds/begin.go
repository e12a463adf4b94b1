package rounds

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/project"
)

// Limits of a request. Function names are limited to what every provider accepts.
const (
	maxTools    = 256
	maxMessages = 2000
	maxTokens   = 1 << 20
	maxName     = 64
)

var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// begin validates a whole request before anything is stored, and returns the state of its
// round.
func (e *Engine) begin(ctx context.Context, of project.Project, req Request) (*state, []store.Turn, error) {
	if len(req.Approvals)+len(req.ToolOutputs) > 0 {
		return nil, nil, Invalid("round_id", "round_id is required with approvals and tool_outputs")
	}
	most := store.GetInt(e.Config, "", "agent.tools.maxSteps")
	switch {
	case req.Model == "":
		return nil, nil, Invalid("model", "model is required")
	case len(req.Messages) == 0:
		return nil, nil, Invalid("messages", "messages is required")
	case len(req.Messages) > maxMessages:
		return nil, nil, Invalid("messages", "messages has more than %d entries", maxMessages)
	case len(req.Tools) > maxTools:
		return nil, nil, Invalid("tools", "tools has more than %d entries", maxTools)
	case req.Temperature != nil && !(*req.Temperature >= 0 && *req.Temperature <= 2):
		return nil, nil, Invalid("temperature", "temperature must be between 0 and 2")
	case req.MaxTokens < 0 || req.MaxTokens > maxTokens:
		return nil, nil, Invalid("max_tokens", "max_tokens must be between 1 and %d", maxTokens)
	case req.MaxSteps < 0:
		return nil, nil, Invalid("max_steps", "max_steps must be at least 1")
	}
	var warnings []string
	if req.MaxSteps > most {
		warnings = append(warnings, fmt.Sprintf("max_steps is %d, not %d: agent.tools.maxSteps allows no more", most, req.MaxSteps))
	}
	if req.MaxSteps == 0 || req.MaxSteps > most {
		req.MaxSteps = most
	}
	if err := e.CheckModel(ctx, req.Model); errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return nil, nil, missing("model", req.Model, "model")
	} else if err != nil {
		return nil, nil, err
	}
	s := &state{ID: store.NewID(e.Now()), Project: of.ID, Conversation: req.ConversationID, Model: req.Model, Temperature: req.Temperature, MaxTokens: req.MaxTokens, MaxSteps: req.MaxSteps, Tools: []offered{}, Warnings: warnings}
	if s.Conversation == "" {
		s.Conversation = store.NewID(e.Now())
	}
	groups, err := e.offer(ctx, of, s, req.Tools)
	if err != nil {
		return nil, nil, err
	}
	for i, group := range groups {
		for _, one := range group {
			if err := s.add(one, fmt.Sprintf("tools[%d]", i)); err != nil {
				return nil, nil, err
			}
		}
	}
	turns, err := s.read(req.Messages, e.Now())
	return s, turns, err
}

// readTool validates an entry of tools that is not a server.
func (e *Engine) readTool(ctx context.Context, of project.Project, t Tool, param string) (one offered, _ error) {
	switch t.Type {
	case callable:
		if t.CallableID == "" {
			return one, Invalid(param+".callable_id", "%s.callable_id is required", param)
		}
		if id, ok := strings.CutPrefix(t.CallableID, agentCallable); ok {
			return e.readAgent(ctx, of, id, param)
		}
		tool, err := e.FindTool(ctx, of.Caller(), t.CallableID)
		var refused *store.CallError
		if errors.Is(err, store.ErrNotFound) || errors.As(err, &refused) {
			return one, missing("callable", t.CallableID, param+".callable_id")
		}
		if err != nil {
			return one, err
		}
		return offered{Kind: callable, Callable: tool.ID(), Function: store.Function{Name: tool.Name, Description: tool.Description, Schema: tool.InputSchema}}, nil
	case function:
		f := t.Function
		switch {
		case f == nil:
			return one, Invalid(param+".function", "%s.function is required", param)
		case !functionName.MatchString(f.Name):
			return one, Invalid(param+".function.name", "%s.function.name must have 1 to 64 of a-z, A-Z, 0-9, _ and -", param)
		}
		schema := f.Parameters
		if len(schema) == 0 || string(schema) == "null" {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if schema = bytes.TrimSpace(schema); schema[0] != '{' {
			return one, Invalid(param+".function.parameters", "%s.function.parameters must be a JSON Schema object", param)
		}
		return offered{Kind: function, Function: store.Function{Name: f.Name, Description: f.Description, Schema: schema}}, nil
	case "":
		return one, Invalid(param+".type", "%s.type is required", param)
	}
	return one, Invalid(param+".type", "%s.type must be mcp, callable or function", param)
}

// add adds a tool. If its name is taken, it gets its server's name as a prefix. The
// caller's own functions are never renamed, since the caller runs them by name.
func (s *state) add(one offered, param string) error {
	taken := func(name string) bool { return s.tool(name).Function.Name != "" }
	name := legalName(one.Function.Name, one.Callable)
	if taken(name) {
		prefix, _, _ := strings.Cut(one.Callable, ":")
		switch {
		case one.Kind == function:
			return Invalid(param+".function.name", "%s.function.name: another tool is called %s; give the functions first", param, name)
		case one.Kind == remote:
			prefix = slugOf(one.Label)
		case slices.ContainsFunc(s.Tools, func(o offered) bool { return o.Callable == one.Callable }):
			return Invalid(param+".callable_id", "%s.callable_id: the tool is there twice", param)
		}
		full := prefix + "__" + one.Function.Name
		name = legalName(full, one.Callable)
		for n := 2; taken(name); n++ { // two servers have the same label
			name = legalName(fmt.Sprintf("%s_%d", full, n), one.Callable)
		}
	}
	one.Function.Name = name
	s.Tools = append(s.Tools, one)
	return nil
}

// legalName converts a name to one that every provider accepts.
func legalName(name, id string) string {
	out := []byte(name)
	for i, b := range out {
		if !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' || b == '-') {
			out[i] = '_'
		}
	}
	if len(out) > maxName {
		sum := sha256.Sum256([]byte(id))
		return string(out[:55]) + "_" + hex.EncodeToString(sum[:4])
	}
	return string(out)
}

// read converts messages to turns. System messages are collected and go before all turns.
// Each call gets a new id, since some models use the same ids in every response.
func (s *state) read(messages []Message, now time.Time) (turns []store.Turn, _ error) {
	open := map[string]string{} // the caller's id of each call without a result → ours
	for i, m := range messages {
		param := fmt.Sprintf("messages[%d]", i)
		text, bad := m.text(param)
		if bad != nil {
			return nil, bad
		}
		if m.Role != "tool" && len(open) > 0 {
			return nil, Invalid(param+".role", "%s.role must be tool: a call before it has no result", param)
		}
		switch m.Role {
		case "system", "developer":
			s.System = strings.TrimSpace(s.System + "\n\n" + text)
		case "user":
			turns = append(turns, store.Turn{Role: store.FromUser, Text: text})
		case "assistant":
			t := store.Turn{Role: store.FromModel, Text: text}
			for j, c := range m.ToolCalls {
				if c.ID == "" || c.Function.Name == "" || open[c.ID] != "" {
					return nil, Invalid(fmt.Sprintf("%s.tool_calls[%d]", param, j), "%s.tool_calls[%d] needs an id of its own and a function's name", param, j)
				}
				open[c.ID] = store.NewID(now)
				t.Calls = append(t.Calls, store.ToolCall{ID: open[c.ID], Provider: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
			}
			turns = append(turns, t)
		case "tool":
			call := open[m.ToolCallID]
			if call == "" {
				return nil, Invalid(param+".tool_call_id", "%s.tool_call_id is not that of a call without a result", param)
			}
			delete(open, m.ToolCallID)
			turns = append(turns, store.Turn{Role: store.FromTool, CallID: call, Text: text})
		default:
			return nil, Invalid(param+".role", "%s.role must be system, developer, user, assistant or tool", param)
		}
	}
	if len(open) > 0 {
		return nil, Invalid("messages", "messages ends with a call that has no result")
	}
	if len(turns) == 0 {
		return nil, Invalid("messages", "messages has nothing to answer")
	}
	return turns, nil
}
