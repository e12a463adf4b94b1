package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nize/llm"
	"nize/store"
)

// oddSchemas are schemas that servers list; each ended the turns of some service.
var oddSchemas = []string{
	`{}`, `true`, `null`, ``, `[]`,
	`{"type":"object"}`,
	`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`,
	`{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}`,
	`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"array"}}}]}`,
	`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
	`{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"object","properties":{"a":{"const":1}}}}}`,
	`{"$ref":"#/definitions/X","definitions":{"X":{"type":"object","properties":{"next":{"$ref":"#/definitions/X"}}}}}`,
	`{"type":"object","properties":{"a":{"$ref":"#/nowhere"},"b":{"type":"array","items":[{"type":"string"}]},"c":{"type":"any","nullable":true}}}`,
	`{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true},"b":{"enum":[1,"x",null]}},"required":null}`,
	`{"type":"object","properties":{"$filter":{"type":"string"},"a b":{"type":"string"}},"required":["$filter"],"additionalProperties":false}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}}}`,
}

func oddRequest() llm.Request {
	req := llm.Request{Model: "m", Turns: []store.Turn{{Role: store.FromUser, Text: "hi"}}}
	for i, s := range oddSchemas {
		req.Functions = append(req.Functions, store.Function{Name: fmt.Sprintf("s__f%d", i), Description: "Does it.", Schema: json.RawMessage(s)})
	}
	return req
}

// sentSchemas returns the schemas in a request; nil for a function without one.
func sentSchemas(t *testing.T, body string) (list []map[string]any) {
	t.Helper()
	var req struct {
		Tools []struct {
			Function struct {
				Parameters map[string]any `json:"parameters"`
			} `json:"function"`
			Parameters map[string]any `json:"parameters"` // for the Responses API
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	for _, tool := range req.Tools {
		if tool.Parameters != nil {
			tool.Function.Parameters = tool.Parameters
		}
		list = append(list, tool.Function.Parameters)
	}
	return list
}

// takesRoot returns the error of OpenAI and Anthropic for a root schema.
func takesRoot(s map[string]any) string {
	if s["type"] != "object" {
		return `schema must be a JSON Schema of 'type: "object"'`
	}
	if _, ok := s["properties"].(map[string]any); !ok {
		return "object schema missing properties"
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if s[key] != nil {
			return "input_schema does not support oneOf, allOf, or anyOf at the top level"
		}
	}
	return ""
}

// takesSubset returns the error of the strictest services for a schema.
func takesSubset(s map[string]any) string {
	for key, value := range s {
		switch key {
		case "type":
			if _, ok := value.(string); !ok {
				return "type must be a string"
			}
		case "description", "nullable", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "required":
		case "enum":
			for _, v := range value.([]any) {
				if _, ok := v.(string); !ok {
					return "enum must be of strings"
				}
			}
		case "properties":
			for name, p := range value.(map[string]any) {
				if !legalProperty(name) {
					return "Property keys should match pattern"
				}
				if why := takesSubset(p.(map[string]any)); why != "" {
					return why
				}
			}
		case "items":
			if why := takesSubset(value.(map[string]any)); why != "" {
				return why
			}
		case "anyOf":
			for _, kid := range value.([]any) {
				if why := takesSubset(kid.(map[string]any)); why != "" {
					return why
				}
			}
		default:
			return fmt.Sprintf("Invalid JSON payload received. Unknown name %q at 'tools[0].function_declarations[0].parameters'", key)
		}
	}
	return ""
}

func legalProperty(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == ""
}

// TestSchemasOfServices: no schema ends a turn, whatever part of JSON Schema the service
// supports, and the accepted form is remembered.
func TestSchemasOfServices(t *testing.T) {
	for name, test := range map[string]struct {
		kind, model string
		takes       func(i int, s map[string]any) string // "" means accepted
		asks        int                                  // requests for the first answer
	}{
		"any":       {"openai-compatible", "m", func(int, map[string]any) string { return "" }, 1},
		"openai":    {"openai", "gpt-4o", func(_ int, s map[string]any) string { return takesRoot(s) }, 1},
		"responses": {"openai", "gpt-6", func(_ int, s map[string]any) string { return takesRoot(s) }, 1},
		"anthropic": {"anthropic", "claude", func(_ int, s map[string]any) string {
			for key := range s["properties"].(map[string]any) {
				if !legalProperty(key) {
					return "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
				}
			}
			return takesRoot(s)
		}, 1},
		"gemini":          {"gemini", "gemini-3", func(_ int, s map[string]any) string { return takesSubset(s) }, 1},
		"gemini, brought": {"openrouter", "google/gemini-3", func(_ int, s map[string]any) string { return takesSubset(s) }, 1},
		"another subset":  {"openai-compatible", "m", func(_ int, s map[string]any) string { return takesSubset(s) }, 2},
		"no anyOf at all": {"openai-compatible", "m", func(i int, s map[string]any) string {
			if strings.Contains(fmt.Sprint(s), "anyOf") {
				return fmt.Sprintf("Invalid schema for function 's__f%d': anyOf is not supported", i)
			}
			return ""
		}, 3},
		"by its place": {"openai-compatible", "m", func(i int, s map[string]any) string {
			if i == 8 && len(s["properties"].(map[string]any)) > 0 {
				return "tools.8.input_schema: I don't like it"
			}
			return ""
		}, 3},
		"only bare ones": {"openai-compatible", "m", func(_ int, s map[string]any) string {
			if len(s["properties"].(map[string]any)) > 0 {
				return "unsupported parameters"
			}
			return ""
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var asks int
			var s *service
			s = newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
				asks++
				bodies, _ := s.seen()
				for i, schema := range sentSchemas(t, bodies[len(bodies)-1]) {
					if schema == nil {
						continue
					}
					if why := test.takes(i, schema); why != "" {
						fail(400, "", `{"error":{"message":`+string(must(json.Marshal(why)))+`,"type":"invalid_request_error"}}`)(w, r, try)
						return
					}
				}
				if strings.HasSuffix(r.URL.Path, "/responses") {
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(w, `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}]}`)
					return
				}
				stream(text("ok"), end)(w, r, try)
			})
			c, _ := s.client(t, test.kind)
			req := oddRequest()
			req.Model = test.model
			for _, want := range []int{test.asks, 1} { // the second time the form is known
				asks = 0
				reply, err := c.Generate(t.Context(), req, nil)
				if err != nil || reply.Text != "ok" || asks != want {
					t.Errorf("%q, %v after %d requests, want %d", reply.Text, err, asks, want)
				}
			}
		})
	}
}

// TestOtherRefusals: errors that aren't about schemas are not retried, and a service that
// accepts no form is asked only a few times.
func TestOtherRefusals(t *testing.T) {
	for _, test := range []struct {
		status  int
		message string
		asks    int
	}{
		{400, "model m does not exist", 1},
		{401, "the schema of your key is wrong", 1},
		{400, "This model's maximum context length is 8192 tokens; your tools take 9000", 1},
		{400, "Invalid schema for function 's__f3'", 4}, // unchanged, narrow, that one bare, all bare
		{422, "tools are not supported", 3},
	} {
		asks := 0
		s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
			asks++
			fail(test.status, "", `{"error":{"message":`+string(must(json.Marshal(test.message)))+`}}`)(w, r, try)
		})
		c, _ := s.client(t, "openai-compatible")
		_, err := c.Generate(t.Context(), oddRequest(), nil)
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || pe.Message != test.message || asks != test.asks {
			t.Errorf("%q: %v after %d requests, want %d", test.message, err, asks, test.asks)
		}
	}
}

// TestBareDescribes: a function whose schema the service doesn't accept has it in its
// description.
func TestBareDescribes(t *testing.T) {
	fn := store.Function{Name: "f", Description: "Does it.", Schema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`)}
	schema, about := forms{bare: []string{"f"}}.parameters(fn, false)
	if string(schema) != `{"type":"object","properties":{}}` || !strings.Contains(about, `Does it.`) || !strings.Contains(about, `{"a":{}}`) {
		t.Errorf("%s, %q", schema, about)
	}
	if named := namedFunctions([]store.Function{{Name: "a"}, {Name: "ab"}, {Name: "c"}}, "tools[2] and 'ab' are wrong"); !slices.Equal(named, []string{"ab", "c"}) {
		t.Errorf("named %v", named)
	}
}

// A service that rejects one function after the other is not asked once for each.
func TestRefusalsOneByOne(t *testing.T) {
	req := llm.Request{Model: "m"}
	for i := range 50 {
		req.Functions = append(req.Functions, store.Function{Name: fmt.Sprintf("f%d", i), Schema: json.RawMessage(`{"type":"object"}`)})
	}
	c := &Client{opt: Options{Log: slog.New(slog.DiscardHandler)}}
	asked := 0
	err := c.withForms(req, func(f forms) error {
		asked++
		for _, fn := range req.Functions {
			if !slices.Contains(f.bare, fn.Name) {
				return &llm.ProviderError{Fault: llm.FaultRequest, Status: 400, Message: "the schema of " + fn.Name + " is not taken"}
			}
		}
		return nil
	})
	if err != nil || asked > mostAsked+1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
