package slack

import (
	"testing"

	"nize/bots/slack/incoming"
	"nize/bots/slack/slacktest"
)

// What Slack said of somebody just before their account was switched off, and
// was heard only afterwards, lets them do nothing and keeps them from being
// disabled no longer.
func TestLeavesWhileLookedUp(t *testing.T) {
	s := newSweepScene(t)
	s.user("U0BOSS")
	gone := s.user(slacktest.Ben)
	held, looked := make(chan struct{}), make(chan error, 1)
	before := s.fake.Stats().Calls["users.info"]
	s.fake.Fail("users.info", slacktest.Fault{Held: held})
	go func() {
		_, err := s.l.look(t.Context(), slacktest.Ben, keepPerson)
		looked <- err
	}()
	asked := func() bool { return s.fake.Stats().Calls["users.info"] > before }
	if err := s.fake.Wait(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	s.leave(slacktest.Ben)
	e := incoming.Event{Message: incoming.Message{Type: "user_change", User: slacktest.Ben}, ID: "Ev1", Team: slacktest.Team, Left: true}
	if matters, _ := s.l.matters(t.Context(), &e); !matters {
		t.Error("it is no news that somebody left")
	}
	close(held)
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if p, err := s.l.look(t.Context(), slacktest.Ben, keepPerson); err != nil || p.active || p.member {
		t.Errorf("after the news Ben is %+v, %v", p, err)
	}
	if err := s.l.event(t.Context(), e); err != nil || s.active(gone) {
		t.Errorf("Ben is still active: %v", err)
	}
}
