package chat

import (
	"testing"

	"nize/bots/phrases"
	"nize/store"
)

// TestToolLine: only what runs is shown as being called.
func TestToolLine(t *testing.T) {
	words := phrases.For("")
	for state, want := range map[store.State]string{
		store.Planned: "… box:add planned: {}",
		store.Running: words.Say(phrases.TermCalling, "box:add") + ": {}",
		store.Pending: words.Say(phrases.TermPending, "box:add") + ": {}",
		store.Failed:  "✗ box:add failed: {}",
		store.Done:    "✓ box:add: {}",
	} {
		if got := toolLine(store.ToolLine{Name: "box:add", State: state, Brief: store.Plain("{}")}, words); got != want {
			t.Errorf("%s is %q, want %q", state, got, want)
		}
	}
	for brief, want := range map[string]string{
		"box:add did not answer within 1s":  "✗ box:add failed: did not answer within 1s",
		"box:add: it answered 401":          "✗ box:add failed: it answered 401",
		"box:added did not answer":          "✗ box:add failed: box:added did not answer",
		"box is not reachable: it is gone.": "✗ box:add failed: box is not reachable: it is gone.",
	} {
		if got := toolLine(store.ToolLine{Name: "box:add", State: store.Failed, Brief: store.Plain(brief)}, words); got != want {
			t.Errorf("%q is %q, want %q", brief, got, want)
		}
	}
	if got, want := toolLine(store.ToolLine{Name: "box:add", State: store.Done, Brief: store.Plain("box:add is a tool")}, words), "✓ box:add: box:add is a tool"; got != want {
		t.Errorf("a result is %q, want %q", got, want)
	}
}
