package daemon_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// general is where these tests play.
const general = "slack:" + slacktest.Team + ":" + slacktest.General

// told waits for what only that person reads in General.
func told(k *killable, fake *slacktest.Server, user, text string) {
	k.t.Helper()
	k.until(user+" is told "+text, func() bool {
		return slices.ContainsFunc(fake.Ephemerals(slacktest.General, user), func(m slacktest.Message) bool { return strings.Contains(m.Text, text) })
	})
}

// testChannel is how General is set up now.
func testChannel(k *killable) (c store.Channel) {
	k.t.Helper()
	list, err := api.ListChannels.Call(k.t.Context(), k.Client, api.Empty{})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, v := range list.Items {
		if v.Place == general {
			return v.Channel
		}
	}
	return c
}

// dialog waits for the dialog that is open for somebody.
func dialog(k *killable, fake *slacktest.Server, user string) (v slacktest.View) {
	k.t.Helper()
	k.until("a dialog", func() bool {
		views := fake.Views(user)
		if len(views) > 0 {
			v = views[len(views)-1]
		}
		return len(views) > 0
	})
	return v
}

// What a channel's admins set with words, and what they may not.
func TestSlackChannelWords(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	ctx := t.Context()
	for _, s := range []store.Server{{Name: "open", URL: "http://127.0.0.1:1/", Visibility: []string{"all"}}, {Name: "secret", URL: "http://127.0.0.1:1/"}} {
		if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: s, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	slash := func(user, line, answer string) {
		t.Helper()
		before := len(fake.Ephemerals(slacktest.General, user))
		if err := fake.Slash(ctx, user, slacktest.General, line); err != nil {
			t.Fatal(err)
		}
		k.until(line+": "+answer, func() bool {
			now := fake.Ephemerals(slacktest.General, user)
			return len(now) > before && strings.Contains(now[len(now)-1].Text, answer)
		})
	}
	slash(slacktest.Ben, "/nize channel", "slack:T0FAKE/C0GENERAL")
	slash(slacktest.Ben, "/nize channel servers open", "Only admins of this channel")
	// Ben is named an admin; he stays a member of nize.
	if _, err := fake.Mention(slacktest.Ben, slacktest.General, "help"); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ben, "Ask me anything in your own words")
	admins := []string{"user:slack:" + slacktest.Team + ":" + slacktest.Ben}
	if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Admins: &admins}); err != nil {
		t.Fatal(err)
	}
	slash(slacktest.Ben, "/nize channel servers secret", `server "secret" not found`)
	slash(slacktest.Ben, "/nize channel servers opne", "did you mean open?")
	slash(slacktest.Ben, "/nize channel admins user:ben", "nize's admins can set who")
	slash(slacktest.Ben, "/nize channel aprovers admins", "did you mean approvers?")
	slash(slacktest.Ben, "/nize channel approvers user:zed", "that does not exist")
	slash(slacktest.Ben, "/nize channel approvers 2 of requestor,grup:ops", "did you mean requester")
	slash(slacktest.Ben, "/nize channel language klingon", "use en, zh")
	if c := testChannel(k); c.Servers != nil || c.Approvers != "" || c.Language != "" {
		t.Errorf("kept of what was refused: %+v", c)
	}
	slash(slacktest.Ben, "/nize channel servers open", "servers is open in this channel")
	slash(slacktest.Ben, "/nize tools look", "no tool for")
	slash(slacktest.Ben, "/nize channel servers none", "servers is none")
	slash(slacktest.Ben, "/nize servers", "open: off in this channel")
	slash(slacktest.Ben, "/nize channel servers open", "servers is open in this channel")
	slash(slacktest.Ben, "/nize channel approvers 2 of admins,channel-admins not requester", "approvers is 2 of admins")
	slash(slacktest.Ben, "/nize channel language zh-Hant", "language is zh-Hant")
	if _, err := fake.Mention(slacktest.Ben, slacktest.General, "channel mode mention"); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ben, "mode is mention")
	want := store.Channel{Place: general, Servers: []string{"open"}, Approvers: "2 of admins,channel-admins not requester", Language: "zh-Hant", Mode: store.ModeMention, Admins: testChannel(k).Admins}
	if diff := cmp.Diff(testChannel(k), want); diff != "" {
		t.Error(diff)
	}

	// What an admin of nize's named stays, and its name is not told.
	if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Servers: &[]string{"secret"}}); err != nil {
		t.Fatal(err)
	}
	slash(slacktest.Ben, "/nize channel show", "servers = 1 more")
	slash(slacktest.Ben, "/nize channel servers none", "servers is none")
	if c := testChannel(k); !slices.Equal(c.Servers, []string{"secret"}) {
		t.Errorf("the servers are %q", c.Servers)
	}
	slash(slacktest.Ben, "/nize channel servers default", "servers is the default")
	if _, err := api.PutSetting.Call(ctx, k.Client, api.PutSettingRequest{Key: "approvals.approvers", Value: "admins"}); err != nil {
		t.Fatal(err)
	}
	slash(slacktest.Ben, "/nize channel show", "have no effect")
	slash(slacktest.Ben, "/nize channel approvers default", "approvers is the default")

	// In their own conversation there is no channel; who is named no more
	// administers none.
	if _, err := fake.DM(slacktest.Ben, "channel mode all"); err != nil {
		t.Fatal(err)
	}
	k.until("no channel", func() bool {
		return slices.ContainsFunc(fake.Messages(fake.DMChannel(slacktest.Ben)), func(m slacktest.Message) bool { return strings.Contains(m.Text, "This is not a channel") }) ||
			slices.ContainsFunc(allThreads(fake, fake.DMChannel(slacktest.Ben)), func(m slacktest.Message) bool { return strings.Contains(m.Text, "This is not a channel") })
	})
	if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Admins: &[]string{}}); err != nil {
		t.Fatal(err)
	}
	slash(slacktest.Ben, "/nize channel mode follow", "Only admins of this channel may change that")
	if c := testChannel(k); c.Mode != store.ModeMention {
		t.Errorf("the mode is %q", c.Mode)
	}
}

// allThreads are the messages below those of a channel.
func allThreads(fake *slacktest.Server, channel string) (all []slacktest.Message) {
	for _, m := range fake.Messages(channel) {
		all = append(all, fake.Thread(channel, m.TS)...)
	}
	return all
}

// TestSlackChannelDialog: who administers a channel sets it up in a dialog,
// which is checked beside its fields and again when it was sent in; what was not
// touched stays as others set it meanwhile.
func TestSlackChannelDialog(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "open", URL: "http://127.0.0.1:1/", Visibility: []string{"all"}}, Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := fake.Mention(slacktest.Ben, slacktest.General, "help"); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ben, "Ask me anything in your own words")
	ask := func(user string) slacktest.View {
		t.Helper()
		if err := fake.Slash(ctx, user, slacktest.General, "/nize channel"); err != nil {
			t.Fatal(err)
		}
		return dialog(k, fake, user)
	}
	v := ask(slacktest.Ann)
	for _, wrong := range []struct {
		values map[string][]string
		field  string
	}{
		{map[string][]string{"field-approvers": {"everyone"}}, "field-approvers"},
		{map[string][]string{"field-approvers": {"user:nobody"}}, "field-approvers"},
		{map[string][]string{"field-servers": {"none", "open"}, "field-approvers": {"admins"}}, "field-servers"},
		{map[string][]string{"field-servers": {"open"}, "field-admins": {"all"}}, "field-admins"},
	} {
		var refused slacktest.Refused
		if err := fake.Submit(ctx, slacktest.Ann, v.ID, wrong.values); !errors.As(err, &refused) || len(refused) != 1 || refused[wrong.field] == "" {
			t.Errorf("%v: %v", wrong.values, err)
		}
	}
	mention := store.ModeMention
	if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Mode: &mention}); err != nil { // while the dialog is open
		t.Fatal(err)
	}
	if err := fake.Submit(ctx, slacktest.Ann, v.ID, map[string][]string{
		"field-servers": {"open"}, "field-approvers": {"channel-admins"}, "field-language": {"zh-Hans"}, "field-admins": {"user:slack:" + slacktest.Team + ":" + slacktest.Ben},
	}); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ann, "approvers = channel-admins")
	got := testChannel(k)
	if len(got.Admins) != 1 {
		t.Fatalf("the admins are %q", got.Admins)
	}
	want := store.Channel{Place: general, Servers: []string{"open"}, Approvers: "channel-admins", Language: "zh-Hans", Mode: store.ModeMention, Admins: got.Admins}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}

	// Ben administers it and is no admin of nize's: his dialog has no admins.
	// Meanwhile he is named no more, and what he sends in changes nothing.
	v = ask(slacktest.Ben)
	if strings.Contains(string(v.Blocks), "field-admins") || !strings.Contains(string(v.Blocks), "zh-Hans") {
		t.Errorf("Ben's dialog: %s", v.Blocks)
	}
	if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Admins: &[]string{}}); err != nil {
		t.Fatal(err)
	}
	if err := fake.Submit(ctx, slacktest.Ben, v.ID, map[string][]string{"field-mode": {"all"}}); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ben, "Only admins of this channel")
	if c := testChannel(k); c.Mode != store.ModeMention {
		t.Errorf("the mode is %q", c.Mode)
	}
	if err := fake.Slash(ctx, slacktest.Ben, slacktest.General, "/nize channel"); err != nil {
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ben, "mode = mention")
	if n := len(fake.Views(slacktest.Ben)); n != 0 {
		t.Errorf("%d dialogs are open for who administers nothing", n)
	}

	// All of it is taken back by clearing it.
	v = ask(slacktest.Ann)
	if err := fake.Submit(ctx, slacktest.Ann, v.ID, map[string][]string{"field-servers": {}, "field-approvers": {""}, "field-language": {"default"}, "field-mode": {"follow"}}); err != nil {
		t.Fatal(err)
	}
	k.until("nothing is set", func() bool { c := testChannel(k); return c.Servers == nil && c.Approvers == "" && c.Language == "" })
}

// TestSlackChannelRules: who a channel lets press, and with what it works, on
// real cards: in threads that go on, too, and over the two ways to be named.
func TestSlackChannelRules(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	set := func(c api.SetChannelRequest) {
		t.Helper()
		c.Place = slacktest.General
		if _, err := api.SetChannel.Call(ctx, s.Client, c); err != nil {
			t.Fatal(err)
		}
	}
	s.slash(slacktest.Ben, "/nize help") // nize knows Ben from then on
	s.told(slacktest.Ben, "Ask me anything in your own words")
	if _, err := api.AddGroup.Call(ctx, s.Client, api.AddGroupRequest{Name: "leads", Members: []string{"slack:" + slacktest.Team + ":" + slacktest.Ben}}); err != nil {
		t.Fatal(err)
	}
	who, none := store.Policy("channel-admins not requester"), []string{}
	leads, box, english := []string{"group:leads"}, []string{"box"}, "en" // Cho's Slack is Chinese

	// Before Ben is named only Ann, who administers the workspace, may press.
	set(api.SetChannelRequest{Approvers: &who, Servers: &box, Language: &english})
	root, posted := s.ask(slacktest.Cho, "note")
	s.press(slacktest.Cho, posted, "run")
	s.until("Cho's press is refused", func() bool { return s.pressRefused()[slacktest.Cho] == 1 })
	s.press(slacktest.Ben, posted, "run")
	s.until("Ben's press is refused", func() bool { return s.pressRefused()[slacktest.Ben] == 1 })
	set(api.SetChannelRequest{Admins: &leads})
	if n := s.runs.Load(); n != 0 {
		t.Fatalf("%d runs", n)
	}
	s.press(slacktest.Ben, posted, "run") // rights count anew at each press
	card(s.killable, s.fake, root, "done")

	// What waits is void when its server is taken out; nothing is found then.
	waiting, posted := s.ask(slacktest.Cho, "note")
	set(api.SetChannelRequest{Servers: &none})
	s.press(slacktest.Ben, posted, "run")
	if got := card(s.killable, s.fake, waiting, "refused"); !strings.Contains(got.Text, "may no longer use box:note") {
		t.Errorf("the card says %s", got.Text)
	}
	s.says.plan("again", plan{tool: "box:note", args: `{"text":"hello"}`})
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> please #again")
	s.until("the model is told what keeps the tool away", func() bool {
		return strings.Contains(s.says.heard("again"), "the channel does not allow its server")
	})
	// In private nothing of that counts: it is Cho's own press.
	asked, err := s.fake.DM(slacktest.Cho, "please #note")
	if err != nil {
		t.Fatal(err)
	}
	var mine slacktest.Message
	s.until("a card in Cho's own language", func() bool {
		for _, m := range s.thread(asked)() {
			if strings.Contains(m.Text, "等待批准") && strings.Contains(string(m.Blocks), "call-run") {
				mine = m
			}
		}
		return mine.TS != ""
	})
	s.press(slacktest.Cho, mine, "run")
	s.until("it ran in private", func() bool { return s.runs.Load() == 2 })
}

// TestSlackChannelSlow: while Slack does not say in time who administers a
// channel, the command is answered with what is set, and no dialog opens late.
func TestSlackChannelSlow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	late := make(chan struct{})
	s.fake.Fail("users.list", slacktest.Fault{Held: late})
	s.slash(slacktest.Ben, "/nize channel")
	s.told(slacktest.Ben, "mode = follow")
	close(late)
	s.settled("later")
	if n := len(s.fake.Views(slacktest.Ben)); n != 0 {
		t.Errorf("%d dialogs", n)
	}
	s.wellBehaved()
}
