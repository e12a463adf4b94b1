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

// features are a prompt, a resource and a template of a server.
func features(server, state string) []store.Tool {
	one := func(name, input, meta string) store.Tool {
		return store.Tool{Server: server, Name: name, Description: "d", InputSchema: json.RawMessage(input), Meta: json.RawMessage(meta), State: store.ToolState(state), Pin: name, Accepted: name}
	}
	return []store.Tool{
		one("prompt:greet", `{"type":"object","properties":{"who":{"type":"string"}},"required":["who"],"additionalProperties":false}`, `{"name":"greet","title":"Greeting","arguments":[{"name":"who","required":true},{"name":"a"}]}`),
		one("resource:memo:first", `{"type":"object","additionalProperties":false}`, `{"name":"first","uri":"memo:first","mimeType":"text/plain"}`),
		one("template:memo:{name}", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`, `{"name":"memo","uriTemplate":"memo:{name}"}`),
	}
}

// seen are the names of the prompts, resources and templates of a client.
func seen(t *testing.T, s *sdk.ClientSession) string {
	t.Helper()
	var got []string
	for p, err := range s.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Name)
	}
	for r, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.URI)
	}
	for r, err := range s.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.URITemplate)
	}
	return strings.Join(got, " ")
}

const allFeatures = "box__greet nize://box/memo:first nize://box/memo:{name}"

// TestFeaturesOfServers: prompts and resources are listed and read over both protocol
// versions, under the rules for tools, and each read is a recorded call.
func TestFeaturesOfServers(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.put(features("box", "accepted"))
			before := f.db.Last()
			s := f.client(f.token("plain", time.Hour), version, nil)
			if got := seen(t, s); got != allFeatures {
				t.Errorf("seen %s", got)
			}
			if got := names(t, s); got != fiveTools {
				t.Errorf("as tools: %s", got)
			}
			f.runner.raw = json.RawMessage(`{"description":"x","messages":[{"role":"user","content":{"type":"text","text":"hi","extra":9007199254740993}}]}`)
			p, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "box__greet", Arguments: map[string]string{"who": "Ann"}})
			if err != nil || len(p.Messages) != 1 || p.Messages[0].Role != "user" || p.Messages[0].Content.(*sdk.TextContent).Text != "hi" {
				t.Errorf("prompt: %+v %v", p, err)
			}
			complete := func(result any) {
				t.Helper()
				b, err := json.Marshal(result)
				if got := strings.Contains(string(b), `"resultType":"complete"`); err != nil || got != (version == "2026-07-28") {
					t.Errorf("%s %v", b, err)
				}
			}
			complete(p)
			if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "box__greet"}); err == nil || !strings.Contains(err.Error(), "who") {
				t.Errorf("without an argument: %v", err)
			}
			f.runner.raw = json.RawMessage(`{"resultType":"input_required","requestState":"x","contents":[{"uri":"memo:first","text":"one"},{"uri":"memo:blob","blob":"aGk=","mimeType":"image/png"}]}`)
			for _, uri := range []string{"nize://box/memo:first", "nize://box/memo:other", "memo:first", "memo:other"} {
				r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if err != nil {
					t.Fatalf("%s: %v", uri, err)
				}
				complete(r)
				want := strings.TrimSuffix(strings.TrimSuffix(uri, "first"), "other") + "first"
				if len(r.Contents) != 2 || r.Contents[0].Text != "one" || r.Contents[0].URI != want || string(r.Contents[1].Blob) != "hi" {
					t.Errorf("%s: %+v", uri, r.Contents[0])
				}
			}
			for _, uri := range []string{"nize://cat/memo:first", "nize://box/other:first", "file:///etc/passwd", "nize://box", "nize://"} {
				if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "not found") {
					t.Errorf("%s: %v", uri, err)
				}
			}
			var done []string
			for change, err := range f.db.Watch(t.Context(), before) { // records of read-only calls are written with a delay
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
				if done = append(done, c.ToolID()+" "+string(c.State)); len(done) == 5 {
					break
				}
			}
			if got := strings.Join(done, ","); strings.Count(got, "box:resource:memo:first done") != 2 || strings.Count(got, "box:template:memo:{name} done") != 2 || strings.Count(got, "box:prompt:greet done") != 1 {
				t.Errorf("recorded: %s", got)
			}
			for _, id := range []string{"box:prompt:greet", "box:resource:memo:first"} {
				if got, _ := structured[ran](t, s, "execute_tool", map[string]any{"tool_id": id, "params": map[string]any{}}); got.Success || got.Error.Code != store.CodeNotFound {
					t.Errorf("%s as a tool: %+v", id, got)
				}
			}
		})
	}
}

// TestFeaturesThatAreNotSeen: prompts and resources hidden by a token, an admin or a pin
// are neither listed nor read.
func TestFeaturesThatAreNotSeen(t *testing.T) {
	f := newFront(t, nil)
	f.put(features("box", "accepted"))
	for name, c := range map[string]struct {
		scopes []string
		want   string
	}{
		"all":     {[]string{"expose:all"}, allFeatures},
		"server":  {[]string{"expose:box:*"}, allFeatures},
		"prompts": {[]string{"expose:box:prompt:*"}, "box__greet"},
		"tool":    {[]string{"expose:box:look"}, ""},
		"scoped":  {[]string{"tools:box:look"}, ""},
		"one":     {[]string{"tools:box:resource:memo:first"}, "nize://box/memo:first"},
	} {
		s := f.client(f.token(name, time.Hour, c.scopes...), "2026-07-28", nil)
		if got := seen(t, s); got != c.want {
			t.Errorf("%s sees %s, want %s", name, got, c.want)
		}
		if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "box__greet", Arguments: map[string]string{"who": "x"}}); (err == nil) != strings.Contains(c.want, "box__greet") {
			if !strings.Contains(c.want, "box__greet") {
				t.Errorf("%s got the prompt", name)
			}
		}
	}
	native := f.client(f.token("native", time.Hour, "expose:native"), "2025-11-25", nil)
	if caps := native.InitializeResult().Capabilities; caps.Prompts != nil || caps.Resources != nil {
		t.Errorf("declared to who can see none: %+v", caps)
	}
	f.put(features("box", "quarantined"))
	if got := seen(t, f.client(f.token("held", time.Hour), "2026-07-28", nil)); got != "" {
		t.Errorf("held ones are seen: %s", got)
	}
}

// TestFeaturesChange: a client is notified of changes to prompts and resources.
func TestFeaturesChange(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			prompts, resources := make(chan struct{}, 10), make(chan struct{}, 10)
			s := f.client(f.token("plain", time.Hour), version, &sdk.ClientOptions{
				PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { prompts <- struct{}{} },
				ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { resources <- struct{}{} },
			})
			if caps := s.InitializeResult().Capabilities; !caps.Prompts.ListChanged || !caps.Resources.ListChanged || caps.Tools.ListChanged || caps.Resources.Subscribe || caps.Completions != nil {
				t.Errorf("declared: %+v", caps)
			}
			seen(t, s) // ensures that the session has begun
			f.put(features("box", "accepted"))
			<-prompts
			<-resources
			f.put(features("box", "accepted")[:1])
			<-resources
			select {
			case <-prompts:
				t.Error("the prompts did not change")
			default:
			}
		})
	}
}
