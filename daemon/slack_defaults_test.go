package daemon_test

import (
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// userOf is the user behind somebody of Slack's.
func (s *scene) userOf(id string) store.User {
	s.t.Helper()
	users, err := api.ListUsers.Call(s.t.Context(), s.Client, api.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, u := range users.Items {
		if slices.ContainsFunc(u.Identities, func(i string) bool { return strings.HasSuffix(i, ":"+id) }) {
			return u
		}
	}
	s.t.Fatalf("nobody is %s", id)
	return store.User{}
}

// What somebody chooses outside any thread is what their conversations begin
// with, as far as they may; what a channel says goes before it.
func TestSlackOwnDefaults(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	says := func(user, line, answer string) {
		t.Helper()
		s.slash(user, line)
		s.told(user, answer)
	}
	for id, who := range map[string][]string{"ops": nil, "room": nil, "secret": {"admins"}} {
		if _, err := api.PutAgent.Call(ctx, s.Client, api.PutAgentRequest{ID: id, Agent: store.Agent{ID: id, Name: id, Who: who, SystemPrompt: "I am " + id + "."}}); err != nil {
			t.Fatal(err)
		}
	}
	says(slacktest.Ben, "/nize agent secret", `agent "secret" not found`)
	says(slacktest.Ben, "/nize agent nobody", `agent "nobody" not found`)
	says(slacktest.Ben, "/nize agent ops", "ops answers in the conversations that you begin")
	ben := s.userOf(slacktest.Ben)
	with := func(word string) string {
		t.Helper()
		m, err := s.fake.DM(slacktest.Ben, "#"+word)
		if err != nil {
			t.Fatal(err)
		}
		s.until("the answer to "+word, func() bool { return s.answers(m, "You said "+word+".") == 1 })
		return s.says.prompt(word)
	}
	if p := with("one"); !strings.Contains(p, "I am ops.") {
		t.Errorf("the prompt is %q", p)
	}
	// By the control socket an admin can set it, for what the person may use.
	if _, err := api.PutSetting.Call(ctx, s.Client, api.PutSettingRequest{Key: "chat.agent", User: ben.ID, Value: "secret"}); err == nil {
		t.Error("an agent that is not Ben's was set for him")
	}
	if _, err := api.PutSetting.Call(ctx, s.Client, api.PutSettingRequest{Key: "chat.agent", Value: "ops"}); err == nil || !strings.Contains(err.Error(), "each person's own") {
		t.Errorf("the system got one: %v", err)
	}
	// One that is taken away counts as none.
	if _, err := api.PutAgent.Call(ctx, s.Client, api.PutAgentRequest{ID: "ops", Agent: store.Agent{ID: "ops", Name: "ops", Who: []string{"admins"}, SystemPrompt: "I am ops."}}); err != nil {
		t.Fatal(err)
	}
	if p := with("two"); strings.Contains(p, "I am ops.") {
		t.Errorf("the prompt is %q", p)
	}
	says(slacktest.Ben, "/nize agent default", "the default answers in the conversations that you begin")

	// A server is off until it is on again.
	says(slacktest.Ben, "/nize servers deny nowhere", `server "nowhere" not found`)
	says(slacktest.Ben, "/nize servers deny box", "Tools of box are no longer used for you")
	says(slacktest.Ben, "/nize servers", "switched off by you")
	why, err := api.ExplainTool.Call(ctx, s.Client, api.ExplainToolRequest{ID: "box:note", User: ben.ID})
	if err != nil || why.Usable {
		t.Errorf("why %+v, %v", why, err)
	}
	says(slacktest.Ben, "/nize servers allow box", "box may be used for you again")
	if why, err = api.ExplainTool.Call(ctx, s.Client, api.ExplainToolRequest{ID: "box:note", User: ben.ID}); err != nil || !why.Usable {
		t.Errorf("why %+v, %v", why, err)
	}

	// In a thread the same words are about it, by who began it.
	m, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#three")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(m, "You said three.") == 1 })
	in := func(user, words, answer string) {
		t.Helper()
		if _, err := s.fake.Reply(user, m, "<@"+slacktest.Bot+"> "+words); err != nil {
			t.Fatal(err)
		}
		s.told(user, answer)
	}
	in(slacktest.Ben, "streaming off", "in this conversation are shown when they are whole")
	in(slacktest.Ben, "streaming default", "in this conversation are shown while they are written")
	in(slacktest.Ben, "servers deny box", "one server stays")
	in(slacktest.Ben, "agent room", "room answers in this conversation")
	s.slash(slacktest.Ben, "/nize streaming off")
	s.told(slacktest.Ben, "that you begin are shown when they are whole")
	s.wellBehaved()
}
