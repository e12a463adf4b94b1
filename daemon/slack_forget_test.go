package daemon_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// A thread is forgotten by who began it, with a button, when nothing runs in
// it; nothing of it is in the store afterwards, and it begins anew.
func TestSlackForget(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	asked, posted := s.ask(slacktest.Ben, "note")
	if err := s.fake.Press(ctx, slacktest.Ben, posted, "call-run"); err != nil {
		t.Fatal(err)
	}
	s.until("the answer", func() bool { return s.answers(asked, "That was note.") == 1 })
	s.ended(asked)
	call := strings.Fields(valueOf(t, posted, "call-run"))[1]

	s.reply(slacktest.Cho, asked, "<@"+slacktest.Bot+"> forget")
	s.told(slacktest.Cho, "发起人") // it is not Cho's
	s.reply(slacktest.Ben, asked, "<@"+slacktest.Bot+"> forget")
	ask := s.told(slacktest.Ben, "Forget this conversation?")
	if ask.ThreadTS != asked.TS || s.answers(asked, "Forget") > 1 {
		t.Errorf("asked in the open: %+v", ask)
	}
	if err := s.fake.Press(ctx, slacktest.Ben, ask, "words:0"); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "forgotten (messages: 4, calls: 1)")
	c, err := api.GetCall.Call(ctx, s.Client, api.CallRequest{ID: call, Reason: "the test looks"})
	if err != nil || strings.Contains(string(c.Args), "hello") || c.Result != nil || c.Why != "" || c.State != store.Done {
		t.Errorf("what is left of the call: %+v, %v", c, err)
	}
	for e, err := range api.ReadAudit.Call(ctx, s.Client, api.AuditRequest{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Subject == call && !e.Erased && e.Kind != "call.read" { // which is this test's own look
			t.Errorf("the audit tells %+v", e)
		}
	}
	if v, err := api.CheckAudit(ctx, s.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
	if err := s.fake.Press(ctx, slacktest.Ben, ask, "words:0"); err != nil { // again
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "no longer exists")

	s.reply(slacktest.Cho, asked, "<@"+slacktest.Bot+"> #anew")
	s.until("the thread begins anew", func() bool { return s.answers(asked, "You said anew.") == 1 })
	if read := s.says.heard("anew"); strings.Contains(read, "#note") || strings.Contains(read, "noted") {
		t.Errorf("the model still reads %s", read)
	}
	s.reply(slacktest.Cho, asked, "<@"+slacktest.Bot+"> forget")
	s.told(slacktest.Cho, "要忘记此对话吗") // now it is Cho's

	// Not while a card waits.
	asked, _ = s.ask(slacktest.Ben, "note")
	s.reply(slacktest.Ben, asked, "<@"+slacktest.Bot+"> forget")
	s.until("a second question", func() bool {
		list := slices.DeleteFunc(s.fake.Ephemerals(slacktest.General, slacktest.Ben), func(m slacktest.Message) bool {
			return !strings.Contains(m.Text, "Forget this conversation?")
		})
		if len(list) == 2 {
			ask = list[1]
		}
		return len(list) == 2
	})
	if err := s.fake.Press(ctx, slacktest.Ben, ask, "words:0"); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "Write `stop` first")
	s.wellBehaved()
}

// A conversation is read over the control socket by those who took part; an
// admin needs a reason, which is in the audit, and what is for one person alone
// is not shown to them.
func TestReadingConversations(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.vault()
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "It holds red rubies.")
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> what was #that")
	s.until("Cho is answered", func() bool { return s.answers(root, "You said that.") == 1 })
	s.ended(root)
	id := strings.Fields(valueOf(t, s.offered(slacktest.Ben), "share"))[1]

	if _, err := api.ShowConversation.Call(t.Context(), s.Client, api.ShowConversationRequest{ID: id}); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "--reason") {
		t.Errorf("an admin without a reason: %v", err)
	}
	if n := s.count("thread.read"); n != 0 {
		t.Errorf("%d events of reading", n)
	}
	view, err := api.ShowConversation.Call(t.Context(), s.Client, api.ShowConversationRequest{ID: id, Reason: "a complaint"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, turn := range view.Turns {
		said = append(said, turn.Text)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "You said that.") || strings.Contains(all, "rubies") || !strings.Contains(all, store.Withheld) {
		t.Errorf("an admin reads %s", all)
	}
	if trail := s.trail(); s.count("thread.read") != 1 || !strings.Contains(trail, "a complaint") {
		t.Error("that an admin read it is not in the audit")
	}
	if _, err := api.SendMessage.Call(t.Context(), s.Client, api.SendMessageRequest{Conversation: id, Key: "k", Text: "hello"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an admin writes in it: %v", err)
	}
	calls := s.count("call.done")
	if c, err := api.GetCall.Call(t.Context(), s.Client, api.CallRequest{ID: strings.TrimPrefix(s.resultButton(root), "result:"), Reason: "the test looks"}); err != nil || c.Result != nil || calls == 0 {
		t.Errorf("an admin reads a result: %+v, %v", c.Result, err)
	}
}
