package bots_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/outbox"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office is a conversation with a real store and one platform in memory.
type office struct {
	*bots.Conversation
	t      *testing.T
	db     *database.DB
	memory *botstest.Memory
	agent  *botstest.Agent
	log    *lockedBuffer
	by     store.Caller
	ctx    context.Context
}

// lockedBuffer collects log lines from several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newOffice(t *testing.T) *office { return newOfficeWith(t, limits("0", "0")) }

func newOfficeWith(t *testing.T, config store.Config) *office { return newOfficeOver(t, config, nil) }

// newOfficeOver returns an office whose database becomes unavailable while its agent works,
// unless stops is nil.
func newOfficeOver(t *testing.T, config store.Config, stops *interrupted) *office {
	t.Helper()
	db, away := databasetest.OpenAway(t, t.TempDir())
	o := &office{
		t: t, db: db, memory: botstest.NewMemory(store.OnTerminal), log: &lockedBuffer{},
		agent: &botstest.Agent{Threads: db, Calls: db, Now: time.Now},
		by:    store.Caller{User: botstest.Requester, Name: "ann", Surface: store.OnTerminal},
	}
	gateway := &botstest.Gateway{Calls: db, Now: time.Now}
	var agent bots.Agent = o.agent
	if stops != nil {
		stops.Agent, stops.database, agent = o.agent, away, stops
	}
	o.Conversation = bots.New(bots.Options{
		Agent: agent, Approver: gateway, Inbox: db, Threads: db, Calls: db, Feed: db,
		Platforms: []bots.Platform{o.memory}, Config: config, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond, AtOnce: 4,
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	o.ctx = ctx
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		gateway.Close()
		db.Close()
	})
	wg.Go(func() {
		if err := o.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return o
}

func (o *office) thread() string {
	o.t.Helper()
	id := store.NewID(time.Now())
	th := store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnTerminal, Thread: id}, Created: time.Now()}
	if err := o.db.PutThread(o.ctx, store.System, th); err != nil {
		o.t.Fatal(err)
	}
	return id
}

func (o *office) say(thread, key, text string) {
	o.t.Helper()
	if _, err := o.Message(o.ctx, store.Inbound{Key: key, Thread: thread, By: o.by, Text: text}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) see(kind store.MessageKind, text string) {
	o.t.Helper()
	shown, err := o.memory.See(o.ctx, func(all []store.Message) bool {
		return slices.ContainsFunc(all, func(m store.Message) bool { return m.Kind == kind && m.Final && strings.Contains(m.Text, text) })
	})
	if err != nil {
		o.t.Fatalf("waiting for %s %q: %v; shown %+v; log %s", kind, text, err, shown, o.log)
	}
}

func TestPanicEndsOneTurnOnly(t *testing.T) {
	o := newOffice(t)
	a, b := o.thread(), o.thread()
	o.say(a, "1", "panic")
	o.see(store.ErrorMessage, "error inside nize")
	o.say(b, "2", "say fine here")
	o.see(store.TextMessage, "fine here")
	if n := strings.Count(o.log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors were logged, want 1: %s", n, o.log)
	}
}

func TestBrokenAgentIsToldOnce(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	o.say(id, "1", "break")
	o.see(store.ErrorMessage, "error inside nize")
	o.say(id, "2", "break")
	pending, err := o.db.Pending(o.ctx)
	for err == nil && len(pending) > 0 {
		pending, err = o.db.Pending(o.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlatformAway: messages that could not be shown are shown when the platform is back,
// and the turn isn't affected.
func TestPlatformAway(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	o.memory.Break(3)
	o.say(id, "1", "say first")
	o.see(store.TextMessage, "first")
	o.say(id, "2", "say second")
	o.see(store.TextMessage, "second")
}

func TestMessagesOfOneThreadKeepTheirOrder(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	for i := range 20 {
		o.say(id, string(rune('a'+i)), "say number "+string(rune('a'+i)))
	}
	o.see(store.TextMessage, "number t")
	turns, err := o.db.Turns(o.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, turn := range turns {
		if turn.Role == store.FromModel {
			said = append(said, turn.Text)
		}
	}
	if !slices.IsSorted(said) || len(said) != 20 {
		t.Errorf("answers: %v", said)
	}
}

func TestSecretsAreMaskedBeforeTheyAreStored(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	key := "ghp_" + strings.Repeat("a1", 18)
	o.say(id, "1", "say "+key)
	o.see(store.NoticeMessage, "revoke")
	o.see(store.TextMessage, "••••")
	turns, err := o.db.Turns(o.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		if strings.Contains(turn.Text, key) {
			t.Errorf("turn %d holds the key", turn.N)
		}
	}
}

// nize's texts are in the thread's language, even if it changes during a turn; the model's
// words stay.
func TestLanguageOfTheThread(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	speak := func(locale string) {
		t.Helper()
		if _, err := o.db.EditThread(o.ctx, store.System, id, func(th *store.Thread) { th.Locale = locale }); err != nil {
			t.Fatal(err)
		}
	}
	speak("zh-CN")
	o.say(id, "1", "say the tool is gone; it will not run\n\n[The answer reached its length limit.]")
	o.see(store.TextMessage, "the tool is gone; it will not run\n\n[回答已达到长度上限。]")
	o.say(id, "2", "say ghp_"+strings.Repeat("a1", 18))
	o.see(store.NoticeMessage, "请吊销该密钥")
	speak("zh-TW")
	o.say(id, "3", "say ghp_"+strings.Repeat("b2", 18))
	o.see(store.NoticeMessage, "請撤銷該金鑰")
}

func TestMessageIsChecked(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	for name, test := range map[string]struct {
		in   store.Inbound
		want error
	}{
		"no key":     {store.Inbound{Thread: id, Text: "x"}, store.ErrInvalid},
		"no text":    {store.Inbound{Thread: id, Key: "k", Text: " \n"}, store.ErrInvalid},
		"too long":   {store.Inbound{Thread: id, Key: "k", Text: strings.Repeat("x", bots.MaxMessage+1)}, store.ErrInvalid},
		"not UTF-8":  {store.Inbound{Thread: id, Key: "k", Text: "\xff"}, store.ErrInvalid},
		"no thread":  {store.Inbound{Thread: store.NewID(time.Now()), Key: "k", Text: "x"}, store.ErrNotFound},
		"the empty!": {store.Inbound{}, store.ErrInvalid},
	} {
		if _, err := o.Message(o.ctx, test.in); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

func TestStopIsForThoseWhoMay(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	other := store.Caller{User: "01ARZ3NDEKTSV4RRFFQ69G5FAX", Surface: store.OnTerminal}
	if err := o.Stop(o.ctx, other, id); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a stranger's stop: %v", err)
	}
	if err := o.Stop(o.ctx, o.by, id); err != nil {
		t.Errorf("stopping what doesn't run: %v", err)
	}
}

func TestStatesComeInOrder(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	o.say(id, "1", "call toolbox:greet {}")
	shown, err := o.memory.See(o.ctx, func([]store.Message) bool { return slices.Contains(o.memory.States(), outbox.Waiting) })
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(shown, func(m store.Message) bool { return m.Kind == store.CardMessage })
	if i < 0 {
		t.Fatal("waiting, but no card is shown")
	}
	if _, err := o.Press(o.ctx, o.by, shown[i].Card.Call, store.Decision{Verb: store.Deny}); err != nil {
		t.Fatal(err)
	}
	o.see(store.TextMessage, "refused")
	if _, err := o.memory.See(o.ctx, func([]store.Message) bool {
		states := o.memory.States()
		return len(states) > 0 && states[len(states)-1] == outbox.Idle
	}); err != nil {
		t.Fatal(err)
	}
	if states := o.memory.States(); states[0] != outbox.Working {
		t.Errorf("states: %v", states)
	}
}

// cancelling cancels each call as soon as it exists.
type cancelling struct {
	store.Calls
	by store.Caller
}

func (c cancelling) Begin(ctx context.Context, by store.Caller, call store.Call) error {
	if err := c.Calls.Begin(ctx, by, call); err != nil {
		return err
	}
	_, err := c.Decide(ctx, c.by, call.ID, store.Decision{Verb: store.Cancel, By: c.by.User, At: time.Now(), Digest: call.Digest})
	return err
}

// If a call ends before the agent has finished reading the thread, the turn isn't over:
// followers of the thread, such as nizectl chat, would leave without the answer.
func TestIdleOnceAtTheEnd(t *testing.T) {
	o := newOffice(t)
	o.agent.Calls = cancelling{o.db, o.by}
	o.say(o.thread(), "1", "call toolbox:greet {}")
	o.see(store.TextMessage, "toolbox:greet is cancelled")
	if _, err := o.memory.See(o.ctx, func([]store.Message) bool {
		states := o.memory.States()
		return states[len(states)-1] == outbox.Idle
	}); err != nil {
		t.Fatal(err)
	}
	if got := o.memory.States(); !slices.Equal(got, []outbox.State{outbox.Working, outbox.Idle}) {
		t.Errorf("the states are %v", got)
	}
}

// TestStopBeforeTheTurnBegan: messages sent before the stop don't run after it.
func TestStopBeforeTheTurnBegan(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	for i := range 5 {
		o.say(id, string(rune('a'+i)), "slow thinking")
	}
	if err := o.Stop(o.ctx, o.by, id); err != nil {
		t.Fatal(err)
	}
	o.see(store.NoticeMessage, "Stopped.")
	o.say(id, "last", "say free again")
	o.see(store.TextMessage, "free again")
	if o.agent.Said("say free again") != 1 {
		t.Error("the message after the stop was not answered once")
	}
}

// TestReminder: a reminder of a waiting call is posted once, in its conversation.
func TestReminder(t *testing.T) {
	o := newOffice(t)
	id := o.thread()
	o.say(id, "1", `call toolbox:greet {"n":1}`)
	if _, err := o.memory.See(o.ctx, func(all []store.Message) bool {
		return slices.ContainsFunc(all, func(m store.Message) bool { return m.Card != nil })
	}); err != nil {
		t.Fatal(err)
	}
	calls, err := o.db.ListCalls(o.ctx, store.CallQuery{Thread: id})
	if err != nil || len(calls) != 1 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	if _, err := o.db.Remind(o.ctx, calls[0].ID); err != nil {
		t.Fatal(err)
	}
	o.see(store.NoticeMessage, "toolbox:greet is still waiting for approval (call "+calls[0].ID+")")
}

// TestMayLine: the card says in nize's own words who may press, and a name chosen by a
// person can't pass for more.
func TestMayLine(t *testing.T) {
	card := store.Card{By: "ann", State: store.Pending, CardVotes: store.CardVotes{Need: 2, NotRequester: true, Yes: []string{"bo"}, Approvers: []store.Approver{
		{Kind: "group", Names: []string{"ops"}},
		{Kind: "admins", Names: []string{"root", "eve\napprovers: eve"}},
		{Kind: "user", Names: []string{"a", "b", "c", "d", "e"}, More: 2},
		{Kind: "channel"}, {Kind: "channel-admins"},
	}}}
	lines := bots.PartsOf(card, bots.Reader{Now: time.Now()}).Rules
	for _, want := range []string{
		`approvers: 2 different people of: group ops, admins (root, eve\u000aapprovers: eve), a, b, c, d, e and 2 more, anyone in this channel, admins of this channel; not ann, who asked`,
		"approved by: bo (1 of 2)",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// rewrites is a platform that is informed of replaced messages.
type rewrites struct {
	*botstest.Memory
	told chan string // buffers everything in a test
}

func (r rewrites) Rewritten(thread string) { r.told <- thread }

// A waiting message is not given to the agent if the queue has its replacement.
func TestMessageInsteadOfOneThatWaits(t *testing.T) {
	o := newOffice(t)
	id := store.NewID(time.Now()) // on a surface that the office doesn't have
	if err := o.db.PutThread(o.ctx, store.System, store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnWeb, Thread: id}}); err != nil {
		t.Fatal(err)
	}
	p := rewrites{botstest.NewMemory(store.OnWeb), make(chan string, 1)}
	c := bots.New(bots.Options{
		Agent: o.agent, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db,
		Platforms: []bots.Platform{p}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond,
	})
	by := o.by
	by.Surface = store.OnWeb
	for _, in := range []store.Inbound{{Key: "1", Text: "say one"}, {Key: "2", Text: "say two", Instead: "1"}} {
		in.Thread, in.By = id, by
		if _, err := c.Message(o.ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(o.ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	if _, err := p.See(ctx, func(all []store.Message) bool {
		return slices.ContainsFunc(all, func(m store.Message) bool { return m.Final && m.Text == "two" })
	}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if o.agent.Said("say one") != 0 || <-p.told != id {
		t.Error("it was said all the same")
	}
}
