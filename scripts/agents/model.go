package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// model simulates the models of both agents, at /v1/messages and /v1/responses. It requests
// one shell command and ends the turn when it gets the result.
type model struct {
	mu      sync.Mutex
	command string
	calls   int    // incremented, since an agent's id of a step must be unique
	results []byte // the last request with the result of a step
}

// wants sets the command that the next turn requests.
func (m *model) wants(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.command, m.results = command, nil
	m.calls++
}

// heard returns the result of the step that the model received.
func (m *model) heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.results)
}

// request has the relevant fields of the requests to both.
type request struct {
	Messages []json.RawMessage `json:"messages"` // Anthropic's
	Input    []json.RawMessage `json:"input"`    // OpenAI's
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (r request) has(tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t struct {
		Name string `json:"name"`
	}) bool {
		return t.Name == tool
	})
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req request
	if err != nil || r.Method != http.MethodPost || json.Unmarshal(body, &req) != nil {
		http.Error(w, "no such thing", http.StatusNotFound)
		return
	}
	m.mu.Lock()
	command, id := m.command, fmt.Sprintf("step_%d", m.calls)
	told := strings.Contains(string(body), `"tool_result"`) || strings.Contains(string(body), `_call_output"`)
	if told {
		m.results = body
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	var events []event
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		events = anthropic(command, id, told || !req.has("Bash"))
	case strings.HasSuffix(r.URL.Path, "/responses"):
		events = openai(command, id, req, told)
	default:
		http.Error(w, "no such thing", http.StatusNotFound)
		return
	}
	for _, e := range events {
		kind, _ := e["type"].(string)
		data, _ := json.Marshal(e) // maps of texts and numbers always encode
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
}

type event map[string]any

func anthropic(command, id string, end bool) []event {
	usage := event{"input_tokens": 1, "output_tokens": 1}
	events := []event{{"type": "message_start", "message": event{"id": "m_" + id, "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}}}
	reason := "end_turn"
	if end {
		events = append(events, event{"type": "content_block_start", "index": 0, "content_block": event{"type": "text", "text": ""}},
			event{"type": "content_block_delta", "index": 0, "delta": event{"type": "text_delta", "text": "finished"}})
	} else {
		reason = "tool_use"
		input, _ := json.Marshal(map[string]string{"command": command, "description": "Do what was asked"})
		events = append(events, event{"type": "content_block_start", "index": 0, "content_block": event{"type": "tool_use", "id": "toolu_" + id, "name": "Bash", "input": event{}}},
			event{"type": "content_block_delta", "index": 0, "delta": event{"type": "input_json_delta", "partial_json": string(input)}})
	}
	return append(events, event{"type": "content_block_stop", "index": 0},
		event{"type": "message_delta", "delta": event{"stop_reason": reason, "stop_sequence": nil}, "usage": usage}, event{"type": "message_stop"})
}

func openai(command, id string, req request, end bool) []event {
	item := event{"type": "message", "id": "m_" + id, "role": "assistant", "content": []any{event{"type": "output_text", "text": "finished"}}}
	if !end {
		name, args := "shell", any(event{"command": []string{"bash", "-lc", command}})
		if req.has("exec_command") {
			name, args = "exec_command", event{"cmd": command}
		} else if req.has("shell_command") {
			name, args = "shell_command", event{"command": command}
		}
		text, _ := json.Marshal(args)
		item = event{"type": "function_call", "id": "f_" + id, "call_id": id, "name": name, "arguments": string(text)}
	}
	return []event{{"type": "response.created", "response": event{"id": "r_" + id}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": event{"id": "r_" + id, "output": []any{item}, "usage": event{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}}
}
