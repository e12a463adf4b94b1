package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// answers counts nize's messages in a thread that say something.
func (s *scene) answers(in slacktest.Message, want string) (n int) {
	for _, m := range s.fake.Thread(in.Channel, in.Root()) {
		if m.User == slacktest.Bot && strings.Contains(m.Text, want) {
			n++
		}
	}
	return n
}

// ended waits until the turn whose answer stands in a thread is over: only then
// it is stored and booked, since the last words of an answer are shown before its
// end came.
func (s *scene) ended(root slacktest.Message) {
	s.t.Helper()
	s.until("the turn ends", func() bool { return s.fake.Session(root.Channel, root.Root()).Status == "active" })
}

// A model that says nothing costs no acknowledgement: 400 events at 200 a second
// are all acknowledged, at the first try, while it holds its answer back. How long
// each takes is the machine's and stands in the log.
func TestSlackAcksStalledModel(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for key, value := range map[string]string{"limits.user.messages": "0", "limits.user.turns": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(t.Context(), s.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	hold := make(chan struct{})
	defer close(hold)
	s.says.plan("stall", plan{say: []string{"never"}, hold: hold})
	users := []string{slacktest.Ann, slacktest.Ben, slacktest.Cho}
	for _, u := range users { // who they are is known: Slack's own answer is not what is measured
		if _, err := s.fake.Mention(u, slacktest.General, "#stall"); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the model stalls", func() bool { return s.says.asked.Load() >= 3 })
	before := s.fake.Stats()
	const events = 400
	tick := time.NewTicker(time.Second / 200)
	defer tick.Stop()
	for i := range events / 2 { // a mention is two events
		<-tick.C
		<-tick.C
		if _, err := s.fake.Mention(users[i%len(users)], slacktest.General, fmt.Sprintf("#stall %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	s.until("all is acknowledged", func() bool { return s.fake.Stats().Acked >= before.Acked+events })
	st := s.fake.Stats()
	t.Logf("%d events, mean %v, longest %v", events, st.MeanAck(), st.MaxAck)
	if st.Missed+st.Late+st.Dropped > 0 {
		t.Errorf("%d missed, %d late, %d dropped", st.Missed, st.Late, st.Dropped)
	}
	if status, err := api.GetStatus.Call(t.Context(), s.Client, api.Empty{}); err != nil {
		t.Errorf("status %+v, %v", status, err)
	}
}

var attackText = []string{
	"<!channel>", "<!here>", "<@U0BEN>", "<!subteam^S1>", "@here", "@channel", "<https://evil.example|bank>", "https://evil.example", "*bold*", "`code`", "```", "> quote", ":tada:",
	"&lt;!here&gt;", "\u202e", "\u200b", "\x1b[31m", "\u2066", "\U000e0041", "ﾠ", "\\", "\"", "\n", "\r\n", "\t", "日本語", "👩‍👩‍👧", "\ufeff", "state: done", "call: X", "\u0000", "{}", "]]",
}

// Arguments of every size up to 64 KiB with every nasty character: Slack takes
// the card, nothing in it pings, and what runs is what was proposed, byte for
// byte. Above, the call is refused and says why.
func TestSlackArguments(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if _, err := api.PutSetting.Call(t.Context(), s.Client, api.PutSettingRequest{Key: "limits.user.messages", Value: "0"}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i, size := range []int{0, 1, 100, 2_900, 5_100, 12_500, 36_000, 64_000} {
		args := `{}`
		if size > 0 {
			var b bytes.Buffer
			for b.Len() < size {
				b.WriteString(attackText[random.IntN(len(attackText))])
			}
			args = fitted(t, b.String(), size)
		}
		canonical, err := store.Canonical([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		word := fmt.Sprintf("args%d", i)
		s.says.plan(word, plan{tool: "box:note", args: args})
		asked, posted := s.ask(slacktest.Ann, word)
		if err := s.fake.Press(t.Context(), slacktest.Ann, posted, "call-run"); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		card(s.killable, s.fake, asked, "done")
		s.mu.Lock()
		ran := s.args[len(s.args)-1]
		s.mu.Unlock()
		if got, err := store.Canonical(ran); err != nil || !bytes.Equal(got, canonical) {
			t.Errorf("%d bytes: what ran is not what was proposed (%v):\n%.200q\n%.200q", size, err, got, canonical)
		}
	}
	s.wellBehaved()

	runs, asked := s.runs.Load(), s.says.asked.Load()
	s.says.plan("huge", plan{tool: "box:note", args: fitted(t, strings.Repeat("x", 70_000), 70_000)})
	m, err := s.fake.Mention(slacktest.Ann, slacktest.General, "please #huge")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the model is told", func() bool { return s.says.asked.Load() >= asked+2 })
	s.until("the answer", func() bool { return s.answers(m, "That was huge.") == 1 })
	if s.runs.Load() != runs {
		t.Error("a call with too long arguments ran")
	}
	if n := s.answers(m, "refused – the arguments are 70011 bytes, and those of a call that needs approval may be at most 65536"); n != 1 {
		t.Errorf("the refusal stands in the chat %d times: %+v", n, s.fake.Thread(m.Channel, m.Root()))
	}
	n := 0
	for e, err := range api.ReadAudit.Call(t.Context(), s.Client, api.AuditRequest{Tool: "box:note", Outcome: store.Refused}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if e.Kind != "call.refused" {
			t.Errorf("audit %+v", e)
		}
	}
	if n != 1 {
		t.Errorf("%d refusals in the audit", n)
	}
}

// fitted is an object with a text of about so many bytes of JSON.
func fitted(t *testing.T, text string, size int) string {
	t.Helper()
	type object struct {
		Text string `json:"text"`
	}
	for n := len(text); ; n = n * 9 / 10 {
		b, err := json.Marshal(object{strings.ToValidUTF8(text[:n], "")})
		if err != nil {
			t.Fatal(err)
		}
		if len(b) <= size+20 {
			return string(b)
		}
	}
}
