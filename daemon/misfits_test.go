package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"nize/bots/phrases"
	"nize/daemon/metrics"
	"nize/daemon/trace"
	"nize/llm"
	"nize/mcp/schema"
	"nize/store"
)

// What is wrong with arguments is checked by mcp/schema in English, for models.
// A chat says all of it in its reader's language; the names and values of these
// schemas are no words.
func TestMisfitsInTheReadersLanguage(t *testing.T) {
	for _, row := range []struct{ schema, args string }{
		{`{"required":["n"]}`, `{}`},
		{`{"required":["n"],"properties":{"n":{"type":["integer","null"]}}}`, `{}`},
		{`{"required":["n"],"properties":{"n":{"type":"string","enum":["1","2"]}}}`, `{}`},
		{`{"required":["n"],"properties":{"n":{"enum":["1"]}}}`, `{}`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`},
		{`{"properties":{"ab":{}},"additionalProperties":false}`, `{"ac":1}`},
		{`{"properties":{"1":{},"2":{}},"additionalProperties":false}`, `{"999999":1}`},
		{`{"additionalProperties":false}`, `{"1":1}`},
		{`{"properties":{"1":false}}`, `{"1":1}`},
		{`{"properties":{"1":{"type":"integer"}}}`, `{"1":"2"}`},
		{`{"properties":{"1":{"type":"integer"}}}`, `{"1":[1,2]}`},
		{`{"properties":{"1":{"type":"integer"}}}`, `{"1":{}}`},
		{`{"properties":{"1":{"type":"integer"}}}`, `{"1":{"2":3}}`},
		{`{"properties":{"1":{"type":"integer"}}}`, `{"1":null}`},
		{`{"properties":{"1":{"type":["array","object","boolean","number"]}}}`, `{"1":"2"}`},
		{`{"properties":{"password":{"type":"integer"}}}`, `{"password":"2"}`},
		{`{"properties":{"1":{"enum":["111","222"]}}}`, `{"1":"112"}`},
		{`{"properties":{"1":{"enum":[1,2,3,4,5,6,7,8,9,10,11,12,13,14]}}}`, `{"1":0}`},
		{`{"properties":{"1":{"const":7}}}`, `{"1":0}`},
		{`{"properties":{"1":{"minimum":7}}}`, `{"1":0}`},
		{`{"properties":{"1":{"maximum":7}}}`, `{"1":10}`},
		{`{"properties":{"1":{"exclusiveMinimum":7}}}`, `{"1":0}`},
		{`{"properties":{"1":{"exclusiveMaximum":7}}}`, `{"1":10}`},
		{`{"properties":{"1":{"multipleOf":7}}}`, `{"1":10}`},
		{`{"properties":{"1":{"minLength":7}}}`, `{"1":"1"}`},
		{`{"properties":{"1":{"maxLength":7}}}`, `{"1":"11111111"}`},
		{`{"properties":{"1":{"pattern":"^1$"}}}`, `{"1":"2"}`},
		{`{"properties":{"1":{"minItems":7}}}`, `{"1":[1]}`},
		{`{"properties":{"1":{"maxItems":1}}}`, `{"1":[1,2]}`},
		{`{"properties":{"1":{"uniqueItems":true}}}`, `{"1":[1,1]}`},
		{`{"properties":{"1":{"prefixItems":[{}],"items":false}}}`, `{"1":[1,1]}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"1":{"items":[{}],"additionalItems":false}}}`, `{"1":[1,1]}`},
		{`{"properties":{"1":{"contains":{"const":2}}}}`, `{"1":[1]}`},
		{`{"properties":{"1":{"contains":{"const":2},"minContains":2}}}`, `{"1":[1,2]}`},
		{`{"properties":{"1":{"contains":{"const":2},"maxContains":1}}}`, `{"1":[2,2]}`},
		{`{"minProperties":1}`, `{}`},
		{`{"maxProperties":1}`, `{"1":1,"2":2}`},
		{`{"propertyNames":{"pattern":"^1$"}}`, `{"2":2}`},
		{`{"properties":{"1":{"not":{"const":1}}}}`, `{"1":1}`},
		{`{"properties":{"1":{"oneOf":[{"minimum":1},{"minimum":0}]}}}`, `{"1":5}`},
		{`{"properties":{"1":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"1":5}`},
		{`{"properties":{"1":{"anyOf":[{"minimum":10},{"minimum":12}]}}}`, `{"1":5}`},
		{`{"properties":{"1":{"minLength":7},"2":{"type":"null"}},"required":["3","4","5","6"]}`, `{"1":"1; 2","2":"must 1"}`},
		{`{}`, `{"1":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`},
		{`{}`, `{"1":1e999999}`},
		{`{}`, `{"1":` + strings.Repeat("1", 2000) + `}`},
	} {
		v, err := schema.Compile(json.RawMessage(row.schema))
		if err != nil {
			t.Fatalf("%s: %v", row.schema, err)
		}
		err = v.Check(json.RawMessage(row.args))
		var ce *store.CallError
		if !errors.As(err, &ce) {
			t.Errorf("%s takes %.80s: %v", row.schema, row.args, err)
			continue
		}
		message := ce.Message
		if _, args := message.Parts(); len(args) == 2 { // it is named for no tool here
			message = store.Textf("arguments don't fit %s: %s", "toolbox:write", args[1])
		}
		said := message.String()
		for _, locale := range []string{"zh-Hans", "zh-Hant"} {
			text := phrases.For(locale).Text(message)
			if left := english(text); len(left) > 0 || text == said || strings.Contains(text, "；`") && !strings.Contains(said, "; ") {
				t.Errorf("%s in %s: %q has %q; in English %q", row.schema, locale, text, left, said)
			}
		}
	}
}

// The built-in planner answers in the language of who reads it.
func TestPlannerInTheReadersLanguage(t *testing.T) {
	d := &Daemon{}
	d.metrics = metrics.New(metrics.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	d.tracer = trace.New(trace.Options{})
	model, err := d.openModel(store.Provider{Kind: llm.Offline})
	if err != nil {
		t.Fatal(err)
	}
	functions := []store.Function{{Name: "discover_tools"}, {Name: "get_tool_schema"}, {Name: "execute_tool"}, {Name: "list_tool_domains"}}
	said := func(text string) []store.Turn { return []store.Turn{{Role: store.FromUser, Text: text}} }
	after := func(text, function, args string, result string) []store.Turn {
		return append(said(text),
			store.Turn{N: 1, Role: store.FromModel, Calls: []store.ToolCall{{ID: "c", Name: function, Args: args}}},
			store.Turn{N: 2, Role: store.FromTool, CallID: "c", Text: llm.Frame(result)})
	}
	ran := func(result string) []store.Turn {
		return after("2d6", "execute_tool", `{"tool_id":"toolbox:roll","params":{}}`, result)
	}
	ended := func(turns []store.Turn, state store.State, why store.Text) []store.Turn {
		turns[2].Ended, turns[2].Said = state, why
		return turns
	}
	inside := store.Textf("nize had an internal error")
	for name, turns := range map[string][]store.Turn{
		"nothing yet":     nil,
		"a greeting":      said("hello"),
		"thanks":          said("thanks"),
		"never mind":      said("never mind"),
		"too long":        said(strings.Repeat("1 ", 9000)),
		"domains":         after("help", "list_tool_domains", "{}", `{"domains":[{"id":"toolbox","tool_count":3}]}`),
		"no domains":      after("help", "list_tool_domains", "{}", `{"domains":[]}`),
		"broken domains":  ended(after("help", "list_tool_domains", "{}", "Nothing was done: nize had an internal error."), store.Failed, inside),
		"a list":          after("which tools can 22", "discover_tools", "{}", `{"tools":[{"tool_id":"toolbox:roll","description":"1","score":1}]}`),
		"none":            after("22", "discover_tools", `{"query":"22","min_similarity":0}`, `{"tools":[]}`),
		"near ones":       after("22", "discover_tools", `{"query":"22","min_similarity":0}`, `{"tools":[{"tool_id":"toolbox:roll","description":"1","score":1}]}`),
		"a lack":          after("22 ?", "get_tool_schema", "{}", `{"tool_id":"toolbox:roll","name":"roll","input_schema":{"required":["9"],"properties":{"9":{"type":"boolean","description":"8"}}}}`),
		"a choice":        after("22 ?", "get_tool_schema", "{}", `{"tool_id":"toolbox:roll","name":"roll","input_schema":{"required":["9"],"properties":{"9":{"enum":["77","88"]}}}}`),
		"a proposal":      after("2d6", "get_tool_schema", "{}", `{"tool_id":"toolbox:roll","name":"roll","needs_approval":true,"input_schema":{}}`),
		"a word":          ran("7"),
		"lines":           ran("7\n8"),
		"no words":        ran("(no output)"),
		"a no":            ended(ran("A person refused the call."), store.Refused, store.Text{}),
		"refused, why":    ended(ran(""), store.Refused, store.Textf("its requester may no longer use %s", "toolbox:roll")),
		"expired":         ended(ran(""), store.Expired, store.Text{}),
		"cancelled":       ended(ran(""), store.Cancelled, store.Text{}),
		"lost":            ended(ran(""), store.Lost, store.Text{}),
		"failed":          ended(ran(""), store.Failed, store.Text{}),
		"failed, why":     ended(ran(""), store.Failed, store.Textf("the tool did not answer in time")),
		"an error":        ended(ran(""), store.Done, store.Plain("7")),
		"unknown":         ended(ran(""), store.Planned, store.Textf("%s; search with discover_tools", store.Textf("tool %q not found", "toolbox:roll"))),
		"an inside error": ended(ran(""), store.Failed, inside),
	} {
		for _, locale := range []string{"zh-CN", "zh-TW"} {
			reply, err := model.Generate(context.Background(), llm.Request{Turns: turns, Functions: functions, Locale: locale, Context: time.Now().String()}, nil)
			if err != nil || reply.Text == "" {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
			if left := english(reply.Text); len(left) > 0 {
				t.Errorf("%s in %s: %q has %q", name, locale, reply.Text, left)
			}
		}
	}
	reply, err := model.Generate(context.Background(), llm.Request{Turns: said("hi"), Locale: "zh"}, nil)
	if err != nil || len(english(reply.Text)) > 0 {
		t.Errorf("without tools: %q, %v", reply.Text, err)
	}
}
