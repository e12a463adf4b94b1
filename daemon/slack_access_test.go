package daemon_test

import (
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// person finds the user of somebody on Slack.
func (s *scene) person(id string) (api.UserView, bool) {
	s.t.Helper()
	users, err := api.ListUsers.Call(s.t.Context(), s.Client, api.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, u := range users.Items {
		if slices.Contains(u.Identities, "slack:"+slacktest.Team+":"+id) {
			v, err := api.GetUser.Call(s.t.Context(), s.Client, api.GetUserRequest{ID: u.ID})
			if err != nil {
				s.t.Fatal(err)
			}
			return v, true
		}
	}
	return api.UserView{}, false
}

// reads counts what nize told somebody in private that holds the text.
func (s *scene) reads(user, text string) (n int) {
	list := append(s.fake.Messages(s.fake.DMChannel(user)), s.fake.Ephemerals(slacktest.General, user)...)
	for _, m := range list {
		if m.User == slacktest.Bot && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// With bots.access naming a group from Slack, those in it may talk to nize and
// use what is shared with it from their first message on; the others cost no
// call of the model. Who joins there may at once; who leaves may no more.
func TestSlackAccessByGroup(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	set := func(value string) error {
		_, err := api.PutSetting.Call(ctx, s.Client, api.PutSettingRequest{Key: "bots.access", Value: value})
		return err
	}
	for value, want := range map[string]string{"group:opps": "not found", "user:nobody": "not found", "everyone": "none of members", "guests": "none of members"} {
		if err := set(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("bots.access = %s: %v", value, err)
		}
	}
	s.fake.AddGroup(slacktest.UserGroup{ID: "S0OPS", Handle: "ops", Users: []string{slacktest.Ben, slacktest.Guest}})
	if _, err := api.AddGroup.Call(ctx, s.Client, api.AddGroupRequest{Name: "ops", Usergroup: "ops"}); err != nil {
		t.Fatal(err)
	}
	if err := set("group:ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PatchServer.Call(ctx, s.Client, api.PatchServerRequest{Name: "box", Visibility: &[]string{"group:ops"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.RemoveGroup.Call(ctx, s.Client, api.RemoveGroupRequest{Name: "ops"}); err == nil {
		t.Error("a group that decides who may talk was removed")
	}
	if err := s.fake.Join(slacktest.Guest, slacktest.General); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{slacktest.Cho, slacktest.Guest} {
		if _, err := s.fake.Mention(user, slacktest.General, "hello #outside"); err != nil {
			t.Fatal(err)
		}
	}
	s.until("Cho is refused", func() bool { return s.reads(slacktest.Cho, "nize 管理员") == 1 })
	s.until("the guest is refused", func() bool { return s.reads(slacktest.Guest, "full members") == 1 })

	// Ben's first message already finds the tool that the group has.
	asked, posted := s.ask(slacktest.Ben, "note")
	if err := s.fake.Press(ctx, slacktest.Ben, posted, "call-run"); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, asked, "done")
	s.until("the model has had its say", func() bool { return s.answers(asked, "That was note.") == 1 })
	if _, ok := s.person(slacktest.Cho); ok {
		t.Error("Cho became a user")
	}

	if v, _ := s.person(slacktest.Ben); v.Role != store.Member || !slices.Contains(v.Groups, "ops") || v.PrivacyNotice.IsZero() {
		t.Errorf("Ben is %+v", v)
	}

	// A change of the setting holds from the next message on.
	if err := set("admins"); err != nil {
		t.Fatal(err)
	}
	asks := s.says.asked.Load()
	if _, err := s.fake.Mention(slacktest.Ben, slacktest.General, "hello #ben"); err != nil {
		t.Fatal(err)
	}
	s.until("Ben is refused", func() bool { return s.reads(slacktest.Ben, "the admins of nize") == 1 })
	if n := s.says.asked.Load() - asks; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, err := api.RemoveGroup.Call(ctx, s.Client, api.RemoveGroupRequest{Name: "ops"}); err == nil {
		t.Error("a group that a server is shared with was removed")
	}
}

// A group from Slack decides about calls: the card names it, who is in it has a
// copy and may press, and nobody else, who asked included.
func TestSlackGroupApproves(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	m, err := s.fake.Mention(slacktest.Cho, slacktest.General, "hello #cho")
	if err != nil {
		t.Fatal(err)
	}
	s.until("Cho is answered", func() bool { return s.answers(m, "You said cho.") == 1 })
	s.fake.AddGroup(slacktest.UserGroup{ID: "S0CALL", Handle: "on-call", Users: []string{slacktest.Cho, slacktest.Guest, slacktest.OtherBot}})
	if _, err := api.AddGroup.Call(ctx, s.Client, api.AddGroupRequest{Name: "on-call", Usergroup: "@on-call"}); err != nil {
		t.Fatal(err)
	}
	s.approvers("group:on-call")
	asked, posted := s.ask(slacktest.Ben, "note")
	if !strings.Contains(posted.Text, "on-call") {
		t.Errorf("the card does not name the group: %s", posted.Text)
	}
	id := s.next()
	s.until("Cho has a copy", func() bool {
		return slices.ContainsFunc(s.private(slacktest.Cho)(), func(m slacktest.Message) bool { return strings.Contains(m.Text, id) })
	})
	s.press(slacktest.Ben, posted, "run")
	s.until("Ben's press is refused", func() bool { return s.pressRefused()[slacktest.Ben] == 1 })
	s.raw(slacktest.Guest, slacktest.Team, "run", valueOf(t, posted, "call-run"), posted, 1)
	s.until("the guest's press is refused", func() bool { return s.pressRefused()[slacktest.Guest] == 1 })
	if n := s.runs.Load(); n != 0 {
		t.Errorf("%d runs by people who are not in the group", n)
	}
	s.press(slacktest.Cho, posted, "run")
	card(s.killable, s.fake, asked, "done")
}
