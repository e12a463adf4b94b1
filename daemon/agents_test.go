package daemon_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nize/daemon/api"
	"nize/llm/openai/openaitest"
	"nize/mcp/mcptest"
	"nize/store"
)

// A tool that an agent of an agent wants to run waits for a yes over a restart, runs
// once, and both answer.
func TestAgentWaitsOverRestart(t *testing.T) {
	var runs atomic.Int64
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "shout", Description: "Shout a text.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		runs.Add(1)
		return json.RawMessage(`{"content":[{"type":"text","text":"HELLO"}]}`)
	}}}})
	service := openaitest.New("the-key")
	t.Cleanup(service.Close)
	dir, ctx := t.TempDir(), t.Context()
	r := open(t, dir, nil)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}))
	must(api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "acme", Kind: "openai-compatible", BaseURL: service.URL + "/v1", Key: api.NewSecret("the-key")}))
	must(api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "smart", Target: "acme/no-index"}))
	must(api.PutAgent.Call(ctx, r.Client, api.PutAgentRequest{ID: "scout", Agent: store.Agent{Model: "smart"}}))
	must(api.PutAgent.Call(ctx, r.Client, api.PutAgentRequest{ID: "boss", Agent: store.Agent{Model: "smart", AllowedTools: []string{"agent:scout"}, Default: true}}))
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{})
	if err != nil {
		t.Fatal(err)
	}
	must(api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1",
		Text: `go agent_scout {"task":"go execute_tool {\"tool_id\":\"box:shout\",\"params\":{}}"}`}))
	var card store.Card
	waits := func() bool {
		list, err := api.ListApprovals.Call(ctx, r.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 {
			card = list.Items[0]
		}
		return len(list.Items) == 1
	}
	eventually(t, "the call waits", waits)
	r.stop()
	r = open(t, dir, nil)
	eventually(t, "the call waits after the restart", waits)
	if runs.Load() != 0 || card.Tool != "box:shout" {
		t.Fatalf("it ran %d times before the yes; %+v", runs.Load(), card)
	}
	must(api.DecideCall.Call(ctx, r.Client, api.DecideCallRequest{ID: card.Call, Verb: store.Approve, Digest: card.Digest}))
	var turns []store.Turn
	eventually(t, "both have answered", func() bool {
		view, err := api.ShowConversation.Call(ctx, r.Client, api.ShowConversationRequest{ID: th.ID})
		if err != nil {
			t.Fatal(err)
		}
		turns = view.Turns
		last := turns[len(turns)-1]
		return last.Role == store.FromModel && last.Text == "Hello there."
	})
	said := func(t store.Turn) string { return string(t.Role) + " " + string(t.As) }
	var roles []string
	for _, turn := range turns {
		roles = append(roles, said(turn))
	}
	want := []string{"user ", "assistant ", "agent user", "agent assistant", "agent tool", "agent assistant", "tool ", "assistant "}
	if !slices.Equal(roles, want) || runs.Load() != 1 || service.Refused() != nil {
		t.Errorf("%d runs, refused %q, turns %q", runs.Load(), service.Refused(), roles)
	}
	noted := false
	for e, err := range api.ReadAudit.Call(ctx, r.Client, api.AuditRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		noted = noted || e.Kind == "agent.called" && strings.Contains(string(e.Data), `"scout"`)
	}
	if !noted {
		t.Error("the audit does not say that the agent was called")
	}
}
