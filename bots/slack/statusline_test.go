package slack

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots/chattest"
	"nize/bots/outbox"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// startQuiet returns a bot in a bubble that gets no events, with a conversation.
func startQuiet(t *testing.T, o slacktest.Options) (*slacktest.Server, *Bot, func(slacktest.Message) store.Address) {
	t.Helper()
	pipe := chattest.NewPipe()
	o.Unlimited = true
	fake := slacktest.New(o)
	if err := fake.Start(pipe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	db := databasetest.Open(t)
	b := runBotWith(t, fake, Options{Store: storeOf(db), Transport: &http.Transport{DialContext: pipe.Dial, DisableKeepAlives: true}}, nobody{}, fake.SigningSecret())
	synctest.Wait()
	ann, err := db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+slacktest.Ann, "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	return fake, b, func(m slacktest.Message) store.Address {
		t.Helper()
		at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: m.Channel, Thread: m.Root()}
		th := store.Thread{ID: store.NewID(time.Now()), User: ann.ID, Address: at, Title: "a title", Created: time.Now()}
		if _, _, err := db.ThreadAt(t.Context(), store.System, th); err != nil {
			t.Fatal(err)
		}
		return at
	}
}

// The line of an older assistant thread is shown exactly as long as nize works, although
// Slack removes it after two minutes and with every post. After a process ended, it
// disappears as Slack removes it.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, b, begin := startQuiet(t, slacktest.Options{Assistant: true})
		ctx := t.Context()
		asked, err := fake.DM(slacktest.Ann, "good day")
		if err != nil {
			t.Fatal(err)
		}
		at := begin(asked)
		session := func() slacktest.Session { synctest.Wait(); return fake.Session(asked.Channel, asked.TS) }
		shown := func() bool { s := session(); return s.Loading != "" && s.LoadingUntil.After(time.Now()) }
		present := func(s outbox.State) {
			t.Helper()
			if err := b.Present(ctx, at, s); err != nil {
				t.Fatal(err)
			}
		}
		present(outbox.Working)
		for range 60 { // ten minutes
			if !shown() {
				t.Fatalf("the line is gone: %+v", session())
			}
			time.Sleep(10 * time.Second)
		}
		if n := len(session().Statuses); n > 9 {
			t.Errorf("set %d times in ten minutes", n)
		}

		before := len(session().Statuses)
		for n := range 3 {
			line := store.ToolLine{Name: "box:note", State: store.Running}
			if _, err := b.Post(ctx, at, store.Message{ID: "tool/" + string(rune('a'+n)), Kind: store.ToolMessage, Tool: &line}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Post(ctx, at, store.Message{ID: store.NewID(time.Now()), Kind: store.NoticeMessage, Text: "a notice"}); err != nil {
				t.Fatal(err)
			}
		}
		if shown() {
			t.Error("the fake left the line, although nize posted")
		}
		time.Sleep(3 * time.Second) // the line is set again
		if !shown() || len(session().Statuses) != before+1 {
			t.Errorf("after posts the line is set %d times", len(session().Statuses)-before)
		}

		present(outbox.Waiting)
		time.Sleep(5 * time.Minute)
		if before = len(session().Statuses); shown() {
			t.Error("it waits, and says that it works")
		}
		present(outbox.Working)
		present(outbox.Idle)
		time.Sleep(5 * time.Minute)
		if s := session(); s.Loading != "" || len(s.Statuses) != before+1 {
			t.Errorf("it is idle, and says %q", s.Loading)
		}

		// The process ends while it works: the next one knows of no line, and removes the
		// existing one.
		present(outbox.Working)
		restart(t, b)
		time.Sleep(3 * time.Minute)
		if shown() {
			t.Error("a line of nobody's stands")
		}
		present(outbox.Working)
		restart(t, b)
		present(outbox.Idle)
		if s := session(); s.Loading != "" {
			t.Errorf("the next process left %q", s.Loading)
		}

		// Rate limits and lost requests don't end it; a thread without one does.
		present(outbox.Working)
		fake.Fail("assistant.threads.setStatus", slacktest.Fault{Status: 500, Times: 1})
		fake.Fail("assistant.threads.setStatus", slacktest.Fault{RetryAfter: 5 * time.Second, Times: 1})
		time.Sleep(170 * time.Second)
		if !shown() {
			t.Error("faults ended the line")
		}
		fake.Fail("assistant.threads.setStatus", slacktest.Fault{Error: "not_allowed", Times: 1})
		time.Sleep(80 * time.Second)
		before = len(session().Statuses)
		time.Sleep(5 * time.Minute)
		if n := len(session().Statuses) - before; n > 0 {
			t.Errorf("set %d times where Slack wants none", n)
		}
	})
}

// The initiator of a session is sent if Slack accepts it: one who left the channel doesn't
// prevent its status.
func TestSessionInitiator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, b, begin := startQuiet(t, slacktest.Options{})
		for _, leaves := range []bool{false, true} {
			asked, err := fake.Mention(slacktest.Ann, slacktest.General, "good day")
			if err != nil {
				t.Fatal(err)
			}
			at, want := begin(asked), slacktest.Ann
			if leaves {
				if want = ""; fake.Leave(slacktest.Ann, slacktest.General) != nil {
					t.Fatal("Ann can't leave")
				}
			}
			if err := b.Present(t.Context(), at, outbox.Working); err != nil {
				t.Fatal(err)
			}
			if s := fake.Session(asked.Channel, asked.TS); s.Status != "processing" || s.Initiator != want || !strings.HasPrefix(s.Title, "a title") {
				t.Errorf("left %v: %+v", leaves, s)
			}
		}
	})
}
