package daemon_test

import (
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
)

// lines are what stands in somebody's conversation with nize and holds text.
func (s *scene) lines(user, text string) (n int) {
	for _, m := range s.fake.Messages(s.fake.DMChannel(user)) {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// A channel that is shut while a card waits: the call runs once, and who asked
// is told in private, once, that its answer has no place any more.
func TestSlackShut(t *testing.T) {
	t.Parallel()
	leave := func(s *scene, root slacktest.Message) error { return s.fake.Leave(slacktest.Bot, root.Channel) }
	for name, c := range map[string]struct {
		in   string
		shut func(s *scene, root slacktest.Message) error
	}{
		"taken out":                    {slacktest.General, leave},
		"taken out of a private one":   {slacktest.Secret, leave},
		"the first message is deleted": {slacktest.General, func(s *scene, root slacktest.Message) error { return s.fake.Delete(root) }},
		"the thread is locked":         {slacktest.General, func(s *scene, root slacktest.Message) error { s.fake.LockThread(root); return nil }},
		"archived": {slacktest.General, func(s *scene, root slacktest.Message) error {
			s.fake.AddChannel(slacktest.Channel{ID: root.Channel, Name: "general", Archived: true, Members: []string{slacktest.Bot, slacktest.Ann, slacktest.Ben}})
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			root, err := s.fake.Mention(slacktest.Ben, c.in, "please #note")
			if err != nil {
				t.Fatal(err)
			}
			posted := card(s.killable, s.fake, root, "waiting for approval")
			if err := c.shut(s, root); err != nil {
				t.Fatal(err)
			}
			s.press(slacktest.Ben, posted, "run")
			said := "I can't answer you in <#" + c.in + ">: I am no longer in that channel"
			s.until("Ben is told", func() bool { return s.lines(slacktest.Ben, said) > 0 })
			s.until("the model has the result", func() bool { return strings.Contains(s.says.heard("note"), "noted") })
			s.settledIn(slacktest.Shared)
			if n := s.lines(slacktest.Ben, said); n != 1 || s.runs.Load() != 1 {
				t.Errorf("told %d times, %d runs", n, s.runs.Load())
			}
		})
	}
}

// settledIn is settled for when the usual channel is shut.
func (s *scene) settledIn(channel string) {
	s.t.Helper()
	m, err := s.fake.Mention(slacktest.Ann, channel, "#settled")
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("the answer", func() bool { return s.answers(m, "You said settled.") == 1 })
	s.ended(m)
}

// In a conversation of two people, where nize is not, /nize is answered in the
// person's own conversation with nize.
func TestSlackBetweenTwo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.fake.AddChannel(slacktest.Channel{ID: "D0ANNBEN", IM: true, Members: []string{slacktest.Ann, slacktest.Ben}})
	for _, c := range [][2]string{
		{"/nize help", "`usage"}, {"/nize nonsense", "I don't know this command"}, {"/nize usage", "You used "},
		{"/nize please #two words", "You said two."}, {"/nize usage", "What you used in the last"},
	} {
		line, answer := c[0], c[1]
		before := s.lines(slacktest.Ben, answer)
		if err := s.fake.Slash(t.Context(), slacktest.Ben, "D0ANNBEN", line); err != nil {
			t.Fatal(err)
		}
		s.until("the answer to "+line, func() bool { return s.lines(slacktest.Ben, answer) > before })
		if strings.Contains(line, "#two") {
			s.until("it is booked", func() bool {
				report, err := api.GetUsage.Call(t.Context(), s.Client, api.GetUsageRequest{By: "user"})
				return err == nil && report.Total.Calls == 1
			})
		}
	}
	if list := s.fake.Messages("D0ANNBEN"); len(list) > 0 {
		t.Errorf("between Ann and Ben stands %+v", list)
	}
	s.wellBehaved(slacktest.Refusal{Method: "conversations.info", Error: "channel_not_found"})
}

// /nize stop, which is never in a thread, stops what who says it began in that
// channel, and nothing else.
func TestSlackStopWord(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var cards []slacktest.Message
	for _, c := range []struct{ user, channel string }{{slacktest.Ben, slacktest.General}, {slacktest.Ben, slacktest.Secret}, {slacktest.Ann, slacktest.General}} {
		root, err := s.fake.Mention(c.user, c.channel, "please #note")
		if err != nil {
			t.Fatal(err)
		}
		card(s.killable, s.fake, root, "waiting for approval")
		cards = append(cards, root)
	}
	if err := s.fake.Slash(t.Context(), slacktest.Ben, slacktest.General, "/nize stop"); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, cards[0], "cancelled")
	s.settled("stopped")
	for _, root := range cards[1:] {
		card(s.killable, s.fake, root, "waiting for approval")
	}
	if err := s.fake.Slash(t.Context(), slacktest.Cho, slacktest.General, "/nize stop"); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Cho, "没有")
}
