package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
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
	t.Parallel()
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

// A program calls an agent as a tool: what the agent wants to run waits for the
// program over a restart, runs once, and the agent's answer goes on in the round.
func TestRoundsCallAgents(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "shout", Description: "Shout a text.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		runs.Add(1)
		return json.RawMessage(`{"content":[{"type":"text","text":"HELLO"}]}`)
	}}}})
	p, ctx := openPrograms(t), t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddServer.Call(ctx, p.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}))
	must(api.PatchServer.Call(ctx, p.Client, api.PatchServerRequest{Name: "box", Visibility: &[]string{"project:sales"}}))
	must(api.PutAgent.Call(ctx, p.Client, api.PutAgentRequest{ID: "scout", Agent: store.Agent{Name: "The Scout", Model: "parrots/parrot", Approval: "all"}}))
	must(api.PutAgent.Call(ctx, p.Client, api.PutAgentRequest{ID: "guide", Agent: store.Agent{Model: "parrots/parrot", AllowedTools: []string{"agent:scout"}, Who: []string{"project:sales"}}}))
	must(api.PutAgent.Call(ctx, p.Client, api.PutAgentRequest{ID: "secret", Agent: store.Agent{Who: []string{"admins"}}}))
	calling := func(agent, text string) map[string]any {
		body := asking(text)
		body["tools"] = []map[string]any{{"type": "callable", "callable_id": "agent:" + agent}}
		return body
	}
	for _, agent := range []string{"secret", "nobody"} {
		if _, err := p.round(ctx, calling(agent, "hello")); err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), `"param":"tools[0].callable_id"`) {
			t.Errorf("agent %s: %v", agent, err)
		}
	}
	a, err := p.round(ctx, calling("scout", `use scout {"task":"hello there"}`))
	if err != nil || a.Status != "completed" || !strings.Contains(a.Message.Content, "hello there") || a.Usage.PromptTokens != 300 {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err = p.round(ctx, calling("scout", `use scout {"work":1}`)); err != nil || !strings.Contains(a.Message.Content, "The arguments have no task") {
		t.Fatalf("%+v, %v", a, err)
	}

	// The agent's agent wants to run a tool.
	task := func(text string) string { raw, _ := json.Marshal(map[string]string{"task": text}); return string(raw) }
	deep := calling("guide", "use guide "+task("use agent_scout "+task(`use execute_tool {"tool_id":"box:shout","params":{"a":1}}`)))
	a, err = p.round(ctx, deep)
	if err != nil || a.Status != "requires_approval" || len(a.Proposed) != 1 || a.Proposed[0].Tool != "box:shout" || string(a.Proposed[0].Arguments) != `{"a":1}` || runs.Load() != 0 {
		t.Fatalf("%d runs, %+v, %v", runs.Load(), a, err)
	}
	p.restart()
	yes := map[string]any{"round_id": a.ID, "approvals": []map[string]any{{"id": a.Proposed[0].ID, "digest": a.Proposed[0].Digest, "approve": true}}}
	for range 2 { // the same decision again changes nothing
		done, err := p.round(ctx, yes)
		if err != nil || done.Status != "completed" || !strings.Contains(done.Message.Content, "HELLO") || runs.Load() != 1 || len(done.Proposed) != 0 {
			t.Fatalf("%d runs, %+v, %v", runs.Load(), done, err)
		}
	}
	_, next, _ := p.follow("GET", "/llm-exec/rounds/"+a.ID+"/events", "", nil)
	// An agent that takes a while is said to have started before it ends, which is
	// where another one's call may be said to have ended.
	var names []string
	started := map[string]bool{}
	for e, ok := next(); ok; e, ok = next() {
		var data struct{ ID string }
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			t.Fatal(err)
		}
		if e.name == "tool.started" {
			if started[data.ID] {
				t.Errorf("%s started twice", data.ID)
			}
			started[data.ID] = true
			continue
		}
		if e.name == "tool.finished" && !started[data.ID] {
			t.Errorf("%s ended and had not started", data.ID)
		}
		names = append(names, e.name)
	}
	if got := strings.Join(names, " "); got != "usage tool.proposed round.finished tool.finished tool.finished text.delta usage round.finished" || len(started) != 2 {
		t.Errorf("%d tools started, events %s", len(started), got)
	}
	// What the agents' models cost is the project's: eleven answers.
	if budget, err := api.SetBudget.Call(ctx, p.Client, api.SetBudgetRequest{Subject: "project:sales", Period: store.Daily, Amount: "100000tokens"}); err != nil || budget.Used != 11*110 {
		t.Errorf("%+v, %v", budget, err)
	}

	// A round that is ended takes the agent's call with it, and the conversation goes on.
	if a, err = p.round(ctx, deep); err != nil || a.Status != "requires_approval" {
		t.Fatalf("%+v, %v", a, err)
	}
	resp, err := p.send(ctx, "DELETE", "/llm-exec/rounds/"+a.ID, "", nil)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %+v, %v", resp, err)
	}
	resp.Body.Close()
	if list, err := api.ListApprovals.Call(ctx, p.Client, api.Empty{}); err != nil || len(list.Items) != 0 || runs.Load() != 1 {
		t.Errorf("%d runs; still waiting: %+v, %v", runs.Load(), list, err)
	}
	more := asking("and now?")
	more["conversation_id"] = a.Conversation
	if a, err = p.round(ctx, more); err != nil || a.Message.Content != "and now?" {
		t.Errorf("after it was ended: %+v, %v", a, err)
	}
}

// A conversation gets its title from the model named fast, at nize's own expense.
func TestConversationsGetTitles(t *testing.T) {
	t.Parallel()
	p, ctx := openPrograms(t), t.Context()
	for _, name := range []string{"fast", "smart"} {
		if _, err := api.SetModel.Call(ctx, p.Client, api.SetModelRequest{Name: name, Target: "parrots/parrot"}); err != nil {
			t.Fatal(err)
		}
	}
	th, err := api.StartConversation.Call(ctx, p.Client, api.StartConversationRequest{Model: "smart"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.SendMessage.Call(ctx, p.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has a title", func() bool {
		list, err := api.ListConversations.Call(ctx, p.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == 1 && list.Items[0].Title == "About parrots"
	})
	used, err := api.GetUsage.Call(ctx, p.Client, api.GetUsageRequest{By: "user"})
	if err != nil || len(used.Rows) != 2 {
		t.Errorf("%+v, %v", used, err)
	}
}
