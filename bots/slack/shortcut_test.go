package slack

import (
	"strings"
	"testing"

	"nize/bots"
	"nize/bots/slack/slacktest"
)

// A question about a message goes below it where nize is, with the message as
// it was, however long; the same message may be asked about again.
func TestShortcut(t *testing.T) {
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	if err := fake.Wait(t.Context(), func() bool { return fake.Stats().Links == 1 }); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("<b>&\"\\ 你好 ", 400)
	m, err := fake.Say(slacktest.Ben, slacktest.General, long)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fake.Shortcut(t.Context(), slacktest.Ann, m, aboutMessage); err != nil {
			t.Fatal(err)
		}
		if err := fake.Wait(t.Context(), func() bool { return len(fake.Views(slacktest.Ann)) > 0 }); err != nil {
			t.Fatal(err)
		}
		v := fake.Views(slacktest.Ann)[0]
		if err := fake.Submit(t.Context(), slacktest.Ann, v.ID, map[string][]string{"question": {"what is that?"}}); err != nil {
			t.Fatal(err)
		}
		h.wait(t, 1)
	}
	for _, text := range h.texts() {
		if !strings.HasPrefix(text, "what is that?\n") || !strings.Contains(text, "你好") {
			t.Errorf("heard %.200q", text)
		}
	}
}

// The Home shows what the commands say; its buttons do what their words do.
func TestHome(t *testing.T) {
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	db := openBolt(t)
	commands := &bots.Commands{}
	runBot(t, fake, Options{Store: db, Commands: commands}, h)
	commands.Add(bots.CoreCommands(commands, bots.Core{Threads: db, Claims: db, Handler: h, Calls: db})...)
	fake.OpenHome(slacktest.Guest)
	fake.OpenHome(slacktest.Ann)
	drawn := func() bool {
		v, ok := fake.Home(slacktest.Ann)
		return ok && strings.Contains(string(v.Blocks), "what you can do")
	}
	if err := fake.Wait(t.Context(), drawn); err != nil {
		t.Fatal(err)
	}
	v, _ := fake.Home(slacktest.Ann)
	if err := fake.PressView(t.Context(), slacktest.Ann, v.ID, wordsAction+":home-help"); err != nil {
		t.Fatal(err)
	}
	told := func() bool {
		for _, c := range fake.Channels(slacktest.Ann) {
			for _, m := range fake.Messages(c.ID) {
				if strings.Contains(m.Text, "Ask me anything") {
					return true
				}
			}
		}
		return false
	}
	if err := fake.Wait(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	if _, ok := fake.Home(slacktest.Guest); ok {
		t.Error("a guest has a Home")
	}
}
