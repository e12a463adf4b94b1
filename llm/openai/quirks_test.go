package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"nize/llm"
	"nize/store"
)

// tools is a conversation in which a tool was used, and a person wrote before the model
// replied.
var tools = llm.Request{
	Model: "m", MaxTokens: 9, NoCalls: true,
	Functions: []store.Function{{Name: "list", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}, {Name: "find", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}},
	Turns: []store.Turn{
		{Role: store.FromUser, Text: "hi"},
		{Role: store.FromModel, Model: "other/x", Calls: []store.ToolCall{{ID: "01A", Provider: "call_1", Name: "find", Args: `{"q":"x"}`}}},
		{Role: store.FromTool, CallID: "01A", Text: "nothing"},
		{Role: store.FromUser, Text: "and now?"},
	},
}

// asked returns what a kind of service gets for a request.
func asked(t *testing.T, kind string, req llm.Request) map[string]any {
	t.Helper()
	s := newService(t, stream(text("ok"), end))
	c, _ := s.client(t, kind)
	if _, err := c.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	bodies, _ := s.seen()
	var body map[string]any
	if err := json.Unmarshal([]byte(bodies[0]), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func TestAnthropicLimitsAndChoice(t *testing.T) {
	body := asked(t, "anthropic", tools)
	if body["tool_choice"] != nil || body["max_tokens"] != 9.0 || at(body, "stream_options", "include_usage") != true {
		t.Errorf("sent %v", body)
	}
}

// Its list of models is from Anthropic's own API, with that API's headers.
func TestAnthropicModels(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get("x-api-key") != testKey || r.Header.Get("anthropic-version") == "" || r.Header.Get("Authorization") != "" || r.URL.Query().Get("limit") != "1000" {
			fail(401, "", `{"type":"error","error":{"type":"authentication_error","message":"x-api-key header is required"}}`)(w, r, 1)
			return
		}
		io.WriteString(w, `{"data":[{"type":"model","id":"claude-x-20250929","created_at":"2025-09-29T00:00:00Z"}],"has_more":false}`)
	})
	c, _ := s.client(t, "anthropic")
	got, err := c.ListModels(t.Context())
	if err != nil || len(got) != 1 || got[0] != "claude-x-20250929" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMistralRequest(t *testing.T) {
	body := asked(t, "mistral", tools)
	id, _ := at(body, "messages", 1, "tool_calls", 0, "id").(string)
	if !legalMistralID.MatchString(id) || at(body, "messages", 2, "tool_call_id") != id {
		t.Errorf("the call has the id %q, its result %v", id, at(body, "messages", 2, "tool_call_id"))
	}
	if body["stream_options"] != nil || body["max_tokens"] != 9.0 || body["max_completion_tokens"] != nil || body["tool_choice"] != "none" {
		t.Errorf("sent %v", body)
	}
	if at(body, "messages", 3, "role") != "assistant" || at(body, "messages", 4, "content") != "and now?" {
		t.Errorf("a person's message stands right behind a tool's: %v", body["messages"])
	}
	own := tools
	own.Turns = []store.Turn{{Role: store.FromUser, Text: "hi"}, {Role: store.FromModel, Model: "prov/m", Calls: []store.ToolCall{{ID: "01A", Provider: "D681PevKs", Name: "find", Args: "{}"}}}, {Role: store.FromTool, CallID: "01A", Text: "x"}}
	if id := at(asked(t, "mistral", own), "messages", 1, "tool_calls", 0, "id"); id != "D681PevKs" {
		t.Errorf("its own id went back as %v", id)
	}
	if len(asked(t, "groq", tools)["messages"].([]any)) != 4 {
		t.Error("others got a message that nobody wrote")
	}
}

// Gemini's signature beside a call is sent back with it; a call of another model has the
// one that Google documents for that.
func TestGeminiSignatures(t *testing.T) {
	signed := `{"google":{"thought_signature":"abc"}}`
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		if try == 1 {
			stream(toolCalls(`{"index":0,"id":"function-call-1","type":"function","extra_content":`+signed+`,"function":{"name":"find","arguments":"{}"}}`),
				toolCalls(`{"index":1,"id":"function-call-2","type":"function","function":{"name":"find","arguments":"{\"q\":1}"}}`),
				`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`)(w, r, try)
			return
		}
		stream(text("ok"), end)(w, r, try)
	})
	c, _ := s.client(t, "gemini")
	reply, err := c.Generate(t.Context(), hello, nil)
	if err != nil || len(reply.Calls) != 2 {
		t.Fatalf("got %+v, %v", reply, err)
	}
	if u := reply.Usage; u.Completion != 30 || u.Reasoning != 25 {
		t.Errorf("what it thought is not counted: %+v", u)
	}
	for i := range reply.Calls {
		reply.Calls[i].ID = reply.Calls[i].Provider + "X"
	}
	req := tools
	req.Turns = append([]store.Turn{{Role: store.FromUser, Text: "a"}, {Role: store.FromModel, Model: "prov/m", Opaque: reply.Opaque, Calls: reply.Calls},
		{Role: store.FromTool, CallID: reply.Calls[0].ID, Text: "x"}, {Role: store.FromTool, CallID: reply.Calls[1].ID, Text: "y"}}, tools.Turns...)
	if _, err := c.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	bodies, _ := s.seen()
	var body map[string]any
	if err := json.Unmarshal([]byte(bodies[1]), &body); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]any{1: "abc", 5: "skip_thought_signature_validator"} {
		if got := at(body, "messages", i, "tool_calls", 0, "extra_content", "google", "thought_signature"); got != want {
			t.Errorf("message %d: signature %v, want %v in %s", i, got, want, bodies[1])
		}
	}
	if at(body, "messages", 1, "tool_calls", 1, "extra_content") != nil {
		t.Errorf("the second call got a signature: %s", bodies[1])
	}
	if at(body, "tools", 0, "function", "parameters") != nil || at(body, "tools", 1, "function", "parameters") == nil {
		t.Errorf("a schema without properties was sent, or one with them was not: %v", body["tools"])
	}
	if strings.Contains(string(must(json.Marshal(asked(t, "groq", tools)))), "extra_content") {
		t.Error("another service got a signature")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestXAIRequest(t *testing.T) {
	if body := asked(t, "xai", tools); body["max_completion_tokens"] != 9.0 || body["max_tokens"] != nil {
		t.Errorf("sent %v", body)
	}
}

// Errors for which services use statuses of their own.
func TestKindFaults(t *testing.T) {
	for _, tt := range []struct {
		kind   string
		status int
		body   string
		fault  llm.Fault
		says   string
	}{
		{"anthropic", 400, `{"error":{"code":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API.","type":"invalid_request_error"}}`, llm.FaultCredit, "Your credit balance is too low"},
		{"gemini", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, llm.FaultAuth, "API key not valid"},
		{"gemini", 429, `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`, llm.FaultBusy, "quota"},
		{"gemini", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum","status":"INVALID_ARGUMENT"}}]`, llm.FaultTooLong, "input token count"},
		{"mistral", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`, llm.FaultRequest, "body x: Extra inputs are not permitted"},
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: sk***ef. You can obtain an API key from https://console.x.ai."}`, llm.FaultAuth, "Incorrect API key"},
		{"xai", 403, `{"code":"forbidden","error":"Content violates usage guidelines."}`, llm.FaultWithheld, "violates"},
		{"xai", 403, `{"code":"forbidden","error":"Your team has used all available credits"}`, llm.FaultCredit, "credits"},
		{"xai", 403, `{"code":"forbidden","error":"no"}`, llm.FaultAuth, "no"},
		{"openai-compatible", 400, `{"error":"Incorrect API key provided"}`, llm.FaultRequest, "Incorrect"},
	} {
		c, slept := newService(t, fail(tt.status, "", tt.body)).client(t, tt.kind)
		_, err := c.Generate(t.Context(), hello, nil)
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || pe.Fault != tt.fault || !strings.Contains(pe.Message, tt.says) {
			t.Errorf("%s %d: got %v, want %s: %s", tt.kind, tt.status, err, tt.fault, tt.says)
		}
		if tt.fault == llm.FaultBusy && (pe.RetryAfter != 34*time.Second || len(*slept) != 0) {
			t.Errorf("it asks to wait %v; waited %v", pe.RetryAfter, *slept)
		}
	}
}

func TestGeminiModelNames(t *testing.T) {
	c, _ := newService(t, fail(200, "", `{"object":"list","data":[{"id":"models/gemini-x","object":"model"},{"id":"models/a"}]}`)).client(t, "gemini")
	if got, err := c.ListModels(t.Context()); err != nil || len(got) != 2 || got[1] != "gemini-x" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestKindOf(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.anthropic.com/v1/": "anthropic", "https://generativelanguage.googleapis.com/v1beta/openai/": "gemini", "https://api.mistral.ai/v1": "mistral", "https://api.x.ai/v1": "xai",
		"http://127.0.0.1:11434": "ollama", "https://me.openai.azure.com/": "azure", "http://gpu:8000/v1": "openai-compatible", "::": "openai-compatible",
	} {
		if got := KindOf(base); got != want {
			t.Errorf("%s: got %s, want %s", base, got, want)
		}
	}
}

func TestOffers(t *testing.T) {
	listed := []string{"claude-x-4-5-20250929", "gpt-x-mini", "llama:latest", "acme/model", "grok-9-0709", "gemini-x"}
	for _, tt := range []struct {
		kind, model string
		want        bool
	}{
		{"openai", "gpt-x-mini", true}, {"openai", "gpt-x-mni", false}, {"openai", "gpt-x", false}, {"anthropic", "claude-x-4-5", true}, {"anthropic", "claude-x-4-5-latest", true},
		{"anthropic", "claude-x", false}, {"ollama", "llama", true}, {"openrouter", "acme/model:free", true}, {"groq", "acme/model:free", false}, {"xai", "grok-9", true},
		{"azure", "my-deployment", true}, {"gemini", "models/gemini-x", true},
	} {
		if got := Offers(tt.kind, listed, tt.model); got != tt.want {
			t.Errorf("%s %s: got %v", tt.kind, tt.model, got)
		}
	}
}
