package slack

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
)

// A Home that is drawn anew while somebody uses it says what its use did, not
// what it said before.
func TestRedrawWhileUsed(t *testing.T) {
	s := newGateScene(t)
	s.fake.OpenHome(slacktest.Ben)
	says := func(text string) func() bool {
		return func() bool {
			v, ok := s.fake.Home(slacktest.Ben)
			return ok && strings.Contains(string(v.Blocks), text)
		}
	}
	s.until("Ben's Home", says(""))
	l := s.current()
	due := func() bool { user, _ := l.homes.lately.next(); return user == slacktest.Ben }

	lock := l.homes.lock(slacktest.Ben)
	lock.Lock() // as a press that is being worked on
	l.homes.lately.all(time.Now().Add(-time.Minute))
	redrawn := make(chan error, 1)
	go func() { redrawn <- l.redraw(t.Context(), slacktest.Ben) }()
	for range 10_000 { // a redraw that took what the Home said before did so by then
		if !due() {
			break
		}
		runtime.Gosched()
	}
	l.homes.lately.opened(slacktest.Ben, homeState{}, "It is done.", time.Now())
	lock.Unlock()
	if err := <-redrawn; err != nil {
		t.Fatal(err)
	}
	if !says("It is done.")() {
		v, _ := s.fake.Home(slacktest.Ben)
		t.Errorf("the Home says %s", v.Blocks)
	}
}
