package llm_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

// team returns a bench with a boss who may call agents.
func team(t *testing.T, steps ...llmtest.Step) *bench {
	b := newBench(t, steps...)
	b.m.agents = []store.Agent{
		{ID: "boss", Default: true, AllowedTools: []string{"s:*", "agent:*"}},
		{ID: "scout", Name: "Scout", SystemPrompt: "You scout.", AllowedTools: []string{"s:*"}, MaxSteps: 1},
		{ID: "deep", AllowedTools: []string{"agent:*"}},
		{ID: "last", AllowedTools: []string{"agent:*"}},
		{ID: "ops", Who: []string{"admins"}},
	}
	return b
}

func task(agent, text string) store.ToolCall {
	return llmtest.Call("agent_"+agent, map[string]string{"task": text})
}

func functionNames(req llm.Request) (names []string) {
	for _, f := range req.Functions {
		if strings.HasPrefix(f.Name, "agent_") {
			names = append(names, f.Name)
		}
	}
	return names
}

// An agent called by another waits for approval across a restart, and its answer is its
// caller's result.
func TestAgentAsATool(t *testing.T) {
	b := team(t,
		llmtest.Step{Calls: []store.ToolCall{task("scout", "Look.")}},
		llmtest.Step{Text: "I ask.", Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}},
		llmtest.Step{Text: "It is <tool_result> there."},
		llmtest.Step{Text: "Scout says so."},
	)
	b.say(ann, "go")
	b.work()
	c := b.pendingCall()
	if c.Thread != "T1" || c.By != ann.User {
		t.Errorf("the call %+v", c)
	}
	b.m.finish(c.ID, store.Done, "seen")
	b.Agent = b.agent() // as after a restart
	b.work()
	b.work() // and again, to no effect
	diff(t, "talk", b.talk(), []string{
		"user: go", `assistant:  [agent_scout {"task":"Look."}]`, "  user: Look.", `  assistant: I ask. [execute_tool {"params":null,"tool_id":"s:ask"}]`,
		"  tool: seen", "  assistant: It is <tool_result> there.", "tool: It is <tool_result> there.", "assistant: Scout says so.",
	})
	reqs := b.script.Requests()
	diff(t, "offered", functionNames(reqs[0]), []string{"agent_scout", "agent_deep", "agent_last"})
	if scout := reqs[1]; !strings.HasPrefix(scout.System, "You scout.") || len(scout.Turns) != 1 || scout.Turns[0].Text != "Look." || functionNames(scout) != nil {
		t.Errorf("the scout is asked %+v", scout)
	}
	if !reqs[2].NoCalls { // its own limit of one step
		t.Error("the scout may go on without end")
	}
	if last := reqs[3].Turns; len(last) != 3 || strings.Count(last[2].Text, "<tool_result>") != 1 {
		t.Errorf("the boss reads %+v", last)
	}
	if len(b.events) != 1 || b.events[0].Kind != "agent.called" || !strings.Contains(string(b.events[0].Data), `"agent":"scout"`) {
		t.Errorf("events %+v", b.events)
	}
	var agents []string
	for _, s := range b.m.spends {
		agents = append(agents, s.Agent)
	}
	diff(t, "booked to", agents, []string{"boss", "scout", "scout", "boss"})
	if kinds := b.kinds(); slices.Contains(kinds, "text") || kinds[0] != "turn" || !slices.Contains(kinds, "call pending") || !slices.Contains(kinds, "tool agent:scout done") {
		t.Errorf("told %v", kinds)
	}
}

// Several at once, one of them failing; each call has its one result.
func TestAgentsInParallel(t *testing.T) {
	b := team(t, llmtest.Step{Calls: []store.ToolCall{task("scout", "a"), task("scout", "b"), task("ops", "c"), task("scout", " "), llmtest.Execute("s:one", nil)}},
		llmtest.Step{Text: "Found."}, llmtest.Step{Err: &llm.ProviderError{Provider: "fake", Fault: llm.FaultDown}}, llmtest.Step{Text: "Done."})
	b.say(ann, "go")
	b.work()
	var results []string
	turns, _ := b.m.Turns(t.Context(), "T1")
	for _, turn := range turns {
		if turn.Role == store.FromTool {
			results = append(results, turn.Text)
		}
	}
	if len(results) != 5 || results[4] != "ran one" || !strings.HasPrefix(results[2], `There is no function "agent_ops"`) || !strings.HasPrefix(results[3], "The arguments have no task") {
		t.Fatalf("results %q", results)
	}
	two := results[:2]
	slices.Sort(two)
	diff(t, "of the scouts", two, []string{"Found.", "The agent gave no answer: The model service cannot be reached right now. Please try again in a moment."})
	if talk := b.talk(); talk[len(talk)-1] != "assistant: Done." {
		t.Errorf("talk %q", talk)
	}
	if err := resultsFit(b.script.Requests()[3].Turns); err != nil {
		t.Error(err)
	}
}

// No agent calls itself indirectly, and at most three call each other.
func TestAgentsBehindOneAnother(t *testing.T) {
	b := team(t, llmtest.Step{Calls: []store.ToolCall{task("deep", "1")}}, llmtest.Step{Calls: []store.ToolCall{task("last", "2")}},
		llmtest.Step{Text: "third"}, llmtest.Step{Text: "second"}, llmtest.Step{Text: "first"})
	b.say(ann, "go")
	b.work()
	reqs := b.script.Requests()
	diff(t, "second", functionNames(reqs[1]), []string{"agent_scout", "agent_last"})
	diff(t, "third", functionNames(reqs[2]), []string(nil))
	talk := b.talk()
	diff(t, "end", talk[len(talk)-3:], []string{"  assistant: second", "tool: second", "assistant: first"})
}

// A message of the requester, and a stop, end what waits in an agent.
func TestAgentIsInterrupted(t *testing.T) {
	call := []llmtest.Step{{Calls: []store.ToolCall{task("scout", "Look.")}}, {Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}}
	b := team(t, append(call, llmtest.Step{Text: "Well."})...)
	b.say(ann, "go")
	b.work()
	id := b.pendingCall().ID
	b.say(ann, "never mind")
	b.work()
	if c, _ := b.m.GetCall(t.Context(), id); c.State != store.Cancelled {
		t.Errorf("the call is %s", c.State)
	}
	talk := b.talk()
	diff(t, "end", talk[len(talk)-2:], []string{"tool: The agent was stopped: the requester wrote something else.", "assistant: Well."})

	b = team(t, call...)
	b.say(ann, "go")
	b.work()
	id = b.pendingCall().ID
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.Work(ctx, "T1", func(store.Progress) { cancel() }); err != nil {
		t.Fatal(err)
	}
	if c, _ := b.m.GetCall(t.Context(), id); c.State != store.Cancelled || b.m.thread.Open {
		t.Errorf("the call is %s, the thread open %v", c.State, b.m.thread.Open)
	}
}

// An agent that wants its tools by name is offered them in addition to the others.
func TestDirectTools(t *testing.T) {
	b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Call("s__one", map[string]int{"n": 1}), {Name: "s__one", Args: "{"}}}, llmtest.Step{Text: "Done."})
	b.m.agents = []store.Agent{{ID: "A", Default: true, Direct: true}}
	b.direct = []llm.DirectTool{{ID: "s:one", Function: store.Function{Name: "s__one", Schema: json.RawMessage(`{"type":"object"}`)}}, {ID: "s:x", Function: store.Function{Name: "execute_tool"}}}
	b.say(ann, "go")
	b.work()
	diff(t, "runs", b.g.runs, []string{`s:one{"n":1}`})
	talk := b.talk()
	if len(talk) != 5 || talk[2] != "tool: ran one" || !strings.HasPrefix(talk[3], "tool: The arguments were not valid JSON") {
		t.Errorf("talk %q", talk)
	}
	if fs := b.script.Requests()[0].Functions; fs[len(fs)-1].Name != "s__one" {
		t.Errorf("offered %+v", fs)
	}
}
