package daemon_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// Whose account on Slack is switched off has nothing left within two seconds:
// tokens, a call that waits with its stream, and what they could decide.
func TestSlackLeaver(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	asked, posted := s.ask(slacktest.Ben, "note")
	ben, ok := s.person(slacktest.Ben)
	if !ok {
		t.Fatal("Ben is no user")
	}
	made, err := api.CreateToken.Call(ctx, s.Client, api.CreateTokenRequest{Name: "laptop", User: ben.ID})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() { ended <- s.execute(made.Secret.Reveal(), "box:note", `{"text":"mine"}`) }()
	s.until("both calls wait", func() bool {
		v, _ := s.person(slacktest.Ben)
		return v.Waiting == 2
	})
	began := time.Now()
	if err := s.fake.Deactivate(slacktest.Ben); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-ended:
		if strings.Contains(got, "noted") {
			t.Errorf("the client got %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the client's stream stays open")
	}
	t.Logf("it took %v, of two seconds", time.Since(began))
	card(s.killable, s.fake, asked, "cancelled")
	v, _ := s.person(slacktest.Ben)
	if v.State != store.Disabled || len(v.Tokens) > 0 || v.Waiting > 0 {
		t.Errorf("Ben is %+v", v)
	}
	if got := s.execute(made.Secret.Reveal(), "box:note", `{"text":"again"}`); !strings.Contains(got, "token") || strings.Contains(got, "noted") {
		t.Errorf("with the old token: %s", got)
	}
	s.raw(slacktest.Ben, slacktest.Team, "run", valueOf(t, posted, "call-run"), posted, 1)
	s.until("the press is refused", func() bool { return s.pressRefused()[slacktest.Ben] == 1 })
	if n := s.runs.Load(); n != 0 {
		t.Errorf("%d runs for somebody who left", n)
	}
}

// Who left without a word is found by the sweep; one that was asked for is told
// of beside the bot.
func TestSlackSweep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	m, err := s.fake.Mention(slacktest.Ben, slacktest.General, "hello #ben")
	if err != nil {
		t.Fatal(err)
	}
	s.until("Ben is answered", func() bool { return s.answers(m, "You said ben.") == 1 })
	ben, _ := s.person(slacktest.Ben)
	made, err := api.CreateToken.Call(ctx, s.Client, api.CreateTokenRequest{Name: "laptop", User: ben.ID})
	if err != nil {
		t.Fatal(err)
	}
	list, err := api.ListBots.Call(ctx, s.Client, api.Empty{})
	if err != nil || list.Items[0].Sweep != nil {
		t.Errorf("before the first: %+v, %v", list, err)
	}
	for _, u := range s.fake.Users() {
		if u.ID == slacktest.Ben {
			u.Deleted = true
			s.fake.AddUser(u) // without an event
		}
	}
	for _, op := range []api.Op[api.BotRequest, api.BotView]{api.StopBot, api.StartBot} { // what was seen of Ben just now is not remembered
		if _, err := op.Call(ctx, s.Client, api.BotRequest{Name: "slack"}); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the bot is connected", func() bool {
		list, err := api.ListBots.Call(ctx, s.Client, api.Empty{})
		return err == nil && list.Items[0].State == "connected"
	})
	if _, err := api.SweepBot.Call(ctx, s.Client, api.BotRequest{Name: "slack"}); err != nil {
		t.Fatal(err)
	}
	s.until("Ben is found", func() bool {
		list, err = api.ListBots.Call(ctx, s.Client, api.Empty{})
		return err == nil && list.Items[0].Sweep != nil && !list.Items[0].Sweep.UnderWay() && slices.Contains(list.Items[0].Sweep.Disabled, ben.ID)
	})
	if list.Items[0].Sweep.Checked != 2 || list.Items[0].Sweep.Failed != 0 {
		t.Errorf("the sweep: %+v", list.Items[0].Sweep)
	}
	if v, _ := s.person(slacktest.Ben); v.State != store.Disabled || len(v.Tokens) > 0 {
		t.Errorf("Ben is %+v", v)
	}
	if v, _ := s.person(slacktest.Ann); v.State != store.Active {
		t.Errorf("Ann is %+v", v)
	}
	if got := s.execute(made.Secret.Reveal(), "box:note", `{}`); !strings.Contains(got, "token") {
		t.Errorf("with the old token: %s", got)
	}
}
