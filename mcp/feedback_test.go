package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/mcp"
	"nize/store"
)

// use calls a tool in a conversation.
func (h *fixture) use(by store.Caller, thread, tool string) {
	h.t.Helper()
	c, err := h.gateway.Call(h.t.Context(), by, store.Request{ID: store.NewID(time.Now()), Tool: tool, Args: json.RawMessage(`{"what":"x"}`), Thread: thread})
	if err != nil {
		h.t.Fatal(err)
	}
	if !c.State.Final() {
		h.t.Fatalf("%s is %s", tool, c.State)
	}
}

// learned waits until something is kept of n tools.
func (h *fixture) learned(n int) map[string][]store.Feedback {
	h.t.Helper()
	var all map[string][]store.Feedback
	h.until("something is learned", func() (err error) {
		all, err = h.db.ListFeedback(h.t.Context())
		return err
	}, func() bool { return len(all) == n })
	return all
}

// until polls, because learning happens after the call has returned.
func (h *fixture) until(what string, look func() error, ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(time.Minute)
	for {
		if err := look(); err != nil {
			h.t.Fatal(err)
		}
		if ok() {
			return
		}
		select {
		case <-tick.C:
		case <-patience:
			h.t.Fatalf("waited in vain until %s", what)
		}
	}
}

const learnableRequest = `please look at something new for Agatha 'Top Secret' with key sk-abcdefghijklmnopqrstuvwx and invoice 20261121, /srv/private/plan.txt`

func TestLearningFromUse(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("index.min_similarity", "0") // the query has many words that appear in no tool
	h.twin("ark")
	const question = "look at something new"
	first := func(by store.Caller, want string) {
		t.Helper()
		h.until(want+" comes first", func() error { return nil }, func() bool { return h.look(by, "", question)[0] == want })
	}
	first(h.member, "ark:look")
	h.look(h.root, "t1", learnableRequest)
	h.use(h.root, "t2", "box:look")   // another conversation
	h.use(h.member, "t1", "box:look") // another person
	h.runner.fail = &store.CallError{Code: store.CodeTimeout, Message: store.Plain("too slow")}
	h.use(h.root, "t1", "box:look")
	h.runner.fail = nil
	h.learned(0)

	h.use(h.root, "t1", "box:look")
	feedback := h.learned(1)["box:look"]
	if len(feedback) != 1 || feedback[0].User != h.root.User || strings.Join(feedback[0].Words, " ") != "look" {
		t.Errorf("learned %+v", feedback) // the same search teaches only once
	}
	h.use(h.root, "t1", "box:look") // no names, no values, only words from tools
	if again := h.learned(1)["box:look"]; !again[0].At.Equal(feedback[0].At) {
		t.Errorf("learned again: %+v", again)
	}
	h.look(h.member, "t3", question)
	h.use(h.member, "t3", "box:look")
	h.until("both have taught", func() error { feedback = h.learned(1)["box:look"]; return nil }, func() bool { return len(feedback) == 2 })
	first(h.member, "box:look")
	if r, err := h.gateway.Meta(t.Context(), h.member, store.Scope{}, store.ToolCall{Name: mcp.Discover, Args: `{"query":"` + question + `"}`}); err != nil || strings.Contains(string(r.Raw), "gatha") {
		t.Errorf("another's words are seen: %s (%v)", r.Raw, err)
	}

	// Another gateway reads it from the database. Switched off, it has no effect.
	h.index.ClearFeedback()
	first(h.member, "ark:look")
	if err := h.gateway.Feedback.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	first(h.member, "box:look")

	// Feedback is deleted with its person, or all at once.
	if n, err := h.gateway.Feedback.Forget(t.Context(), h.root, h.member.User); n != 1 || err != nil {
		t.Errorf("forgot %d requests, %v", n, err)
	}
	if l := h.learned(1)["box:look"]; slices.ContainsFunc(l, func(l store.Feedback) bool { return l.User == h.member.User }) {
		t.Errorf("still there: %+v", l)
	}
	h.look(h.root, "t1", question) // would teach if it were not deleted before the call
	if n, err := h.gateway.Feedback.Forget(t.Context(), h.root, ""); n != 1 || err != nil {
		t.Errorf("forgot %d requests, %v", n, err)
	}
	h.use(h.root, "t1", "box:look")
	first(h.member, "ark:look")
	h.learned(0)
}

func TestLearnsNothingUnlessTold(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("index.learn", "false")
	h.look(h.root, "t1", learnableRequest)
	h.use(h.root, "t1", "box:look")
	h.config.set("index.learn", "true")
	h.use(h.root, "t1", "box:look")
	h.learned(0)
}
