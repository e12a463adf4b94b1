package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/llm"
	"nize/store"
)

func fail(status int, header, body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name   string
		handle func(http.ResponseWriter, *http.Request, int)
		tries  int
		want   llm.ProviderError
	}{
		{"busy, wait too long", fail(429, "Retry-After: 3600", `{"error":{"message":"slow"}}`), 1,
			llm.ProviderError{Fault: llm.FaultBusy, Status: 429, RetryAfter: time.Hour, Message: "slow"}},
		{"busy", fail(429, "Retry-After: 2", `{"error":{"message":["a","b"]}}`), 3,
			llm.ProviderError{Fault: llm.FaultBusy, Status: 429, RetryAfter: 2 * time.Second, Message: `["a","b"]`}},
		{"no credit", fail(429, "", `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`), 1,
			llm.ProviderError{Fault: llm.FaultCredit, Status: 429, Message: "pay"}},
		{"no credit, said otherwise", fail(402, "", `{"error":{"message":"pay","code":402}}`), 1, llm.ProviderError{Fault: llm.FaultCredit, Status: 402, Message: "pay"}},
		{"down", fail(500, "", `oh`), 3, llm.ProviderError{Fault: llm.FaultDown, Status: 500, Message: "oh"}},
		{"overloaded", fail(529, "", `{"message":"full"}`), 3, llm.ProviderError{Fault: llm.FaultDown, Status: 529, Message: "full"}},
		{"the key in its words", fail(401, "", `{"error":{"message":"bad key `+testKey+`"}}`), 1,
			llm.ProviderError{Fault: llm.FaultAuth, Status: 401, Message: "bad key ••••"}},
		{"a string for an error", fail(400, "", `{"error":"no such model"}`), 1,
			llm.ProviderError{Fault: llm.FaultRequest, Status: 400, Message: "no such model"}},
		{"redirect", fail(302, "Location: http://ann:pw@example.com/v1?key=1", ""), 1, llm.ProviderError{Fault: llm.FaultRequest, Status: 302,
			Message: "it redirects to http://example.com/v1, where nize does not follow with its key; an admin can set that base URL"}},
		{"redirect to nowhere", fail(307, "", ""), 1, llm.ProviderError{Fault: llm.FaultRequest, Status: 307, Message: "it redirects"}},
		{"a web page", fail(200, "Content-Type: text/html; charset=utf-8", "<html>Welcome</html>"), 1,
			llm.ProviderError{Fault: llm.FaultRequest, Status: 200, Message: "a web page answered; check the base URL"}},
		{"too long", fail(400, "", `{"error":{"message":"no room","code":"context_length_exceeded"}}`), 1, llm.ProviderError{Fault: llm.FaultTooLong, Status: 400, Message: "no room"}},
		{"too long in words", fail(400, "", `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), 1,
			llm.ProviderError{Fault: llm.FaultTooLong, Status: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}},
		{"too large", fail(413, "", ""), 1, llm.ProviderError{Fault: llm.FaultTooLong, Status: 413}},
		{"withheld", fail(400, "", `{"error":{"message":"filtered","code":"content_filter"}}`), 1, llm.ProviderError{Fault: llm.FaultWithheld, Status: 400, Message: "filtered"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, tt.handle)
			c, _ := s.client(t, "openai-compatible")
			_, err := c.Generate(t.Context(), hello, nil)
			var pe *llm.ProviderError
			if !errors.As(err, &pe) {
				t.Fatalf("got %v", err)
			}
			tt.want.Provider = "prov"
			if d := cmp.Diff(*pe, tt.want); d != "" {
				t.Errorf("error (-got +want):\n%s", d)
			}
			if bodies, _ := s.seen(); len(bodies) != tt.tries {
				t.Errorf("asked %d times, want %d", len(bodies), tt.tries)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, pe, pe), testKey) {
				t.Errorf("the error has the key in it: %v", err)
			}
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		switch try {
		case 1:
			fail(429, "Retry-After: 3", "")(w, r, try)
		case 2:
			fail(503, "", "")(w, r, try)
		default:
			stream(text("ok"), end)(w, r, try)
		}
	})
	c, slept := s.client(t, "openai-compatible")
	reply, err := c.Generate(t.Context(), hello, nil)
	if err != nil || reply.Text != "ok" {
		t.Fatalf("got %+v, %v", reply, err)
	}
	if len(*slept) != 2 || (*slept)[0] != 3*time.Second || (*slept)[1] < time.Second || (*slept)[1] > 2*time.Second {
		t.Errorf("waited %v", *slept)
	}
	bodies, _ := s.seen()
	if bodies[0] != bodies[2] {
		t.Errorf("the third try sent another body:\n%s\n%s", bodies[0], bodies[2])
	}
}

// After streaming has begun, nothing is retried.
func TestNoRetryAfterFirstByte(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		stream(text("a"))(w, r, try)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	c, _ := s.client(t, "openai-compatible")
	reply, err := c.Generate(t.Context(), hello, nil)
	if err != nil || reply.Text != "a" || reply.Finish != llm.FinishCut {
		t.Errorf("got %+v, %v", reply, err)
	}
	if bodies, _ := s.seen(); len(bodies) != 1 {
		t.Errorf("asked %d times", len(bodies))
	}
}

// If a connection is closed before a byte of response, the request is retried once, and
// then left to another model.
func TestClosedBeforeTheAnswer(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter){
		"before the header": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"after it":          func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream"); w.WriteHeader(200) },
		"in the midst of it": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) { handle(w) })
			c, slept := s.client(t, "openai-compatible")
			_, err := c.Generate(t.Context(), hello, nil)
			var pe *llm.ProviderError
			if !errors.As(err, &pe) || pe.Fault != llm.FaultDown || !pe.Temporary() || len(*slept) != 1 {
				t.Errorf("got %v after %v", err, *slept)
			}
			again := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
				if try == 1 {
					handle(w)
					return
				}
				stream(text("ok"), end)(w, r, try)
			})
			c, _ = again.client(t, "openai-compatible")
			if reply, err := c.Generate(t.Context(), hello, nil); err != nil || reply.Text != "ok" {
				t.Errorf("the second try gave %+v, %v", reply, err)
			}
		})
	}
}

func TestRefusedConnection(t *testing.T) {
	s := newService(t, stream())
	c, slept := s.client(t, "openai-compatible")
	s.Close()
	_, err := c.Generate(t.Context(), hello, nil)
	var pe *llm.ProviderError
	if !errors.As(err, &pe) || !pe.Temporary() || len(*slept) != 1 {
		t.Errorf("got %v after %v", err, *slept)
	}
}

// Cancelling ends the request at once, and the service notices.
func TestCancel(t *testing.T) {
	gone := make(chan struct{})
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		stream(text("a"))(w, r, try)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	c, _ := s.client(t, "openai-compatible")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err := c.Generate(ctx, hello, func(llm.Delta) { cancel(stop) })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	<-gone
}

func TestSilence(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		stream(text("a"))(w, r, try)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c, _ := s.client(t, "openai-compatible")
	c.opt.Timeouts = func() (idle, total time.Duration) { return 30 * time.Millisecond, time.Minute }
	_, err := c.Generate(t.Context(), hello, nil)
	var pe *llm.ProviderError
	if !errors.As(err, &pe) || pe.Fault != llm.FaultTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestHugeLine(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: ")
		junk := strings.Repeat("x", 1<<20)
		for range maxLine>>20 + 2 {
			if _, err := io.WriteString(w, junk); err != nil {
				return
			}
		}
	})
	c, _ := s.client(t, "openai-compatible")
	if _, err := c.Generate(t.Context(), hello, nil); err == nil || !strings.Contains(err.Error(), "over 8 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestResponsesAPI(t *testing.T) {
	s := newService(t, stream(
		`{"type":"response.created","response":{"status":"in_progress"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r1","encrypted_content":"ENC"}}`,
		`{"type":"response.output_text.delta","delta":"I "}`, `{"type":"response.output_text.delta","delta":"look."}`,
		`{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"n\":9007199254740993}"}}`,
		`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":3}}}}`,
	))
	c, _ := s.client(t, "openai")
	req := llm.Request{Model: "gpt-6-sol", System: "sys", Context: "now", MaxTokens: 9, Turns: hello.Turns, Functions: []store.Function{{Name: "f"}}}
	got, err := c.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := got.Opaque
	got.Opaque = nil
	want := llm.Reply{Text: "I look.", Calls: []store.ToolCall{tc("c1", "f", `{"n":9007199254740993}`)}, Finish: "tool_calls",
		Usage: llm.Usage{Prompt: 10, Completion: 5, Cached: 4, Reasoning: 3}}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("reply (-got +want):\n%s", d)
	}

	req.Turns = append(req.Turns,
		store.Turn{Role: store.FromModel, Model: "prov/gpt-6-sol", Opaque: items, Calls: []store.ToolCall{{ID: "01A", Provider: "c1", Name: "f", Args: "{}"}}},
		store.Turn{Role: store.FromTool, CallID: "01A", Text: "42"},
		store.Turn{Role: store.FromModel, Model: "other/x", Text: "so", Calls: []store.ToolCall{{ID: "01B", Name: "f", Args: "{}"}}},
		store.Turn{Role: store.FromTool, CallID: "01B", Text: "43"})
	if _, err := c.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	bodies, paths := s.seen()
	var sent struct {
		Input        json.RawMessage `json:"input"`
		Instructions string          `json:"instructions"`
		Store        *bool           `json:"store"`
		Include      []string        `json:"include"`
		Tools        json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal([]byte(bodies[1]), &sent); err != nil {
		t.Fatal(err)
	}
	wantInput := `[{"type":"message","role":"user","content":"\u003ccontext\u003e\nnow\n\u003c/context\u003e\n\nhi"},` +
		`{"type":"reasoning","id":"r1","encrypted_content":"ENC"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"n\":9007199254740993}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"42"},` +
		`{"type":"message","role":"assistant","content":"so"},{"type":"function_call","call_id":"01B","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"01B","output":"43"}]`
	if d := cmp.Diff(string(sent.Input), wantInput); d != "" {
		t.Errorf("input (-got +want):\n%s", d)
	}
	if sent.Store == nil || *sent.Store || sent.Instructions != "sys" || paths[1] != "/v1/responses" ||
		string(sent.Tools) != `[{"name":"f","parameters":{"type":"object","properties":{}},"type":"function"}]` {
		t.Errorf("sent %s to %s", bodies[1], paths[1])
	}
}

func TestResponsesFailures(t *testing.T) {
	for name, lines := range map[string][]string{
		"broke off": {`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}}`},
		"failed":    {`{"type":"response.failed","response":{"error":{"code":"server_error","message":"no"}}}`},
		"error":     {`{"type":"error","code":"server_error","message":"no"}`},
		"plain":     {`{"error":{"message":"no"}}`},
	} {
		c, _ := newService(t, stream(lines...)).client(t, "openai")
		_, err := c.Generate(t.Context(), llm.Request{Model: "gpt-6-sol", Turns: hello.Turns, Functions: []store.Function{{Name: "f"}}}, nil)
		var pe *llm.ProviderError
		if !errors.As(err, &pe) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A model that rejects Chat Completions is asked with the Responses API, and from then on
// directly.
func TestResponsesByError(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			fail(400, "", `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}`)(w, r, try)
			return
		}
		stream(`{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{}}`)(w, r, try)
	})
	c, _ := s.client(t, "openai-compatible")
	for range 2 {
		reply, err := c.Generate(t.Context(), hello, nil)
		if err != nil || reply.Text != "ok" {
			t.Fatalf("got %+v, %v", reply, err)
		}
	}
	_, paths := s.seen()
	if d := cmp.Diff(paths, []string{"/v1/chat/completions", "/v1/responses", "/v1/responses"}); d != "" {
		t.Errorf("asked (-got +want):\n%s", d)
	}
}

func TestEmbeddings(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
		w.Header().Set("Content-Type", "application/json")
		n := embedBatch
		if try == 2 {
			n = 2
		}
		var data []string
		for i := n - 1; i >= 0; i-- { // out of order
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,%d]}`, i, try, i))
		}
		usage := ""
		if try == 1 {
			usage = `,"usage":{"prompt_tokens":77}`
		}
		fmt.Fprintf(w, `{"data":[%s]%s}`, strings.Join(data, ","), usage)
	})
	c, _ := s.client(t, "ollama")
	var spent []llm.Usage
	e := c.Embedder("e")
	e.Spent = func(_ context.Context, u llm.Usage, _ time.Duration) { spent = append(spent, u) }
	got, err := e.Embeddings(t.Context(), make([]string, embedBatch+2))
	if d := cmp.Diff(spent, []llm.Usage{{Prompt: 77}, {Prompt: 1, Estimated: true}}); d != "" {
		t.Errorf("spent (-got +want):\n%s", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != embedBatch+2 || got[5][1] != 5 || got[embedBatch+1][0] != 2 || got[embedBatch+1][1] != 1 {
		t.Errorf("got %d vectors, %v, %v", len(got), got[5], got[embedBatch+1])
	}
	for _, body := range []string{`{"data":[]}`, `{"data":[{"index":7,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[]}]}`, `x`} {
		bad, _ := newService(t, fail(200, "", body)).client(t, "ollama")
		var pe *llm.ProviderError
		if _, err := bad.Embedder("e").Embeddings(t.Context(), []string{"a"}); !errors.As(err, &pe) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestListModels(t *testing.T) {
	c, _ := newService(t, fail(200, "", `{"data":[{"id":"b"},{"id":"a"}]}`)).client(t, "groq")
	got, err := c.ListModels(t.Context())
	if d := cmp.Diff(got, []string{"a", "b"}); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	c, _ = newService(t, fail(401, "", `{"error":{"message":"no"}}`)).client(t, "groq")
	var pe *llm.ProviderError
	if _, err := c.ListModels(t.Context()); !errors.As(err, &pe) || pe.Fault != llm.FaultAuth {
		t.Errorf("got %v", err)
	}
}

func TestBaseURL(t *testing.T) {
	tests := []struct{ kind, base, want string }{
		{"openai", "", "https://api.openai.com/v1"},
		{"ollama", "http://gpu:11434", "http://gpu:11434/v1"},
		{"azure", "https://me.openai.azure.com/", "https://me.openai.azure.com/openai/v1"},
		{"azure", "https://me.openai.azure.com/openai/v1/", "https://me.openai.azure.com/openai/v1"},
		{"openai-compatible", "http://h:1/api", "http://h:1/api"},
		{"openai-compatible", "", ""},
		{"azure", "", ""},
		{"openai", "ftp://x", ""},
		{"openai", "https://user:pw@x/v1", ""},
		{"openai", "https://x/v1?k=1", ""},
	}
	for _, tt := range tests {
		got, err := baseURL(store.Provider{Name: "p", Kind: tt.kind, BaseURL: tt.base})
		if got != tt.want || (err != nil) != (tt.want == "") || (err != nil && !errors.Is(err, store.ErrInvalid)) {
			t.Errorf("%s %q: got %q, %v; want %q", tt.kind, tt.base, got, err, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0.5": 500 * time.Millisecond, "Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"": 0, "-1": 0, "soon": 0, "1e99": 0, "NaN": 0, "Sat, 21 Nov 2026 11:00:30 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}
