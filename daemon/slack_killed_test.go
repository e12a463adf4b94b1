package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// newKilledScene is newScene with a real process, which can be killed.
func newKilledScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{fixture: &fixture{says: newSpeaker(t)}}
	s.up = mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		s.runs.Add(1)
		return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
	}}}})
	s.killable = newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: s.up.HTTP(), Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	s.says.use(t, s.Client)
	s.fake = onSlack(t, s.killable)
	for key, value := range map[string]string{"limits.user.messages": "0", "limits.user.turns": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(ctx, s.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	s.says.plan("note", plan{tool: "box:note", args: `{"text":"hello"}`})
	return s
}

// texts are nize's messages in a thread, but for lines about tools and cards.
func (s *scene) texts(root slacktest.Message) []string {
	var list []string
	for _, m := range s.fake.Thread(root.Channel, root.Root()) {
		if m.User == slacktest.Bot && !strings.Contains(string(m.Blocks), `"context"`) && !strings.Contains(m.Text, "\ncall: ") {
			list = append(list, m.Text)
		}
	}
	return list
}

// ends waits until a thread has ended with just these texts.
func (s *scene) ends(root slacktest.Message, want ...string) {
	s.t.Helper()
	wanted := strings.Join(want, " | ")
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the thread says %q, %+v", s.texts(root), s.fake.Session(root.Channel, root.Root()).Statuses)
		}
	}()
	s.until("the thread says "+wanted, func() bool { return strings.Join(s.texts(root), " | ") == wanted })
	s.until("the session is active", func() bool { return s.fake.Session(root.Channel, root.Root()).Status == "active" })
	s.until("no stream is open", func() bool {
		return !slices.ContainsFunc(s.fake.Thread(root.Channel, root.Root()), func(m slacktest.Message) bool { return m.Stream != nil && m.Stream.Open })
	})
	s.settled(fmt.Sprintf("settled%d", s.says.asked.Load())) // nothing comes behind it
	if got := strings.Join(s.texts(root), " | "); got != wanted {
		s.t.Errorf("the thread says %s, want %s", got, wanted)
	}
}

// over says whether the turns of a thread are, in the store.
func (s *scene) over(root slacktest.Message) bool {
	s.t.Helper()
	report, err := api.GetUsage.Call(s.t.Context(), s.Client, api.GetUsageRequest{By: "conversation"})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, row := range report.Rows {
		view, err := api.ShowConversation.Call(s.t.Context(), s.Client, api.ShowConversationRequest{ID: row.Key, Reason: "a test"})
		if err != nil {
			s.t.Fatal(err)
		}
		if view.Thread.Address.Thread == root.TS {
			return !view.Thread.Open
		}
	}
	return false
}

// An answer that is stored when the process dies is brought by the next one,
// wherever it died: Slack did not take it, Slack took it and nobody learned of
// it, half of it was there. The model is not asked again.
func TestSlackAnswerStored(t *testing.T) {
	t.Parallel()
	s := newKilledScene(t)
	long := strings.TrimSpace(strings.Repeat("A line of the answer, neither short nor long.\n", 500)) // three messages; a posted one has no line end
	for name, test := range map[string]struct {
		say   []string
		fault slacktest.Fault
		calls []string
	}{
		"refused":        {[]string{"the answer"}, slacktest.Fault{Status: http.StatusInternalServerError, Times: 1 << 20}, []string{"chat.startStream", "chat.postMessage"}},
		"limited":        {[]string{"the answer"}, slacktest.Fault{RetryAfter: time.Minute}, []string{"chat.startStream"}},
		"taken":          {[]string{"the answer"}, slacktest.Fault{Hang: true}, []string{"chat.startStream"}},
		"half of it":     {[]string{"the ", "answer"}, slacktest.Fault{Hang: true}, []string{"chat.appendStream"}},
		"not closed":     {[]string{"the answer"}, slacktest.Fault{Hang: true}, []string{"chat.stopStream"}},
		"not closed yet": {[]string{"the answer"}, slacktest.Fault{Status: http.StatusInternalServerError, Times: 1 << 20}, []string{"chat.stopStream"}},
		"long":           {[]string{long}, slacktest.Fault{Hang: true}, []string{"chat.stopStream"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(was *testing.T) { s.t = was }(s.t)
			s.t = t
			hold := make(chan struct{})
			s.says.plan("stored", plan{say: test.say, hold: hold})
			asked := s.says.asked.Load()
			for _, method := range test.calls {
				s.fake.Fail(method, test.fault)
			}
			before := s.fake.Stats().Calls
			root, err := s.fake.Mention(slacktest.Ann, slacktest.General, "#stored")
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.say {
				hold <- struct{}{}
				if i < len(test.say)-1 {
					s.until("it begins", func() bool { return s.answers(root, strings.TrimSpace(test.say[i])) == 1 })
				}
			}
			s.until("Slack is asked", func() bool { return s.fake.Stats().Calls[test.calls[0]] > before[test.calls[0]] })
			if test.fault.Times > 0 {
				s.until("the turn is over", func() bool { return s.fake.Session(root.Channel, root.TS).Status == "active" })
			} else {
				s.until("the answer is stored", func() bool { return s.over(root) })
			}
			s.restart(s.fake)
			close(hold)
			if name == "long" {
				s.until("all of it is there", func() bool { return strings.Join(s.texts(root), "") == long })
			} else {
				s.ends(root, "the answer")
			}
			if n := s.says.asked.Load() - asked; n > 2 { // once for the answer; the other shows that it is over
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// Half an answer that a killed process left gives way to the answer: whatever
// the model says the next time, also where it says nothing at first or calls a
// tool instead.
func TestSlackAnswerCut(t *testing.T) {
	t.Parallel()
	s := newKilledScene(t)
	cut := func(word string, fault slacktest.Fault, then plan) slacktest.Message {
		t.Helper()
		hold := make(chan struct{})
		s.says.plan(word, plan{say: []string{"It was going ", "well"}, hold: hold})
		if fault != (slacktest.Fault{}) {
			s.fake.Fail("chat.startStream", fault)
		}
		root, err := s.fake.Mention(slacktest.Ann, slacktest.General, "#"+word)
		if err != nil {
			t.Fatal(err)
		}
		hold <- struct{}{}
		s.until("half of it is there", func() bool { return s.answers(root, "It was going") == 1 })
		if s.fake.Session(root.Channel, root.TS).Status != "processing" {
			t.Errorf("the session is %+v", s.fake.Session(root.Channel, root.TS))
		}
		s.says.plan(word, then)
		s.restart(s.fake)
		return root
	}
	t.Run("the same", func(t *testing.T) {
		s.ends(cut("same", slacktest.Fault{}, plan{say: []string{"It was going ", "well"}}), "It was going well")
	})
	t.Run("another", func(t *testing.T) {
		s.ends(cut("other", slacktest.Fault{}, plan{say: []string{"Something ", "else."}}), "Something else.")
	})
	t.Run("nobody learned where", func(t *testing.T) {
		s.ends(cut("lost", slacktest.Fault{Hang: true}, plan{say: []string{"Something ", "else."}}), "Something else.")
	})
	t.Run("killed again", func(t *testing.T) {
		hold := make(chan struct{})
		root := cut("twice", slacktest.Fault{}, plan{say: []string{"Now ", "really."}, hold: hold})
		hold <- struct{}{}
		s.until("it begins again", func() bool { return s.answers(root, "Now") == 1 })
		s.says.plan("twice", plan{say: []string{"At last."}})
		s.restart(s.fake)
		s.ends(root, "At last.")
	})
	t.Run("a tool", func(t *testing.T) {
		root := cut("tool", slacktest.Fault{}, plan{tool: "box:note", args: `{"text":"hello"}`})
		posted := card(s.killable, s.fake, root, "waiting for approval")
		if n := s.answers(root, "It was going"); n != 0 {
			t.Errorf("half an answer stands above the card")
		}
		s.until("the session is suspended", func() bool { return s.fake.Session(root.Channel, root.TS).Status == "suspended" })
		s.restart(s.fake)
		if err := s.fake.Press(t.Context(), slacktest.Ann, posted, "call-run"); err != nil {
			t.Fatal(err)
		}
		s.ends(root, "That was tool.")
	})
	t.Run("stopped", func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		root := cut("stop", slacktest.Fault{}, plan{say: []string{"never"}, hold: hold})
		if err := s.fake.StopSession(slacktest.Ann, root.Channel, root.TS); err != nil {
			t.Fatal(err)
		}
		s.ends(root, "Stopped.")
	})
}
