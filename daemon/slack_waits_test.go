package daemon_test

import (
	"strings"
	"sync"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// TestSlackMessageMeetsYes: a yes and the requester's next message come at the same
// moment. A call that others decide runs, once, and the message is answered after it; one
// of the requester's own runs once or is withdrawn, never both.
func TestSlackMessageMeetsYes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	outcomes := map[store.State]int{}
	for n := range 8 { // one person may send 20 messages in five minutes
		own := n%2 == 0
		s.approvers(map[bool]string{true: "requester", false: "admins"}[own])
		before := s.runs.Load()
		root, posted := s.ask(slacktest.Ben, "note")
		id, by, list := callOf(posted), slacktest.Ben, s.thread(root)
		if !own {
			by, list = slacktest.Ann, s.private(slacktest.Ann)
		}
		shown := s.cardOf(id, "waiting for approval", list)
		s.waiting(root)
		var wg sync.WaitGroup
		say := func() { s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> thanks #after") }
		if n < 4 {
			wg.Go(say)
		} else {
			say() // it is taken first, and perhaps read
		}
		wg.Go(func() {
			if err := s.fake.Press(t.Context(), by, shown, "call-run"); err != nil && !strings.Contains(err.Error(), "to act on") {
				t.Error(err)
			}
		})
		wg.Wait()
		s.until("the message is answered", func() bool { return s.answers(root, "You said after.") == 1 })
		c, err := api.GetCall.Call(t.Context(), s.Client, api.CallRequest{ID: id, Reason: "a test looks"})
		if err != nil {
			t.Fatal(err)
		}
		ran := s.runs.Load() - before
		if ran != map[store.State]int64{store.Done: 1}[c.State] || !own && c.State != store.Done || own && c.State != store.Done && c.State != store.Cancelled {
			t.Errorf("%d: own %v: the call is %s after %d runs", n, own, c.State, ran)
		}
		outcomes[c.State]++
	}
	t.Logf("outcomes: %v", outcomes)
	s.wellBehaved()
}

// TestSlackMessageWaits: what the requester writes meanwhile leaves a call alone that
// others decide, and they are told that it waits.
func TestSlackMessageWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.approvers("admins")
	root, posted := s.ask(slacktest.Ben, "note")
	id := callOf(posted)
	s.waiting(root)
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> thanks, I will wait #after")
	s.until("Ben is told", func() bool {
		return s.answers(root, "Others still have to decide about box:note. I will answer your message after that.") == 1
	})
	if got := s.waits(); len(got) != 1 || got[0] != id || s.answers(root, "You said after.") != 0 {
		t.Fatalf("waiting: %v", got)
	}
	s.press(slacktest.Ann, s.cardOf(id, "waiting for approval", s.private(slacktest.Ann)), "run")
	s.until("the message is answered", func() bool { return s.answers(root, "You said after.") == 1 })
	if n := s.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}

	// Who asked takes it back themselves.
	root, posted = s.ask(slacktest.Ben, "note")
	s.waiting(root)
	s.press(slacktest.Ben, posted, "cancel")
	s.cardOf(callOf(posted), "cancelled", s.thread(root))
	if got := s.waits(); len(got) != 0 || s.runs.Load() != 1 {
		t.Errorf("waiting: %v, %d runs", got, s.runs.Load())
	}
	s.wellBehaved()
}
