package browser

import (
	"encoding/json"
	"testing"

	"nize/store"
)

// TestBranched: a branch has what was said and what calls returned, in places of its own;
// a call without a result stays where it was asked for, and so does what is for models
// alone.
func TestBranched(t *testing.T) {
	turns := []store.Turn{
		{Thread: "T", N: 0, Role: store.FromUser, Text: "a", Key: "k0"},
		{Thread: "T", N: 1, Role: store.FromModel, Text: "two calls", Re: 0, Calls: []store.ToolCall{{ID: "c1"}, {ID: "c2"}}, Opaque: json.RawMessage(`[]`)},
		{Thread: "T", N: 2, Role: store.FromTool, CallID: "c1", Text: "one"},
		{Thread: "T", N: 3, Role: store.FromAgent, In: "c1", As: store.FromUser, Text: "between agents"},
		{Thread: "T", N: 4, Role: store.FromSummary, Re: 2, Text: "short"},
		{Thread: "T", N: 5, Role: store.FromUser, Text: "b", Key: "k5", Replaces: 1},
		{Thread: "T", N: 6, Role: store.FromModel, Text: "waits", Re: 5, Calls: []store.ToolCall{{ID: "c3"}}},
		{Thread: "T", N: 7, Role: store.FromModel, Text: "done", Re: 5},
	}
	type said struct {
		n, re, calls int
		text         string
	}
	want := []said{{0, 0, 0, "a"}, {1, 0, 1, "two calls"}, {2, 0, 0, "one"}, {3, 0, 0, "b"}, {4, 3, 0, "waits"}, {5, 3, 0, "done"}}
	got := branched(turns)
	if len(got) != len(want) {
		t.Fatalf("%d turns, want %d: %v", len(got), len(want), got)
	}
	for i, g := range got {
		if s := (said{g.N, g.Re, len(g.Calls), g.Text}); s != want[i] || g.Key != "" || g.Replaces != 0 || g.Opaque != nil {
			t.Errorf("turn %d is %+v, want %+v; key %q, replaces %d, opaque %s", i, s, want[i], g.Key, g.Replaces, g.Opaque)
		}
	}
	if !got[4].Final || got[1].Final {
		t.Error("a turn whose calls stayed behind is not the answer, or one with a call is")
	}
	if turns[1].Opaque == nil || len(turns[1].Calls) != 2 {
		t.Error("the old conversation has changed")
	}
	many := make([]store.Turn, 0, 3*maxBranched)
	for n := range cap(many) {
		many = append(many, store.Turn{N: n, Role: map[bool]store.TurnRole{true: store.FromUser, false: store.FromModel}[n%2 == 0], Re: n - n%2})
	}
	if long := branched(many[1:]); len(long) > maxBranched || long[0].Role != store.FromUser || long[1].Re != 0 || long[len(long)-1].Re != len(long)-2 {
		t.Errorf("of a long one: %d turns, the first is %s, the second answers %d", len(long), long[0].Role, long[1].Re)
	}
}
