package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/llm"
	"nize/store"
)

const testKey = "sk-test-0123456789abcdef"

// service is a fake model service on loopback.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	paths  []string
	keys   []string
}

func newService(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, try int)) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		s.mu.Lock()
		s.bodies, s.paths = append(s.bodies, string(body)), append(s.paths, r.URL.Path)
		s.keys = append(s.keys, r.Header.Get("Authorization"))
		try := len(s.bodies)
		s.mu.Unlock()
		handle(w, r, try)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) seen() (bodies, paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...), append([]string(nil), s.paths...)
}

// client returns a client of the service whose pauses are recorded and take no time.
func (s *service) client(t *testing.T, kind string) (*Client, *[]time.Duration) {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	var slept []time.Duration
	c, err := New(Options{
		Provider:  store.Provider{Name: "prov", Kind: kind, BaseURL: s.URL + "/v1", Key: store.NewSecret(testKey), Enabled: true},
		Transport: transport,
		Sleep: func(ctx context.Context, d time.Duration) error {
			slept = append(slept, d)
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &slept
}

// stream responds with data lines.
func stream(lines ...string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			if !strings.HasPrefix(l, ":") && !strings.Contains(l, "data:") {
				l = "data: " + l
			}
			fmt.Fprint(w, l+"\n\n")
		}
	}
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"choices":[{"index":0,"delta":{"content":` + string(b) + `}}]}`
}

func toolCalls(calls string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}`
}

const (
	end      = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	endCalls = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	useLast  = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`
	over     = `[DONE]`
)

func tc(id, name, args string) store.ToolCall {
	return store.ToolCall{Provider: id, Name: name, Args: args}
}

var hello = llm.Request{Model: "m", System: "be kind", Turns: []store.Turn{{Role: store.FromUser, Text: "hi"}}}

// The forms in which services stream (from notes on go-openai, and from experience). Each
// must give the same two calls, or the text, or an error.
var styles = []struct {
	name  string
	lines []string
	want  llm.Reply // without usage
	usage *llm.Usage
	fault llm.Fault
}{
	{name: "text, usage last, done", lines: []string{text("Hel"), text("lo"), end, useLast, over},
		want: llm.Reply{Text: "Hello", Finish: "stop"}, usage: &llm.Usage{Prompt: 9, Completion: 4, Cached: 3, Reasoning: 2}},
	{name: "indexed deltas", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
		toolCalls(`{"index":0,"function":{"arguments":"{\"x\""}}`), toolCalls(`{"index":0,"function":{"arguments":":1}"}}`),
		toolCalls(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), endCalls, over},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`), tc("b", "g", "{}")}, Finish: "tool_calls"}},
	{name: "no index, whole calls", lines: []string{
		toolCalls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`), tc("b", "g", "{}")}, Finish: "tool_calls"}},
	{name: "no index and no id", lines: []string{
		toolCalls(`{"function":{"name":"f","arguments":"{\"x\":"}}`), toolCalls(`{"function":{"arguments":"1}"}}`),
		toolCalls(`{"function":{"name":"g","arguments":"{}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("", "f", `{"x":1}`), tc("", "g", "{}")}, Finish: "tool_calls"}},
	{name: "index always 0, different ids", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		toolCalls(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`), tc("b", "g", "{}")}, Finish: "tool_calls"}},
	{name: "index always 0, no ids, whole calls", lines: []string{
		toolCalls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`),
		toolCalls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("", "f", `{"x":1}`), tc("", "f", `{"x":2}`)}, Finish: "tool_calls"}},
	{name: "index always 0, ids interleaved", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`),
		toolCalls(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`),
		toolCalls(`{"index":0,"id":"a","function":{"arguments":"1}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`), tc("b", "g", "{}")}, Finish: "tool_calls"}},
	{name: "id and name repeated in each piece", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`),
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}`),
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`)}, Finish: "tool_calls"}},
	{name: "index starts at 1", lines: []string{
		toolCalls(`{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", "{}")}, Finish: "tool_calls"}},
	{name: "two calls with the same id", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		toolCalls(`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x":1}`), tc("a", "f", `{"x":2}`)}, Finish: "tool_calls"}},
	{name: "arguments as an object", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 9007199254740993}}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", `{"x": 9007199254740993}`)}, Finish: "tool_calls"}},
	{name: "arguments null or missing", lines: []string{
		toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":null}},{"index":1,"id":"b","function":{"name":"g"}}`), endCalls},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", "{}"), tc("b", "g", "{}")}, Finish: "tool_calls"}},
	{name: "finish reason stop with calls, in the same event", lines: []string{
		`{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`},
		want: llm.Reply{Calls: []store.ToolCall{tc("a", "f", "{}")}, Finish: "stop"}},
	{name: "400 keep-alive comments", lines: []string{text("a"), strings.Repeat(": OPENROUTER PROCESSING\n\n", 400), text("b"), end, over},
		want: llm.Reply{Text: "ab", Finish: "stop"}},
	{name: "no space after data, carriage returns, event lines", lines: []string{"event: x\r\ndata:" + text("ab") + "\r", "data:" + end + "\r\n"},
		want: llm.Reply{Text: "ab", Finish: "stop"}},
	{name: "content in parts", lines: []string{`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, end},
		want: llm.Reply{Text: "ab", Finish: "stop"}},
	{name: "finish reason empty until the end", lines: []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, `{"choices":[{"delta":{"content":"b"},"finish_reason":"length"}]}`, over},
		want: llm.Reply{Text: "ab", Finish: "length"}},
	{name: "usage in every event, and a price", lines: []string{
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0.000125}}`},
		want: llm.Reply{Text: "a", Finish: "stop"}, usage: &llm.Usage{Prompt: 1, Completion: 2, MicroUSD: 125, Priced: true}},
	{name: "reasoning of DeepSeek", lines: []string{`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"delta":{"reasoning_content":"m"}}]}`, text("a"), end},
		want: llm.Reply{Text: "a", Finish: "stop", Opaque: json.RawMessage(`{"model":"m","reasoning_content":"hmm"}`)}},
	{name: "reasoning of OpenRouter", lines: []string{`{"choices":[{"delta":{"reasoning_details":[{"t":1}]}}]}`, `{"choices":[{"delta":{"reasoning_details":[{"t":2}]}}]}`, text("a"), end},
		want: llm.Reply{Text: "a", Finish: "stop", Opaque: json.RawMessage(`{"model":"m","reasoning_details":[{"t":1},{"t":2}]}`)}},
	{name: "error within, first key", lines: []string{text("a"), `{"error":{"message":"Overloaded","code":529}}`}, fault: llm.FaultDown},
	{name: "error within, first key, after comments", lines: []string{": ka", text("a"), ": ka", `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}, fault: llm.FaultBusy},
	{name: "error within, after other keys", lines: []string{text("a"), `{"id":"1","provider":"p","error":{"code":502,"message":"gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`}, fault: llm.FaultDown},
	{name: "error within a choice", lines: []string{`{"choices":[{"delta":{},"error":{"message":"gone"}}]}`, end}, fault: llm.FaultDown},
	{name: "finish reason error", lines: []string{text("a"), `{"choices":[{"delta":{},"finish_reason":"error"}]}`, over}, fault: llm.FaultAnswer},
	{name: "half a stream", lines: []string{text("a"), toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}`)}, want: llm.Reply{Text: "a", Finish: llm.FinishCut}},
	{name: "half a call", lines: []string{toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}`)}, fault: llm.FaultAnswer},
	{name: "done without a finish reason", lines: []string{text("a"), over}, want: llm.Reply{Text: "a", Finish: "stop"}},
	{name: "withheld", lines: []string{text("a"), `{"choices":[{"delta":{},"finish_reason":"SAFETY"}]}`}, want: llm.Reply{Text: "a", Finish: llm.FinishWithheld}},
	{name: "nothing at all", fault: llm.FaultDown},
	{name: "garbage", lines: []string{`<html>`}, fault: llm.FaultAnswer},
	{name: "65 calls", lines: []string{manyCalls(65), endCalls}, fault: llm.FaultAnswer},
}

func manyCalls(n int) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{}"}}`, i, i))
	}
	return toolCalls(strings.Join(calls, ","))
}

func TestStreamStyles(t *testing.T) {
	for _, tt := range styles {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newService(t, stream(tt.lines...)).client(t, "openai-compatible")
			var shown strings.Builder
			got, err := c.Generate(t.Context(), hello, func(d llm.Delta) { shown.WriteString(d.Text) })
			if tt.fault != "" {
				var pe *llm.ProviderError
				if !errors.As(err, &pe) || pe.Fault != tt.fault {
					t.Fatalf("got %+v, %v; want the fault %s", got, err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			usage := got.Usage
			got.Usage = llm.Usage{}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("reply (-got +want):\n%s", d)
			}
			if shown.String() != tt.want.Text {
				t.Errorf("shown %q, want %q", shown.String(), tt.want.Text)
			}
			if tt.usage != nil && usage != *tt.usage {
				t.Errorf("usage %+v, want %+v", usage, *tt.usage)
			}
			if tt.usage == nil && !usage.Estimated {
				t.Errorf("usage %+v is not marked as estimated", usage)
			}
		})
	}
}

func TestPlainJSON(t *testing.T) {
	plain := func(doc string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			io.WriteString(w, doc)
		}
	}
	c, _ := newService(t, plain(`{
	 "choices": [{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
	 "usage": {"prompt_tokens":3,"completion_tokens":1}}`)).client(t, "ollama")
	got, err := c.Generate(t.Context(), hello, nil)
	want := llm.Reply{Text: "hi", Calls: []store.ToolCall{tc("a", "f", "{}")}, Finish: "tool_calls", Usage: llm.Usage{Prompt: 3, Completion: 1}}
	if d := cmp.Diff(got, want); err != nil || d != "" {
		t.Errorf("%v (-got +want):\n%s", err, d)
	}
	for _, doc := range []string{`{"error":"model not found"}`, `{"choices":[{"mess`, ``} {
		c, _ := newService(t, plain(doc)).client(t, "ollama")
		var pe *llm.ProviderError
		if got, err := c.Generate(t.Context(), hello, nil); !errors.As(err, &pe) {
			t.Errorf("%q gave %+v, %v; want a provider's error", doc, got, err)
		}
	}
}

func TestRequest(t *testing.T) {
	s := newService(t, stream(text("ok"), end))
	zero := 0.0
	req := llm.Request{
		Model: "m", System: "sys", Context: "now", MaxTokens: 77, Temperature: &zero, NoCalls: true,
		Functions: []store.Function{{Name: "f", Description: "d"}},
		Turns: []store.Turn{
			{Role: store.FromUser, Text: "one"},
			{Role: store.FromModel, Model: "prov/m", Opaque: json.RawMessage(`{"model":"m","reasoning_content":"why"}`),
				Calls: []store.ToolCall{{ID: "01A", Provider: "x", Name: "f", Args: "{broken"}, {ID: "01B", Provider: "x", Name: "f", Args: "{}"}}},
			{Role: store.FromTool, CallID: "01A", Text: ""},
			{Role: store.FromTool, CallID: "01B", Text: "fine"},
			{Role: store.FromModel, Model: "other/m", Opaque: json.RawMessage(`{"model":"m","reasoning_content":"secret of another"}`), Text: "done"},
			{Role: store.FromUser, Text: "two"},
			{Role: store.FromNize, Text: "look"},
		},
	}
	c, _ := s.client(t, "deepseek")
	if _, err := c.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	bodies, paths := s.seen()
	var got, want any
	wantJSON := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":77,"temperature":0,"tool_choice":"none",
	 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}],
	 "messages":[{"role":"system","content":"sys"},{"role":"user","content":"one"},
	  {"role":"assistant","content":null,"reasoning_content":"why","tool_calls":[
	   {"id":"01A","type":"function","function":{"name":"f","arguments":"{\"invalid_json\":\"{broken\"}"}},
	   {"id":"01B","type":"function","function":{"name":"f","arguments":"{}"}}]},
	  {"role":"tool","tool_call_id":"01A","content":"(no output)"},{"role":"tool","tool_call_id":"01B","content":"fine"},
	  {"role":"assistant","content":"done"},{"role":"user","content":"<context>\nnow\n</context>\n\ntwo"},
	  {"role":"user","content":"[note by nize, not by the person] look"}]}`
	if err := errors.Join(json.Unmarshal([]byte(bodies[0]), &got), json.Unmarshal([]byte(wantJSON), &want)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("request (-got +want):\n%s", d)
	}
	if paths[0] != "/v1/chat/completions" || s.keys[0] != "Bearer "+testKey {
		t.Errorf("asked %s with %q", paths[0], s.keys[0])
	}
}

// An OpenAI reasoning model gets neither max_tokens nor a temperature.
func TestReasoningModelRequest(t *testing.T) {
	s := newService(t, stream(text("ok"), end))
	c, _ := s.client(t, "openai")
	half := 0.5
	if _, err := c.Generate(t.Context(), llm.Request{Model: "gpt-5-mini", MaxTokens: 5, Temperature: &half, Turns: hello.Turns}, nil); err != nil {
		t.Fatal(err)
	}
	bodies, _ := s.seen()
	var got struct {
		MaxTokens           *int     `json:"max_tokens"`
		MaxCompletionTokens int      `json:"max_completion_tokens"`
		Temperature         *float64 `json:"temperature"`
	}
	if err := json.Unmarshal([]byte(bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.MaxTokens != nil || got.Temperature != nil || got.MaxCompletionTokens != 5 {
		t.Errorf("sent %s", bodies[0])
	}
}

func FuzzStream(f *testing.F) {
	for _, s := range styles {
		f.Add(strings.Join(s.lines, "\n"))
	}
	c, err := New(Options{Provider: store.Provider{Name: "p", Kind: "openai"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		answer := chatAnswer{c: c, text: answerText{delta: func(llm.Delta) {}}}
		other := responsesAnswer{c: c, text: answerText{delta: func(llm.Delta) {}}}
		l := newLines(io.NopCloser(strings.NewReader(body)), false)
		out, _ := io.ReadAll(l)
		for line := range strings.Lines(string(out)) {
			raw, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				if line != "\n" {
					t.Fatalf("a line that is no data: %q", line)
				}
				continue
			}
			_ = answer.addChunk([]byte(raw))
			_ = other.addEvent([]byte(raw))
		}
		reply, err := answer.buildReply(hello)
		if err == nil {
			for _, c := range reply.Calls {
				if c.Args == "" {
					t.Fatalf("empty arguments in %+v", c)
				}
			}
		}
		_, _ = other.buildReply(hello)
	})
}
