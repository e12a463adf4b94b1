package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// reply writes into a thread.
func (s *scene) reply(user string, root slacktest.Message, text string) {
	s.t.Helper()
	if _, err := s.fake.Reply(user, root, text); err != nil {
		s.t.Fatal(err)
	}
}

// Stop while the answer streams: Slack's stream ends, the turn too, and the
// next message is answered.
func TestSlackStopMidStream(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hold := make(chan struct{})
	s.says.plan("long", plan{say: []string{"one ", "two ", "three"}, hold: hold})
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#long")
	if err != nil {
		t.Fatal(err)
	}
	hold <- struct{}{}
	s.until("the answer begins", func() bool { return s.answers(root, "one") == 1 })
	if err := s.fake.StopSession(slacktest.Ben, root.Channel, root.TS); err != nil {
		t.Fatal(err)
	}
	s.until("the turn says that it was stopped", func() bool { return s.answers(root, "topped") == 1 })
	s.until("the session is active", func() bool { return s.fake.Session(root.Channel, root.TS).Status == "active" })
	for _, m := range s.fake.Thread(root.Channel, root.TS) {
		if m.Stream != nil && m.Stream.Open {
			t.Errorf("a stream is left open: %+v", m)
		}
		if m.User == slacktest.Bot && strings.Contains(m.Text, "two") {
			t.Errorf("it went on after the stop: %q", m.Text)
		}
	}
	s.reply(slacktest.Ben, root, "and #next")
	s.until("the next message is answered", func() bool { return s.answers(root, "You said next.") == 1 })
	if n := s.answers(root, "two"); n != 0 {
		t.Error("the stopped turn went on")
	}
	close(hold)
}

// Messages during a turn wait and are answered in order, each once; those of
// somebody else too.
func TestSlackQueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hold := make(chan struct{})
	s.says.plan("slow", plan{say: []string{"slow answer"}, hold: hold})
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#slow")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the model is at it", func() bool { return s.says.asked.Load() == 1 })
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> #a")
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> #b")
	s.settled("elsewhere") // other threads don't wait
	if n := s.answers(root, "You said"); n != 0 {
		t.Errorf("%d answers before the turn ended", n)
	}
	close(hold)
	s.until("both are answered", func() bool { return s.answers(root, "You said b.") == 1 })
	var order []string
	for _, m := range s.fake.Thread(root.Channel, root.TS) {
		for _, text := range []string{"slow answer", "You said a.", "You said b."} {
			if m.User == slacktest.Bot && strings.Contains(m.Text, text) {
				order = append(order, text)
			}
		}
	}
	if got := strings.Join(order, "; "); got != "slow answer; You said a.; You said b." {
		t.Errorf("answers: %s", got)
	}
}

// A message of the requester while a card waits cancels the call; its old
// button runs nothing.
func TestSlackMessageWhileCardWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asked, posted := s.ask(slacktest.Ben, "note")
	value := valueOf(t, posted, "call-run")
	s.reply(slacktest.Ben, asked, "<@"+slacktest.Bot+"> no, #other")
	card(s.killable, s.fake, asked, "cancelled")
	s.until("the new message is answered", func() bool { return s.answers(asked, "You said other.") == 1 })
	s.raw(slacktest.Ben, slacktest.Team, "run", value, posted, 1)
	s.until("the late press is in the audit", func() bool { return s.pressRefused()[slacktest.Ben] == 1 })
	if n := s.runs.Load(); n != 0 {
		t.Errorf("%d runs of a cancelled call", n)
	}
}

// Muting a thread ends following; unmuting lets it go on. A mention works all
// the time.
func TestSlackMute(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#w1")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(root, "You said w1.") == 1 })
	told := func() int { return len(s.fake.Ephemerals(slacktest.General, slacktest.Ben)) }
	before := told()
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> mute")
	s.until("mute is confirmed", func() bool { return told() == before+1 })
	s.reply(slacktest.Ben, root, "#w2")
	s.settled("between")
	if n := s.answers(root, "You said w2."); n != 0 {
		t.Error("a muted thread was answered")
	}
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> unmute")
	s.until("unmute is confirmed", func() bool { return told() == before+2 })
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> #w3")
	s.until("an answer", func() bool { return s.answers(root, "You said w3.") == 1 })
	s.reply(slacktest.Ben, root, "#w4")
	s.until("following goes on", func() bool { return s.answers(root, "You said w4.") == 1 })
}

// A process that is killed right after a press was acknowledged: the press is
// not lost, and the call ran at most once, whatever is pressed and redelivered
// afterwards.
func TestSlackKilledAfterPress(t *testing.T) {
	t.Parallel()
	s := &scene{fixture: &fixture{says: newSpeaker(t)}}
	s.up = mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "note", Description: "Write a note down.", Do: func(_ context.Context, args json.RawMessage) json.RawMessage {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.args = append(s.args, bytes.Clone(args))
		return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
	}}}})
	s.killable = newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: s.up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	s.says.use(t, s.Client)
	s.fake = onSlack(t, s.killable)
	states := map[store.State]int{}
	for n := range 8 {
		word, args := fmt.Sprintf("note%d", n), fmt.Sprintf(`{"n":%d}`, n)
		s.says.plan(word, plan{tool: "box:note", args: args})
		runs := func() int { // what a killed process asked for may arrive in a later round
			return len(slices.DeleteFunc(s.ran(), func(a string) bool { return a != args }))
		}
		asked, posted := s.ask(slacktest.Ann, word)
		value := valueOf(t, posted, "call-run")
		if err := s.fake.Press(ctx, slacktest.Ann, posted, "call-run"); err != nil {
			t.Fatal(err)
		}
		if n%2 == 1 { // a little later: while it runs, or after
			s.until("it runs", func() bool { return runs() > 0 })
		}
		s.restart(s.fake)
		state := store.State("")
		s.until("the call is settled", func() bool {
			c, err := api.GetCall.Call(ctx, s.Client, api.CallRequest{ID: strings.Fields(value)[1], Reason: "the test looks"})
			state = c.State
			return err == nil && (state == store.Done || state == store.Lost)
		})
		states[state]++
		s.until("the card says so", func() bool {
			m, _ := s.fake.Message(asked.Channel, posted.TS)
			return strings.Contains(m.Text, "\nstate: done") || strings.Contains(m.Text, "\nstate: outcome unknown")
		})
		acked := s.fake.Stats().Strange
		s.raw(slacktest.Ann, slacktest.Team, "run", value, posted, 1)
		s.raw(slacktest.Ann, slacktest.Team, "run", value, posted, 2)
		s.until("the late presses are acknowledged", func() bool { return s.fake.Stats().Strange >= acked+2 })
		s.until("they are in the audit", func() bool { return s.pressRefused()[slacktest.Ann] >= 2*(n+1) })
		if ran := runs(); ran > 1 || state == store.Done && ran != 1 {
			t.Errorf("round %d: %d runs of a call that is %s", n, ran, state)
		}
	}
	t.Logf("%v", states)
	if v, err := api.CheckAudit(ctx, s.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}
