package mcp_test

import (
	"bufio"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// namedPlacements are the params of a tools/call, apart from the tool's name, for a tool
// with the parameters what, n and input, each with the arguments it should run with or the
// expected refusal.
var namedPlacements = []struct{ given, runs, refused string }{
	{`"arguments":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"arguments":"{\"what\":\"x\"}"`, `{"what":"x"}`, ""},
	{`"input":{"what":"x"}`, `{"what":"x"}`, ""}, // lacks a required parameter, so input can't be the parameter itself
	{`"args":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"params":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"parameters":{"what":"x"},"arguments":{}`, `{"what":"x"}`, ""},
	{`"tool_input":{"what":"x"},"arguments":null`, `{"what":"x"}`, ""},
	{`"kwargs":"{\"what\":\"x\"}"`, `{"what":"x"}`, ""},
	{`"Arguments":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"\u0061rgs":{"what":"x"},"arguments":[]`, `{"what":"x"}`, ""},
	{`"what":"x","n":3`, `{"n":3,"what":"x"}`, ""},
	{`"input":{"k":1},"what":"x"`, `{"input":{"k":1},"what":"x"}`, ""},
	{`"arguments":{"params":{"what":"x"}}`, `{"what":"x"}`, ""}, // nested a second time
	{`"arguments":{"arguments":"{\"what\":\"x\"}"}`, `{"what":"x"}`, ""},
	{`"args":{"args":{"what":"x"}}`, `{"what":"x"}`, ""},
	{`"arguments":{"what":"x"},"args":{},"input":null`, `{"what":"x"}`, ""},
	{`"arguments":{"what":"x"},"timeout":5,"vendor.example/trace":{"a":1}`, `{"what":"x"}`, ""}, // extensions
	{`"vendor.example/trace":{"a":1},"vendor.example/task":{"ttl":1},"x-trace":1,"args":{"what":"x"}`, `{"what":"x"}`, ""},

	{`"arguments":{"what":"x"},"args":{"what":"y"}`, "", `"args" is outside arguments, which holds arguments too`},
	{`"arguments":{"what":"x"},"n":1`, "", `"n" is outside arguments`},
	{`"arguments":{"what":"x"},"Arguments":{"what":"y"}`, "", `"Arguments" is outside arguments`},
	{`"arguments":{"what":"x"},"arguments":{"what":"y"}`, "", `is outside arguments`},
	{`"args":{"what":"x"},"parameters":{"n":1}`, "", `"args", "parameters" is outside arguments and not a parameter`},
	{`"args":["x"]`, "", `"args" is outside arguments and not a parameter`},
	{`"params":"what=x"`, "", `"params" is outside arguments and not a parameter`},
	{`"waht":"x"`, "", `"waht" is outside arguments and not a parameter`},
	{`"input":{"k":1}`, "", `"input" may be a parameter of the tool or hold all of its arguments`}, // neither interpretation fits
	{`"arguments":{"args":{"waht":"x"}}`, "", `"args" is not a parameter of the tool, and neither is "waht" in it`},
	{`"arguments":{"nize:beside":{"what":"x"},"arguments":{}}`, "", "/what is required"},
	{`"arguments":7`, "", "must be a JSON object"},
	{`"what":1`, "", "/what must be a string"},
	{``, "", "/what is required"},
}

// TestNamedPlacements: over each protocol version, a tool called by its name never runs
// with fewer arguments than the request contained.
func TestNamedPlacements(t *testing.T) {
	f := newFront(t, nil)
	f.putTool("look", `{"type":"object","properties":{"what":{"type":"string"},"n":{"type":"integer"},"input":{"type":"object"}},"required":["what"]}`)
	token := f.token("client", time.Hour, "expose:all", "expose:meta")
	both := []string{"application/json, text/event-stream"}
	old := &rawClient{f: f, token: token, accept: both}
	document := &rawClient{f: f, token: token, accept: []string{"application/json"}}
	for _, c := range []*rawClient{old, document} {
		c.post(withID(sayHello, "1"))
		c.post(sayReady)
	}
	modern := &rawClient{f: f, token: token, version: "2026-07-28", accept: both}
	const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, p := range namedPlacements {
		for wire, ask := range map[string]func(params string) string{
			"2025-11-25":             func(params string) string { _, text := old.post(message("box__look", params)); return text },
			"2025-11-25, a document": func(params string) string { _, text := document.post(message("box__look", params)); return text },
			"2026-07-28":             func(params string) string { _, text := modern.post(message("box__look", params+meta)); return text },
			"a fraction as id": func(params string) string {
				_, text := old.post(strings.Replace(message("box__look", params), `"id":1`, `"id":1.5`, 1))
				return text
			},
			"params first": func(params string) string {
				_, text := old.post(`{"params":{` + strings.TrimPrefix(params+`,"name":"box__look"`, ",") + `},"method":"tools/call","id":1,"jsonrpc":"2.0"}`)
				return text
			},
		} {
			if wire == "2026-07-28" && strings.Contains(p.given, "task") {
				continue // a task is another kind of answer
			}
			before := f.runner.runs.Load()
			got := ask(p.given)
			runs, want := f.runner.runs.Load()-before, int64(1)
			text := strings.Trim(marshal(t, `"args":`+p.runs), `"`)
			if p.refused != "" {
				want, text = 0, strings.Trim(marshal(t, p.refused), `"`)
			}
			if runs != want || !strings.Contains(got, text) && !strings.Contains(got, `"args":`+p.runs) {
				t.Errorf("%s over %s: %d runs, %s\nwant %s", p.given, wire, runs, got, text)
			}
		}
	}
}

func message(name, params string) string {
	if params != "" {
		params = "," + strings.TrimPrefix(params, ",")
	}
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"` + params + `}}`
}

// TestMetaPlacements: the meta-tools also accept misplaced arguments, and so does a call
// whose arguments are beside params.
func TestMetaPlacements(t *testing.T) {
	f := newFront(t, nil)
	f.putTool("look", `{"type":"object","properties":{"what":{"type":"string"},"n":{"type":"integer"}}}`)
	c := &rawClient{f: f, token: f.token("client", time.Hour, "expose:all", "expose:meta"), accept: []string{"application/json, text/event-stream"}}
	c.post(withID(sayHello, "1"))
	c.post(sayReady)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call",`
	for given, want := range map[string]string{
		`"params":{"name":"execute_tool","args":{"tool_id":"box:look","params":{"what":"x"}}}}`:                   `"args":{"what":"x"}`,
		`"params":{"name":"execute_tool","params":{"tool_id":"box:look","params":{"what":"x"}}}}`:                 `"args":{"what":"x"}`,
		`"params":{"name":"execute_tool","tool_id":"box:look","params":{"what":"x"}}}`:                            `"args":{"what":"x"}`,
		`"params":{"name":"execute_tool","tool_id":"box:look","what":"x"}}`:                                       `"args":{"what":"x"}`,
		`"params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"input":{"what":"x"}}}}}`:    `"args":{"what":"x"}`,
		`"params":{"name":"get_tool_schema","input":{"tool_id":"box:look"}}}`:                                     `"tool_id":"box:look"`,
		`"params":{"name":"get_tool_schema","tool_id":"box:look"}}`:                                               `"tool_id":"box:look"`,
		`"params":{"name":"box__look"},"arguments":{"what":"x"}}`:                                                 `"args":{"what":"x"}`,
		`"params":{"name":"box__look"},"input":{"what":"x"}}`:                                                     `"args":{"what":"x"}`,
		`"params":{"name":"execute_tool","arguments":{"tool_id":"box:look"},"params":{"what":"x"}}}`:              `"params\" is outside arguments, which holds arguments too`,
		`"params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"input":{"waht":"x"}}}}}`:    `"input\" is not a parameter of the tool`,
		`"params":{"name":"get_tool_schema","tool":"box:look"}}`:                                                  `"tool\" is outside arguments and not a parameter`,
		`"params":{"name":"box__look","arguments":{"n":1}},"arguments":{"what":"x"}}`:                             `arguments\" is outside arguments, which holds arguments too`,
		`"params":{"name":"browse_tool_domain","args":{"domain_id":"x"},"parameters":{"cursor":"y"}}}`:            `"args\", \"parameters\" is outside arguments`,
		`"params":{"name":"discover_tools","arguments":{"query":"look"},"args":{"query":"something different"}}}`: `args\" is outside arguments`,
	} {
		before := f.runner.runs.Load()
		_, got := c.post(call + given)
		runs := int64(0)
		if strings.HasPrefix(want, `"args":`) {
			runs = 1
		}
		if n := f.runner.runs.Load() - before; n != runs || !strings.Contains(got, want) && !strings.Contains(got, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d runs, %s\nwant %s", given, n, got, want)
		}
	}
}

// TestNamedPlacementOnOwnConnection: requests on a separate connection are parsed like
// those over HTTP.
func TestNamedPlacementOnOwnConnection(t *testing.T) {
	f := newFront(t, nil)
	ours, theirs := net.Pipe()
	ended := make(chan error, 1) // for ServeConn's one answer
	by := f.root
	by.Scopes = []string{"expose:all"}
	go func() { ended <- f.server.ServeConn(t.Context(), by, theirs) }()
	lines := bufio.NewReader(ours)
	for _, m := range []string{withID(sayHello, "1"), sayReady, message("box__look", `"args":{"what":"x"}`)} {
		if _, err := ours.Write([]byte(m + "\n")); err != nil {
			t.Fatal(err)
		}
		if m == sayReady {
			continue
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if m != withID(sayHello, "1") && !strings.Contains(line, `"args":{"what":"x"}`) && !strings.Contains(line, `\"args\":{\"what\":\"x\"}`) {
			t.Error(line)
		}
	}
	_ = ours.Close()
	<-ended
}

// TestPlacementLeavesOpenToolsAlone: a tool may have a parameter that is named like a
// container of arguments, declared or not.
func TestPlacementLeavesOpenToolsAlone(t *testing.T) {
	h := newFixture(t, nil)
	for schema, want := range map[string]string{
		`{"type":"object"}`: `"args":{"input":{"a":1}}`,
		`{"type":"object","properties":{"input":{"type":"object"}}}`:                                            `"args":{"input":{"a":1}}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":true}`:                   `"args":{"input":{"a":1}}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"patternProperties":{"^in":{}}}`:                `"args":{"input":{"a":1}}`,
		`{"type":"object","anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"additionalProperties":{}}]}`: `"args":{"input":{"a":1}}`,
		`{"type":"object","properties":{"a":{"type":"integer"}}}`:                                               `"args":{"a":1}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`:                  `"args":{"a":1}`,
		`{"$ref":"#/$defs/in","$defs":{"in":{"type":"object","properties":{"a":{"type":"integer"}}}}}`:          `"args":{"a":1}`,
		`{"type":"object","properties":{"b":{"type":"integer"}}}`:                                               `"input" is not a parameter of the tool, and neither is "a" in it`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                `/a must be a string`,
	} {
		h.putTool("look", schema)
		got := ""
		if c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:look", Args: json.RawMessage(`{"input":{"a":1}}`)}); err != nil {
			got = err.Error()
		} else {
			got = string(c.Result.Raw)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// TestPlacementsOfViews: the same holds for the tools/call requests of views.
func TestPlacementsOfViews(t *testing.T) {
	f := newFront(t, nil)
	f.putTool("look", `{"type":"object","properties":{"what":{"type":"string"},"n":{"type":"integer"},"input":{"type":"object"}},"required":["what"]}`)
	for _, p := range namedPlacements {
		params := `{"name":"look"`
		if p.given != "" {
			params += "," + p.given
		}
		before := f.runner.runs.Load()
		c, err := f.gateway.CallByParams(t.Context(), f.root, store.Request{Tool: "box:look"}, json.RawMessage(params+"}"))
		runs := f.runner.runs.Load() - before
		switch {
		case p.refused == "" && (err != nil || runs != 1 || !strings.Contains(string(c.Result.Raw), `"args":`+p.runs)):
			t.Errorf("%s: %d runs, %v", p.given, runs, err)
		case p.refused != "" && (err == nil || runs != 0 || !strings.Contains(err.Error(), p.refused)):
			t.Errorf("%s: %d runs, error %v, want %s", p.given, runs, err, p.refused)
		}
	}
}

// TestPlacementsOfPrompts: over each protocol version, a prompt is never read with fewer
// arguments than the request contained.
func TestPlacementsOfPrompts(t *testing.T) {
	f := newFront(t, nil)
	f.put([]store.Tool{{Server: "box", Name: "prompt:greet", Description: "d", State: store.ToolAccepted, Pin: "greet", Accepted: "greet",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"},"tone":{"type":"string"}},"additionalProperties":false}`),
		Meta:        json.RawMessage(`{"name":"greet","arguments":[{"name":"who"},{"name":"tone"}]}`)}})
	f.runner.raw = json.RawMessage(`{"messages":[]}`)
	token := f.token("client", time.Hour, "expose:all", "expose:meta")
	both := []string{"application/json, text/event-stream"}
	old := &rawClient{f: f, token: token, accept: both}
	old.post(withID(sayHello, "1"))
	old.post(sayReady)
	modern := &rawClient{f: f, token: token, version: "2026-07-28", accept: both}
	const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, p := range []struct{ given, reads, refused string }{
		{`"arguments":{"who":"x"}`, `{"who":"x"}`, ""},
		{`"arguments":{}`, `{}`, ""},
		{``, `{}`, ""},
		{`"arguments":null`, `{}`, ""},
		{`"arguments":"{\"who\":\"x\"}"`, `{"who":"x"}`, ""},
		{`"args":{"who":"x"}`, `{"who":"x"}`, ""},
		{`"params":{"who":"x"},"arguments":{}`, `{"who":"x"}`, ""},
		{`"input":"{\"who\":\"x\"}"`, `{"who":"x"}`, ""},
		{`"who":"x","tone":"kind"`, `{"tone":"kind","who":"x"}`, ""},
		{`"arguments":{"args":{"who":"x"}}`, `{"who":"x"}`, ""},
		{`"arguments":{"who":7,"tone":true}`, `{"tone":"true","who":"7"}`, ""},
		{`"arguments":{"who":"x","tone":null}`, `{"who":"x"}`, ""},
		{`"arguments":{"who":"x"},"vendor.example/trace":{"a":1},"x-trace":1`, `{"who":"x"}`, ""},
		{`"arguments":{"who":"x"},"args":{"who":"y"}`, "", `outside arguments, which holds arguments too`},
		{`"arguments":{"who":"x"},"tone":"kind"`, "", `outside arguments`},
		{`"whom":"x"`, "", `outside arguments and not a parameter`},
		{`"args":["x"]`, "", `outside arguments and not a parameter`},
		{`"arguments":{"who":{"a":1}}`, "", `must be a string`},
		{`"arguments":["x"]`, "", `must be a JSON object`},
		{`"arguments":{"args":{"whom":"x"}}`, "", `is not a parameter of the tool`},
		{`"arguments":{"nize:beside":"{\"nize:beside\":{},\"arguments\":{\"who\":\"x\"}}"}`, "", `nize:beside`},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"box__greet"`
		if p.given != "" {
			body += "," + p.given
		}
		for wire, ask := range map[string]func() string{
			"2025-11-25": func() string { _, text := old.post(body + "}}"); return text },
			"2026-07-28": func() string { _, text := modern.post(body + meta + "}}"); return text },
		} {
			before := f.runner.runs.Load()
			got := ask()
			runs := f.runner.runs.Load() - before
			var args string
			if runs == 1 {
				args = *f.runner.last.Load()
			}
			switch {
			case p.refused == "" && (runs != 1 || args != p.reads):
				t.Errorf("%s over %s: %d runs with %s, %s", p.given, wire, runs, args, got)
			case p.refused != "" && (runs != 0 || !strings.Contains(got, strings.Trim(marshal(t, p.refused), `"`)) || !strings.Contains(got, "-32602")):
				t.Errorf("%s over %s: %d runs, %s", p.given, wire, runs, got)
			}
		}
	}
}
