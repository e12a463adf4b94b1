package llm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("%s (-got +want):\n%s", what, d)
	}
}

func TestAnswer(t *testing.T) {
	b := newBench(t, llmtest.Step{Text: "Hello there.", Usage: llm.Usage{Prompt: 10, Completion: 3, Cached: 2}})
	b.say(ann, "hi")
	b.work()
	b.work() // nothing left to do
	diff(t, "talk", b.talk(), []string{"user: hi", "assistant: Hello there."})
	if b.m.thread.Open {
		t.Error("the thread is still open")
	}
	var text string
	for _, p := range b.told {
		text += p.Delta
		if p.Turn != "T1/1" {
			t.Errorf("turn id %q", p.Turn)
		}
	}
	if last := b.told[len(b.told)-1]; text != "Hello there." || last.Kind != "turn" || last.Text != text {
		t.Errorf("told %q and %+v", text, last)
	}
	req := b.script.Requests()[0]
	if !strings.Contains(req.System, "discover_tools") || !strings.Contains(req.Context, "10:30 +01:00 (Europe/Berlin)") ||
		!strings.Contains(req.Context, "de-DE") || !strings.Contains(req.Context, "Ann") || len(req.Functions) != 3 {
		t.Errorf("request %+v", req)
	}
	s := b.m.spends
	if len(s) != 1 || s[0].User != ann.User || s[0].Provider != "fake" || s[0].Model != "m" || s[0].Prompt != 10 || s[0].Cached != 2 || s[0].Estimated || s[0].Priced {
		t.Errorf("spends %+v", s)
	}
}

func TestSay(t *testing.T) {
	b := newBench(t)
	first := b.say(ann, "my key is sk-abcdefghijklmnopqrst")
	if strings.Contains(first.Text, "sk-abc") {
		t.Errorf("the key was stored: %q", first.Text)
	}
	again := b.say(ann, "my key is sk-abcdefghijklmnopqrst")
	diff(t, "second Say of one key", again, first)
	if n := len(b.talk()); n != 1 {
		t.Errorf("%d turns", n)
	}
	for text, want := range map[string]error{" \n": store.ErrInvalid, strings.Repeat("x", 300<<10): store.ErrInvalid} {
		if _, err := b.Say(t.Context(), ann, store.Inbound{Thread: "T1", Text: text}); !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := b.Say(t.Context(), ann, store.Inbound{Thread: "nope", Text: "x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := b.Say(t.Context(), ann, store.Inbound{Thread: "T1", Text: "at once"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(b.talk()); n != 21 {
		t.Errorf("%d turns", n)
	}
}

// steps returns a turn with a meta-tool, two concurrent calls, and an answer.
func steps() []llmtest.Step {
	return []llmtest.Step{
		{Text: "Let me look.", Calls: []store.ToolCall{llmtest.Call("discover_tools", map[string]string{"query": "x"})}},
		{Calls: []store.ToolCall{llmtest.Execute("s:one", map[string]int{"n": 1}), llmtest.Execute("s:two", nil)}},
		{Text: "Done."},
	}
}

var stepsTalk = []string{
	"user: go",
	`assistant: Let me look. [discover_tools {"query":"x"}]`,
	"tool: meta discover_tools",
	`assistant:  [execute_tool {"params":{"n":1},"tool_id":"s:one"}] [execute_tool {"params":null,"tool_id":"s:two"}]`,
	"tool: ran one",
	"tool: ran two",
	"assistant: Done.",
}

func TestSteps(t *testing.T) {
	b := newBench(t, steps()...)
	b.say(ann, "go")
	b.work()
	diff(t, "talk", b.talk(), stepsTalk)
	last := b.script.Requests()[2]
	var roles []string
	for _, turn := range last.Turns {
		roles = append(roles, string(turn.Role))
		if turn.Role == store.FromTool && (!strings.HasPrefix(turn.Text, "<tool_result>") || llm.Unframe(turn.Text) == turn.Text) {
			t.Errorf("a result is not framed: %q", turn.Text)
		}
	}
	diff(t, "roles", roles, []string{"user", "assistant", "tool", "assistant", "tool", "tool"})
	for _, r := range b.script.Requests() {
		if r.Context != last.Context || r.System != last.System {
			t.Error("the prefix changed within a turn")
		}
	}
	if len(b.m.spends) != 3 || !b.m.spends[0].Estimated {
		t.Errorf("spends %+v", b.m.spends)
	}
}

// stateless replies according to the history, so that it may be asked again.
type stateless []llmtest.Step

func (m stateless) Generate(_ context.Context, req llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	n := 0
	for _, t := range req.Turns {
		if t.Role == store.FromModel {
			n++
		}
	}
	return llm.Reply{Text: m[n].Text, Calls: m[n].Calls}, nil
}

// If a store fails at any append, before or after it stored the turn, and a new agent takes
// over each time, the thread is the same in the end, and no tool ran twice.
func TestCrashes(t *testing.T) {
	for n := 1; n <= len(stepsTalk); n++ {
		for _, lost := range []bool{false, true} {
			b := newBench(t)
			b.say(ann, "go")
			if lost {
				b.m.lostAck = n
			} else {
				b.m.failAppend = n
			}
			var failures int
			for range 3 {
				a := llm.New(llm.Deps{
					Threads: b.m, Calls: b.m, Agents: b.m, Config: b.config, Tools: b.g,
					Models: models{stateless(steps()), b.m}, Now: b.m.Now,
				})
				if err := a.Work(t.Context(), "T1", nil); err != nil {
					failures++
					if !errors.Is(err, errDisk) {
						t.Fatal(err)
					}
				}
			}
			diff(t, "talk", b.talk(), stepsTalk)
			if want := n < len(stepsTalk); (failures == 1) != want || len(b.g.runs) != 2 {
				t.Errorf("append %d, lost %v: %d failures, ran %v", n, lost, failures, b.g.runs)
			}
		}
	}
}

// Several daemons on one store at once produce one thread, and no tool runs twice.
func TestSeveralAgentsAtOnce(t *testing.T) {
	b := newBench(t)
	b.say(ann, "go")
	var wg sync.WaitGroup
	for range 4 {
		a := llm.New(llm.Deps{
			Threads: b.m, Calls: b.m, Agents: b.m, Config: b.config, Tools: b.g,
			Models: models{stateless(steps()), b.m}, Now: b.m.Now,
		})
		wg.Go(func() {
			for !slices.Contains(b.talk(), "assistant: Done.") {
				if err := a.Work(t.Context(), "T1", nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	diff(t, "talk", b.talk(), stepsTalk)
	if len(b.g.runs) != 2 {
		t.Errorf("ran %v", b.g.runs)
	}
}

// Two agents at once produce one thread; only one of them may report progress.
func TestTwiceAtOnce(t *testing.T) {
	b := newBench(t, steps()...)
	b.say(ann, "go")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := b.Work(t.Context(), "T1", b.tell); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	diff(t, "talk", b.talk(), stepsTalk)
}

func TestPendingThenApproved(t *testing.T) {
	b := newBench(t, llmtest.Step{Text: "I will.", Calls: []store.ToolCall{llmtest.Execute("s:ask", nil), llmtest.Execute("s:one", nil)}}, llmtest.Step{Text: "It is done."})
	b.say(ann, "go")
	b.work()
	b.work() // another look changes nothing
	if !b.m.thread.Open {
		t.Error("the thread is not open while a call waits")
	}
	c := b.pendingCall()
	if c.By != ann.User {
		t.Errorf("call by %s", c.By)
	}
	b.m.finish(c.ID, store.Running, "")
	b.work()
	b.m.finish(c.ID, store.Done, "42")
	if err := b.agent().Work(t.Context(), "T1", b.tell); err != nil { // after a restart
		t.Fatal(err)
	}
	diff(t, "end of talk", b.talk()[2:], []string{"tool: 42", "tool: ran one", "assistant: It is done."})
	if len(b.g.runs) != 1 {
		t.Errorf("ran %v", b.g.runs)
	}
}

func TestOutcomesAreTold(t *testing.T) {
	tests := []struct {
		name string
		end  func(m *memory, c store.Call)
		want string
	}{
		{"refused by a person", func(m *memory, c store.Call) {
			c.Decisions = []store.Decision{{Verb: store.Deny}}
			c.Reason = store.Plain("too risky.")
			m.put(c)
			m.finish(c.ID, store.Refused, "")
		}, "A person refused the call, so it was not run: too risky. Do not propose it again unless asked."},
		{"refused by nize", func(m *memory, c store.Call) {
			c.Decisions = []store.Decision{{Verb: store.Deny, By: store.System.User}}
			c.Reason = store.Plain("nobody could give a yes now")
			m.put(c)
			m.finish(c.ID, store.Refused, "")
		}, "The call was refused and not run: nobody could give a yes now."},
		{"expired", func(m *memory, c store.Call) { m.finish(c.ID, store.Expired, "") }, "Nobody approved the call in time, so it was not run."},
		{"lost", func(m *memory, c store.Call) { m.finish(c.ID, store.Lost, "") }, "nize stopped while the call ran, so it is unknown whether it took effect. Tell the person; do not repeat it by yourself."},
		{"not answered in time", func(m *memory, c store.Call) {
			c.Reason = store.Plain("s:ask did not answer within 1s: the outcome is unknown; check before you run it again")
			m.put(c)
			m.finish(c.ID, store.Lost, "")
		}, "The call ended without a result: s:ask did not answer within 1s: the outcome is unknown; check before you run it again. It may have taken effect: tell the person, and do not repeat it by yourself."},
		{"failed", func(m *memory, c store.Call) {
			c.Result = &store.Result{IsError: true, Error: &store.CallError{Code: store.CodeTimeout, Message: store.Plain("no answer within 30s")}}
			m.put(c)
			m.finish(c.ID, store.Failed, "")
		}, "The call failed: no answer within 30s"},
		{"edited, then done", func(m *memory, c store.Call) {
			m.finish(c.ID, store.Cancelled, "")
			edited := c
			edited.ID, edited.Replaces, edited.State = "NEW", c.ID, store.Pending
			m.put(edited)
			m.finish("NEW", store.Done, "of the edited call")
		}, "of the edited call"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "I see."})
			b.say(ann, "go")
			b.work()
			tt.end(b.m, b.pendingCall())
			b.work()
			diff(t, "end of talk", b.talk()[2:], []string{"tool: " + tt.want, "assistant: I see."})
		})
	}
}

// An edited call that still waits keeps the model waiting.
func TestEditedCallWaits(t *testing.T) {
	b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}})
	b.say(ann, "go")
	b.work()
	c := b.pendingCall()
	b.m.finish(c.ID, store.Cancelled, "")
	c.ID, c.Replaces = "NEW", c.ID
	b.m.put(c)
	b.work()
	if n := len(b.talk()); n != 2 {
		t.Errorf("talk %v", b.talk())
	}
}

// A retry after the answer reopens the turn; the model gets one result per id.
func TestRetryAfterAnswer(t *testing.T) {
	b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "It expired."}, llmtest.Step{Text: "Now it worked."})
	b.say(ann, "go")
	b.work()
	c := b.pendingCall()
	b.m.finish(c.ID, store.Expired, "")
	b.work()
	again := c
	again.ID, again.Replaces = "NEW", c.ID
	b.m.put(again)
	b.work()
	b.m.finish("NEW", store.Done, "fresh")
	b.work()
	b.work()
	diff(t, "end of talk", b.talk()[3:], []string{"assistant: It expired.", "tool: fresh", "assistant: Now it worked."})
	var results, notes int
	for _, turn := range b.script.Requests()[2].Turns {
		if turn.Role == store.FromTool {
			results++
			if llm.Unframe(turn.Text) != "fresh" {
				t.Errorf("result %q", turn.Text)
			}
		}
		if turn.Role == store.FromNize {
			notes++
		}
	}
	if results != 1 || notes != 1 {
		t.Errorf("%d results and %d notes", results, notes)
	}
}

// After a retry of an earlier turn's call, its result replaces the old one.
func TestRetryOfEarlierTurn(t *testing.T) {
	b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "It expired."}, llmtest.Step{Text: "Hello."}, llmtest.Step{Text: "Now it worked."})
	b.say(ann, "go")
	b.work()
	c := b.pendingCall()
	b.m.finish(c.ID, store.Expired, "")
	b.work()
	b.say(ann, "hi")
	b.work()
	b.work()
	c.ID, c.Replaces = "NEW", c.ID
	b.m.put(c)
	b.m.finish("NEW", store.Done, "fresh")
	b.work()
	b.work()
	requests := b.script.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d requests", len(requests))
	}
	var results []string
	for _, turn := range requests[3].Turns {
		if turn.Role == store.FromTool {
			results = append(results, llm.Unframe(turn.Text))
		}
	}
	diff(t, "results", results, []string{"fresh"})
}

// A message of the requester cancels the waiting call; the model gets both.
func TestMessageCancelsWaitingCall(t *testing.T) {
	b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "As you like."})
	b.say(ann, "go")
	b.work()
	b.say(ann, "no, stop that")
	b.work()
	diff(t, "talk", b.talk(), []string{
		"user: go", `assistant:  [execute_tool {"params":null,"tool_id":"s:ask"}]`, "user: no, stop that",
		"tool: The call was cancelled before it ran: the requester wrote something else.", "assistant: As you like.",
	})
	var order []string
	for _, turn := range b.script.Requests()[1].Turns {
		order = append(order, string(turn.Role))
	}
	diff(t, "order for the model", order, []string{"user", "assistant", "tool", "user"})
}

// TestMessageWaitsForOthers: a call that others decide survives its requester's message,
// which is answered after it; a call that the requester decides is cancelled.
func TestMessageWaitsForOthers(t *testing.T) {
	for policy, own := range map[store.Policy]bool{
		store.ByRequester: true, "requester,admins": true, "1 of requester,group:ops": true,
		store.ByAdmins: false, store.ByChannel: false, "user:bo": false, "group:ops": false, "2 of requester,admins": false, "requester,admins not requester": false, "no policy!": false,
	} {
		for in, open := range map[string]func(*testing.T, ...llmtest.Step) *bench{"itself": newBench, "an agent": team} {
			steps := []llmtest.Step{{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, {Text: "As you like."}}
			if in == "an agent" {
				steps = append([]llmtest.Step{{Calls: []store.ToolCall{task("scout", "Look.")}}}, steps...)
			}
			if in == "an agent" && !own { // it answers, too
				steps = append(steps, llmtest.Step{Text: "As you like."})
			}
			b := open(t, steps...)
			b.say(ann, "go")
			b.work()
			c := b.pendingCall()
			c.Policy = policy
			b.m.put(c)
			b.say(ann, "thanks, I will wait")
			b.work()
			b.work() // another look changes nothing
			now, err := b.m.GetCall(t.Context(), c.ID)
			if want := map[bool]store.State{true: store.Cancelled, false: store.Pending}[own]; err != nil || now.State != want {
				t.Errorf("%s, %s: the call is %s, want %s", policy, in, now.State, want)
				continue
			}
			if own {
				continue
			}
			b.m.finish(c.ID, store.Done, "42")
			b.work()
			talk := b.talk()
			if last := talk[len(talk)-1]; last != "assistant: As you like." || strings.Count(strings.Join(talk, "\n"), "tool: 42") != 1 {
				t.Errorf("%s, %s: the talk is %q", policy, in, talk)
			}
		}
	}
}

// For the model, a message that replaces the last one takes its place together with what
// followed it, except for calls that ran and answers.
func TestMessageInsteadOfAnother(t *testing.T) {
	instead := func(b *bench, text, of string) store.Turn {
		t.Helper()
		turn, err := b.Say(t.Context(), ann, store.Inbound{Key: "key " + text, Thread: "T1", By: ann, Text: text, Instead: "key " + of})
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	call := llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}
	b := newBench(t, call)
	b.say(ann, "one")
	b.work()
	b.m.finish(b.pendingCall().ID, store.Cancelled, "")
	if _, err := b.Say(t.Context(), bob, store.Inbound{Key: "b", Thread: "T1", By: bob, Text: "mine", Instead: "key one"}); err != nil || instead(b, "late", "one").Replaces != 0 {
		t.Errorf("somebody else's was replaced, or one that another follows: %v", err)
	}
	b = newBench(t, call, llmtest.Step{Text: "Yes."})
	b.say(ann, "one")
	b.work()
	b.m.finish(b.pendingCall().ID, store.Cancelled, "")
	diff(t, "replaced", instead(b, "two", "one").Replaces, 2)
	diff(t, "replaced once more", instead(b, "three", "two").Replaces, 3)
	diff(t, "said twice", instead(b, "three", "two").N, 3)
	b.work()
	var read []string
	for _, turn := range b.script.Requests()[1].Turns {
		read = append(read, turn.Text)
	}
	diff(t, "what the model reads", read, []string{"three"})
	diff(t, "replaced after the answer", instead(b, "four", "three").Replaces, 0)

	b = newBench(t, call)
	b.say(ann, "one")
	b.work()
	b.m.finish(b.pendingCall().ID, store.Running, "")
	diff(t, "replaced while a call runs", instead(b, "two", "one").Replaces, 0)
}

// Another person's message is queued, and answered with their own rights.
func TestOthersQueue(t *testing.T) {
	b := newBench(t,
		llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "For Ann."},
		llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:one", nil)}}, llmtest.Step{Text: "For Bob."})
	b.say(ann, "ann's")
	b.work()
	b.say(bob, "bob's")
	b.work()
	c := b.pendingCall() // still waits
	b.m.finish(c.ID, store.Done, "ok")
	b.work()
	for _, turn := range b.script.Requests()[1].Turns {
		if turn.Text == "bob's" {
			t.Error("Ann's turn read Bob's message")
		}
	}
	var order []string
	for _, turn := range b.script.Requests()[2].Turns {
		order = append(order, llm.Unframe(turn.Text))
	}
	diff(t, "history for Bob", order, []string{"ann's", "", "ok", "For Ann.", "bob's"})
	diff(t, "who asked", b.g.by, []string{ann.User, bob.User})
	if b.m.spends[3].User != bob.User || b.m.thread.Open {
		t.Errorf("spends %+v, open %v", b.m.spends, b.m.thread.Open)
	}
}

// A message that arrives while the model generates doesn't discard its reply.
func TestMessageWhileSpeaking(t *testing.T) {
	b := newBench(t, llmtest.Step{Text: "First."}, llmtest.Step{Text: "Second."})
	b.say(ann, "one")
	var once sync.Once
	b.m.before = func(turn store.Turn) {
		if turn.Role == store.FromModel {
			once.Do(func() { b.say(ann, "two") })
		}
	}
	b.work()
	diff(t, "talk", b.talk(), []string{"user: one", "user: two", "assistant: First.", "assistant: Second."})
	var order []string
	for _, turn := range b.script.Requests()[1].Turns {
		order = append(order, turn.Text)
	}
	diff(t, "history", order, []string{"one", "First.", "two"})
}

// TestWanted: a turn's search is reported once if the turn neither read about a tool nor
// ran one.
func TestWanted(t *testing.T) {
	find := func(q string) store.ToolCall {
		return llmtest.Call("discover_tools", map[string]string{"query": q})
	}
	for name, c := range map[string]struct {
		steps []llmtest.Step
		want  []string
	}{
		"nothing fits":    {[]llmtest.Step{{Calls: []store.ToolCall{find("book a flight")}}, {Calls: []store.ToolCall{find("flights")}}, {Text: "No tool for that."}}, []string{"book a flight"}},
		"one was run":     {[]llmtest.Step{{Calls: []store.ToolCall{find("a flight")}}, {Calls: []store.ToolCall{llmtest.Execute("s:one", nil)}}, {Text: "Done."}}, nil},
		"one was read":    {[]llmtest.Step{{Calls: []store.ToolCall{find("a flight")}}, {Calls: []store.ToolCall{llmtest.Call("get_tool_schema", map[string]string{"tool_id": "s:one"})}}, {Text: "Which day?"}}, nil},
		"none was wanted": {[]llmtest.Step{{Text: "Hello."}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.steps...)
			var got []string
			b.RecordUnmetRequest = func(_, text string) { got = append(got, text) }
			b.say(ann, "hi")
			b.work()
			b.work()
			diff(t, "wanted", got, c.want)
		})
	}
}
