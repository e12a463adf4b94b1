package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

// prompt returns everything that a request tells the model about the conversation.
func prompt(t *testing.T, r llm.Request) string {
	t.Helper()
	b, err := json.Marshal(r.Turns)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A private result, and what the model says and proposes after it, is only in its reader's
// prompts until it is shared.
func TestPrivate(t *testing.T) {
	b := newBench(t,
		llmtest.Step{Text: "I look.", Calls: []store.ToolCall{llmtest.Execute("s:mine", map[string]string{"q": "open"})}},
		llmtest.Step{Text: "Quoting.", Calls: []store.ToolCall{llmtest.Execute("s:echo", map[string]string{"q": "quoted"})}, Opaque: json.RawMessage(`"thought"`)},
		llmtest.Step{Text: "It says mine."},
		llmtest.Step{Text: "Hello Bob."},
		llmtest.Step{Text: "Still private."},
	)
	b.say(ann, "read mine")
	b.work()
	b.say(bob, "what was that?")
	b.work()
	b.say(ann, "again")
	b.work()

	turns, _ := b.m.Turns(t.Context(), "T1")
	var whose []string
	for _, turn := range turns {
		whose = append(whose, string(turn.Role)+" "+turn.For)
	}
	diff(t, "whom the turns are for", whose, []string{
		"user ", "assistant ", "tool U-ann", "assistant U-ann", "tool U-ann", "assistant U-ann", "user ", "assistant ", "user ", "assistant U-ann",
	})
	requests := b.script.Requests()
	bobs, anns := prompt(t, requests[3]), prompt(t, requests[4])
	for _, secret := range []string{"ran mine", "Quoting", "quoted", "ran echo", "It says", "thought"} {
		if strings.Contains(bobs, secret) {
			t.Errorf("Bob's prompt holds %q: %s", secret, bobs)
		}
		if secret != "thought" && !strings.Contains(anns, secret) {
			t.Errorf("Ann's prompt lacks %q: %s", secret, anns)
		}
	}
	if n := strings.Count(bobs, store.Withheld); n != 2 || !strings.Contains(bobs, "I look.") { // the result, and what followed, once
		t.Errorf("Bob's prompt says %d times that something is withheld: %s", n, bobs)
	}
	calls, _ := b.m.ListCalls(t.Context(), store.CallQuery{Thread: "T1"})
	if first, second := calls[1], calls[0]; first.InPrivateTurn || first.Why != "I look." || !second.InPrivateTurn || second.Why != "" {
		t.Errorf("calls %+v", calls)
	}
	for _, p := range b.told {
		shown := p.Text + p.Delta
		switch {
		case p.Kind == "tool":
			if p.Tool.State == store.Done && !p.Tool.Private {
				t.Errorf("a private result in brief: %+v", p.Tool)
			}
		case p.Kind == "call":
		case strings.Contains(shown, "Bob") || strings.Contains(shown, "look"):
			if p.For != "" {
				t.Errorf("for one person only: %+v", p)
			}
		case p.Turn != "T1/1" && p.Turn != "T1/7" && (p.For != ann.User || p.Re != 0 && p.Re != 8):
			t.Errorf("for everybody: %+v", p)
		}
	}

	for i := range b.m.turns { // she shares it
		b.m.turns[i].For = ""
	}
	b.script.Add(llmtest.Step{Text: "Now I know, Bob."}, llmtest.Step{Text: "In the open."})
	b.say(bob, "and now?")
	b.work()
	if p := prompt(t, b.script.Requests()[5]); !strings.Contains(p, "ran mine") || strings.Contains(p, store.Withheld) {
		t.Errorf("Bob's prompt after she shared: %s", p)
	}
	b.say(ann, "thanks")
	b.work()
	turns, _ = b.m.Turns(t.Context(), "T1")
	if last := turns[len(turns)-1]; last.For != "" {
		t.Errorf("nothing is private any more: %+v", last)
	}
}

// The text before a stop or a fault is as private as what it is based on.
func TestPrivateCut(t *testing.T) {
	b := newBench(t,
		llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:mine", map[string]string{})}},
		llmtest.Step{Text: "It sa", Err: &llm.ProviderError{Provider: "fake", Fault: llm.FaultRequest, Message: "bad text: ran mine"}},
	)
	b.say(ann, "read mine")
	b.work()
	turns, _ := b.m.Turns(t.Context(), "T1")
	if n := len(turns); n != 5 || turns[3].For != ann.User || !turns[3].Final || turns[4].For != ann.User {
		t.Errorf("turns %+v", turns)
	}
	if last := b.told[len(b.told)-1]; last.Kind != "error" || last.For != ann.User {
		t.Errorf("told %+v", last)
	}
}

// A report from the view of a private result is only for its viewer, and an edited message
// keeps the views' reports.
func TestPrivateView(t *testing.T) {
	b := newBench(t, llmtest.Step{Text: "Page 2."}, llmtest.Step{Text: "Hello Bob."})
	b.say(ann, "wher is it")
	b.m.turns[0].Earlier = &store.Earlier{Views: []store.ViewContext{{Call: "c", Tool: "far:show", User: ann.User, Text: "page 2", Private: true, Untrusted: true}}}
	if _, err := b.Say(t.Context(), ann, store.Inbound{Key: "edit", Thread: "T1", By: ann, Text: "where is it", Instead: "key wher is it"}); err != nil {
		t.Fatal(err)
	}
	b.work()
	b.say(bob, "and for me?")
	b.work()
	turns, _ := b.m.Turns(t.Context(), "T1")
	if !turns[1].Untrusted() || turns[2].For != ann.User || turns[4].For != "" {
		t.Errorf("turns %+v", turns)
	}
	requests := b.script.Requests()
	if p := prompt(t, requests[0]); !strings.Contains(p, "page 2") {
		t.Errorf("Ann's prompt: %s", p)
	}
	if p := prompt(t, requests[1]); strings.Contains(p, "page 2") || !strings.Contains(p, "where is it") {
		t.Errorf("Bob's prompt: %s", p)
	}
}
