package slack

import (
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/store"
)

// A question about a message is asked below it if nize is in the channel, with the message
// unchanged, however long; a second question about the same message is possible.
func TestShortcut(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	if err := fake.Wait(t.Context(), linked(fake)); err != nil {
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
	for _, in := range h.list {
		got := quotes(in)
		if in.Text != "what is that?" || len(got) != 1 || !strings.HasPrefix(got[0], "about ben: ") || len(got[0]) < store.MaxQuote-4 || !in.WithinLimits() {
			t.Errorf("heard %.200q about %.100q", in.Text, got)
		}
	}
	// Other readers see the question.
	if list := fake.Thread(m.Channel, m.TS); len(list) != 3 || !strings.Contains(list[1].Text, "what is that?") {
		t.Errorf("the thread has %d messages", len(list))
	}
}

// asks asks a question with the shortcut.
func asks(t *testing.T, fake *slacktest.Server, m slacktest.Message, question string) {
	t.Helper()
	asksAs(t, fake, slacktest.Ann, m, question)
}

func asksAs(t *testing.T, fake *slacktest.Server, who string, m slacktest.Message, question string) {
	t.Helper()
	if err := fake.Shortcut(t.Context(), who, m, aboutMessage); err != nil {
		t.Fatal(err)
	}
	if err := fake.Wait(t.Context(), func() bool { return len(fake.Views(who)) > 0 }); err != nil {
		t.Fatal(err)
	}
	if err := fake.Submit(t.Context(), who, fake.Views(who)[0].ID, map[string][]string{"question": {question}}); err != nil {
		t.Fatal(err)
	}
}

// A person in several workspaces of an organization submits dialogs from their home
// workspace; they are heard and answered as a member of this one.
func TestShortcutOfGrid(t *testing.T) {
	t.Parallel()
	const gia = "U0GIA"
	fake := startFake(t, slacktest.Options{Unlimited: true})
	fake.AddUser(slacktest.User{ID: gia, Name: "gia", RealName: "Gia Grid", Team: slacktest.OtherTeam, Workspaces: []string{slacktest.OtherTeam, slacktest.Team}})
	if err := fake.Join(gia, slacktest.General); err != nil {
		t.Fatal(err)
	}
	h := newHeard()
	b := runBot(t, fake, Options{}, h)
	if err := fake.Wait(t.Context(), linked(fake)); err != nil {
		t.Fatal(err)
	}
	root, at := in(t, fake, slacktest.General)
	asksAs(t, fake, gia, root, "and what is this?")
	h.wait(t, 1)
	if got := h.texts(); got[0] != "and what is this?" || h.list[0].By.Identity != "slack:"+slacktest.OtherTeam+":"+gia {
		t.Errorf("heard %q of %+v", got, h.list[0].By)
	}
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "an answer", Final: true, For: &store.Asker{Identity: h.list[0].By.Identity}}
	posted, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := fake.Message(posted.Channel, posted.Message); got.Stream == nil {
		t.Error("the answer is not streamed")
	}
}

// The message of the shortcut becomes a quote of its author, with its files, in the channel
// and in conversations without nize.
func TestShortcutBrings(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	if err := fake.Wait(t.Context(), linked(fake)); err != nil {
		t.Fatal(err)
	}
	file := slacktest.File{Name: "trace.log", Content: []byte("panic")}
	here, err := fake.Post(slacktest.Said{User: slacktest.Guest, Channel: slacktest.General, Text: "look <@U0BEN>", Files: []slacktest.File{file}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := fake.Reply(slacktest.Ben, here, "later")
	if err != nil {
		t.Fatal(err)
	}
	asks(t, fake, here, "what?")
	h.wait(t, 1)
	in := h.last()
	sameLines(t, "here", quotes(in), []string{"about outside guest: look @ben\n[files: trace.log]", "ben: later"})
	if len(in.Files) != 1 || in.Files[0].Text != "panic" || in.Files[0].From == nil || !in.Files[0].From.Outside || in.Text != "what?" {
		t.Errorf("heard %q with %+v", in.Text, in.Files)
	}
	asks(t, fake, after, "and this?")
	h.wait(t, 1)
	sameLines(t, "a reply", quotes(h.last()), []string{"about ben: later"})

	there, err := fake.Post(slacktest.Said{User: slacktest.Ben, Channel: slacktest.Random, Text: "elsewhere", Files: []slacktest.File{file}})
	if err != nil {
		t.Fatal(err)
	}
	asks(t, fake, there, "why?")
	h.wait(t, 1)
	in = h.last()
	sameLines(t, "elsewhere", quotes(in), []string{"about ben: elsewhere"})
	if in.Text != "why?" || len(in.Files) != 1 || in.Files[0].Why != store.FileDenied {
		t.Errorf("heard %q with %+v", in.Text, in.Files)
	}
	wasTold(t, fake, fake.DMChannel(slacktest.Ann), slacktest.Ann, "why?", "elsewhere")
}
