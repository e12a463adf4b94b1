package slack

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/people"
	"nize/bots/slack/slacktest"
)

// heldFiller is a dialog with one field that counts its submissions.
type heldFiller struct{ filled *atomic.Int64 }

func (heldFiller) Form(context.Context, bots.Asked) (*bots.Form, error) {
	return &bots.Form{Title: "Set", Fields: []bots.Field{{Name: "text", Label: "Text"}}}, nil
}

func (heldFiller) Check(context.Context, bots.Asked, map[string][]string) map[string]string {
	return nil
}

func (f heldFiller) Fill(context.Context, bots.Asked, map[string][]string) (bots.Answer, error) {
	f.filled.Add(1)
	return bots.Said("it is set"), nil
}

// linkedBot is runBot that returns after the bot's link is open.
func linkedBot(t *testing.T, fake *slacktest.Server, o Options, h bots.Handler) {
	t.Helper()
	runBot(t, fake, o, h)
	if err := fake.Wait(t.Context(), linked(fake)); err != nil {
		t.Fatal(err)
	}
}

// says waits until a user has that many ephemeral messages with text in #general.
func says(t *testing.T, fake *slacktest.Server, user, text string, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	err := fake.Wait(ctx, func() bool {
		n = 0
		for _, m := range fake.Ephemerals(slacktest.General, user) {
			n += strings.Count(m.Text, text)
		}
		return n >= times
	})
	if err != nil || n != times {
		t.Errorf("%s reads %q %d times, want %d: %v", user, text, n, times, err)
	}
}

// While Slack delays the lookup of a dialog's submitter, everything else is acknowledged,
// and so is the dialog.
func TestSlowCheck(t *testing.T) {
	t.Parallel()
	// Far above the time limit for checking a dialog, and below that of a call.
	fake := startFake(t, slacktest.Options{Unlimited: true, Patience: 15 * time.Second})
	h, commands := newHeard(), &bots.Commands{}
	var filled, later atomic.Int64
	commands.Add(bots.Command{Name: "set", Form: heldFiller{&filled}})
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	linkedBot(t, fake, Options{Commands: commands, Now: now}, h)
	if err := fake.Slash(t.Context(), slacktest.Ben, slacktest.General, "/nize set"); err != nil {
		t.Fatal(err)
	}
	if err := fake.Wait(t.Context(), func() bool { return len(fake.Views(slacktest.Ben)) == 1 }); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(2 * people.Recent)) // the cached data about Ben is too old
	before := fake.Stats().Calls["users.info"]
	fake.Fail("users.info", slacktest.Fault{Hang: true})
	submitted := make(chan error, 1)
	go func() {
		submitted <- fake.Submit(t.Context(), slacktest.Ben, fake.Views(slacktest.Ben)[0].ID, map[string][]string{"field-text": {"new"}})
	}()
	if err := fake.Wait(t.Context(), func() bool { return fake.Stats().Calls["users.info"] > before }); err != nil {
		t.Fatal(err)
	}
	if _, err := fake.Mention(slacktest.Ann, slacktest.General, "meanwhile"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	if err := <-submitted; err != nil {
		t.Errorf("the dialog: %v", err)
	}
	says(t, fake, slacktest.Ben, "it is set", 1)
	if st := fake.Stats(); st.Missed > 0 || filled.Load() != 1 {
		t.Errorf("%d were not acknowledged in time, %d runs", st.Missed, filled.Load())
	}
}

// A command whose reply isn't delivered at once has run once.
func TestCommandRunsOnce(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	commands := &bots.Commands{}
	var runs atomic.Int64
	commands.Add(bots.Command{Name: "count", Run: func(context.Context, bots.Asked) (bots.Answer, error) {
		runs.Add(1)
		return bots.Said("counted"), nil
	}})
	linkedBot(t, fake, Options{Commands: commands}, newHeard())
	for name, say := range map[string]func() error{
		"/nize": func() error { return fake.Slash(t.Context(), slacktest.Ben, slacktest.General, "/nize count") },
		"@nize": func() error {
			_, err := fake.Mention(slacktest.Cho, slacktest.General, "count")
			return err
		},
	} {
		runs.Store(0)
		fake.Fail("chat.postEphemeral", slacktest.Fault{Status: 502, Times: 3})
		if err := say(); err != nil {
			t.Fatal(err)
		}
		says(t, fake, map[string]string{"/nize": slacktest.Ben, "@nize": slacktest.Cho}[name], "counted", 1)
		if n := runs.Load(); n != 1 {
			t.Errorf("%s: %d runs", name, n)
		}
	}
}

// If a dialog can't be opened in time, its person is told.
func TestDialogLate(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	linkedBot(t, fake, Options{}, newHeard())
	m, err := fake.Say(slacktest.Ben, slacktest.General, "look")
	if err != nil {
		t.Fatal(err)
	}
	fake.Fail("views.open", slacktest.Fault{Error: "expired_trigger_id"})
	if err := fake.Shortcut(t.Context(), slacktest.Ann, m, aboutMessage); err != nil {
		t.Fatal(err)
	}
	says(t, fake, slacktest.Ann, "Please press again", 1)
}
