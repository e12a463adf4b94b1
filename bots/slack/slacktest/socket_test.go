package slacktest_test

import (
	"slices"
	"testing"

	"nize/bots/slack/slacktest"
)

func TestAMentionIsTwoEvents(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	must[slacktest.Message](t)(a.fake.Mention(slacktest.Ann, slacktest.General, "hello"))
	a.until("both events", func() bool { return a.fake.Stats().Acked == 2 })
	got := a.events()
	slices.Sort(got)
	if want := []string{"app_mention", "message"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if ids := a.fake.Events(); ids[0].ID == ids[1].ID {
		t.Error("the two events have one id")
	}
}
