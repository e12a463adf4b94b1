package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// A form gets the same verdict on arguments as a call does.
func TestFits(t *testing.T) {
	h := newFixture(t, nil)
	for args, want := range map[string]string{
		`{"what":"x"}`:            "",
		`{"what":1}`:              "/what must be a string",
		`{"what":"x","what":"y"}`: "duplicate",
		`[]`:                      "must be a JSON object",
	} {
		err := h.gateway.CheckForm(store.Call{Server: "box", Tool: "write"}, []byte(args))
		var wrong *store.CallError
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		if !errors.As(err, &wrong) || wrong.Code != store.CodeInvalid || !strings.Contains(wrong.Message.String(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
			continue
		}
		if _, called := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: []byte(args)}); called == nil || called.Error() != err.Error() {
			t.Errorf("%s: the call says %v, the form %v", args, called, err)
		}
	}
	if err := h.gateway.CheckForm(store.Call{Server: "box", Tool: "gone"}, []byte(`{}`)); err != nil {
		t.Errorf("of a tool that is not there: %v", err)
	}
}

// placements are arguments of execute_tool for a tool with the parameters what, n and
// input, each with the arguments it should run with or the expected refusal.
var placements = []struct{ given, runs, refused string }{
	{`"params":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"params":"{\"what\":\"x\"}"`, `{"what":"x"}`, ""},
	{`"what":"x"`, `{"what":"x"}`, ""},
	{`"what":"x","n":3`, `{"n":3,"what":"x"}`, ""},
	{`"params":{},"what":"x"`, `{"what":"x"}`, ""},
	{`"params":null,"what":"x"`, `{"what":"x"}`, ""},
	{`"params":"","args":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"arguments":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"arguments":"{\"what\":\"x\"}"`, `{"what":"x"}`, ""},
	{`"args":{"what":"x"},"arguments":{}`, `{"what":"x"}`, ""},
	{`"parameters":{"what":"x"},"tool_name":"Look"`, `{"what":"x"}`, ""},
	{`"Params":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"kwargs":{"what":"x"}`, `{"what":"x"}`, ""},
	{`"tool_input":{"what":"x"},"input":null`, `{"what":"x"}`, ""},
	{`"input":{"what":"x"}`, `{"what":"x"}`, ""}, // lacks a required parameter, so input can't be the parameter itself
	{`"input":{"k":1},"what":"x"`, `{"input":{"k":1},"what":"x"}`, ""},
	{`"params":{"what":"x"},"args":{},"arguments":null`, `{"what":"x"}`, ""},

	{`"params":{"what":"x"},"n":1`, "", `"n" is outside params, which holds arguments too`},
	{`"params":{"what":"x"},"n":null`, "", `"n" is outside params`},
	{`"params":{"what":"x"},"arguments":{"what":"y"}`, "", `"arguments" is outside params`},
	{`"params":{"what":"x"},"Params":{"what":"y"}`, "", `"Params" is outside params`},
	{`"arguments":{"what":"x"},"args":{"n":1}`, "", `"args", "arguments" is outside params and not a parameter`},
	{`"arguments":{"what":"x"},"n":1`, "", `"arguments" is outside params and not a parameter`},
	{`"arguments":["x"]`, "", `"arguments" is outside params and not a parameter`},
	{`"arguments":"what=x"`, "", `"arguments" is outside params and not a parameter`},
	{`"waht":"x"`, "", `"waht" is outside params and not a parameter`},
	{`"what":"x","reason":"because"`, "", `"reason" is outside params and not a parameter`},
	{`"params":7,"what":"x"`, "", "params must be of type object, not number"},
	{`"params":"what=x"`, "", "params must be of type object, not string"},
	{`"params":"{\"what\":\"x\"}","n":1`, "", `"n" is outside params`},
	{`"input":{"k":1}`, "", `"input" may be a parameter of the tool or hold all of its arguments`}, // neither interpretation fits
	{`"what":1`, "", "/what must be a string"},
	{``, "", "/what is required"},
}

// TestPlacements: over each protocol version, and from a model, a tool never runs with
// fewer arguments than the request contained.
func TestPlacements(t *testing.T) {
	f := newFront(t, nil)
	f.putTool("look", `{"type":"object","properties":{"what":{"type":"string"},"n":{"type":"integer"},"input":{"type":"object"}},"required":["what"]}`)
	token := f.token("client", time.Hour)
	const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	old := f.client(token, "2025-11-25", nil)
	for _, p := range placements {
		args := strings.Replace(`{"tool_id":"box:look",`+p.given+`}`, ",}", "}", 1)
		for wire, ask := range map[string]func() (answer string){
			"2026-07-28": func() string {
				return f.post(token, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":`+args+modern+`}}`)
			},
			"2025-11-25": func() string { // answered by the fast path
				_, r := structured[ran](t, old, "execute_tool", json.RawMessage(args))
				return marshal(t, r)
			},
			"2025-11-25 with progress": func() string { // answered by the SDK
				params := &sdk.CallToolParams{Name: "execute_tool", Arguments: json.RawMessage(args)}
				params.SetProgressToken("p")
				r, err := old.CallTool(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				return marshal(t, r)
			},
			"a model": func() string {
				in, err := store.ReadExecute([]byte(args))
				if err != nil {
					return marshal(t, err.Error())
				}
				c, err := f.gateway.Call(t.Context(), f.member, store.Request{Tool: in.Tool, Args: in.Params, Beside: in.Beside, Asked: store.Asked{ByMeta: true}})
				if err != nil {
					return marshal(t, err.Error())
				}
				return string(c.Result.Raw)
			},
		} {
			before := f.runner.runs.Load()
			got := ask()
			runs, want := f.runner.runs.Load()-before, int64(1)
			text := `"args":` + p.runs
			if p.refused != "" {
				want = 0
				text = strings.Trim(marshal(t, p.refused), `"`)
			}
			if runs != want || !strings.Contains(got, text) {
				t.Errorf("%s over %s: %d runs, %s\nwant %s", args, wire, runs, got, text)
			}
		}
	}
}

// TestPlacementsOfOpenTools: a tool that declares no parameters receives the fields beside
// tool_id. A refusal reveals nothing about a tool that the caller can't see.
func TestPlacementsOfOpenTools(t *testing.T) {
	h := newFixture(t, nil)
	h.putTool("look", `{"type":"object"}`)
	for given, want := range map[string]string{
		`{"tool_id":"box:look","path":"/a","n":1}`:              `"args":{"n":1,"path":"/a"}`,
		`{"tool_id":"box:look","input":{"path":"/a"}}`:          `"args":{"path":"/a"}`,
		`{"tool_id":"box:look","input":"hello"}`:                `"input" is outside params and not a parameter`,
		`{"tool_id":"box:look","input":{"a":1},"args":{"b":2}}`: `"args", "input" is outside params and not a parameter`,
		`{"tool_id":"box:gone","path":"/a"}`:                    `tool "box:gone" not found`,
	} {
		in, err := store.ReadExecute([]byte(given))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: in.Tool, Args: in.Params, Beside: in.Beside, Asked: store.Asked{ByMeta: true}}); err != nil {
			got = err.Error()
		} else {
			got = string(c.Result.Raw)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// TestPlacedBeforeJoining: a call with its arguments beside tool_id does not join a waiting
// call without arguments.
func TestPlacedBeforeJoining(t *testing.T) {
	h := newFixture(t, nil)
	h.putTool("write", `{"type":"object"}`)
	by := h.member
	_, made := store.NewToken(time.Now())
	if _, err := h.db.CreateToken(t.Context(), h.root, store.Token{ID: made.ID, Name: "client", User: by.User, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Created: time.Now(), Expires: time.Now().Add(time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	by.Surface, by.Token = store.OnMCP, made.ID
	first, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:write"})
	if err != nil || !first.Waiting() {
		t.Fatalf("%+v, %v", first, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan struct{})
	after := h.db.Last()
	go func() {
		defer close(done)
		_, _ = h.gateway.Execute(ctx, by, store.Request{Tool: "box:write", Args: json.RawMessage("{}"), Beside: map[string]json.RawMessage{"path": json.RawMessage(`"/a"`)}}, nil)
	}()
	defer func() { cancel(); <-done }()
	list := func() int {
		waiting, err := h.db.ListCalls(t.Context(), store.CallQuery{Waiting: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(waiting)
	}
	for range h.db.Watch(ctx, after) {
		if list() == 2 {
			return
		}
	}
	t.Error("it joined the other")
}
