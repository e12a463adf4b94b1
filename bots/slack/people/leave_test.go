package people

import (
	"testing"

	slackgo "github.com/slack-go/slack"

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
		_, err := s.d.LookUp(t.Context(), slacktest.Ben, Recent)
		looked <- err
	}()
	asked := func() bool { return s.fake.Stats().Calls["users.info"] > before }
	if err := s.fake.Wait(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	s.leave(slacktest.Ben)
	e := incoming.Event{Message: incoming.Message{Msg: slackgo.Msg{Type: "user_change", User: slacktest.Ben}}, ID: "Ev1", Team: slacktest.Team, Left: true}
	s.d.Forget(slacktest.Ben) // as is done when the event comes
	close(held)
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if p, err := s.d.LookUp(t.Context(), slacktest.Ben, Recent); err != nil || p.active || p.Member {
		t.Errorf("after the news Ben is %+v, %v", p, err)
	}
	if err := s.d.HandleUserChange(t.Context(), e); err != nil || s.active(gone) {
		t.Errorf("Ben is still active: %v", err)
	}
}
