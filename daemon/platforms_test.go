package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/botstest"
	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// TestPlatformsHaveCommands: what nizectl offers is what the daemon has.
func TestPlatformsHaveCommands(t *testing.T) {
	if got := daemon.Platforms(); !slices.Equal(got, store.ChatSurfaces) {
		t.Errorf("the roof has %q, and store.ChatSurfaces %q", got, store.ChatSurfaces)
	}
}

// TestThirdPlatform: what stands above the platforms knows none of them by name.
// One that is there beside Slack and the terminal is connected, claimed, talked
// to and steered like those.
func TestThirdPlatform(t *testing.T) {
	t.Parallel()
	const name = string(daemon.OnMemory)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var bot *botstest.Bot
	r := open(t, t.TempDir(), nil, func(o *daemon.Options) { bot = daemon.WithPlatform(o, "ann", "ben") })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	// Connect and claim.
	_, err := api.ConnectBot.Call(ctx, r.Client, api.ConnectBotRequest{Name: name, Tokens: []api.Secret{api.NewSecret("another")}})
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), botstest.Token) {
		t.Fatalf("a wrong token: %v", err)
	}
	made, err := api.ConnectBot.Call(ctx, r.Client, api.ConnectBotRequest{Name: name, Tokens: []api.Secret{api.NewSecret(botstest.Token)}})
	must(err)
	if made.State != "connected" || made.Team != botstest.Team || made.Endpoints != nil {
		t.Errorf("connected as %+v", made)
	}
	if _, err := bot.Command(ctx, "ann", made.Send); err != nil {
		t.Fatal(err)
	}
	users, err := api.ListUsers.Call(ctx, r.Client, api.Empty{})
	must(err)
	if !slices.ContainsFunc(users.Items, func(u store.User) bool { return u.Name == "ann" && u.Role == store.Admin }) {
		t.Errorf("after the claim: %+v", users.Items)
	}

	// A message becomes a card, a press its answer.
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
	}}}})
	_, err = api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Visibility: []string{"all"}}})
	must(err)
	says := newSpeaker(t)
	says.use(t, r.Client)
	says.plan("note", plan{tool: "box:note", args: `{"text":"hello"}`, then: "It is written."})
	must(bot.Ask(ctx, "ben", "m1", "please #note"))
	see := func(ok func(store.Message) bool) store.Message {
		t.Helper()
		shown, err := bot.See(ctx, func(all []store.Message) bool { return slices.ContainsFunc(all, ok) })
		must(err)
		return shown[slices.IndexFunc(shown, ok)]
	}
	card := see(func(m store.Message) bool { return m.Kind == store.CardMessage && m.Card.State == store.Pending }).Card
	must(bot.PressAs(ctx, "ben", card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}))
	see(func(m store.Message) bool {
		return m.Kind == store.TextMessage && strings.Contains(m.Text, "It is written.")
	})

	// The settings of its channel, with nizectl and in the chat, by those who
	// administer it there.
	mode := store.ModeAll
	for _, place := range []string{name + ":" + botstest.Team + "/" + botstest.Channel, botstest.Channel} {
		channel, err := api.SetChannel.Call(ctx, r.Client, api.SetChannelRequest{Place: place, Mode: &mode})
		if err != nil || channel.Place != name+":"+botstest.Team+":"+botstest.Channel || channel.Name != "The hall" {
			t.Errorf("%s: %+v, %v", place, channel, err)
		}
	}
	if _, err := api.SetChannel.Call(ctx, r.Client, api.SetChannelRequest{Place: name + ":" + botstest.Team + "/attic", Mode: &mode}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a channel that is not there: %v", err)
	}
	for _, c := range []struct{ who, line, want string }{
		{"ben", "channel mode mention", "Only admins of this channel"},
		{"ann", "channel mode mention", "mention"},
		{"ben", "channel show", "mode = mention"},
		{"ben", "servers", "box"},
	} {
		if text, err := bot.Command(ctx, c.who, c.line); err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s says %q: %q, %v", c.who, c.line, text, err)
		}
	}

	// Groups, sweeps, alerts, and how it fares.
	group, err := api.AddGroup.Call(ctx, r.Client, api.AddGroupRequest{Name: "crew", Usergroup: name + ":crew"})
	if err != nil || len(group.Members) != 2 || group.Source != name+":"+botstest.Team+":"+botstest.Group {
		t.Errorf("the group: %+v, %v", group, err)
	}
	swept, err := api.SweepBot.Call(ctx, r.Client, api.BotRequest{Name: name})
	if err != nil || swept.Sweep == nil || swept.Sweep.Checked != 2 {
		t.Errorf("the sweep: %+v, %v", swept, err)
	}
	for _, c := range [][2]string{{"", "toann"}, {name + ":" + botstest.Channel, botstest.Channel}} {
		to, channel := c[0], c[1]
		if to != "" {
			_, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "alerts.to", Value: to})
			must(err)
		}
		_, err := api.TestAlert.Call(ctx, r.Client, api.Empty{})
		if told := strings.Join(bot.Told(channel), "; "); err != nil || !strings.Contains(told, "This is a test") {
			t.Errorf("%s is told %q, %v", channel, told, err)
		}
	}
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "alerts.to", Value: name + ":Attic"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("alerts to no channel: %v", err)
	}
	stopped, err := api.StopBot.Call(ctx, r.Client, api.BotRequest{Name: name})
	status, statusErr := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err := errors.Join(err, statusErr); err != nil || stopped.State != "stopped" || len(status.Bots) != 1 || status.Bots[0].Name != name {
		t.Errorf("%+v, %+v, %v", stopped, status.Bots, err)
	}
	_, err = api.RemoveBot.Call(ctx, r.Client, api.BotRequest{Name: name})
	must(err)
}
