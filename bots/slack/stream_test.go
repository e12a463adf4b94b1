package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/bots/slack/incoming"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// nobody is a handler that gets nothing.
type nobody struct{ bots.Handler }

// runBot runs a bot on a fake until the test ends.
func runBot(t *testing.T, fake *slacktest.Server, o Options, h bots.Handler) *Bot {
	t.Helper()
	return runBotWith(t, fake, o, h, fake.AppToken())
}

func runBotWith(t *testing.T, fake *slacktest.Server, o Options, h bots.Handler, second string) *Bot {
	t.Helper()
	if o.Store.Inbox == nil {
		o.Store = storeOf(databasetest.Open(t))
	}
	b := connectedBot(t, fake, o, second)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Run(ctx, h); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	if _, err := b.Used(t.Context()); err != nil { // posts wait for that only for a limited time
		t.Fatal(err)
	}
	return b
}

// linked reports whether the bot's own link is open, and the one that checked the tokens is
// closed.
func linked(fake *slacktest.Server) func() bool {
	return func() bool { st := fake.Stats(); return st.Opened == 2 && st.Links == 1 }
}

// outside are parts of a model's text that look like Slack's markup, or are invisible.
var outside = []string{"<!channel>", "<@U0BEN>", "<https://evil.example|bank>", "*bold*", "`code`", "```", "> quote", ":tada:", "&lt;!here&gt;", "\u202e", "\x1b[31m", "\r\n", "日本語", "👩‍👩‍👧", "\ufeff"}

func jumble(random *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(outside[random.IntN(len(outside))])
		b.WriteString([]string{" ", "\n", "word ", "<", "<!", "日本 "}[random.IntN(6)])
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(b.String(), "\x00", ""), "")
	if strings.TrimSpace(text) == "" {
		text += "word" // a text of blanks only makes no message
	}
	return text
}

// written returns the streamed or edited Markdown in the thread, in order.
func written(fake *slacktest.Server, root slacktest.Message) string {
	var b strings.Builder
	for _, m := range fake.Thread(root.Channel, root.TS) {
		if m.User == slacktest.Bot {
			b.WriteString(m.Text)
		}
	}
	return b.String()
}

// restart uses a bot's account again, like a new process: only stored data is known.
func restart(t *testing.T, b *Bot) {
	t.Helper()
	was := b.Current()
	account := was.account
	b.Use(&account)
	for b.Current() == nil || b.Current() == was {
		if err := queue.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// Five hundred streams with rate limits, lost requests, lost responses, streams that Slack
// ends, and restarts after which the model repeats its text or writes another: the chat has
// the model's text exactly once.
func TestStreams(t *testing.T) { testStreams(t, 500, slacktest.Options{Unlimited: true}) }

// The same if Slack doesn't allow edits of streamed messages.
func TestStreamsFixed(t *testing.T) {
	t.Parallel()
	testStreams(t, 150, slacktest.Options{Unlimited: true, FixedStreams: true})
}

func testStreams(t *testing.T, streams int, o slacktest.Options) {
	if testing.Short() {
		streams = 60
	}
	fake := startFake(t, o)
	db := databasetest.Open(t)
	b := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	var wg sync.WaitGroup
	slots := make(chan struct{}, 1) // faults affect the next call: one stream at a time
	for n := range streams {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if n%2 == 1 {
				fake.Mend() // no fault remains from before, so that each number is reproducible
			}
			random := rand.New(rand.NewPCG(uint64(n), 3))
			oneStream(t, fake, b, db, random)
		})
	}
	wg.Wait()
	if st := fake.Stats(); len(st.Unknown) > 0 {
		t.Errorf("methods that Slack has not: %v", st.Unknown)
	}
}

func oneStream(t *testing.T, fake *slacktest.Server, b *Bot, db store.DB, random *rand.Rand) {
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Error(err)
		return
	}
	size := []int{1, 40, 400, 3000, 25_000}[random.IntN(5)]
	text := jumble(random, size)
	n := store.NewID(time.Now())
	m := store.Message{ID: store.TurnID(n, 1), Kind: store.TextMessage, For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ann, At: time.Now()}}
	if random.IntN(10) == 0 {
		m.For.Identity = "" // without a reader to stream to in a channel
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	if _, _, err := db.ThreadAt(t.Context(), store.System, store.Thread{ID: n, User: "u", Address: at}); err != nil {
		t.Error(err)
		return
	}
	posted := false
	send := func() error { // like [bots.Conversation]
		if posted {
			err := b.Update(t.Context(), at, m)
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			posted, at.Message = false, ""
		}
		to, err := b.Post(t.Context(), at, m)
		if to.Message != "" {
			posted, at = true, to
		}
		return err
	}
	for done := 0; done < len(text); {
		done = min(len(text), done+1+random.IntN(max(len(text)/6, 8)))
		if m.Text = strings.ToValidUTF8(text[:done], ""); strings.TrimSpace(m.Text) == "" {
			continue // nothing is shown without visible text
		}
		fault(fake, random)
		_ = send() // the next call sends what failed
		if random.IntN(12) == 0 {
			fake.EndStreams()
		}
		if random.IntN(16) == 0 {
			restart(t, b)
			for try := 0; !posted && try < 30; try++ { // like [bots.Conversation] after a restart
				found, err := b.Find(t.Context(), at, m)
				if err == nil {
					posted, at = true, found
				}
				if err == nil || errors.Is(err, store.ErrNotFound) {
					break
				}
			}
			if random.IntN(2) == 0 { // the model writes another text this time
				text, done = jumble(random, size), 0
			}
		}
	}
	m.Text, m.Final = text, true
	for try := 0; ; try++ {
		if err = send(); err == nil {
			break
		}
		if try == 30 {
			t.Errorf("stream %s: it never became final: %v", n, err)
			return
		}
	}
	want := strings.TrimRight(incoming.Harmless(bots.Plain(text)), " \t\r\n")
	if got := undressed(fake, root, want); got != want {
		t.Errorf("stream %s: the chat says %d bytes, want %d; they part at %d:\n%.400q\n%.400q", n, len(got), len(want), partsAt(got, want), got, want)
	}
	for _, msg := range fake.Thread(root.Channel, root.TS) {
		if msg.Stream != nil && msg.Stream.Open {
			t.Errorf("stream %s is left open", n)
		}
		if msg.User == slacktest.Bot && msg.Effects().Pings() {
			t.Errorf("stream %s pings: %+v", n, msg.Effects())
		}
	}
}

// fault makes one of the next calls fail, or none.
func fault(fake *slacktest.Server, random *rand.Rand) {
	method := []string{"chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "chat.postMessage"}[random.IntN(5)]
	switch random.IntN(6) {
	case 0:
		fake.Fail(method, slacktest.Fault{RetryAfter: time.Second})
	case 1:
		fake.Fail(method, slacktest.Fault{Status: 500})
	case 2:
		fake.Fail(method, slacktest.Fault{Status: 502, After: true})
	}
}

// Slack allows a workspace twenty streams a minute. Further answers don't wait: they begin
// at once, and are edited once, when they are complete.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	began := time.Now()
	fake := startFake(t, slacktest.Options{Burst: 1000, Now: func() time.Time { return began }}) // its minute never ends
	var waited atomic.Int64
	b := runBot(t, fake, Options{testOnlyWait: func(ctx context.Context, d time.Duration) error {
		waited.Add(int64(d))
		return short(ctx, d)
	}}, nobody{})
	edits := 0
	for n := range 25 {
		root, at := in(t, fake, slacktest.General)
		m := store.Message{ID: fmt.Sprintf("t%d/1", n), Kind: store.TextMessage, Text: "a", For: askedBy(slacktest.Ann)}
		at, err := b.Post(t.Context(), at, m)
		if err != nil {
			t.Fatal(err)
		}
		before := fake.Stats().Calls["chat.update"]
		for range 3 {
			m.Text += " word"
			if err := b.Update(t.Context(), at, m); err != nil {
				t.Fatal(err)
			}
		}
		m.Final = true
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
		edits = max(edits, fake.Stats().Calls["chat.update"]-before)
		list := fake.Thread(root.Channel, root.TS)
		if len(list) != 2 || list[1].Text != m.Text || (list[1].Stream != nil) != (n < 20) {
			t.Errorf("answer %d: %+v", n, list[1:])
		}
	}
	if edits != 1 || waited.Load() > 0 {
		t.Errorf("%d edits of one answer, waits of %s", edits, time.Duration(waited.Load()))
	}
}

// A stream is ended before Slack's limit of five minutes, and the text continues.
func TestStreamRotates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	fake := startFake(t, slacktest.Options{Unlimited: true, Now: clock})
	b := runBot(t, fake, Options{Now: clock}, nobody{})
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "first ", For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ann, At: now}}
	at, err := b.Post(t.Context(), store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}, m)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	now = now.Add(4*time.Minute + time.Second)
	mu.Unlock()
	m.Text, m.Final = "first second", true
	if err := b.Update(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	list := fake.Thread(root.Channel, root.TS)
	if len(list) != 3 || list[1].Text != "first" || list[1].Stream.Ended != "stop" || list[2].Text != " second" {
		t.Errorf("the thread is %+v", list)
	}
}

// Messages that should mention the requester do, and no others.
func TestMention(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	for n, test := range []struct {
		kind    store.MessageKind
		mention bool
		want    string
	}{{store.TextMessage, false, "hi"}, {store.TextMessage, true, "<@" + slacktest.Ben + "> hi"}, {store.NoticeMessage, false, "hi"}, {store.NoticeMessage, true, "<@" + slacktest.Ben + "> hi"}} {
		root, err := fake.Say(slacktest.Ben, slacktest.General, "go")
		if err != nil {
			t.Fatal(err)
		}
		at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
		m := store.Message{ID: fmt.Sprintf("m%d", n), Kind: test.kind, Text: "hi", Final: true, Mention: test.mention, For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ben, At: time.Now()}}
		if _, err := b.Post(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
		if got := written(fake, root); got != test.want {
			t.Errorf("%+v: %q, want %q", test, got, test.want)
		}
		for _, posted := range fake.Thread(root.Channel, root.TS) {
			if posted.User == slacktest.Bot && posted.Effects().Pings() != test.mention {
				t.Errorf("%+v pings %+v", test, posted.Effects())
			}
		}
	}
}

// A text interrupted by a restart is continued in its place.
func TestStreamAfterRestart(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "half of ", For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ann, At: time.Now()}}
	at, err := b.Post(t.Context(), store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}, m)
	if err != nil {
		t.Fatal(err)
	}
	restart(t, b)
	for _, text := range []string{"another ", "another beginning", "another beginning and its end"} {
		m.Text, m.Final = text, strings.HasSuffix(text, "end")
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
	}
	list := fake.Thread(root.Channel, root.TS)
	if len(list) != 2 || list[1].Text != m.Text || list[1].Stream.Open {
		t.Errorf("the thread is %+v", list)
	}
}
