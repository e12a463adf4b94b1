package browser

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/store"
)

// turnsOf is a store of one conversation.
type turnsOf []store.Turn

func (ts turnsOf) TurnsBefore(_ context.Context, _ string, before, n int) ([]store.Turn, error) {
	if before <= 0 {
		before = len(ts)
	}
	return ts[max(0, before-n):before], nil
}

// begins is a store in which a turn begins while its conversation is read.
type begins struct {
	open  *bool
	turns []store.Turn
}

// others are the methods that reading a conversation does not call.
type others struct {
	store.Threads
	store.Files
	callsOf
}

func (others) Events(context.Context, store.EventQuery) ([]store.Event, error) { return nil, nil }

func (s begins) GetThread(context.Context, string) (store.Thread, error) {
	return store.Thread{ID: "t", User: "ann", Open: *s.open}, nil
}

func (s begins) TurnsBefore(context.Context, string, int, int) ([]store.Turn, error) {
	*s.open = true
	return s.turns, nil
}

func (begins) Pending(context.Context) ([]store.Item, error) { return nil, nil }

// TestReadWhileATurnBegins: a message that is shown is not said to be done with before it
// is answered.
func TestReadWhileATurnBegins(t *testing.T) {
	b := &Browser{}
	b.Store = struct {
		others
		begins
	}{begins: begins{new(bool), []store.Turn{{Role: store.FromUser, Text: "hello"}}}}
	c, err := b.read(t.Context(), store.Caller{User: "ann"}, "t", 0, bots.Reader{})
	if err != nil || len(c.Messages) != 1 || !c.Thread.Open {
		t.Errorf("%d messages, a turn goes on: %t, %v", len(c.Messages), c.Thread.Open, err)
	}
}

// TestEmptyConversation: the messages of a conversation without turns are an empty list in
// JSON. The page can't draw null: its stream would end and begin again.
func TestEmptyConversation(t *testing.T) {
	b := &Browser{}
	b.Store = struct {
		others
		begins
	}{begins: begins{open: new(bool)}}
	c, err := b.read(t.Context(), store.Caller{User: "ann"}, "t", 0, bots.Reader{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(c); err != nil || !strings.Contains(string(got), `"messages":[]`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestReplacedTurns: what was replaced is on no page of a conversation, however much it
// is, and counts nothing.
func TestReplacedTurns(t *testing.T) {
	var all turnsOf
	add := func(role store.TurnRole, replaces int) {
		all = append(all, store.Turn{N: len(all), Role: role, Replaces: replaces})
	}
	for range 60 {
		add(store.FromUser, 0)
	}
	for range 3 * turnsRead { // what came of the last of them
		add(store.FromModel, 0)
	}
	add(store.FromUser, len(all)-59)
	for range 10 {
		add(store.FromModel, 0)
	}
	turns, more, err := lastTurns(t.Context(), all, "t", 0)
	if err != nil || !more || turns[0].N != 20 {
		t.Fatalf("%d turns from %d, more %v, %v", len(turns), turns[0].N, more, err)
	}
	shown := store.InForce(turns)
	if len(shown) != pageSize || shown[38].N != 58 || shown[39].Replaces == 0 {
		t.Errorf("%d messages: %+v", len(shown), shown)
	}
}

// TestSearch: what was said is found however it is capitalised, from a little before it,
// and nothing that its reader may not read, or that was replaced.
func TestSearch(t *testing.T) {
	s := newSearch("ÜBUNG meister", time.Now)
	find := func(turns ...store.Turn) string {
		t.Helper()
		for i := range turns {
			turns[i].N = i
		}
		found, err := s.said(t.Context(), turnsOf(turns), store.Caller{User: "ann"}, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	text := strings.Repeat("ß ", 40) + "Die Übung\nmacht den Meister, " + strings.Repeat("so. ", 60)
	if got := find(store.Turn{Role: store.FromModel, Text: text}); !strings.HasPrefix(got, "…") || !strings.Contains(got, "ß Die Übung macht den Meister, so.") || !strings.HasSuffix(got, "…") {
		t.Errorf("found %q", got)
	}
	for _, turns := range [][]store.Turn{
		{{Role: store.FromTool, Text: text}},
		{{Role: store.FromModel, Text: text, For: "ben"}},
		{{Role: store.FromUser, Text: text}, {Role: store.FromUser, Text: "other", Replaces: 1}},
		{{Role: store.FromUser, Text: "Übung"}, {Role: store.FromUser, Text: "Meister"}},
	} {
		if got := find(turns...); got != "" {
			t.Errorf("found %q", got)
		}
	}
	s.ends = time.Now().Add(-time.Second)
	if got := find(store.Turn{Role: store.FromModel, Text: text}); got != "" {
		t.Errorf("after its time it found %q", got)
	}
}
