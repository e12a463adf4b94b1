package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
)

// wires are the two protocol forms in which a client announces support for views.
var wires = map[string]struct {
	version string
	can     *sdk.ClientCapabilities
}{
	"2026-07-28":   {"2026-07-28", extended()},
	"2025-11-25":   {"2025-11-25", extended()},
	"experimental": {"2025-11-25", &sdk.ClientCapabilities{Experimental: map[string]any{view.Extension: map[string]any{}}}},
}

func extended() *sdk.ClientCapabilities {
	can := &sdk.ClientCapabilities{}
	can.AddExtension(view.Extension, map[string]any{"mimeTypes": []any{view.MimeType}})
	return can
}

const (
	// shown is the stored _meta of a tool with a view, including the accepted permissions.
	shown  = `{"ui":{"resourceUri":"ui://app/main.html"},"ui/resourceUri":"ui://app/old.html","openai/outputTemplate":"ui://app/sky","openai/widgetCSP":{},"nize/view":{"connect":["https://a.example"],"clipboard":true},"kept":1}`
	secret = `{"ui":{"visibility":["app"]}}`
)

// newViews returns a front with tools with views on the server box, and a native tool.
func newViews(t *testing.T) *front {
	f := newFront(t, nil)
	one := func(server, name, meta string) store.Tool {
		return store.Tool{Server: server, Name: name, Title: "T " + name, Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), Meta: json.RawMessage(meta), Annotations: store.Annotations{ReadOnly: &yes}, State: store.ToolAccepted, Pin: "p-" + name, Accepted: "p-" + name}
	}
	f.put([]store.Tool{
		one("box", "look", shown), one("box", "plain", `{"kept":1}`), one("box", "refresh", secret), one("box", "model", `{"ui":{"visibility":["model"]}}`),
		one("box", "sky", `{"openai/outputTemplate":"ui://sky"}`), one("box", "nobody", `{"ui":{"visibility":[]}}`),
		one("box", "resource:ui://app/main.html", `{"name":"main","uri":"ui://app/main.html","_meta":{"ui":{"csp":{"connectDomains":["https://declared.example"]}},"n":1}}`),
	})
	native := one("native", "peek", "")
	f.gateway.SetOwn(&store.Server{Name: "native"}, []*policy.Tool{policy.NewTool(native, &store.Server{Name: "native"})})
	f.templates = map[string]string{"peek": "<p>peek</p><script>draw(window.openai.toolOutput)</script>"}
	f.resource = func(_ context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error) {
		if by.User != f.root.User || c.Server != "box" || c.Pin != "p-"+c.Tool {
			return nil, errors.New("it is read for somebody else, or for another tool")
		}
		html := map[string]string{
			"ui://app/main.html": `{"mimeType":"text/html;profile=mcp-app","text":"<p>main","_meta":{"ui":{"domain":"x","csp":{"connectDomains":["https://a.example","https://declared.example"]}}}}`,
			"ui://sky":           `{"mimeType":"text/html+skybridge","text":"<p>sky"}`,
		}[uri]
		return json.RawMessage(`{"contents":[` + html + `]}`), nil
	}
	return f
}

// metas returns the _meta of the tools that a client lists, by name.
func metas(t *testing.T, s *sdk.ClientSession) map[string]string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, tool := range list.Tools {
		raw, err := json.Marshal(tool.Meta)
		if err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = string(raw)
	}
	return all
}

func wantMaps(t *testing.T, who string, got, want map[string]string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("%s: %s is %s, want %s", who, key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s sees %q", who, slices.Sorted(maps.Keys(got)))
	}
}

// codeOf returns the JSON-RPC code of an error, or 0.
func codeOf(err error) int64 {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code
}

// TestViewsOfClients: a client that announced the extension is offered views, at addresses
// of nize and with the accepted permissions.
func TestViewsOfClients(t *testing.T) {
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			f := newViews(t)
			s := f.client(f.token("all", time.Hour, "expose:all", "expose:native"), wire.version, &sdk.ClientOptions{Capabilities: wire.can})
			both := `"visibility":["model","app"]`
			wantMaps(t, "a client that shows views", metas(t, s), map[string]string{
				"box__look":         `{"kept":1,"ui":{"resourceUri":"ui://box/app/main.html",` + both + `}}`,
				"box__plain":        `{"kept":1}`,
				"box__refresh":      `{"ui":{"visibility":["app"]}}`,
				"box__model":        `{"ui":{"visibility":["model"]}}`,
				"box__sky":          `{"ui":{"resourceUri":"ui://box/sky",` + both + `}}`,
				"native__peek":      `{"ui":{"resourceUri":"ui://native/peek",` + both + `}}`,
				"nize__read_result": "null",
			})
			resources := map[string]string{}
			for r, err := range s.Resources(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				raw, _ := json.Marshal(r.Meta)
				resources[r.URI] = r.MIMEType + " " + string(raw)
			}
			wantMaps(t, "of resources", resources, map[string]string{
				"ui://box/app/main.html":        view.MimeType + ` {"ui":{"csp":{"connectDomains":["https://a.example"]},"permissions":{"clipboardWrite":{}}}}`,
				"ui://box/sky":                  view.MimeType + ` {"ui":{"csp":{},"permissions":{}}}`,
				"ui://native/peek":              view.MimeType + ` {"ui":{"csp":{},"permissions":{}}}`,
				"nize://box/ui://app/main.html": ` {"n":1}`,
			})
			for uri, want := range map[string]string{
				"ui://box/app/main.html": `{"ui":{"csp":{"connectDomains":["https://a.example"]},"permissions":{}}} <p>main`,
				"ui://box/sky":           `{"ui":{"csp":{},"permissions":{}}} <!doctype html>`,
				"ui://native/peek":       `{"ui":{"csp":{},"permissions":{}}} <!doctype html>`,
			} {
				r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if err != nil || len(r.Contents) != 1 || r.CacheScope != "private" {
					t.Errorf("%s: %+v, %v", uri, r, err)
					continue
				}
				c := r.Contents[0]
				raw, _ := json.Marshal(c.Meta)
				if got := string(raw) + " " + c.Text; c.URI != uri || c.MIMEType != view.MimeType || !strings.HasPrefix(got, want) {
					t.Errorf("%s: %.200s", uri, got)
				}
				if template := strings.Contains(c.Text, "window, 'openai'"); template != !strings.Contains(uri, "main") {
					t.Errorf("%s has window.openai: %v", uri, template)
				}
			}
			for id, source := range map[string]string{"box:look": "<p>main", "box:sky": "<p>sky", "native:peek": f.templates["peek"]} {
				sum := sha256.Sum256([]byte(source))
				if e := f.events("view.open", id); len(e) != 1 || e[0].User != f.root.User || e[0].Tool != id || string(e[0].Data) != `{"sha256":"`+hex.EncodeToString(sum[:])+`"}` {
					t.Errorf("%s was read: %+v", id, e)
				}
			}
			f.runner.raw = json.RawMessage(`{"contents":[{"uri":"ui://app/main.html","mimeType":"text/html;profile=mcp-app","text":"x","_meta":{"ui":{"csp":{"connectDomains":["https://declared.example"]}},"n":1}}]}`)
			r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "nize://box/ui://app/main.html"})
			if raw, _ := json.Marshal(r); err != nil || strings.Contains(string(raw), "declared.example") {
				t.Errorf("read as a resource it may reach what nobody accepted: %s, %v", raw, err)
			}
			for _, uri := range []string{"ui://box/app/old.html", "ui://native/gone", "ui://cat/app/main.html", "ui://box", "ui://", "ui://box/declared"} {
				if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); codeOf(err) != -32002 {
					t.Errorf("%s: %v", uri, err)
				}
			}
		})
	}
}

// TestViewsOfOthers: a client without the extension sees no views and none of the metadata
// that nize stores about them.
func TestViewsOfOthers(t *testing.T) {
	other := &sdk.ClientCapabilities{Experimental: map[string]any{view.Extension: true}}
	other.AddExtension(view.Extension, map[string]any{"mimeTypes": []any{"text/x-other"}})
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for name, can := range map[string]*sdk.ClientCapabilities{"nothing": nil, "other": other} {
			f := newViews(t)
			s := f.client(f.token(name, time.Hour, "expose:all", "expose:native"), version, &sdk.ClientOptions{Capabilities: can})
			wantMaps(t, name+" on "+version, metas(t, s), map[string]string{"box__look": `{"kept":1}`, "box__plain": `{"kept":1}`, "box__model": "null", "box__sky": "null", "native__peek": "null", "nize__read_result": "null"})
			if got := seen(t, s); got != "nize://box/ui://app/main.html" {
				t.Errorf("%s on %s sees %s", name, version, got)
			}
			for _, uri := range []string{"ui://box/app/main.html", "ui://native/peek"} {
				if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); codeOf(err) != -32002 {
					t.Errorf("%s on %s read %s: %v", name, version, uri, err)
				}
			}
			for _, tool := range []string{"box__refresh", "refresh", "look"} {
				if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("%s on %s called %s: %v", name, version, tool, err)
				}
			}
			meta := f.client(f.token("meta", time.Hour), version, &sdk.ClientOptions{Capabilities: can})
			if got, _ := structured[ran](t, meta, "execute_tool", map[string]any{"tool_id": "box:refresh", "params": map[string]any{}}); got.Success || got.Error.Code != store.CodeNotFound {
				t.Errorf("by execute_tool: %+v", got)
			}
		}
	}
}

// TestSearchFindsNoViewsTools: tools that only views may call appear in no search and no
// list, even if the query matches them exactly.
func TestSearchFindsNoViewsTools(t *testing.T) {
	f := newViews(t)
	tools, err := f.db.ListTools(t.Context(), "box")
	if err == nil {
		err = f.index.Replace(t.Context(), store.Server{Name: "box"}.Normal(), tools)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"refresh", "nobody", "model"} {
		found, err := f.gateway.Discovery.Search(t.Context(), f.root, store.Scope{}, index.Query{Text: "T " + text})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(found.Hits, func(hit store.Hit) bool { return hit.Tool.ID() == "box:"+text }); got != (text == "model") {
			t.Errorf("a search for %s finds it: %v", text, got)
		}
		listed, _, err := f.gateway.Discovery.Browse(t.Context(), f.root, store.Scope{}, "box", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(listed, func(t store.Tool) bool { return t.Name == text }); got != (text == "model") {
			t.Errorf("%s is listed: %v", text, got)
		}
	}
}

// TestViewsAreAsTheirTools: a view is available if its tool is listed by name and the view
// is accepted.
func TestViewsAreAsTheirTools(t *testing.T) {
	f := newViews(t)
	const main, peek = "ui://box/app/main.html", "ui://native/peek"
	for name, c := range map[string]struct {
		scopes []string
		want   []string
	}{
		"meta":      {nil, nil},
		"native":    {[]string{"expose:native"}, []string{peek}},
		"all":       {[]string{"expose:all"}, []string{main, peek}},
		"one":       {[]string{"expose:box:look"}, []string{main}},
		"another":   {[]string{"expose:box:plain"}, nil},
		"forbidden": {[]string{"expose:all", "expose:native", "tools:box:plain"}, nil},
	} {
		for wire, how := range wires {
			s := f.client(f.token(name+wire, time.Hour, c.scopes...), how.version, &sdk.ClientOptions{Capabilities: how.can})
			if s.InitializeResult().Capabilities.Resources == nil {
				t.Errorf("%s on %s: no resources are declared", name, wire)
			}
			for _, uri := range []string{main, peek} {
				_, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if (err == nil) != slices.Contains(c.want, uri) || err != nil && codeOf(err) != -32002 {
					t.Errorf("%s on %s reads %s: %v", name, wire, uri, err)
				}
			}
		}
	}
	held := func(pin string) store.Tool {
		return store.Tool{Server: "box", Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`), Meta: json.RawMessage(shown), State: store.ToolAccepted, Pin: pin, Accepted: "p-look"}
	}
	s := f.client(f.token("held", time.Hour, "expose:all"), "2026-07-28", &sdk.ClientOptions{Capabilities: extended()})
	f.put([]store.Tool{held("p-other")})
	if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: main}); codeOf(err) != -32002 {
		t.Errorf("of a tool that changed: %v", err)
	}
	f.put([]store.Tool{held("p-look")})
	f.resource = func(context.Context, store.Caller, store.Call, string) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":[{"mimeType":"text/html","text":"<p>secret"}]}`), nil
	}
	if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: main}); codeOf(err) != jsonrpc.CodeInternalError || strings.Contains(err.Error(), "secret") {
		t.Errorf("what is no view: %v", err)
	}
}

// TestViewsCallTools: a view calls the tools of its server by their original names if the
// name is unique among servers with views. The card says that a view made the call.
func TestViewsCallTools(t *testing.T) {
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			f := newViews(t)
			s := f.client(f.token("all", time.Hour, "expose:all", "expose:native"), wire.version, &sdk.ClientOptions{Capabilities: wire.can})
			f.runner.raw = json.RawMessage(`{"content":[],"structuredContent":{"a":1},"_meta":{"ui":{"k":"v"}}}`)
			last := f.db.Last()
			for _, tool := range []string{"refresh", "box__refresh", "look", "box__look"} {
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{}})
				if err != nil || r.IsError {
					t.Fatalf("%s: %+v, %v", tool, r, err)
				}
				if raw, _ := json.Marshal(r); !strings.Contains(string(raw), `"ui":{"k":"v"}`) || !strings.Contains(string(raw), `"structuredContent":{"a":1}`) {
					t.Errorf("%s: %s", tool, raw)
				}
			}
			asked := map[string]int{}
			for n := 0; n < 4; {
				for change, err := range f.db.Watch(t.Context(), last) {
					if err != nil {
						t.Fatal(err)
					}
					if change.Kind != "call" {
						continue
					}
					c, err := f.db.GetCall(t.Context(), change.ID)
					if err != nil {
						t.Fatal(err)
					}
					asked[c.Tool+" for "+c.View]++
					if n++; n == 4 {
						break
					}
				}
			}
			if asked["refresh for box"] != 2 || asked["look for box"] != 1 || asked["look for "] != 1 {
				t.Errorf("asked for: %v", asked)
			}
			meta := f.client(f.token("meta", time.Hour, "expose:all", "expose:meta"), wire.version, &sdk.ClientOptions{Capabilities: wire.can})
			if got, _ := structured[ran](t, meta, "execute_tool", map[string]any{"tool_id": "box:refresh", "params": map[string]any{}}); got.Success || got.Error.Code != store.CodeNotFound {
				t.Errorf("by execute_tool, which a model calls: %+v", got)
			}
			for _, tool := range []string{"model", "nobody", "box__nobody", "gone", "read_result"} {
				if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("%s: %+v, %v", tool, r, err)
				}
			}
			// Another server has a tool with that name. It is ignored while it has no view;
			// with a view, the name is ambiguous.
			if _, err := f.db.PutServer(t.Context(), f.root, store.Server{Name: "cat", Transport: store.Stdio, Command: "/bin/cat", TrustAnnotations: true, Visibility: []string{"all"}}, 0); err != nil {
				t.Fatal(err)
			}
			other := func(meta string) {
				list := []store.Tool{{Server: "cat", Name: "refresh", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: store.Annotations{ReadOnly: &yes}, Meta: json.RawMessage(meta), State: store.ToolAccepted, Pin: "p", Accepted: "p"}}
				if _, err := f.db.PutTools(t.Context(), f.root, "cat", list); err != nil {
					t.Fatal(err)
				}
				if err := f.gateway.Catalog.Refresh(t.Context(), "cat"); err != nil {
					t.Fatal(err)
				}
			}
			for meta, want := range map[string]bool{`{}`: true, shown: false} {
				other(meta)
				if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "refresh", Arguments: map[string]any{}}); (err == nil) != want {
					t.Errorf("beside one with %s: %v", meta, err)
				}
			}
		})
	}
}

// TestViewsChange: a client that supports views is notified of changes to views and to
// their private tools; other clients are not.
func TestViewsChange(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newViews(t)
			token := f.token("all", time.Hour, "expose:all") // one token, so that the clients differ only in what they announced
			follow := func(can *sdk.ClientCapabilities) (tools, resources chan struct{}) {
				tools, resources = make(chan struct{}, 10), make(chan struct{}, 10)
				s := f.client(token, version, &sdk.ClientOptions{Capabilities: can,
					ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { tools <- struct{}{} },
					ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { resources <- struct{}{} },
				})
				names(t, s)
				return tools, resources
			}
			plain, _ := follow(nil)
			tools, resources := follow(extended())
			one := func(name, meta, pin string) store.Tool {
				return store.Tool{Server: "box", Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Meta: json.RawMessage(meta), State: store.ToolAccepted, Pin: pin, Accepted: pin}
			}
			f.put([]store.Tool{one("look", shown, "1"), one("refresh", secret, "1")})
			<-plain
			<-tools
			<-resources // the server's own list and one view became shorter
			f.put([]store.Tool{one("look", shown, "1"), one("refresh", secret, "2")})
			<-tools
			select {
			case <-plain:
				t.Error("a client without views was told of what only views may call")
			case <-resources:
				t.Error("no view changed")
			default:
			}
			f.put([]store.Tool{one("look", strings.Replace(shown, "main.html", "new.html", 1), "2"), one("refresh", secret, "2")})
			<-resources
		})
	}
}
