package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// If every event arrives three times, in random order and across a dropped link, each
// message is heard once.
func TestEventsThrice(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true, RetryAfter: []time.Duration{0, 0, 0}})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	var want []string
	for i := range 30 {
		text := fmt.Sprintf("message %d", i)
		want = append(want, text)
		if _, err := fake.Mention([]string{slacktest.Ann, slacktest.Ben}[i%2], slacktest.General, text); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, e := range fake.Events() {
		ids = append(ids, e.ID, e.ID)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i, id := range ids {
		fake.Repeat(id)
		if i == len(ids)/2 {
			fake.Drop()
		}
	}
	h.wait(t, len(want))
	sent := func() bool { st := fake.Stats(); return st.Acked >= 3*len(fake.Events()) }
	if err := fake.Wait(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	got := h.texts()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("heard %d messages, want %d: %q", len(got), len(want), got)
	}
}

// stalled hears nothing until it is released.
type stalled struct {
	*heard
	hold chan struct{}
}

func (s *stalled) Message(ctx context.Context, in store.Inbound) (bool, error) {
	select {
	case <-s.hold:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return s.heard.Message(ctx, in)
}

// A stalled model doesn't delay acknowledgements: 400 events at 200 a second are all
// acknowledged at the first attempt while nothing is processed. The log has the durations,
// which depend on the machine.
func TestAcksWhileStalled(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := &stalled{newHeard(), make(chan struct{})}
	runBot(t, fake, Options{}, h)
	const messages = 200
	tick := time.NewTicker(10 * time.Millisecond) // a mention is two events
	defer tick.Stop()
	for i := range messages {
		<-tick.C
		if _, err := fake.Mention(slacktest.Ann, slacktest.General, fmt.Sprintf("message %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := fake.Wait(ctx, func() bool { return fake.Stats().Acked == 2*messages }); err != nil {
		t.Fatalf("%d of %d events are acknowledged while the model stalls: %v", fake.Stats().Acked, 2*messages, err)
	}
	if n := len(h.texts()); n != 0 {
		t.Errorf("%d messages got through", n)
	}
	st := fake.Stats()
	t.Logf("%d acknowledged, mean %v, longest %v", st.Acked, st.MeanAck(), st.MaxAck)
	if st.Missed+st.Late > 0 {
		t.Errorf("%d missed, %d late", st.Missed, st.Late)
	}
	close(h.hold)
	h.wait(t, messages)
}

// Which messages nize answers: follow mode, mute, other people, bots, guests, broadcasts.
func TestFollow(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	db := databasetest.Open(t)
	commands := &bots.Commands{}
	b := runBot(t, fake, Options{Store: storeOf(db), Commands: commands}, h)
	commands.Add(bots.CoreCommands(commands, bots.Core{Threads: db, Claims: db, Handler: h, Calls: db})...)
	say := func(user, text string, to *slacktest.Message) slacktest.Message {
		t.Helper()
		var m slacktest.Message
		var err error
		if to == nil {
			m, err = fake.Say(user, slacktest.General, text)
		} else {
			m, err = fake.Reply(user, *to, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	mention := "<@" + slacktest.Bot + "> "
	root := say(slacktest.Ann, mention+"one", nil)
	h.wait(t, 1)
	say(slacktest.Ann, "two", &root)                           // followed
	say(slacktest.Ann, "for <@"+slacktest.Ben+"> only", &root) // for another person
	say(slacktest.Ann, "<!here> three", &root)                 // for everybody
	say(slacktest.Ben, "nobody asked nize", &root)             // another person: nize stops following
	say(slacktest.Ann, "four", &root)                          // so this is between them
	say(slacktest.Ann, mention+"five", &root)                  // until it is addressed again
	say(slacktest.Ann, "six", &root)                           // follows again
	say(slacktest.Ann, mention+"mute", &root)                  // a command
	say(slacktest.Ann, "seven", &root)                         // while muted
	say(slacktest.Ann, "talk to the channel", nil)             // not for nize
	say(slacktest.OtherBot, mention+"I am a bot", nil)         // bots get no answer
	say(slacktest.Guest, mention+"I am a guest", nil)          // no access
	say(slacktest.Guest, mention+"I am still a guest", nil)    // reported once a day
	say(slacktest.Ann, mention+"usag", nil)                    // not a command: a question
	last := say(slacktest.Ann, mention+"helo", nil)            // a misspelt command
	if _, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Text: "hidden", Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0NIZE"},{"type":"text","text":" in a block"}]}]}]`)}); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 5)
	if err := fake.Wait(t.Context(), func() bool {
		return slices.ContainsFunc(fake.Ephemerals(slacktest.General, slacktest.Ann), func(m slacktest.Message) bool { return strings.Contains(m.Text, "Did you mean") })
	}); err != nil {
		t.Fatal(err)
	}
	// Slack shows ephemeral messages in a thread only if it has replies.
	for _, m := range fake.Ephemerals(slacktest.General, slacktest.Ann) {
		if in := m.ThreadTS; in != "" && len(fake.Thread(slacktest.General, in)) < 2 {
			t.Errorf("nobody sees %q below %s", m.Text, in)
		}
	}
	got := h.texts()
	slices.Sort(got)
	want := []string{"five", "hidden", "one", "six", "two", "usag"}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	if err := fake.Wait(t.Context(), func() bool { return len(fake.Ephemerals(slacktest.General, slacktest.Guest)) > 0 }); err != nil {
		t.Fatal(err)
	}
	told := fake.Ephemerals(slacktest.General, slacktest.Guest)
	if len(told) != 1 || !strings.Contains(told[0].Text, "full members") {
		t.Errorf("the guest was told %+v", told)
	}
	users, err := db.ListUsers(t.Context())
	if err != nil || len(users) != 1 || users[0].Role != store.Member {
		t.Errorf("users %+v, %v", users, err)
	}
	_, _ = b, last
}
