package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// span is one of an OTLP document.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
}

// collect is a collector of OpenTelemetry.
func collect(t *testing.T) (endpoint string, spans func() (all []span, text string)) {
	t.Helper()
	var mu sync.Mutex
	var got []span
	var whole strings.Builder
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var doc struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &doc) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s, %v", r.URL, body, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		whole.Write(body)
		for _, rs := range doc.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				got = append(got, ss.Spans...)
			}
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, func() ([]span, string) {
		mu.Lock()
		defer mu.Unlock()
		return got, whole.String()
	}
}

// parentsTold is a proxy before an upstream that notes the traceparent of each call.
func parentsTold(t *testing.T, upstream string) (address string, calls func() []string) {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		var call struct {
			Method string
			Params struct {
				Meta struct{ Traceparent string } `json:"_meta"`
			}
		}
		if json.Unmarshal(body, &call) == nil && call.Method == "tools/call" {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, call.Params.Meta.Traceparent)
		}
	}}
	web := httptest.NewServer(proxy)
	t.Cleanup(web.Close)
	return web.URL + to.Path, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// TestTrace: a message, both requests to the model, the call that waited for a
// yes and its request to the upstream are one trace; an MCP client's call is a
// part of the client's own. Without an endpoint the upstream is told nothing.
func TestTrace(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "shout", Description: "Shout a text.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"HELLO result-canary"}]}`)
	}}}})
	address, calls := parentsTold(t, up.HTTP())
	service, _ := provider(t, "box:shout")
	endpoint, spans := collect(t)
	r := open(t, t.TempDir(), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "NIZE_APPROVALS_GRANT_DESTRUCTIVE": "true"})
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: address}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: service, Key: api.NewSecret("the-key")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "smart", Target: "parrots/parrot"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetDefaultModel.Call(ctx, r.Client, api.ModelRequest{Name: "smart"}); err != nil {
		t.Fatal(err)
	}
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sent, pressed := false, false
	for e, err := range api.FollowConversation.Call(ctx, r.Client, api.ConversationRequest{ID: th.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if !sent {
			sent = true
			if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1", Text: "shout hello text-canary"}); err != nil {
				t.Fatal(err)
			}
		}
		if m := e.Message; m != nil && m.Card != nil && m.Card.State == store.Pending && !pressed {
			pressed = true
			if _, err := api.DecideCall.Call(ctx, r.Client, api.DecideCallRequest{ID: m.Card.Call, Verb: store.Approve, Digest: m.Card.Digest, Always: true}); err != nil {
				t.Fatal(err)
			}
		}
		if m := e.Message; m != nil && m.Kind == store.TextMessage && strings.Contains(m.Text, "HELLO") && e.State == api.ChatIdle {
			break
		}
		if e.State == api.ChatIdle && pressed && len(calls()) > 0 {
			break
		}
	}
	status, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "0af7651916cd43dd8448eb211c80319c"
	s := session(t, "http://"+status.Listen+"/mcp", made.Secret.Reveal())
	ask := func() {
		t.Helper()
		for _, meta := range []sdk.Meta{{"traceparent": "00-" + theirs + "-b7ad6b7169203331-01"}, {"traceparent": "00-" + theirs + "-b7ad6b7169203331-01", "progressToken": "x"}} { // by both paths
			got, err := s.CallTool(ctx, &sdk.CallToolParams{Meta: meta, Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:shout", "params": map[string]any{"text": "args-canary"}}})
			if err != nil || got.IsError {
				t.Fatal(err, got)
			}
		}
	}
	ask()
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "otel.endpoint", Value: "http://user:pw@x"}); err == nil {
		t.Error("an endpoint with a password is taken")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.stop() // which sends what is left
	all, text := spans()
	chain := func(leaf span) string {
		names := leaf.Name
		for up := leaf.ParentSpanID; up != ""; {
			next := ""
			for _, s := range all {
				if s.SpanID == up && s.TraceID == leaf.TraceID {
					names, next = s.Name+" > "+names, s.ParentSpanID
				}
			}
			up = next
		}
		return names
	}
	got := map[string]int{}
	for _, s := range all {
		got[chain(s)]++
	}
	for name, n := range map[string]int{
		"message terminal": 1,
		"message terminal > invoke_agent > chat parrot":                               2,
		"message terminal > invoke_agent > execute_tool box:shout > tools/call shout": 1,
		"tools/call execute_tool":                                                     2,
		"tools/call execute_tool > tools/call shout":                                  2,
	} {
		if got[name] != n {
			t.Errorf("%d of %q, want %d, among %v", got[name], name, n, got)
		}
	}
	parents := calls()
	if len(parents) != 3 {
		t.Fatalf("the upstream was told %q", parents)
	}
	for i, p := range parents {
		found := false
		for _, s := range all {
			found = found || s.Name == "tools/call shout" && p == "00-"+s.TraceID+"-"+s.SpanID+"-01" && (i == 0 || s.TraceID == theirs)
		}
		if !found {
			t.Errorf("call %d: the upstream was told %q", i, p)
		}
	}
	for _, secret := range []string{"canary", "the-key", made.Secret.Reveal(), "hello"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the spans", secret)
		}
	}
}

// Without an endpoint the upstream is told nothing; one that is set counts at
// once.
func TestTraceOff(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "shout", Description: "Shout a text."}}})
	address, calls := parentsTold(t, up.HTTP())
	endpoint, _ := collect(t)
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: address}}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"", endpoint, ""} {
		var err error
		if to == "" {
			_, err = api.UnsetSetting.Call(ctx, r.Client, api.UnsetSettingRequest{Key: "otel.endpoint"})
		} else {
			_, err = api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "otel.endpoint", Value: to})
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if _, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "box:shout", Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := calls(); len(got) != 3 || got[0] != "" || len(got[1]) != 55 || got[2] != "" {
		t.Errorf("the upstream was told %q", got)
	}
}
