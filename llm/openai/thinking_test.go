package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/llm"
	"nize/store"
)

// TestThinking: reasoning before an answer is neither shown nor kept as the answer, however
// it is split; a tag that is only mentioned stays.
func TestThinking(t *testing.T) {
	const plan = "the secret plan: use `x`"
	for name, test := range map[string]struct{ said, want string }{
		"none":                  {"Hello there.", "Hello there."},
		"whole":                 {"<think>\n" + plan + "\n</think>\n\nHello there.", "Hello there."},
		"space in front":        {"\n <think>" + plan + "</think> Hello there.", "Hello there."},
		"upper case":            {"<THINK>" + plan + "</Think>Hello there.", "Hello there."},
		"another tag":           {"<thinking>" + plan + "</thinking>\nHello there.", "Hello there."},
		"thought":               {"<thought>" + plan + "</thought>\nHello there.", "Hello there."},
		"brackets":              {"[THINK]" + plan + "[/THINK]Hello there.", "Hello there."},
		"twice":                 {"<think>" + plan + "</think>\n<think>" + plan + "</think>\nHello there.", "Hello there."},
		"empty":                 {"<think>\n\n</think>\n\nHello there.", "Hello there."},
		"other tags within":     {"<think>" + plan + " <b> </thinking> </think>Hello there.", "Hello there."},
		"harmony":               {"<|channel|>analysis<|message|>" + plan + "<|end|><|start|>assistant<|channel|>final<|message|>Hello there.", "Hello there."},
		"never opened":          {plan + "\n</think>\n\nHello there.", "Hello there."},
		"never opened, in line": {plan + ".</think>Hello there.", "Hello there."},
		"never opened, nothing": {"Hello there.\n</think>\n", "Hello there."},
		"a word in code":        {"Write `<think>` before it and `</think>` behind it.", "Write `<think>` before it and `</think>` behind it."},
		"a word":                {"The tags <think> and </think> hold it.", "The tags <think> and </think> hold it."},
		"the closing one":       {"Close it with `</think>`.", "Close it with `</think>`."},
		"the closing one alone": {"Close it with </think> at the end.", "Close it with </think> at the end."},
		"begins like a tag":     {"<th>a</th>", "<th>a</th>"},
		"in quotation marks":    {"It said \"</think>\" to me.", "It said \"</think>\" to me."},
		"is cut like a tag":     {"<thi", "<thi"},
		"nested":                {"<think>a <think>" + plan + "</think> " + plan + "</think>\nHello there.", "Hello there."},
		"nested twice":          {"<think><think><think>" + plan + "</think></think> x</think>Hello there.", "Hello there."},
		"speaks of the tag":     {"<think>" + plan + " <think> </think>Hello there.", "Hello there."},
		"speaks of both":        {"<think>a <think>b</think>Close it with `</think>`.", "Close it with `</think>`."},
		"another tag closes it": {"<thinking>" + plan + "</think>\nHello there.", "Hello there."},
		"with space":            {"<think >" + plan + "</think >Hello there.", "Hello there."},
		"with attributes":       {"<think type=\"x\">" + plan + "</think\n>Hello there.", "Hello there."},
		"byte order mark":       {"\ufeff<think>" + plan + "</think>Hello there.", "Hello there."},
		"no width":              {"\u200b\n<think>" + plan + "</think>Hello there.", "Hello there."},
		"seed":                  {"<seed:think>" + plan + "</seed:think>Hello there.", "Hello there."},
		"between lines":         {"Hello\n<think>" + plan + "</think>\nthere.", "Hello\nthere."},
		"between lines, twice":  {"<think>a</think>Hello\n\n <THINK>\n" + plan + "\n</THINK>\n<think>b</think>\nthere.", "Hello\n\n there."},
		"at the end":            {"Hello there.\n<think>" + plan + "</think>", "Hello there.\n"},
		"open at the end":       {"Hello there.\n<think>a", "Hello there.\n<think>a"},
		"like a tag in a line":  {"a\n<thinker>b</thinker>\n<th", "a\n<thinker>b</thinker>\n<th"},
		"indented":              {"So:\n\n    <think>a</think>\n", "So:\n\n    <think>a</think>\n"},
		"in a later block":      {"So:\n```html\n<think>\nx\n</think>\n```\n", "So:\n```html\n<think>\nx\n</think>\n```\n"},
		"behind a block":        {"```\nx\n```\n<think>" + plan + "</think>y", "```\nx\n```\ny"},
		"in a block":            {"```html\n<think>\nx\n</think>\n```", "```html\n<think>\nx\n</think>\n```"},
	} {
		for _, size := range []int{1, 3, 7, 1000} {
			var lines []string
			for rest := []rune(test.said); len(rest) > 0; {
				n := min(size, len(rest))
				lines, rest = append(lines, text(string(rest[:n]))), rest[n:]
			}
			c, _ := newService(t, stream(append(lines, end)...)).client(t, "openai-compatible")
			for try := range 2 { // the second time it is known that nothing is opened
				var shown strings.Builder
				got, err := c.Generate(t.Context(), hello, func(d llm.Delta) { shown.WriteString(d.Text) })
				if err != nil || got.Text != test.want {
					t.Errorf("%s in pieces of %d: %q, %v, want %q", name, size, got.Text, err, test.want)
				}
				opened := !strings.HasPrefix(name, "never opened")
				if (opened || try > 0 && test.want != "" && name != "never opened, nothing") && shown.String() != test.want {
					t.Errorf("%s in pieces of %d, try %d: shown %q, want %q", name, size, try, shown.String(), test.want)
				}
			}
		}
	}
}

// TestThinkingAlone: reasoning without an answer is not an answer.
func TestThinkingAlone(t *testing.T) {
	for said, finish := range map[string]string{"\ufeff<THINK type=x>the secret plan": "length", "<think>the <think>secret</think> plan</think>": "stop", "<think>the secret plan": "length", "<think>the secret plan</think>\n": "stop"} {
		c, _ := newService(t, stream(text(said), `{"choices":[{"delta":{},"finish_reason":"`+finish+`"}]}`)).client(t, "openai-compatible")
		got, err := c.Generate(t.Context(), hello, func(d llm.Delta) { t.Errorf("shown: %q", d.Text) })
		if err != nil || got.Text != "" || got.Finish != finish {
			t.Errorf("%q: %+v, %v", said, got, err)
		}
	}
}

// TestThoughtGoesBack: within the steps of a turn a model gets its reasoning back; in later
// turns it doesn't.
func TestThoughtGoesBack(t *testing.T) {
	s := newService(t, stream(text("<think>plan</think>\n\n"), toolCalls(`{"index":0,"id":"a","function":{"name":"find","arguments":"{}"}}`), endCalls))
	c, _ := s.client(t, "openai-compatible")
	got, err := c.Generate(t.Context(), tools, nil)
	if err != nil || got.Text != "" || len(got.Calls) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	step := store.Turn{Role: store.FromModel, Model: "prov/m", Calls: []store.ToolCall{{ID: "01B", Provider: "a", Name: "find", Args: "{}"}}, Opaque: got.Opaque}
	result := store.Turn{Role: store.FromTool, CallID: "01B", Text: "x"}
	ask := store.Turn{Role: store.FromUser, Text: "hi"}
	for want, turns := range map[any][]store.Turn{"<think>plan</think>": {ask, step, result}, nil: {ask, step, result, ask}} {
		req := tools
		req.Turns = turns
		if got := at(asked(t, "openai-compatible", req), "messages", 1, "content"); got != want {
			t.Errorf("it gets back %v, want %v", got, want)
		}
	}
}

// TestEnds: [DONE] ends a stream only after a text or complete calls.
func TestEnds(t *testing.T) {
	whole := toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}`)
	bare := toolCalls(`{"index":0,"id":"a","function":{"name":"f"}}`)
	half := toolCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}`)
	nameless := toolCalls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`)
	for name, test := range map[string]struct {
		body   string
		finish string // "" means an error
		calls  int
	}{
		"calls":                 {"data: " + whole + "\n\ndata: [DONE]\n\n", "tool_calls", 1},
		"calls of no arguments": {"data: " + bare + "\n\ndata: [DONE]\n\n", "tool_calls", 1},
		"text":                  {"data: " + text("a") + "\n\ndata: [DONE]\n\n", "stop", 0},
		"text and calls":        {"data: " + text("a") + "\n\ndata: " + whole + "\n\ndata:[DONE]", "tool_calls", 1},
		"in lower case":         {"data: " + whole + "\n\ndata: [done]\n\n", "tool_calls", 1},
		"plain":                 {`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}`, "tool_calls", 1},
		"half a call":           {"data: " + half + "\n\ndata: [DONE]\n\n", "", 0},
		"half a call and text":  {"data: " + text("a") + "\n\ndata: " + half + "\n\ndata: [DONE]\n\n", llm.FinishCut, 0},
		"one whole, one half":   {"data: " + whole + "\n\ndata: " + toolCalls(`{"index":1,"id":"b","function":{"name":"f","arguments":"{"}}`) + "\n\ndata: [DONE]\n\n", "", 0},
		"a nameless call":       {"data: " + nameless + "\n\ndata: [DONE]\n\n", "", 0},
		"nothing":               {"data: [DONE]\n\n", "", 0},
		"calls without [DONE]":  {"data: " + whole + "\n\n", "", 0},
		"text without [DONE]":   {"data: " + text("a") + "\n\n", llm.FinishCut, 0},
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			if name != "plain" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			io.WriteString(w, test.body)
		}).client(t, "openai-compatible")
		got, err := c.Generate(t.Context(), hello, nil)
		if (err == nil) != (test.finish != "") || got.Finish != test.finish || len(got.Calls) != test.calls {
			t.Errorf("%s: %+v, %v, want %q and %d calls", name, got, err, test.finish, test.calls)
		}
	}
}

// TestOddStreams: however the service writes its lines and fields, the answer is the same.
func TestOddStreams(t *testing.T) {
	const doc = `{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`
	const pretty = "{\n \"choices\": [\n\n {\"index\": 0, \"message\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}\n ]\n}\n"
	for name, test := range map[string]struct{ mediaType, body string }{
		"no space":           {"text/event-stream", "data:" + doc + "\n\n"},
		"carriage returns":   {"text/event-stream", ": hello\r\rdata: " + doc + "\r\rdata: [DONE]\r\r"},
		"both":               {"text/event-stream", "event: message\r\nid: 1\r\ndata: " + doc + "\r\n\r\n"},
		"comments":           {"text/event-stream", ": ping\n\n: ping\n\ndata: " + doc + "\n\n: ping\n\n"},
		"several data lines": {"text/event-stream", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"hi\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n"},
		"byte order mark":    {"text/event-stream", "\ufeffdata: " + doc + "\n\n"},
		"no type":            {"", "data: " + doc + "\n\n"},
		"said to be JSON":    {"application/json", "data: " + doc + "\n\ndata: [DONE]\n\n"},
		"a document a line":  {"application/x-ndjson", doc + "\n"},
		"a document":         {"text/plain", pretty},
		"of an event stream": {"text/event-stream", pretty},
		"no usual fields":    {"text/event-stream", `data: {"id":7,"created":"x","choices":[{"index":"0","delta":{"role":null,"content":[{"type":"thinking","thinking":[{"type":"text","text":"plan"}]},{"type":"reasoning","text":"plan"},{"type":"text","text":"hi"}],"refusal":null,"reasoning":"plan","reasoning_content":{}},"finish_reason":"stop"}]}` + "\n\n"},
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", test.mediaType)
			io.WriteString(w, test.body)
		}).client(t, "openai-compatible")
		if got, err := c.Generate(t.Context(), hello, nil); err != nil || got.Text != "hi" || got.Finish != "stop" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	calls := `{"choices":[{"delta":{"tool_calls":[{"index":"0","id":7,"function":{"name":"f","arguments":"{\"a\""}}]}}]}`
	more := `{"choices":[{"delta":{"tool_calls":{"index":0,"id":7,"function":{"name":"f","arguments":":1}"}}},"finish_reason":"tool_calls"}]}`
	c, _ := newService(t, stream(calls, more)).client(t, "openai-compatible")
	got, err := c.Generate(t.Context(), hello, nil)
	if d := cmp.Diff(got.Calls, []store.ToolCall{tc("7", "f", `{"a":1}`)}); err != nil || d != "" {
		t.Errorf("%v (-got +want):\n%s", err, d)
	}
}

func TestListsOfModels(t *testing.T) {
	for body, want := range map[string]string{
		`{"object":"list","data":[{"id":"b"},{"id":"a"}]}`:        "a b",
		`[{"id":"b"},{"id":"a"}]`:                                 "a b",
		`["b","a"]`:                                               "a b",
		`{"data":["a"]}`:                                          "a",
		`{"models":[{"name":"a:latest","model":"a:latest"}]}`:     "a:latest",
		`{"data":[{"id":7},{"id":"a","created":"x","object":1}]}`: "7 a",
		`{"data":[{"id":null,"name":"a"},{},7,null]}`:             "7 a",
		`{"data":null}`:                                           "",
		`{"data":[]}`:                                             "",
		"\ufeff[]":                                                "",
		`{"data":[],"models":[{"name":"a"}]}`:                     "a",
		`{"data":null,"models":[{"name":"a"}]}`:                   "a",
		`{"models":["b","a"],"object":"list"}`:                    "a b",
		`{"success":true,"data":{"models":[{"id":"a"}]}}`:         "a",
		`{"result":{"data":[{"name":"a"}]}}`:                      "a",
		`{"data":[{"id":2.5},{"id":12345678901234567890}]}`:       "12345678901234567890 2.5",
		`{"models":[]}`:                                           "",
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, body) }).client(t, "openai-compatible")
		got, err := c.ListModels(t.Context())
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"hello":"world"}`:                     `no list of models, but "{\"hello\":\"world\"}"`,
		`7`:                                     `no list of models, but "7"`,
		`"a"`:                                   `no list of models, but`,
		`{"data":{"id":"a"}}`:                   `no list of models, but`,
		`{}`:                                    `no list of models, but "{}"`,
		`not JSON`:                              `no list of models, but "not JSON"`,
		`{"error":{"message":"no such key"}}`:   `no such key`,
		`[{"error":{"message":"no such key"}}]`: `no such key`,
		`{"error":"no such key"}`:               `no such key`,
		`{"detail":"Not authenticated"}`:        `Not authenticated`,
		`bad key ` + testKey:                    `bad key ••••`,
		``:                                      `no list of models, and nothing else`,
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, body) }).client(t, "openai-compatible")
		if got, err := c.ListModels(t.Context()); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %q, %v, want %s", body, got, err, want)
		}
	}
}

// TestPages: a web page instead of JSON is reported as such, whatever the request, its type
// and its status.
func TestPages(t *testing.T) {
	const page = "\n<!DOCTYPE html>\n<html><head><title>\n 502 Bad  Gateway</title></head><body>nginx</body></html>"
	for name, test := range map[string]struct {
		mediaType, body string
		status          int
	}{
		"a page":            {"text/html; charset=utf-8", page, 200},
		"of no type":        {"text/plain", page, 200},
		"said to be JSON":   {"application/json", page, 200},
		"said to be events": {"text/event-stream", page, 200},
		"without a doctype": {"application/json", "<html>hello</html>", 200},
		"not found":         {"text/html", page, 404},
		"a gateway's":       {"text/html", page, 502},
		"empty":             {"text/html", "", 200},
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", test.mediaType)
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}).client(t, "openai-compatible")
		for what, ask := range map[string]func() error{
			"an answer":  func() error { _, err := c.Generate(t.Context(), hello, nil); return err },
			"models":     func() error { _, err := c.ListModels(t.Context()); return err },
			"embeddings": func() error { _, err := c.Embedder("m").Embeddings(t.Context(), []string{"a"}); return err },
		} {
			err := ask()
			var pe *llm.ProviderError
			if !errors.As(err, &pe) || !strings.HasPrefix(pe.Message, "a web page answered") || pe.Status != test.status {
				t.Errorf("%s for %s: %v", name, what, err)
			}
			if test.status > 200 && !strings.Contains(fmt.Sprint(err), `"502 Bad Gateway"`) {
				t.Errorf("%s for %s: %v does not say its title", name, what, err)
			}
		}
	}
}

// TestAnswersThatAreNoJSON: an XML document or a text instead of JSON is quoted.
func TestAnswersThatAreNoJSON(t *testing.T) {
	const denied = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
	for name, test := range map[string]struct {
		mediaType, body string
		status          int
		want            string
	}{
		"XML":               {"application/xml", denied, 200, `an XML document answered ("AccessDenied Access Denied")`},
		"XML, refused":      {"application/xml", denied, 403, `an XML document answered ("AccessDenied Access Denied")`},
		"XML, down":         {"text/plain", "<?xml version='1.0'?>\n" + denied, 502, `an XML document answered ("AccessDenied Access Denied")`},
		"XML without words": {"application/xml", "<Error/>", 200, `an XML document answered; check`},
		"XHTML":             {"application/xml", "<?xml version='1.0'?><html><title>Hi</title></html>", 200, `a web page answered ("Hi")`},
		"a page":            {"text/html", "<html><title>Log in</title></html>", 200, `a web page answered ("Log in")`},
		"text, refused":     {"text/plain", "your plan\nhas no API", 403, "your plan has no API"},
		"text, down":        {"text/plain", "upstream connect error", 502, "upstream connect error"},
		"text, not found":   {"text/plain", "404 page not found", 404, "404 page not found"},
		"the key":           {"text/plain", "bad key " + testKey, 401, "bad key ••••"},
	} {
		c, _ := newService(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", test.mediaType)
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}).client(t, "openai-compatible")
		_, answer := c.Generate(t.Context(), hello, nil)
		_, models := c.ListModels(t.Context())
		for what, err := range map[string]error{"an answer": answer, "models": models} {
			var pe *llm.ProviderError
			if !errors.As(err, &pe) || !strings.HasPrefix(pe.Message, test.want) || pe.Status != test.status {
				t.Errorf("%s for %s: %v, want %s", name, what, err, test.want)
			}
		}
	}
}

// FuzzThinking: however a text is split, the answer is the same, and all of it is shown.
func FuzzThinking(f *testing.F) {
	f.Add("<think>a</think>\nb", uint8(3), true)
	f.Add("a</think> b`</think>`", uint8(1), false)
	f.Add("<think>a<think>b</think>c</think >d`</think>`", uint8(2), false)
	f.Add("a\n<think x>b</think>\n```\n<think>\n```\n<thinking>", uint8(4), true)
	f.Add("<thinking>a</think>b", uint8(5), false)
	f.Add("0\n<think ></think>00", uint8(4), false)
	f.Fuzz(func(t *testing.T, said string, size uint8, hold bool) {
		var shown strings.Builder
		read := func(n int) (string, *answerText) {
			shown.Reset()
			a := &answerText{delta: func(d llm.Delta) { shown.WriteString(d.Text) }, hold: hold}
			for rest := said; rest != ""; {
				k := min(n, len(rest))
				a.write(rest[:k])
				rest = rest[k:]
			}
			return a.finish(false), a
		}
		whole, _ := read(len(said) + 1)
		pieces, a := read(int(size) + 1)
		if !hold && whole != pieces {
			t.Fatalf("%q: %q whole, %q in pieces", said, whole, pieces)
		}
		if !a.orphan && shown.String() != pieces {
			t.Fatalf("%q: shown %q of %q", said, shown.String(), pieces)
		}
		if len(pieces)+a.thought.Len() > len(said) {
			t.Fatalf("%q: %q and %q", said, pieces, a.thought.String())
		}
	})
}

// An answer that is held back grows by its pieces, without being copied for each.
func TestHeldAnswerIsNotCopied(t *testing.T) {
	const pieces = 20_000
	shown := ""
	a := answerText{delta: func(d llm.Delta) { shown += d.Text }, hold: true}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		a.write("word ")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 { // with copies, it would be a gigabyte
		t.Errorf("%d pieces take %d MiB", pieces, n>>20)
	}
	a.write("</think>yes")
	if got := a.finish(false); got != "yes" || shown != "yes" {
		t.Errorf("the answer is %q, %q was shown", got, shown)
	}
}
