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
}
