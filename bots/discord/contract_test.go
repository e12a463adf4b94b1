package discord

import (
	"cmp"
	"context"
	"flag"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/discord/discordtest"
	"nize/bots/discord/view"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) {
	// These tests wait for limits and reconnections, so more of them run at once than there
	// are cores.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// startFake starts a Discord with a long patience: one test checks how soon nize answers,
// and a busy machine must not fail the others.
func startFake(t *testing.T, o discordtest.Options) *discordtest.Server {
	t.Helper()
	o.Patience = cmp.Or(o.Patience, time.Minute)
	return discordtest.Running(t, o)
}

// short replaces waits for Discord's limits.
func short(ctx context.Context, _ time.Duration) error { return queue.Sleep(ctx, 2*time.Millisecond) }

func storeOf(db store.DB) Store {
	return Store{Inbox: db, Threads: db, People: db, Posts: db, Files: db}
}

// everyone is a configuration that admits the whole guild.
func everyone(fake *discordtest.Server) store.Defaults {
	return store.Defaults{"discord.api_url": fake.APIURL(), "discord.access": "everyone"}
}

// newBot returns a bot with an account in the fake's guild.
func newBot(t *testing.T, fake *discordtest.Server, db store.DB, o Options) *Bot {
	t.Helper()
	o.Store = storeOf(db)
	if o.Config == nil {
		o.Config = everyone(fake)
	}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	if o.Commands == nil {
		o.Commands = &bots.Commands{}
	}
	o.Pace = time.Millisecond
	if o.testOnlyWait == nil {
		o.testOnlyWait = short
	}
	b := New(o)
	checked, err := b.Check(t.Context(), bots.Connection{Tokens: []store.Secret{store.NewSecret(fake.BotToken())}, Team: discordtest.Guild})
	if err != nil {
		t.Fatal(err)
	}
	b.Use(&checked.Account)
	return b
}

// stand is a Bot with its doubles, in a thread of the fake.
type stand struct {
	*Bot
	t       *testing.T
	fake    *discordtest.Server
	channel string // the thread
	opened  atomic.Int64
	up      atomic.Bool

	dialogs sync.Mutex // a person fills in one at a time

	presses botstest.Presses

	mu     sync.Mutex
	events map[string]int // keyed by message key: number of events before it was said
}

// Run inserts the recorder of presses.
func (s *stand) Run(ctx context.Context, h bots.Handler) error {
	s.opened.Store(int64(s.fake.Stats().Opened))
	s.up.Store(true)
	defer s.up.Store(false)
	return s.Bot.Run(ctx, s.presses.Of(h))
}

func (s *stand) Say(_ context.Context, _, key, text string) error {
	s.mu.Lock()
	at, again := s.events[key]
	s.mu.Unlock()
	if again {
		for _, e := range s.fake.Events()[at:] {
			if e.Name == "MESSAGE_CREATE" {
				s.fake.Repeat(e)
			}
		}
		return nil
	}
	s.mu.Lock()
	s.events[key] = len(s.fake.Events())
	s.mu.Unlock()
	_, err := s.fake.Mention(discordtest.Ann, s.channel, text)
	return err
}

func (s *stand) Press(ctx context.Context, call string, d store.Decision) error {
	if err := s.fake.Wait(ctx, func() bool {
		st := s.fake.Stats()
		return s.up.Load() && st.Links == 1 && st.Opened > int(s.opened.Load()) && s.fake.Connected()
	}); err != nil {
		return err
	}
	if d.Verb != store.Approve {
		s.dialogs.Lock()
		defer s.dialogs.Unlock()
	}
	verb := map[store.Verb]string{store.Approve: bots.VerbRun, store.Deny: bots.VerbNever, store.Edit: bots.VerbEdit}[d.Verb]
	var at discordtest.Message
	for _, m := range s.fake.Messages(s.channel) {
		if !strings.Contains(string(m.Components), call) || !strings.Contains(string(m.Components), bots.VerbShow) {
			continue
		}
		at = m
		press := func() error { return s.fake.Press(ctx, discordtest.Ann, m, view.CallID+":"+verb+" *") }
		if verb != bots.VerbRun {
			press = func() error { return s.fake.Choose(ctx, discordtest.Ann, m, view.CallID+":menu *", verb) }
		}
		err := press()
		s.t.Logf("pressing %s: %v", verb, err)
		if err == nil {
			switch d.Verb {
			case store.Edit:
				return s.fill(ctx, call, map[string][]string{bots.EditedJSON: {string(d.Args)}})
			case store.Deny:
				return s.fill(ctx, call, nil)
			}
			return s.presses.Result(ctx, call)
		}
	}
	// The card no longer shows a button: the press was in flight.
	if verb == bots.VerbNever {
		verb = bots.VerbDecline // a button without a dialog
	}
	press := bots.PressOf(verb, store.Card{Call: call, Digest: d.Digest})
	if err := s.fake.PressRaw(ctx, discordtest.Ann, at, view.CallID+":"+press.String()); err != nil {
		return err
	}
	return s.presses.Result(ctx, call)
}

func (s *stand) fill(ctx context.Context, call string, values map[string][]string) error {
	if err := s.fake.Wait(ctx, func() bool { _, ok := s.fake.Dialog(discordtest.Ann); return ok }); err != nil {
		return err
	}
	if err := s.fake.Submit(ctx, discordtest.Ann, values); err != nil {
		return err
	}
	return s.presses.Result(ctx, call)
}

func (s *stand) Stop(_ context.Context, _ string) error {
	_, err := s.fake.Mention(discordtest.Ann, s.channel, "stop")
	return err
}

func (s *stand) See(ctx context.Context, ok func([]store.Message) bool) ([]store.Message, error) {
	var shown []store.Message
	err := s.fake.Wait(ctx, func() bool {
		shown = nil
		for _, m := range s.fake.Messages(s.channel) {
			if m.Author == discordtest.Bot {
				shown = append(shown, readMessage(m))
			}
		}
		return ok(shown)
	})
	return shown, err
}

// Shared implements botstest.Sharer.
func (s *stand) Shared() map[string][]byte {
	files := map[string][]byte{}
	for _, m := range s.fake.Messages(s.channel) {
		for _, f := range m.Files {
			files[f.Name] = f.Content
		}
	}
	return files
}

// unescaped removes the backslashes of Discord's Markdown.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// pressForm matches the payload of a card's button.
var pressForm = regexp.MustCompile(`"call:([a-z]+ [0-9A-Z]{26} [0-9a-z]*)"`)

// endings are the words after the tool in the line that replaces a card.
var endings = map[string]store.State{
	"Running": store.Running, "Done": store.Done, "Failed": store.Failed, "Refused": store.Refused, "Expired": store.Expired, "Cancelled": store.Cancelled,
	"Outcome unknown": store.Lost, "About to run": store.Pending,
}

// rowForm matches an argument on a card.
var rowForm = regexp.MustCompile(`(?m)^\*\*(.+?):\*\* (.*)$`)

// readMessage reconstructs what was shown from a Discord message.
func readMessage(m discordtest.Message) store.Message {
	button := pressForm.FindSubmatch(m.Components)
	if button == nil {
		if len(m.Files) > 0 && string(m.Files[0].Content[1:4]) == "PNG" {
			return store.Message{ID: m.ID, Kind: store.ImagesMessage, Text: m.Content, Final: true}
		}
		if len(m.Files) == 0 && len(m.Buttons()) == 0 && view.IsText(m.Content) {
			return store.Message{ID: m.ID, Kind: store.TextMessage, Text: m.Content, Final: true}
		}
		return store.Message{ID: m.ID, Kind: store.NoticeMessage, Text: unescaped(strings.ReplaceAll(m.Content, "-# ", "")), Final: true}
	}
	press, _ := bots.ReadPress(string(button[1]))
	card := store.Card{Call: press.Call, Digest: press.Head + strings.Repeat("0", 16), State: store.Pending}
	if strings.HasPrefix(m.Content, "-# ") {
		for words, state := range endings {
			if strings.Contains(m.Content, " · "+words) {
				card.State = state
			}
		}
	}
	var rows []string
	for _, row := range rowForm.FindAllStringSubmatch(m.Content, -1) {
		rows = append(rows, unescaped(row[1])+": "+unescaped(row[2]))
	}
	card.Args = botstest.ReadRows(rows)
	return store.Message{ID: m.ID, Kind: store.CardMessage, Card: &card}
}

// The contract test for platforms.
func TestContract(t *testing.T) {
	t.Parallel()
	var db store.DB
	botstest.Script{
		Open: func(t *testing.T) store.DB { db = databasetest.Open(t); return db },
		New: func(t *testing.T) (bots.Platform, botstest.User, store.Address) {
			fake := startFake(t, discordtest.Options{Unlimited: true})
			root, err := fake.Say(discordtest.Ann, discordtest.General, "good morning")
			if err != nil {
				t.Fatal(err)
			}
			thread, err := fake.BeginThread(discordtest.Ann, root, "morning")
			if err != nil {
				t.Fatal(err)
			}
			g := &botstest.Gateway{Calls: db, Now: time.Now}
			t.Cleanup(g.Close)
			s := &stand{t: t, fake: fake, channel: thread.ID, events: map[string]int{}}
			commands := &bots.Commands{}
			commands.Add(bots.Command{Name: "stop", About: phrases.AboutStop, Run: func(ctx context.Context, a bots.Asked) (bots.Answer, error) {
				return bots.Answer{}, s.handler().Stop(ctx, a.By, a.Thread)
			}})
			s.Bot = newBot(t, fake, botstest.OnePerson{DB: db}, Options{Calls: db, Approver: g, Commands: commands})
			return s, s, store.Address{Surface: store.OnDiscord, Team: discordtest.Guild, Channel: discordtest.General, Thread: thread.ID}
		},
	}.Run(t)
}

func (s *stand) handler() bots.Handler { return s.Current().handler }
