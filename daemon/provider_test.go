package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// provider is a model service that speaks OpenAI's protocol: it asks for the
// tool once and answers with what came of it.
func provider(t *testing.T, tool string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" {
			http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"parrot"}]}`)
			return
		}
		var req struct {
			Model    string `json:"model"`
			Messages []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"messages"`
			Tools []struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tools"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Model != "parrot" || len(req.Tools) != 5 {
			t.Errorf("request %+v, %v", req, err)
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		last := req.Messages[len(req.Messages)-1]
		chunk := func(choice string) { fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", choice) }
		if last.Role == "tool" {
			chunk(`{"delta":{"content":"It said: "}}`)
			text, _ := json.Marshal(strings.TrimSpace(last.Content)) // a string always encodes
			chunk(fmt.Sprintf(`{"delta":{"content":%s},"finish_reason":"stop"}`, text))
		} else {
			args, _ := json.Marshal(fmt.Sprintf(`{"tool_id":%q,"params":{"text":"hello"}}`, tool))
			chunk(fmt.Sprintf(`{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"execute_tool","arguments":%s}}]},"finish_reason":"tool_calls"}`, args))
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(web.Close)
	return web.URL + "/v1", asked
}

// With any provider added the same chat runs on a real model.
func TestRealModel(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	seen := make(chan struct{}) // closed when the conversation shows how far the call is
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "shout", Description: "Shout a text.", Fault: mcptest.Progress, Do: func(ctx context.Context, args json.RawMessage) json.RawMessage {
		runs.Add(1)
		select {
		case <-seen:
		case <-ctx.Done():
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"HELLO"}]}`)
	}}}})
	url, asked := provider(t, "box:shout")
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: url, Key: api.NewSecret("a-wrong-key")}); err != nil {
		t.Fatal(err)
	}
	if p, err := api.TestProvider.Call(ctx, r.Client, api.ProviderRequest{Name: "parrots"}); err != nil || p.OK || strings.Contains(p.Error, "a-wrong-key") {
		t.Errorf("a wrong key: %+v, %v", p, err)
	}
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: url, Key: api.NewSecret("the-key")}); err != nil {
		t.Fatal(err)
	}
	if p, err := api.TestProvider.Call(ctx, r.Client, api.ProviderRequest{Name: "parrots"}); err != nil || !p.OK || len(p.Models) != 1 {
		t.Errorf("the right key: %+v, %v", p, err)
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
	sent, pressed, progress, answer := false, false, false, ""
	for e, err := range api.FollowConversation.Call(ctx, r.Client, api.ConversationRequest{ID: th.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if !sent {
			sent = true
			if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1", Text: "shout hello"}); err != nil {
				t.Fatal(err)
			}
		}
		m := e.Message
		if m != nil && m.Card != nil && m.Card.State == store.Pending && !pressed {
			pressed = true
			if runs.Load() != 0 {
				t.Error("it ran before the yes")
			}
			if _, err := api.DecideCall.Call(ctx, r.Client, api.DecideCallRequest{ID: m.Card.Call, Verb: store.Approve, Digest: m.Card.Digest}); err != nil {
				t.Fatal(err)
			}
		}
		if m != nil && m.Tool != nil && strings.Contains(m.Tool.Brief.String(), "33 % step 1") {
			progress = m.Tool.State == store.Running && m.Tool.Name == "box:shout"
			close(seen)
		}
		if m != nil && m.Kind == store.TextMessage {
			answer = m.Text
		}
		if e.State == api.ChatIdle && strings.Contains(answer, "HELLO") {
			break
		}
	}
	if !progress {
		t.Error("how far the call was is not in the conversation")
	}
	if !strings.Contains(answer, "It said: ") || runs.Load() != 1 || asked.Load() != 2 {
		t.Errorf("answer %q after %d runs and %d rounds", answer, runs.Load(), asked.Load())
	}
	rows, err := api.GetUsage.Call(ctx, r.Client, api.GetUsageRequest{By: "model"})
	if err != nil || len(rows.Rows) != 1 || rows.Rows[0].Calls != 2 || rows.Rows[0].Prompt != 200 || rows.Rows[0].Completion != 20 || rows.Rows[0].Unpriced != 2 {
		t.Errorf("usage %+v, %v", rows, err)
	}
}
