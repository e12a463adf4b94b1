package slack

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// whole is a bot with a conversation, backed by the scripted agent and the double of the
// gateway.
type whole struct {
	*Bot
	t       *testing.T
	fake    *slacktest.Server
	db      store.DB
	gateway *botstest.Gateway
	others  *deciders
}

// deciders sends every card to the people in it.
type deciders struct {
	store.DB
	mu  sync.Mutex
	ids []string
}

func (o *deciders) Approvers(ctx context.Context, _ string) (list []store.User, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range o.ids {
		u, err := o.GetUser(ctx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

func (o *deciders) Sees(context.Context, store.Caller, store.Call) bool { return true }

func startWhole(t *testing.T, o slacktest.Options) *whole {
	t.Helper()
	o.Unlimited = true
	fake, db := startFake(t, o), databasetest.Open(t)
	w := &whole{t: t, fake: fake, db: db, gateway: &botstest.Gateway{Calls: db, Now: time.Now}, others: &deciders{DB: db}}
	commands := &bots.Commands{}
	w.Bot = newBot(t, fake, db, Options{Calls: db, Approver: w.gateway, Commands: commands})
	c := bots.New(bots.Options{
		Agent: &botstest.Agent{Threads: db, Calls: db, Now: time.Now}, Approver: w.gateway, Inbox: db, Threads: db, Calls: db, Feed: db, Places: db, Audience: w.others,
		Platforms: []bots.Platform{w.Bot}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Pace: time.Millisecond,
	})
	commands.Add(bots.CoreCommands(commands, bots.Core{Threads: db, Claims: db, Handler: c, Calls: db, Cards: c})...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func() error{func() error { return c.Run(ctx) }, func() error { return w.Bot.Run(ctx, c) }} {
		wg.Go(func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait(); w.gateway.Close() })
	w.until("linked", linked(fake))
	return w
}

func (w *whole) until(what string, ok func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.fake.Wait(ctx, ok); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// sees waits for a message of the bot in a thread that contains the text.
func (w *whole) sees(in slacktest.Message, text string) (found slacktest.Message) {
	w.t.Helper()
	w.until(text, func() bool {
		for _, m := range w.fake.Thread(in.Channel, in.Root()) {
			if m.User == slacktest.Bot && strings.Contains(m.Text, text) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// The agent view: prompts, the session status during a waiting call, the title, Slack's own
// Stop.
func TestAgentView(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	w.fake.OpenDM(slacktest.Ann)
	channel := w.fake.DMChannel(slacktest.Ann)
	w.until("suggested prompts", func() bool {
		list := w.fake.Channels(slacktest.Ann)
		i := slices.IndexFunc(list, func(c slacktest.Channel) bool { return c.ID == channel })
		return i >= 0 && len(list[i].PinnedPrompts) > 0
	})
	asked, err := w.fake.DM(slacktest.Ann, "call toolbox:greet {}")
	if err != nil {
		t.Fatal(err)
	}
	session := func() slacktest.Session { return w.fake.Session(asked.Channel, asked.TS) }
	w.until("suspended", func() bool { return session().Status == "suspended" })
	if s := session(); !strings.HasPrefix(s.Title, "call toolbox:greet") || s.Initiator != slacktest.Ann {
		t.Errorf("the session's title is %q, it was begun by %q", s.Title, s.Initiator)
	}
	if err := w.fake.Press(t.Context(), slacktest.Ann, w.sees(asked, "waiting for approval"), "Run"); err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "toolbox:greet is done")
	w.until("active", func() bool { return session().Status == "active" })
	if got := strings.Join(session().Statuses, " "); got != "processing suspended processing active" {
		t.Errorf("statuses %s", got)
	}

	slow, err := w.fake.Reply(slacktest.Ann, asked, "slow thinking hard")
	if err != nil {
		t.Fatal(err)
	}
	w.sees(slow, "thinking")
	if err := w.fake.StopSession(slacktest.Ann, asked.Channel, asked.TS); err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "Stopped.")
	w.until("active again", func() bool { return session().Status == "active" })
	for _, m := range w.fake.Thread(asked.Channel, asked.TS) {
		if m.Stream != nil && m.Stream.Open {
			t.Error("a stream was left open")
		}
	}
}

// An app with the older assistant view: its status line and its title.
func TestAssistantView(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{Assistant: true})
	asked, err := w.fake.DM(slacktest.Ann, "say good morning to all")
	if err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "good morning to all")
	w.until("a title", func() bool { return w.fake.Session(asked.Channel, asked.TS).Title == "say good morning to all" })
}

// The tools of a turn share one message, and only the requester sees their results.
func TestToolLines(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	asked, err := w.fake.Mention(slacktest.Ann, slacktest.General, `call toolbox:greet {"name":"Bo"}`)
	if err != nil {
		t.Fatal(err)
	}
	line := w.sees(asked, "toolbox:greet: calling…")
	if err := w.fake.Press(t.Context(), slacktest.Ann, w.sees(asked, "waiting for approval"), "Run"); err != nil {
		t.Fatal(err)
	}
	done := w.sees(asked, "toolbox:greet: done")
	if done.TS != line.TS {
		t.Errorf("the line moved from %s to %s", line.TS, done.TS)
	}
	for _, who := range []struct{ user, want string }{{slacktest.Ann, "ran with"}, {slacktest.Ben, "you may not see it"}} {
		if err := w.fake.Press(t.Context(), who.user, done, "Show result"); err != nil {
			t.Fatal(err)
		}
		w.until("a dialog", func() bool { return len(w.fake.Views(who.user)) > 0 })
		raw, err := json.Marshal(w.fake.Views(who.user)[0].Blocks)
		if err != nil || !strings.Contains(string(raw), who.want) {
			t.Errorf("%s reads %s, want %s", who.user, raw, who.want)
		}
	}
}

// Presses by others and by guests, repeated presses, and presses on a replaced card lead to
// one decision.
func TestPressesOfOthers(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	asked, err := w.fake.Mention(slacktest.Ann, slacktest.General, `call toolbox:greet {"name":"Bo"}`)
	if err != nil {
		t.Fatal(err)
	}
	card := w.sees(asked, "waiting for approval")
	call := readMessage(t, card).Card.Call
	ctx := t.Context()
	for _, user := range []string{slacktest.Ben, slacktest.Guest} {
		if err := w.fake.Press(ctx, user, card, "Run"); err != nil {
			t.Fatal(err)
		}
	}
	w.until("Ben is told", func() bool {
		return slices.ContainsFunc(w.fake.Ephemerals(slacktest.General, slacktest.Ben), func(m slacktest.Message) bool { return strings.Contains(m.Text, "nly its requester can decide this") })
	})
	if w.gateway.Runs(call) != 0 {
		t.Fatal("somebody else's press ran the call")
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { _ = w.fake.Press(ctx, slacktest.Ann, card, "Run") }) // the button may no longer exist
	}
	wg.Wait()
	w.sees(asked, "toolbox:greet is done")
	if n := w.gateway.Runs(call); n != 1 {
		t.Errorf("the call ran %d times", n)
	}
}

// Another person who may decide gets the card in private: its button works, and both copies
// show the outcome.
func TestCopies(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	ben, err := w.db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+slacktest.Ben, "ben", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	ben.Role = store.Admin
	if err := w.db.PutUser(t.Context(), store.System, ben); err != nil {
		t.Fatal(err)
	}
	if err := w.db.RecordPrivacyNotice(t.Context(), store.System, ben.ID); err != nil { // no welcome message beside the copies
		t.Fatal(err)
	}
	w.others.mu.Lock()
	w.others.ids = []string{ben.ID}
	w.others.mu.Unlock()
	asked, err := w.fake.Mention(slacktest.Ann, slacktest.General, `call toolbox:greet {"name":"Bo"}`)
	if err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "waiting for approval")
	var private slacktest.Message
	in := func(state string) func() bool {
		return func() bool {
			list := w.fake.Messages(w.fake.DMChannel(slacktest.Ben))
			if len(list) > 1 {
				t.Fatalf("%d copies", len(list))
			}
			if len(list) == 1 {
				private = list[0]
			}
			return len(list) == 1 && strings.Contains(list[0].Text, "state: "+state)
		}
	}
	w.until("a copy", in("waiting for approval"))
	if !strings.Contains(string(private.Blocks), "call-run") {
		t.Errorf("the copy has no button: %s", private.Blocks)
	}
	if err := w.fake.Press(t.Context(), slacktest.Ben, private, "call-run"); err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "state: done")
	w.until("the copy tells the end", in("done"))
}
