package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"nize/llm"
	"nize/store"
)

// strict rejects, as services do, a request with names, ids or arguments that a model may
// not write.
func strict(t *testing.T, body string) string {
	t.Helper()
	var req struct {
		Messages []struct {
			Calls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Input []struct{ Type, Name, Arguments string }
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("^[a-zA-Z0-9_-]{1,64}$")
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			if !name.MatchString(c.Function.Name) || !json.Valid([]byte(c.Function.Arguments)) || c.ID == "" {
				return fmt.Sprintf("Invalid 'messages.tool_calls': %+v", c)
			}
		}
	}
	for _, it := range req.Input {
		if it.Type == "function_call" && (!name.MatchString(it.Name) || !json.Valid([]byte(it.Arguments))) {
			return fmt.Sprintf("Invalid 'input': %+v", it)
		}
	}
	return ""
}

// An illegal name from a model is sent back in a form that the service accepts, with either
// protocol, so the conversation can continue.
func TestIllegalNames(t *testing.T) {
	for _, model := range []string{"m", "gpt-6"} {
		for _, bad := range []string{"", "toolbox:convert_time", "näme", "a b", strings.Repeat("x", 65)} {
			s := newService(t, stream(text("ok"), end))
			if model != "m" {
				s = newService(t, stream(`{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`))
			}
			c, _ := s.client(t, "openai")
			item, err := json.Marshal(map[string]any{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": bad, "arguments": "{"})
			if err != nil {
				t.Fatal(err)
			}
			own, err := json.Marshal(opaque{Model: "gpt-6", Items: []json.RawMessage{item}})
			if err != nil {
				t.Fatal(err)
			}
			call := []store.ToolCall{{ID: "01A", Provider: "c1", Name: bad, Args: "{"}}
			other := []store.ToolCall{{ID: "01B", Name: bad, Args: "{}"}}
			reply, err := c.Generate(t.Context(), llm.Request{Model: model, Functions: []store.Function{{Name: "f"}}, Turns: []store.Turn{
				{Role: store.FromUser, Text: "hi"},
				{Role: store.FromModel, Model: "prov/gpt-6", Opaque: own, Calls: call}, {Role: store.FromTool, CallID: "01A", Text: "There is no such function"},
				{Role: store.FromModel, Model: "prov/m", Calls: other}, {Role: store.FromTool, CallID: "01B", Text: "There is no such function"},
			}}, nil)
			if err != nil || reply.Text != "ok" {
				t.Errorf("%s, %q: got %+v, %v", model, bad, reply, err)
			}
			bodies, _ := s.seen()
			if why := strict(t, bodies[0]); why != "" {
				t.Errorf("%s, %q: a service refuses %s", model, bad, why)
			}
			if n := strings.Count(bodies[0], invalidName); n != 2 {
				t.Errorf("%s, %q: %d times in %s", model, bad, n, bodies[0])
			}
			if model == "gpt-6" && !strings.Contains(bodies[0], `"id":"fc_1"`) {
				t.Errorf("the item lost what else it had: %s", bodies[0])
			}
		}
	}
}

// An id is sent back unchanged to the service that chose it, and to others only in the form
// that all accept.
func TestCallIDs(t *testing.T) {
	c := &Client{opt: Options{Provider: store.Provider{Name: "prov"}}}
	turn := func(model, id string, provider ...string) store.Turn {
		t := store.Turn{Model: model}
		for i, p := range provider {
			t.Calls = append(t.Calls, store.ToolCall{ID: fmt.Sprint(id, i), Provider: p})
		}
		return t
	}
	got := c.callIDs([]store.Turn{
		turn("prov/m", "A", "functions.f:0", ""), turn("else/m", "B", "functions.g:0", "call_1", strings.Repeat("x", 41)), turn("prov/m", "C", "same", "same"),
	})
	for id, want := range map[string]string{"A0": "functions.f:0", "A1": "A1", "B0": "B0", "B1": "call_1", "B2": "B2", "C0": "C0", "C1": "C1"} {
		if got[id] != want {
			t.Errorf("%s goes as %q, want %q", id, got[id], want)
		}
	}
}
