package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/chattest"
	"nize/bots/discord/discordtest"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
	"nize/store/database/databasetest"
)

// scene is a bot with a conversation whose agent is scripted by the messages.
type scene struct {
	*Bot
	t     *testing.T
	fake  *discordtest.Server
	db    store.DB
	o     Options
	agent *botstest.Agent
	gate  *botstest.Gateway
	stop  func()

	audience outbox.Audience // who gets copies of cards; nil for nobody
}

func newScene(t *testing.T, of discordtest.Options, o Options) *scene {
	s := unstarted(t, of, o)
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func unstarted(t *testing.T, of discordtest.Options, o Options) *scene {
	s := &scene{t: t, db: databasetest.Open(t), fake: startFake(t, of), o: o}
	s.gate = &botstest.Gateway{Calls: s.db, Now: time.Now}
	t.Cleanup(s.gate.Close)
	s.o.Calls, s.o.Approver = s.db, s.gate
	return s
}

// start starts a new process on the same store.
func (s *scene) start() {
	s.Bot = newBot(s.t, s.fake, s.db, s.o)
	if s.o.Store.Inbox != nil {
		s.Bot.o.Store.Inbox = s.o.Store.Inbox
	}
	s.agent = &botstest.Agent{Threads: s.db, Calls: s.db, Now: time.Now}
	c := bots.New(bots.Options{
		Agent: s.agent, Approver: s.gate, Inbox: s.db, Threads: s.db, Calls: s.db, Feed: s.db, Places: s.db, Backlog: s.db, Audience: s.audience,
		Platforms: []bots.Platform{s.Bot}, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Pace: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	wg.Go(func() { _ = s.Bot.Run(ctx, c) })
	s.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	s.wait("the link", func() bool { return s.Health().State == bots.Connected })
}

func (s *scene) wait(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("%s did not come", what)
		}
	}
}

// mention asks in the channel and returns where the answer will be posted.
func (s *scene) mention(user, text string) discordtest.Message {
	s.t.Helper()
	m, err := s.fake.Mention(user, discordtest.General, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// texts returns nize's texts in a channel.
func (s *scene) texts(channel string) (all []string) {
	for _, m := range s.fake.Messages(channel) {
		if m.Author == discordtest.Bot {
			all = append(all, m.Content)
		}
	}
	return all
}

func (s *scene) sees(channel, text string) {
	s.t.Helper()
	s.wait(text, func() bool {
		return slices.ContainsFunc(s.texts(channel), func(said string) bool { return strings.Contains(said, text) })
	})
}

// TestMention: a mention opens a thread below it, named after the question; its author
// continues there without a mention; nothing pings.
func TestMention(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	m := s.mention(discordtest.Ben, "say good **morning** @everyone")
	s.sees(m.ID, "good **morning** @everyone")
	if c, ok := s.fake.Channel(m.ID); !ok || c.Parent != discordtest.General || !strings.HasPrefix(c.Name, "say good") {
		t.Errorf("the thread: %+v", c)
	}
	if _, err := s.fake.Say(discordtest.Ben, m.ID, "say again"); err != nil {
		t.Fatal(err)
	}
	s.sees(m.ID, "again")
	if _, err := s.fake.Say(discordtest.Ann, m.ID, "say not for nize"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fake.DM(discordtest.Ben, "say hello"); err != nil {
		t.Fatal(err)
	}
	s.sees(s.fake.DMChannel(discordtest.Ben), "hello")
	if s.agent.Said("say not for nize") != 0 {
		t.Error("it answers who did not address it")
	}
	for _, m := range s.fake.Messages(m.ID) {
		if len(m.Pinged) > 0 {
			t.Errorf("a message pings %v", m.Pinged)
		}
	}
	if st := s.fake.Stats(); len(st.Refused)+len(st.Unknown)+st.Missed+st.Ignored > 0 {
		t.Errorf("Discord counts %+v", st)
	}
	if !s.fake.InGuild(discordtest.Guild, discordtest.Bot) || s.fake.InGuild(discordtest.OtherGuild, discordtest.Bot) {
		t.Error("it is not in the guild that it was connected to alone")
	}
}

// TestLongAnswer: a text longer than a message is split into several, each with complete
// code blocks and within Discord's limit.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	long := strings.Repeat("word ", 900) + "the-end"
	m, err := s.fake.DM(discordtest.Ann, "hello")
	if err != nil {
		t.Fatal(err)
	}
	l := s.Current()
	at := store.Address{Surface: store.OnDiscord, Team: discordtest.Guild, Channel: m.Channel, Direct: true}
	first, err := l.posts.Show(t.Context(), at, store.Message{ID: "x", Kind: store.TextMessage, Text: long[:50]})
	if err != nil {
		t.Fatal(err)
	}
	at.Message = first
	if _, err := l.posts.Show(t.Context(), at, store.Message{ID: "x", Kind: store.TextMessage, Text: long, Final: true}); err != nil {
		t.Fatal(err)
	}
	if parts := s.texts(m.Channel); !strings.Contains(strings.Join(parts, " "), "the-end") || len(parts) < 3 {
		t.Errorf("it stands in %d messages", len(parts))
	}
}

// TestLinkEnds: whatever ends a link, the next one continues, by a resume if possible,
// otherwise anew; no message of the meantime is lost or processed twice. If only the
// operator can fix the cause, it is reported with what to do, until it is fixed.
func TestLinkEnds(t *testing.T) {
	t.Parallel()
	mended := make(chan struct{})
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{testOnlyWait: func(ctx context.Context, d time.Duration) error {
		if d < hopeless {
			return short(ctx, d)
		}
		select {
		case <-mended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	for n, end := range []func(){
		s.fake.Drop, s.fake.Reconnect, func() { s.fake.InvalidSession(true) }, func() { s.fake.InvalidSession(false) }, s.fake.AskHeartbeat,
		func() { s.fake.ExpireSessions(); s.fake.Drop() }, func() { s.fake.SendRaw([]byte("{")) }, func() { s.fake.SendRaw([]byte(`{"op":99}`)) },
		func() { s.fake.CloseGateway(1001) }, func() { s.fake.CloseGateway(4000) }, func() { s.fake.CloseGateway(4001) }, func() { s.fake.CloseGateway(4002) }, func() { s.fake.CloseGateway(4003) },
		func() { s.fake.CloseGateway(4005) }, func() { s.fake.CloseGateway(4007) }, func() { s.fake.CloseGateway(4008) }, func() { s.fake.CloseGateway(4009) },
	} {
		end()
		m := s.mention(discordtest.Ann, fmt.Sprint("say alive-", n))
		s.sees(m.ID, fmt.Sprint("alive-", n))
		if said := s.agent.Said(fmt.Sprint("say alive-", n)); said != 1 {
			t.Errorf("after end %d it answered %d times", n, said)
		}
	}
	for code, reason := range map[int]string{4010: "gateway", 4011: "gateway", 4012: "gateway", 4013: "gateway", 4014: "intents"} {
		s.fake.CloseGateway(code)
		s.wait(reason, func() bool {
			h := s.Health()
			return h.State == bots.Refused && h.Reason == reason && h.Error != ""
		})
		mended <- struct{}{}
		s.wait("the link", func() bool { return s.Health().State == bots.Connected })
	}
	s.fake.ResetToken("MTAw.another.token")
	s.wait("the token's end", func() bool {
		h := s.Health()
		return h.State == bots.Refused && h.Reason == "token" && strings.Contains(h.Error, "connect")
	})
	s.fake.ResetToken(discordtest.Token)
	mended <- struct{}{}
	s.wait("the link", func() bool { return s.Health().State == bots.Connected })
}

// TestDrops: links are cut at random moments while people write; each message is answered
// once, and in order within its thread.
func TestDrops(t *testing.T) {
	t.Parallel()
	drops, people := 1000, 8
	if testing.Short() {
		drops, people = 30, 4
	}
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; n < drops; {
			<-time.After(rand.N(10 * time.Millisecond)) // a random moment
			if !s.fake.Connected() {
				continue // there is no link to cut
			}
			n++
			if s.fake.Drop(); rand.N(10) == 0 {
				s.fake.ExpireSessions()
			}
		}
	}()
	var all []string
	for over := false; !over; {
		select {
		case <-ended:
			over = true // once more, with a stable link
		default:
		}
		first := len(all)
		for range people {
			all = append(all, s.mention(discordtest.Ann, fmt.Sprint("say first-", len(all))).ID)
		}
		for n, id := range all[first:] {
			s.sees(id, fmt.Sprint("first-", first+n))
			if _, err := s.fake.Mention(discordtest.Ann, id, fmt.Sprint("say second-", first+n)); err != nil {
				t.Fatal(err)
			}
		}
		for n, id := range all[first:] {
			s.sees(id, fmt.Sprint("second-", first+n))
		}
	}
	for n, id := range all {
		if got := s.texts(id); !slices.Equal(got, []string{fmt.Sprint("first-", n), fmt.Sprint("second-", n)}) {
			t.Errorf("thread %d: %q", n, got)
		}
	}
	st := s.fake.Stats()
	t.Logf("%d drops, %d links, %d resumes, %d identifies, %d messages", drops, st.Opened, st.Resumed, st.Identified, 2*len(all))
}

// TestMissed: messages written while nize was away are fetched and answered once: mentions
// in channels in which it was addressed, threads, direct messages.
func TestMissed(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	before := s.mention(discordtest.Ann, "say before")
	s.sees(before.ID, "before")
	dm, err := s.fake.DM(discordtest.Ann, "say direct")
	if err != nil {
		t.Fatal(err)
	}
	s.sees(dm.Channel, "direct")
	s.stop()
	s.fake.ExpireSessions()
	missed := s.mention(discordtest.Ann, "say missed")
	if _, err := s.fake.Say(discordtest.Ann, before.ID, "say followed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fake.DM(discordtest.Ann, "say privately"); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.sees(missed.ID, "missed")
	s.sees(before.ID, "followed")
	s.sees(dm.Channel, "privately")
	s.fake.InvalidSession(false) // and searched once more
	after := s.mention(discordtest.Ann, "say after")
	s.sees(after.ID, "after")
	for _, text := range []string{"say before", "say missed", "say followed", "say privately", "say direct"} {
		if said := s.agent.Said(text); said > 1 {
			t.Errorf("%q was answered %d times", text, said)
		}
	}
}

// TestMissedInOrder: messages from before nize's return are answered before new ones,
// however long Discord takes to list them.
func TestMissedInOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	say := func(channel, text string) {
		t.Helper()
		if _, err := s.fake.Say(discordtest.Ann, channel, text); err != nil {
			t.Fatal(err)
		}
	}
	root := s.mention(discordtest.Ann, "say zero")
	s.sees(root.ID, "zero")
	dm := s.fake.DMChannel(discordtest.Ann)
	say(dm, "say zero")
	s.sees(dm, "zero")
	s.stop()
	s.fake.ExpireSessions()
	told := make(chan struct{})
	s.fake.Fail("message.list", chattest.Fault{Held: told, Times: 3}) // for the channel and both conversations
	for _, channel := range []string{root.ID, dm} {
		say(channel, "say first")
	}
	s.start()
	for _, channel := range []string{root.ID, dm} {
		say(channel, "say second")
	}
	s.wait("what is written meanwhile", func() bool { return s.Health().Events >= 2 })
	close(told)
	for _, channel := range []string{root.ID, dm} {
		s.sees(channel, "first")
		s.sees(channel, "second")
		if got := strings.Join(s.texts(channel), "; "); !strings.HasSuffix(got, "zero; first; second") {
			t.Errorf("the answers are %s", got)
		}
	}
}

// TestMentionsOnly: without the privileged intent nize answers mentions, and reports which
// messages it doesn't receive.
func TestMentionsOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true, NoContent: true, NoMembers: true}, Options{})
	if h := s.Health(); !strings.Contains(h.Error, "Message Content Intent") {
		t.Errorf("it fares %+v", h)
	}
	m := s.mention(discordtest.Ann, "say here")
	s.sees(m.ID, "here")
}

// slowInbox holds every item until it is released.
type slowInbox struct {
	store.Inbox
	held chan struct{}
}

func (i slowInbox) Accept(ctx context.Context, item store.Item) (bool, error) {
	if item.Kind == keptInteraction {
		select {
		case <-i.held:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return i.Inbox.Accept(ctx, item)
}

// TestAnsweredInTime: a press is answered within Discord's three seconds although the disk
// takes longer, and counts once it is stored. The disk in this test doesn't respond before
// Discord got the answer; the delay of a busy machine is not checked.
func TestAnsweredInTime(t *testing.T) {
	t.Parallel()
	if deferAfter > 2*time.Second {
		t.Errorf("a press is deferred after %v, of three seconds", deferAfter)
	}
	held := make(chan struct{})
	s := &scene{t: t, db: databasetest.Open(t), fake: startFake(t, discordtest.Options{Unlimited: true})}
	s.gate = &botstest.Gateway{Calls: s.db, Now: time.Now}
	t.Cleanup(s.gate.Close)
	s.o = Options{Calls: s.db, Approver: s.gate, Store: Store{Inbox: slowInbox{s.db, held}}}
	s.start()
	t.Cleanup(func() { s.stop() })
	m := s.mention(discordtest.Ann, `call toolbox:greet {}`)
	var card discordtest.Message
	s.wait("the card", func() bool {
		for _, c := range s.fake.Messages(m.ID) {
			if slices.Contains(c.Buttons(), "Run") {
				card = c
			}
		}
		return card.ID != ""
	})
	if err := s.fake.Press(t.Context(), discordtest.Ann, card, "Run"); err != nil {
		t.Fatalf("the press is not answered: %v", err)
	}
	if s.fake.Stats().Missed > 0 {
		t.Error("Discord says that the interaction failed")
	}
	close(held)
	s.sees(m.ID, "toolbox:greet is done")
}

// TestAccess: people who manage the guild may talk to nize, others by a role or if
// everybody may; the rest are told once, in private, and nothing is stored. A person who
// leaves is disabled.
func TestAccess(t *testing.T) {
	t.Parallel()
	config := store.Defaults{}
	s := &scene{t: t, db: databasetest.Open(t), fake: startFake(t, discordtest.Options{Unlimited: true})}
	config["discord.api_url"], config["discord.access"] = s.fake.APIURL(), "admins"
	s.gate = &botstest.Gateway{Calls: s.db, Now: time.Now}
	t.Cleanup(s.gate.Close)
	s.o = Options{Calls: s.db, Approver: s.gate, Config: config}
	s.start()
	t.Cleanup(func() { s.stop() })
	m := s.mention(discordtest.Ann, "say owner")
	s.sees(m.ID, "owner")
	for range 2 {
		s.mention(discordtest.Cho, "say member")
	}
	dm := s.fake.DMChannel(discordtest.Cho)
	s.wait("the refusal", func() bool { return len(s.texts(dm)) > 0 })
	if _, err := s.fake.DM(discordtest.Stranger, "say stranger"); err != nil {
		t.Fatal(err)
	}
	s.stop()
	config["discord.access"] = "role:" + discordtest.Ops
	s.start()
	s.sees(s.mention(discordtest.Ben, "say by-role").ID, "by-role")
	if got := s.texts(dm); len(got) != 1 {
		t.Errorf("who has no access reads %q", got)
	}
	if s.agent.Said("say member")+s.agent.Said("say stranger") > 0 {
		t.Error("who has no access is answered")
	}
	ben, err := s.db.FindUser(t.Context(), "discord:"+discordtest.Ben)
	if err != nil {
		t.Fatal(err)
	}
	if in, err := s.Bot.InUserGroup(t.Context(), "discord:"+discordtest.Guild+":"+discordtest.Ops); err != nil || !slices.Equal(in, []string{"discord:" + discordtest.Ann, "discord:" + discordtest.Ben}) {
		t.Errorf("with the role are %v, %v", in, err)
	}
	if _, err := s.Bot.InUserGroup(t.Context(), "discord:"+discordtest.Guild+":5999"); err == nil {
		t.Error("a role that is gone has members")
	}
	at := store.Address{Surface: store.OnDiscord, Team: discordtest.Guild, Channel: discordtest.Random}
	ann, err := s.db.FindUser(t.Context(), "discord:"+discordtest.Ann)
	if err != nil {
		t.Fatal(err)
	}
	if admins, err := s.Bot.Admins(t.Context(), store.Address{Team: discordtest.Guild, Channel: discordtest.General}); err != nil || !slices.Equal(admins, []string{ann.ID}) {
		t.Errorf("the channel is administered by %v, %v", admins, err)
	}
	if in, err := s.Bot.Member(t.Context(), at, ben.ID); err == nil && in {
		t.Error("nize tells who sees a channel that it does not see")
	}
	if err := s.fake.Leave(discordtest.Guild, discordtest.Ben); err != nil {
		t.Fatal(err)
	}
	s.wait("the end of Ben", func() bool {
		u, err := s.db.GetUser(t.Context(), ben.ID)
		return err == nil && u.State == store.Disabled
	})
}

// TestWrongPerson: a press by a person who may not decide gets a private reply, and changes
// nothing.
func TestWrongPerson(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	m := s.mention(discordtest.Ann, `call toolbox:greet {"name":"Bo"}`)
	var card discordtest.Message
	s.wait("the card", func() bool {
		for _, c := range s.fake.Messages(m.ID) {
			if slices.Contains(c.Buttons(), "Run") {
				card = c
			}
		}
		return card.ID != ""
	})
	l := s.Current()
	l.presses.Handler = refusing{l.handler}
	if err := s.fake.Press(t.Context(), discordtest.Ben, card, "Run"); err != nil {
		t.Fatal(err)
	}
	s.wait("the refusal", func() bool {
		return slices.ContainsFunc(s.fake.Ephemerals(m.ID, discordtest.Ben), func(m discordtest.Message) bool { return strings.Contains(m.Content, "can't decide") })
	})
	if len(s.fake.Ephemerals(m.ID, discordtest.Ann)) > 0 {
		t.Error("others read it")
	}
}

// TestSleepingThread: in an archived thread a press is processed, and its card is edited.
func TestSleepingThread(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	m := s.mention(discordtest.Ann, `call toolbox:greet {}`)
	var card discordtest.Message
	s.wait("the card", func() bool {
		for _, c := range s.fake.Messages(m.ID) {
			if slices.Contains(c.Buttons(), "Run") {
				card = c
			}
		}
		return card.ID != ""
	})
	if err := s.fake.Archive(m.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Press(t.Context(), discordtest.Ann, card, "Run"); err != nil {
		t.Fatal(err)
	}
	s.sees(m.ID, "toolbox:greet is done")
	s.wait("the card's end", func() bool { now, _ := s.fake.Message(m.ID, card.ID); return strings.Contains(now.Content, "· Done") })
}

// refusing is a handler in which no one may see a call.
type refusing struct{ bots.Handler }

func (r refusing) Press(_ context.Context, _ store.Caller, call string, _ store.Decision) (store.Card, error) {
	return store.Card{Call: call, State: store.Pending}, store.ErrNotFound
}

// TestLimits: many conversations at once under Discord's limits: every answer arrives in
// order, and each 429, of a bucket or global, is obeyed.
func TestLimits(t *testing.T) {
	t.Parallel()
	n := 200
	if testing.Short() {
		n = 10
	}
	s := newScene(t, discordtest.Options{}, Options{testOnlyWait: queue.Sleep})
	told := 0
	for _, method := range []string{"message.create", "message.create", "thread.create", "typing", "member.get"} {
		s.fake.Fail(method, chattest.Fault{RetryAfter: time.Second})
		told++
	}
	s.fake.Fail("message.create", chattest.Fault{RetryAfter: time.Second, Error: "global"})
	s.fake.Fail("message.create", chattest.Fault{Status: 502, After: true, Times: 2})
	var ids []string
	for i := range n {
		channel := fmt.Sprint("41000000000000000", i/40) // Discord limits how many threads can be opened in one
		if i%40 == 0 {
			s.fake.AddChannel(discordtest.Channel{ID: channel, Guild: discordtest.Guild, Name: "many"})
		}
		m, err := s.fake.Mention(discordtest.Ann, channel, fmt.Sprint("say answer-", i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	for i, id := range ids {
		s.sees(id, fmt.Sprint("answer-", i))
		if _, err := s.fake.Mention(discordtest.Ann, id, fmt.Sprint("say second-", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		s.sees(id, fmt.Sprint("second-", i))
		if got := s.texts(id); !slices.Equal(got, []string{fmt.Sprint("answer-", i), fmt.Sprint("second-", i)}) {
			t.Errorf("thread %d: %q", i, got)
		}
	}
	st, all := s.fake.Stats(), 0
	for _, l := range st.Limits {
		if l.Ignored > 0 {
			t.Errorf("%s was to wait for %s, and %d requests came", l.Bucket, l.For, l.Ignored)
		}
		if l.Bucket == "global" {
			all++
		}
	}
	if all == 0 || len(st.Limits)-all < told {
		t.Errorf("Discord limited %d times, all requests %d times: too little to show anything", len(st.Limits), all)
	}
	t.Logf("%d conversations; Discord limited %d times, all requests %d times; %v", n, len(st.Limits), all, st.Calls)
}

// FuzzEvents: whatever Discord sends crashes nothing.
func FuzzEvents(f *testing.F) {
	f.Add("MESSAGE_CREATE", []byte(`{"id":"1","channel_id":"2","guild_id":"2000000000000000001","author":{"id":"3"},"content":"<@1000000000000000001> x"}`))
	f.Add("INTERACTION_CREATE", []byte(`{"id":"1","application_id":"1000000000000000001","type":5,"token":"t","channel_id":"2","user":{"id":"3"},"data":{"custom_id":"edit:x","components":[{"type":18,"component":{"type":4,"custom_id":"a","value":1}},null]}}`))
	f.Add("GUILD_CREATE", []byte(`{"id":"5","channels":[null],"threads":[{"id":"1","permission_overwrites":[{"allow":"x"}]}]}`))
	f.Add("GUILD_MEMBER_REMOVE", []byte(`{"user":{}}`))
	f.Add("READY", []byte(`[]`))
	s := &scene{}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		if s.Bot == nil {
			s.t = t
			b := New(Options{Store: Store{Inbox: nothing{}, Threads: noThreads{}}, Config: store.Defaults{"discord.api_url": "http://127.0.0.1:1/"}, Commands: &bots.Commands{}, Log: slog.New(slog.DiscardHandler), testOnlyWait: short})
			s.Bot = b
		}
		l := newLive(s.Bot, store.Bot{Team: discordtest.Guild, User: discordtest.Bot, App: discordtest.App, Tokens: map[string]store.Secret{Token: store.NewSecret("a.b.c")}}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is processed
		called := make(chan struct{}, 8)
		l.dispatch(ctx, kind, data, func(bool) { called <- struct{}{} })
		select {
		case <-called:
		case <-time.After(time.Minute):
			t.Error("it is never said whether it was taken")
		}
		l.wg.Wait()
		l.intake.Wait()
	})
}

// nothing is an inbox that stores nothing.
type nothing struct{ store.Inbox }

func (nothing) Accept(context.Context, store.Item) (bool, error) { return false, context.Canceled }

// noThreads is an empty store of threads.
type noThreads struct{ Threads }

func (noThreads) FindThread(context.Context, store.Address) (store.Thread, error) {
	return store.Thread{}, store.ErrNotFound
}

func (noThreads) GetChannel(context.Context, string) (store.Channel, error) {
	return store.Channel{}, nil
}

// undone is an inbox of a process that dies before it marks items as done.
type undone struct{ store.Inbox }

func (undone) Done(context.Context, string) error { return errors.New("killed") }

// TestSaidOnce: a private reply to a person's action is posted once, even if the process
// died before it recorded the reply.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	commands := &bots.Commands{}
	commands.Add(bots.Command{Name: "count", About: phrases.AboutStop, Run: func(context.Context, bots.Asked) (bots.Answer, error) { return bots.Said("counted"), nil }})
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{Commands: commands})
	s.stop()
	s.o.Store.Inbox = undone{s.db}
	s.start()
	s.fake.Fail("message.create", chattest.Fault{Status: 502, After: true})
	m, err := s.fake.DM(discordtest.Ann, "count")
	if err != nil {
		t.Fatal(err)
	}
	s.sees(m.Channel, "counted")
	s.stop()
	s.o.Store.Inbox = nil
	s.start()
	s.wait("the end of the work", func() bool {
		items, err := s.db.Pending(t.Context())
		return err == nil && len(items) == 0
	})
	if said := strings.Join(s.texts(m.Channel), "; "); strings.Count(said, "counted") != 1 {
		t.Errorf("it says %s", said)
	}
}
