package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

const fiveTools = "browse_tool_domain discover_tools execute_tool get_tool_schema list_tool_domains"

func names(t *testing.T, s *sdk.ClientSession) string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func TestExposure(t *testing.T) {
	f := newFront(t, nil)
	for name, c := range map[string]struct {
		scopes []string
		want   string
	}{
		"none":      {nil, fiveTools},
		"meta":      {[]string{"expose:meta"}, fiveTools},
		"native":    {[]string{"expose:native"}, "nize__read_result"},
		"all":       {[]string{"expose:all"}, "box__look box__write"},
		"pattern":   {[]string{"expose:box:l*"}, "box__look"},
		"two":       {[]string{"expose:box:look", "expose:box:write"}, "box__look box__write"},
		"beside":    {[]string{"expose:meta", "expose:box:look"}, "box__look " + fiveTools},
		"own":       {[]string{"expose:nize:read_result"}, "nize__read_result"},
		"foreign":   {[]string{"expose:cat:*"}, ""},
		"forbidden": {[]string{"expose:all", "tools:box:write"}, "box__write"},
		"tools":     {[]string{"tools:box:write"}, fiveTools},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			s := f.client(f.token(name+version, time.Hour, c.scopes...), version, nil)
			if got := names(t, s); got != c.want {
				t.Errorf("%s on %s: %s, want %s", name, version, got, c.want)
			}
		}
	}
}

// TestExposedCall: a tool called by its own name returns its server's answer and needs
// approval like execute_tool. Other names can't be called.
func TestExposedCall(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.runner.raw = json.RawMessage(`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png","x":1}],"structuredContent":{"a":1},"_meta":{"k":"v"}}`)
			s := f.client(f.token("all", time.Hour, "expose:all"), version, nil)
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "box__look", Arguments: map[string]any{"what": "x"}})
			if err != nil {
				t.Fatal(err)
			}
			structured, _ := json.Marshal(r.StructuredContent)
			if image, ok := r.Content[0].(*sdk.ImageContent); !ok || string(image.Data) != "hi" || string(structured) != `{"a":1}` || r.Meta["k"] != "v" || r.IsError {
				t.Errorf("%+v %s", r, structured)
			}
			r, err = s.CallTool(t.Context(), &sdk.CallToolParams{Name: "box__look", Arguments: map[string]any{"nothing": "x"}})
			if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "what") {
				t.Errorf("arguments that don't fit: %+v %v", r, err)
			}
			for _, name := range []string{"execute_tool", "discover_tools", "box__gone", "box:look"} {
				if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"tool_id": "box:look", "params": map[string]any{"what": "x"}}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("%s: %v", name, err)
				}
			}
			meta := f.client(f.token("meta", time.Hour), version, nil)
			if _, err := meta.CallTool(t.Context(), &sdk.CallToolParams{Name: "box__look", Arguments: map[string]any{"what": "x"}}); err == nil {
				t.Error("a token of the five tools called one by name")
			}

			answered := make(chan *sdk.CallToolResult, 1)
			go func() {
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "box__write", Arguments: map[string]any{"what": "x"}})
				if err != nil {
					t.Error(err)
				}
				answered <- r
			}()
			c := f.waiting()
			if c.ToolID() != "box:write" || c.Surface != store.OnMCP {
				t.Errorf("%+v", c)
			}
			if _, err := f.gateway.Decide(t.Context(), f.root, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}); err != nil {
				t.Fatal(err)
			}
			if r := <-answered; r == nil || r.IsError {
				t.Errorf("the approved call: %+v", r)
			}
		})
	}
}

// waiting returns the single waiting call, as soon as it exists.
func (f *front) waiting() store.Call {
	f.t.Helper()
	after := f.db.Last()
	find := func() (store.Call, bool) {
		list, err := f.db.ListCalls(f.t.Context(), store.CallQuery{Waiting: true, Limit: 2})
		if err != nil {
			f.t.Fatal(err)
		}
		if len(list) == 1 {
			return list[0], true
		}
		return store.Call{}, false
	}
	if c, ok := find(); ok {
		return c
	}
	for _, err := range f.db.Watch(f.t.Context(), after) {
		if err != nil {
			f.t.Fatal(err)
		}
		if c, ok := find(); ok {
			return c
		}
	}
	f.t.Fatal("no call waits")
	return store.Call{}
}

// TestExposedNames: names that models don't accept, that are too long or that two tools
// would share each lead to exactly one tool, together with its metadata.
func TestExposedNames(t *testing.T) {
	f := newFront(t, nil)
	long := strings.Repeat("long", 20)
	var tools []store.Tool
	for _, name := range []string{"look", "a b", "a.b", long, "plain-1"} {
		tools = append(tools, store.Tool{Server: "box", Name: name, Title: "T " + name, Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p",
			Meta: json.RawMessage(`{"n":9007199254740993}`), Icons: json.RawMessage(`[{"src":"https://example.com/i.png","sizes":["48x48"]}]`), Annotations: store.Annotations{ReadOnly: &yes}})
	}
	f.put(tools)
	s := f.client(f.token("all", time.Hour, "expose:all"), "2026-07-28", nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
		if len(tool.Name) > 64 || !strings.HasPrefix(tool.Title, "T ") || len(tool.Icons) != 1 || tool.Icons[0].Source != "https://example.com/i.png" || tool.Meta["n"] == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%+v", tool)
		}
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: map[string]any{}})
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v %v", tool.Name, r, err)
		}
	}
	want := "box__a_b_25c7940b box__a_b_e0f81006 box__" + long[:50] + "_4720b2b7 box__look box__plain-1"
	if got := strings.Join(got, " "); got != want {
		t.Errorf("names\n%s, want\n%s", got, want)
	}
	if list.CacheScope != "private" {
		t.Errorf("the list may be cached for others: %+v", list.Cacheable)
	}
	if body := f.list(f.token("raw", time.Hour, "expose:all"), "tools/list"); !strings.Contains(body, `"n":9007199254740993`) {
		t.Errorf("a number of _meta changed: %s", body)
	}
}

// put replaces the tools of the box.
func (h *fixture) put(tools []store.Tool) {
	h.t.Helper()
	if _, err := h.db.PutTools(h.t.Context(), h.root, "box", tools); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(h.t.Context(), "box"); err != nil {
		h.t.Fatal(err)
	}
}

// list returns the raw answer to a list request.
func (f *front) list(token, method string) string {
	f.t.Helper()
	return f.postAs(token, method, "", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
}

// TestListChanged: a client is notified of changes to its own list only.
func TestListChanged(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			follow := func(name string, scopes ...string) (*sdk.ClientSession, chan struct{}) {
				told := make(chan struct{}, 10)
				s := f.client(f.token(name, time.Hour, scopes...), version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
				return s, told
			}
			all, toldAll := follow("all", "expose:all")
			look, toldLook := follow("look", "expose:box:look")
			_, toldMeta := follow("meta")
			if !all.InitializeResult().Capabilities.Tools.ListChanged {
				t.Error("changes of the list are not declared")
			}
			names(t, look)
			h := f.fixture
			one := func(name string) store.Tool {
				return store.Tool{Server: "box", Name: name, Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: name, Accepted: name}
			}
			h.put([]store.Tool{one("look"), one("fresh")})
			<-toldAll
			<-toldLook // its definition changed
			if got := names(t, all); got != "box__fresh box__look" {
				t.Error(got)
			}
			h.put([]store.Tool{one("look"), one("fresher")})
			<-toldAll
			// A quarantined tool is not listed.
			held := one("look")
			held.State = store.ToolQuarantined
			h.put([]store.Tool{held, one("fresher")})
			<-toldAll
			<-toldLook
			select {
			case <-toldMeta:
				t.Error("the five tools changed")
			case <-toldLook:
				t.Error("a change of another's list was told")
			default:
			}
		})
	}
}

// TestExposedSchemas: a client of any version can parse the schemas of its listed tools,
// and the result of each.
func TestExposedSchemas(t *testing.T) {
	f := newFront(t, nil)
	outputs := map[string]string{ // by tool, and whether older clients see it
		"object": `{"type":"object","properties":{"a":{}}}`, "array": `{"type":"array"}`, "either": `{"type":["null","array"]}`, "any": `{"anyOf":[{"type":"object"},{"type":"null"}]}`,
		"untyped": `{}`, "true": `true`, "none": ``,
	}
	inputs := map[string]string{"object": `{"type":"object","properties":{"a":{}}}`, "array": `{}`, "either": `{"type":["object","null"]}`, "any": `{"anyOf":[{"properties":{"a":{}}}]}`, "untyped": `{"properties":{"a":{}}}`, "true": `true`, "none": `null`}
	var tools []store.Tool
	for name, output := range outputs {
		tools = append(tools, store.Tool{Server: "box", Name: name, Description: "Runs.", InputSchema: json.RawMessage(inputs[name]), OutputSchema: json.RawMessage(output), Annotations: store.Annotations{ReadOnly: &yes}, State: store.ToolAccepted, Pin: "p", Accepted: "p"})
	}
	if _, err := f.db.PutTools(t.Context(), f.root, "box", tools); err != nil {
		t.Fatal(err)
	}
	if err := f.gateway.Catalog.Refresh(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"2025-06-18": "box__object", "2025-11-25": "box__object", "2026-07-28": "box__any box__array box__either box__object box__untyped"} {
		s := f.client(f.token(version, time.Hour, "expose:box:*"), version, nil)
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var with []string
		for _, tool := range list.Tools {
			if in, _ := tool.InputSchema.(map[string]any); in["type"] != "object" {
				t.Errorf("%s: %s takes %v", version, tool.Name, tool.InputSchema)
			}
			if tool.OutputSchema != nil {
				with = append(with, tool.Name)
			}
		}
		if got := strings.Join(with, " "); got != want || len(list.Tools) != len(tools) {
			t.Errorf("%s: %d tools, with an output schema %s, want %s", version, len(list.Tools), got, want)
		}
		for raw, want := range map[string]string{ // structured content and texts, for older clients
			`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}`: `{"a":1} x`,
			`{"content":[{"type":"text","text":"x"}],"structuredContent":[1]}`:     `null x`,
			`{"content":[],"structuredContent":[1]}`:                               `null [1]`,
			`{"content":[{"type":"text","text":"x"}],"structuredContent":null}`:    `null x`,
		} {
			if version >= "2026-07-28" {
				continue
			}
			f.runner.raw = json.RawMessage(raw)
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "box__array", Arguments: map[string]any{"a": 1}})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, item := range r.Content {
				text += " " + item.(*sdk.TextContent).Text
			}
			if got := marshal(t, r.StructuredContent) + text; got != want {
				t.Errorf("%s: %s gives %s, want %s", version, raw, got, want)
			}
		}
	}
	meta := f.client(f.token("meta", time.Hour), "2025-11-25", nil)
	for name := range outputs {
		got, r := structured[struct {
			InputSchema  map[string]any  `json:"input_schema"`
			OutputSchema json.RawMessage `json:"output_schema"`
		}](t, meta, "get_tool_schema", map[string]any{"tool_id": "box:" + name})
		if r.IsError || got.InputSchema["type"] != "object" || name == "true" && got.OutputSchema != nil {
			t.Errorf("get_tool_schema of %s: %+v", name, got)
		}
	}
}
