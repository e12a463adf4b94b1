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
)

// Every event three times, in random order, over a dropped link: each message
// is heard once.
func TestEventsThrice(t *testing.T) {
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

// stalled hears nothing before it is let.
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

// A stalled model costs no acknowledgement: 400 events at 200 a second are all
// acknowledged, at the first try, while nothing is worked off. How long each takes
// is the machine's and stands in the log.
func TestAcksWhileStalled(t *testing.T) {
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

// Whom nize answers: follow mode, mute, others, bots, guests, broadcasts.
func TestFollow(t *testing.T) {
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	db := openBolt(t)
	commands := &bots.Commands{}
	b := runBot(t, fake, Options{Store: db, Commands: commands}, h)
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
	say(slacktest.Ann, "two", &root)                           // follows
	say(slacktest.Ann, "for <@"+slacktest.Ben+"> only", &root) // somebody else
	say(slacktest.Ann, "<!here> three", &root)                 // everybody
	say(slacktest.Ben, "nobody asked nize", &root)             // another person: nize stops following
	say(slacktest.Ann, "four", &root)                          // so this is between them
	say(slacktest.Ann, mention+"five", &root)                  // until it is addressed again
	say(slacktest.Ann, "six", &root)                           // follows again
	say(slacktest.Ann, mention+"mute", &root)                  // a command
	say(slacktest.Ann, "seven", &root)                         // muted
	say(slacktest.Ann, "talk to the channel", nil)             // nobody's business
	say(slacktest.OtherBot, mention+"I am a bot", nil)         // bots are not answered
	say(slacktest.Guest, mention+"I am a guest", nil)          // no access
	say(slacktest.Guest, mention+"I am still a guest", nil)    // told once a day
	say(slacktest.Ann, mention+"usag", nil)                    // no command of these: a question
	last := say(slacktest.Ann, mention+"helo", nil)            // a near miss
	if _, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Text: "hidden", Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0NIZE"},{"type":"text","text":" in a block"}]}]}]`)}); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 5)
	if err := fake.Wait(t.Context(), func() bool {
		return slices.ContainsFunc(fake.Ephemerals(slacktest.General, slacktest.Ann), func(m slacktest.Message) bool { return strings.Contains(m.Text, "Did you mean") })
	}); err != nil {
		t.Fatal(err)
	}
	// Slack shows what one person alone reads in a thread only where that has replies.
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

// What separates nize's name from what it is told is no part of that.
func TestReadName(t *testing.T) {
	for text, want := range map[string]string{
		"<@U0>: help":                 "help",
		"<@U0>, usage":                "usage",
		" <@U0|nize> ; stop":          "stop",
		"<@U0>，帮助":                    "帮助",
		"<@U0>:":                      "",
		"<@U0> :) fine":               ":) fine",
		"<@U0> :wave:":                ":wave:",
		"<@U0>,5 is half":             ",5 is half",
		": <@U0>, help":               ": , help",
		"<@U1>, help":                 "@U1, help",
		"hey <@U0>, what is the time": "hey , what is the time",
	} {
		if got := readText(text, "U0", func(id string) string { return id }); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

// No payload ends the process or opens a way around the checks.
// A view without inputs has an empty list where others have an object.
func TestNoInputs(t *testing.T) {
	const view = `{"id":"V1","type":"home","private_metadata":"m","hash":"1.2","state":{"values":[]}}`
	e, err := decodeEvent([]byte(`{"type":"event_callback","team_id":"T0FAKE","event_id":"Ev1","event":{"type":"app_home_opened","user":"U0ANN","channel":"D0ANN","tab":"home","view":` + view + `}}`))
	if err != nil || e.Home.ID != "V1" || len(e.Home.State.Values) != 0 {
		t.Errorf("an event: %v, %+v", err, e.Home)
	}
	i, err := decodeInteraction([]byte(`{"type":"block_actions","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"actions":[{"action_id":"a"}],"view":` + view + `}`))
	if err != nil || i.View.Metadata != "m" {
		t.Errorf("a press: %v, %+v", err, i.View)
	}
	if _, err := decodeInteraction([]byte(`{"type":"view_submission","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"view":{"state":{"values":[{"a":1}]}}}`)); err == nil {
		t.Error("a list that is not empty is taken")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"envelope_id":"e","type":"events_api","payload":{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","user":"U1","channel":"C1","ts":"1.2","text":"<@U0> hi <http://x|y> <!here>","blocks":[{"type":"rich_text","elements":[{"elements":[{"type":"user","user_id":"U2"}]}]}]}}}`))
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"call-run","value":"run 01ARZ3NDEKTSV4RRFFQ69G5FAV abcd"}],"view":{"state":{"values":{"a":{"b":{"value":null,"selected_option":{"value":"x"}}}}}}}`))
	f.Add([]byte(`{"command":"/nize","text":"help","user_id":"U1","team_id":"T1","channel_id":"C1"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if e, err := decodeEnvelope(raw); err == nil {
			raw = append(raw[:len(raw):len(raw)], e.Payload...)
		}
		if e, err := decodeEvent(raw); err == nil && used[e.Type] {
			for _, id := range []string{e.User, e.Channel, e.Bot} {
				if id != "" && !idForm.MatchString(id) {
					t.Errorf("id %q", id)
				}
			}
			mentions(&e.message, "U0")
			others(&e.message, "U0")
			title(readText(e.Text, "U0", func(id string) string { return id }))
		}
		if i, err := decodeInteraction(raw); err == nil {
			for _, a := range i.Actions {
				readPress(a.Value)
				headOf(a.ID)
			}
			for _, block := range i.View.State.Values {
				for _, f := range block {
					_ = f.text()
				}
			}
		}
		if _, err := decodeSlash(raw); err == nil {
			_, _ = hookPayload("slash_commands", raw)
		}
	})
}
