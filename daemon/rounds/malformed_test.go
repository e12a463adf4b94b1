package rounds

import (
	"encoding/json"
	"errors"
	"testing"

	"nize/daemon/api"
	"nize/store/project"
)

// What is malformed is named, by a text that scripts may test.
func TestMalformed(t *testing.T) {
	const mcp = `{"type":"mcp","server_label":"L","server_url":"https://a.example/mcp","allowed_tools":[],"require_approval":"auto"`
	tools := func(entry string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[` + entry + `]}`
	}
	for body, want := range map[string][2]string{
		`{"messages":[{"role":"user","content":"x"}]}`: {"model", "model is required"},
		`{"model":"m"}`: {"messages", "messages is required"},
		`{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":3}`:                                   {"temperature", "temperature must be between 0 and 2"},
		`{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":-1}`:                                   {"max_tokens", "max_tokens must be between 1 and 1048576"},
		`{"model":"m","messages":[{"role":"user","content":"x"}],"max_steps":-1}`:                                    {"max_steps", "max_steps must be at least 1"},
		`{"model":"m","messages":[{"role":"user","content":"x"}],"approvals":[{"id":"1"}]}`:                          {"round_id", "round_id is required with approvals and tool_outputs"},
		`{"model":"m","messages":[{"role":"user","content":1}]}`:                                                     {"messages[0].content", "messages[0].content must be a text or a list of parts"},
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}`:                                     {"messages[0].content[0].text", "messages[0].content[0].text is required"},
		`{"model":"m","messages":[{"role":"user","content":["x"]}]}`:                                                 {"messages[0].content[0]", "messages[0].content[0] must be an object"},
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":5}]}]}`: {"messages[0].content[1].text", "messages[0].content[1].text must be a string"},
		`{"model":"m","messages":[{"role":"user","content":[{"type":7,"text":"x"}]}]}`:                               {"messages[0].content[0].type", "messages[0].content[0].type must be a string"},
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`:                                {"messages[0].content[0].type", "messages[0].content[0].type must be text"},
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"a"}]}`:                                              {"messages[0].tool_call_id", "messages[0].tool_call_id is not that of a call without a result"},
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]}]}`:          {"messages", "messages ends with a call that has no result"},
		tools(`{"type":"shell"}`):    {"tools[0].type", "tools[0].type must be mcp, callable or function"},
		tools(`{}`):                  {"tools[0].type", "tools[0].type is required"},
		tools(`{"type":"callable"}`): {"tools[0].callable_id", "tools[0].callable_id is required"},
		tools(`{"type":"function"}`): {"tools[0].function", "tools[0].function is required"},
		tools(`{"type":"function","function":{"name":"a b"}}`):                                                                     {"tools[0].function.name", "tools[0].function.name must have 1 to 64 of a-z, A-Z, 0-9, _ and -"},
		tools(`{"type":"function","function":{"name":"a","parameters":[]}}`):                                                       {"tools[0].function.parameters", "tools[0].function.parameters must be a JSON Schema object"},
		tools(`{"type":"mcp","server_url":"https://a.example","allowed_tools":[],"require_approval":"auto"}`):                      {"tools[0].server_label", "tools[0].server_label is required"},
		tools(`{"type":"mcp","server_label":"L","allowed_tools":[],"require_approval":"auto"}`):                                    {"tools[0].server_url", "tools[0].server_url is required"},
		tools(`{"type":"mcp","server_label":"L","server_url":"ftp://a","allowed_tools":[],"require_approval":"auto"}`):             {"tools[0].server_url", "tools[0].server_url must start with http:// or https://"},
		tools(`{"type":"mcp","server_label":"L","server_url":"https://a.example","require_approval":"auto"}`):                      {"tools[0].allowed_tools", "tools[0].allowed_tools is required; send [] for all tools"},
		tools(`{"type":"mcp","server_label":"L","server_url":"https://a.example","allowed_tools":null,"require_approval":"auto"}`): {"tools[0].allowed_tools", "tools[0].allowed_tools is required; send [] for all tools"},
		tools(`{"type":"mcp","server_label":"L","server_url":"https://a.example","allowed_tools":[]}`):                             {"tools[0].require_approval", "tools[0].require_approval is required"},
		tools(`{"type":"mcp","server_label":"L","server_url":"https://a.example","allowed_tools":[],"require_approval":"maybe"}`):  {"tools[0].require_approval", "tools[0].require_approval must be always, never or auto"},
		tools(mcp + `,"headers":{"a b":"x"}}`):                                                                                     {"tools[0].headers.a b", "tools[0].headers.a b is not the name of a header"},
		tools(mcp + `,"headers":{"X-A":"x","x-a":"y"}}`):                                                                           {"tools[0].headers.x-a", "tools[0].headers.x-a is there twice"},
		tools(mcp + `,"headers":{"X-A":"x\r\ny"}}`):                                                                                {"tools[0].headers.X-A", "tools[0].headers.X-A holds a line break"},
		tools(`{"type":"callable","callable_id":"alpha:b"},{"type":"callable","callable_id":"alpha:b"}`):                           {"tools[1].callable_id", "tools[1].callable_id: the tool is there twice"},
		tools(`{"type":"callable","callable_id":"alpha:b"},{"type":"function","function":{"name":"b"}}`):                           {"tools[1].function.name", "tools[1].function.name: another tool is called b; give the functions first"},
	} {
		var req Request
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		_, _, err := testEngine().begin(t.Context(), project.Project{ID: "p"}, req)
		var e *api.Error
		if !errors.As(err, &e) || e.Status() != 400 || e.Code != "invalid" || e.Param != want[0] || e.Message != want[1] {
			t.Errorf("%s: %+v, want %q", body, err, want)
		}
	}
}
