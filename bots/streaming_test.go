package bots_test

import (
	"slices"
	"strings"
	"testing"

	"nize/store"
)

// A person who doesn't want to read along gets an answer once, complete; a setting of the
// conversation has priority.
func TestWholeAnswers(t *testing.T) {
	config := limits("0", "0")
	config["streaming"] = "false"
	o := newOfficeWith(t, config)
	o.agent.Hung = make(chan string, 2) // two slow answers
	whole, streamed := o.thread(), o.thread()
	if _, err := o.db.EditThread(o.ctx, store.System, streamed, func(th *store.Thread) { th.Streaming = store.StreamingOn }); err != nil {
		t.Fatal(err)
	}
	o.say(whole, "1", "slow mountain hill")
	select {
	case <-o.agent.Hung:
	case <-o.ctx.Done():
		t.Fatal("the answer did not begin")
	}
	o.say(streamed, "2", "slow river bank")
	o.streams("river")
	see := func(when string) func([]store.Message) bool {
		return func(all []store.Message) bool {
			for _, m := range all {
				if strings.Contains(m.Text, "mountain") && !m.Final {
					t.Errorf("%s: shown while it was written: %+v", when, m)
				}
			}
			return slices.ContainsFunc(all, func(m store.Message) bool { return m.Final && m.Text == "mountain hill" })
		}
	}
	shown, err := o.memory.See(o.ctx, func([]store.Message) bool { return true })
	if err != nil || see("before the stop")(shown) {
		t.Fatalf("shown %+v, %v", shown, err)
	}
	for _, thread := range []string{whole, streamed} {
		if err := o.Stop(o.ctx, o.by, thread); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.memory.See(o.ctx, see("after the stop")); err != nil {
		t.Errorf("waiting for the whole answer: %v", err)
	}
}

// Some models begin with blanks. No platform posts a message of blanks only.
func TestBlankBeginning(t *testing.T) {
	o := newOffice(t)
	o.agent.Hung = make(chan string, 1)
	thread := o.thread()
	o.say(thread, "1", "slow \n \n ")
	select {
	case <-o.agent.Hung:
	case <-o.ctx.Done():
		t.Fatal("the answer did not begin")
	}
	if err := o.Stop(o.ctx, o.by, thread); err != nil {
		t.Fatal(err)
	}
	o.say(thread, "2", "say \n \nhill")
	o.see(store.TextMessage, "hill")
	shown, err := o.memory.See(o.ctx, func([]store.Message) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shown {
		if strings.TrimSpace(m.Text) == "" && m.Kind == store.TextMessage {
			t.Errorf("shown: %+v", m)
		}
	}
}
