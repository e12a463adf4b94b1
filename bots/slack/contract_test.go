package slack

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/queue"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
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

// startFake starts a Slack with a long patience: one test checks how soon nize
// acknowledges, and a busy machine must not fail the others.
func startFake(t *testing.T, o slacktest.Options) *slacktest.Server {
	t.Helper()
	o.Patience = cmp.Or(o.Patience, time.Minute)
	fake := slacktest.Running(t, o)
	return fake
}

// short replaces waits for Slack's limits.
func short(ctx context.Context, _ time.Duration) error { return queue.Sleep(ctx, 2*time.Millisecond) }

func newBot(t *testing.T, fake *slacktest.Server, db store.DB, o Options) *Bot {
	t.Helper()
	o.Store = storeOf(db)
	return connectedBot(t, fake, o, fake.AppToken())
}

func storeOf(db store.DB) Store {
	return Store{Inbox: db, Threads: db, People: db, Posts: db, Attachments: db}
}

// connectedBot returns a bot with an account that uses that second token.
func connectedBot(t *testing.T, fake *slacktest.Server, o Options, second string) *Bot {
	t.Helper()
	o.Config = store.Defaults{"slack.api_url": fake.APIURL()}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	if o.Commands == nil {
		o.Commands = &bots.Commands{}
	}
	o.Pace = time.Millisecond
	if o.testOnlyWait == nil {
		o.testOnlyWait = short
	}
	b := New(o)
	account, err := b.check(t.Context(), []store.Secret{store.NewSecret(fake.BotToken()), store.NewSecret(second)})
	if err != nil {
		t.Fatal(err)
	}
	b.Use(&account)
	return b
}

// stand is a Bot with its doubles, in a thread of the fake.
type stand struct {
	*Bot
	t      *testing.T
	fake   *slacktest.Server
	root   slacktest.Message
	opened atomic.Int64 // links opened before Run
	up     atomic.Bool  // Run is running
	raw    atomic.Int64 // counter that makes presses without a button distinct

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
			s.fake.Repeat(e.ID)
		}
		return nil
	}
	s.mu.Lock()
	s.events[key] = len(s.fake.Events())
	s.mu.Unlock()
	_, err := s.fake.Reply(slacktest.Ann, s.root, "<@"+slacktest.Bot+"> "+text)
	return err
}

func (s *stand) Press(ctx context.Context, call string, d store.Decision) error {
	if err := s.fake.Wait(ctx, func() bool {
		st := s.fake.Stats()
		return s.up.Load() && st.Links == 1 && st.Opened > int(s.opened.Load())
	}); err != nil {
		return err
	}
	if d.Verb != store.Approve {
		s.dialogs.Lock()
		defer s.dialogs.Unlock()
	}
	verb := map[store.Verb]string{store.Approve: bots.VerbRun, store.Deny: bots.VerbNever, store.Edit: bots.VerbEdit}[d.Verb]
	for _, m := range s.fake.Thread(s.root.Channel, s.root.TS) {
		if !strings.Contains(string(m.Blocks), call) || !strings.Contains(string(m.Blocks), bots.VerbShow+" "+call) {
			continue
		}
		err := pressCard(ctx, s.fake, m, verb, call)
		s.t.Logf("pressing %s: %v", verb, err)
		if err == nil {
			switch d.Verb {
			case store.Edit:
				return s.fill(ctx, call, map[string][]string{"json": {string(d.Args)}})
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
	payload := fmt.Sprintf(`{"type":"block_actions","user":{"id":%q,"team_id":%q},"team":{"id":%q},"container":{"channel_id":%q},"actions":[{"action_id":"call-%s","block_id":"b","action_ts":"%d.1","value":"%s %s %s"}]}`,
		slacktest.Ann, slacktest.Team, slacktest.Team, s.root.Channel, verb, s.raw.Add(1), verb, call, d.Digest[:16])
	s.fake.SendRaw([]byte(`{"type":"interactive","envelope_id":"raw-` + store.NewID(time.Now()) + `","payload":` + payload + `}`))
	return s.presses.Result(ctx, call)
}

func (s *stand) fill(ctx context.Context, call string, values map[string][]string) error {
	if err := s.fake.Wait(ctx, func() bool { return len(s.fake.Views(slacktest.Ann)) > 0 }); err != nil {
		return err
	}
	view := s.fake.Views(slacktest.Ann)[0]
	if err := s.fake.Submit(ctx, slacktest.Ann, view.ID, values); err != nil {
		return err
	}
	return s.presses.Result(ctx, call)
}

func (s *stand) Stop(_ context.Context, _ string) error {
	return s.fake.StopSession(slacktest.Ann, s.root.Channel, s.root.TS)
}

func (s *stand) See(ctx context.Context, ok func([]store.Message) bool) ([]store.Message, error) {
	var shown []store.Message
	err := s.fake.Wait(ctx, func() bool {
		shown = nil
		for _, m := range s.fake.Thread(s.root.Channel, s.root.TS) {
			if m.User == slacktest.Bot {
				shown = append(shown, readMessage(s.t, m))
			}
		}
		return ok(shown)
	})
	return shown, err
}

// Shared implements botstest.Sharer.
func (s *stand) Shared() map[string][]byte {
	files := map[string][]byte{}
	for _, m := range s.fake.Thread(s.root.Channel, s.root.TS) {
		for _, f := range m.Files {
			files[f.Title] = f.Content
		}
	}
	return files
}

// readMessage reconstructs what was shown from a Slack message's plain form.
func readMessage(t *testing.T, m slacktest.Message) store.Message {
	text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(m.Text)
	switch {
	case m.Stream != nil:
		return store.Message{ID: m.TS, Kind: store.TextMessage, Text: text, Final: !m.Stream.Open}
	case strings.Contains(string(m.Blocks), `"markdown"`):
		return store.Message{ID: m.TS, Kind: store.TextMessage, Text: text, Final: true}
	case strings.Contains(string(m.Blocks), `"slack_file"`):
		return store.Message{ID: m.TS, Kind: store.ImagesMessage, Text: text, Final: true}
	case !strings.Contains(text, "\ncall: "):
		return store.Message{ID: m.TS, Kind: store.NoticeMessage, Text: text, Final: true}
	}
	card := store.Card{}
	var args []string
	for line := range strings.SplitSeq(text, "\n") {
		if v, ok := strings.CutPrefix(line, "call: "); ok {
			card.Call = v
		}
		if v, ok := strings.CutPrefix(line, "state: "); ok {
			word, _, _ := strings.Cut(v, " (")
			for _, state := range []store.State{store.Pending, store.Running, store.Done, store.Failed, store.Refused, store.Expired, store.Cancelled, store.Lost} {
				if bots.StateWords(store.Card{State: state}, "") == word {
					card.State = state
				}
			}
		}
		if v, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(v, "|") {
			args = append(args, v) // short ones, like those of the script
		}
		if v, ok := strings.CutPrefix(line, "digest: "); ok {
			card.Digest = v + strings.Repeat("0", 16)
		}
	}
	card.Args = botstest.ReadRows(args)
	return store.Message{ID: m.TS, Kind: store.CardMessage, Card: &card}
}

// The contract test for platforms.
func TestContract(t *testing.T) {
	t.Parallel()
	var db store.DB
	botstest.Script{
		Open: func(t *testing.T) store.DB { db = databasetest.Open(t); return db },
		New: func(t *testing.T) (bots.Platform, botstest.User, store.Address) {
			fake := startFake(t, slacktest.Options{Unlimited: true})
			root, err := fake.Say(slacktest.Ann, slacktest.General, "good morning")
			if err != nil {
				t.Fatal(err)
			}
			g := &botstest.Gateway{Calls: db, Now: time.Now}
			t.Cleanup(g.Close)
			s := &stand{t: t, fake: fake, root: root, events: map[string]int{},
				Bot: newBot(t, fake, botstest.OnePerson{DB: db}, Options{Calls: db, Approver: g})}
			return s, s, store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
		},
	}.Run(t)
}

// testLog logs to the test's output.
func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

var someTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// noKeeper is a [bots.Keeper] of people who have nothing.
type noKeeper struct{}

func (noKeeper) Home(context.Context, bots.Asked) (bots.Home, error) { return bots.Home{}, nil }

func (noKeeper) Bring(context.Context, store.Caller, string) error { return store.ErrNotFound }

func (noKeeper) PutSecret(context.Context, store.Caller, bots.Prompt, store.Secret) error {
	return store.ErrNotFound
}

// pressCard presses a button of a card, or chooses an entry of its menu.
func pressCard(ctx context.Context, fake *slacktest.Server, m slacktest.Message, verb, call string) error {
	switch verb {
	case bots.VerbEdit, bots.VerbAlways, bots.VerbReason, bots.VerbNever:
		return fake.Choose(ctx, slacktest.Ann, m, view.MenuAction, verb+" "+call+" *")
	}
	return fake.Press(ctx, slacktest.Ann, m, view.CallAction+"-"+verb)
}
