package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// event sends an event of our own making.
func (s *scene) event(id, team, event string) {
	s.fake.SendRaw([]byte(`{"type":"events_api","envelope_id":"raw-` + id + `","payload":{"type":"event_callback","team_id":"` + team + `","api_app_id":"A0NIZE","event_id":"` + id + `","event":` + event + `}}`))
}

// settled waits until everything that came in before was worked off: an answer
// to something asked now says so.
func (s *scene) settled(word string) {
	s.t.Helper()
	m, err := s.fake.Mention(slacktest.Ann, slacktest.Secret, "#"+word)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("the answer to "+word, func() bool { return s.answers(m, "You said "+word+".") == 1 })
	s.ended(m)
}

// Guests, people of other workspaces, bots and who was switched off get no
// answer and cost no call of the model; people are told once a day.
func TestSlackWhoMayTalk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := s.fake.Join(slacktest.Guest, slacktest.General); err != nil {
		t.Logf("%v", err)
	}
	if err := s.fake.Join(slacktest.OtherBot, slacktest.General); err != nil {
		t.Logf("%v", err)
	}
	for i := range 3 {
		for user, channel := range map[string]string{slacktest.Guest: slacktest.General, slacktest.Stranger: slacktest.Shared, slacktest.OtherBot: slacktest.General} {
			if _, err := s.fake.Mention(user, channel, fmt.Sprintf("hello #outside%d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.settled("one")
	for user, channel := range map[string]string{slacktest.Guest: slacktest.General, slacktest.Stranger: slacktest.Shared} {
		user, channel := user, channel
		s.until(user+" is told", func() bool { return len(s.fake.Ephemerals(channel, user)) == 1 })
	}
	if got := s.fake.Ephemerals(slacktest.General, slacktest.OtherBot); len(got) != 0 {
		t.Errorf("the bot was told %+v", got)
	}
	// Who asks for help is answered, however often.
	for n, line := range []string{"/nize help", "/nize", "/nize help"} {
		if err := s.fake.Slash(t.Context(), slacktest.Guest, slacktest.General, line); err != nil {
			t.Fatal(err)
		}
		s.until(line+" is answered", func() bool { return len(s.fake.Ephemerals(slacktest.General, slacktest.Guest)) == n+2 })
	}

	m, err := s.fake.Mention(slacktest.Ben, slacktest.General, "hello #ben")
	if err != nil {
		t.Fatal(err)
	}
	s.until("Ben is answered", func() bool { return s.answers(m, "You said ben.") == 1 })
	if err := s.fake.Deactivate(slacktest.Ben); err != nil {
		t.Fatal(err)
	}
	s.event("EvGone1", slacktest.Team, `{"type":"message","channel":"C0GENERAL","channel_type":"channel","user":"U0BEN","ts":"`+m.TS[:len(m.TS)-1]+`9","thread_ts":"`+m.TS+`","text":"<@U0NIZE> #gone"}`)
	s.until("Ben is disabled", func() bool {
		users, err := api.ListUsers.Call(t.Context(), s.Client, api.Empty{})
		if err != nil {
			return false
		}
		for _, u := range users.Items {
			if strings.HasSuffix(strings.Join(u.Identities, " "), slacktest.Ben) {
				return u.State == store.Disabled
			}
		}
		return false
	})
	s.settled("two")
	if n := s.says.asked.Load(); n != 3 {
		t.Errorf("the model was asked %d times, want 3: by those who may talk", n)
	}
	for _, m := range s.fake.Messages(slacktest.General) {
		if m.User == slacktest.Bot && m.For == "" && strings.Contains(m.Text, "outside") {
			t.Errorf("an answer to somebody from outside: %q", m.Text)
		}
	}
}

// What is edited or deleted afterwards, what is said to everybody, and what is
// said to somebody else is not answered; a mention in another's thread is, as
// its author.
func TestSlackWhatIsMeant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root, err := s.fake.Mention(slacktest.Ann, slacktest.General, "hello #first")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the answer", func() bool { return s.answers(root, "You said first.") == 1 })
	for _, text := range []string{"<!channel> #all", "<!here> look #here", "<@" + slacktest.Ben + "> #other"} {
		if _, err := s.fake.Reply(slacktest.Ann, root, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.fake.Edit(root, "<@"+slacktest.Bot+"> hello #edited"); err != nil {
		t.Fatal(err)
	}
	plain, err := s.fake.Say(slacktest.Ben, slacktest.General, "good morning")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Edit(plain, "<@"+slacktest.Bot+"> good morning #late"); err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Delete(plain); err != nil {
		t.Fatal(err)
	}
	s.settled("one")
	if n := s.says.asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
	if _, err := s.fake.Reply(slacktest.Ann, root, "and #again"); err != nil { // Ann follows still
		t.Fatal(err)
	}
	s.until("the follow-up is answered", func() bool { return s.answers(root, "You said again.") == 1 })
	if _, err := s.fake.Reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> please #note"); err != nil {
		t.Fatal(err)
	}
	posted := card(s.killable, s.fake, root, "waiting for approval")
	if !strings.Contains(posted.Text, "asked by ben") {
		t.Errorf("in Ann's thread Ben's call is %.300q", posted.Text)
	}
	if err := s.fake.Press(t.Context(), slacktest.Ben, posted, "call-run"); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, root, "done")
}

// Frames and payloads of every broken kind end nothing: a message after them
// is answered.
func TestSlackHostile(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	deep := strings.Repeat(`[`, 200_000)
	nested := strings.Repeat(`{"type":"rich_text","elements":[`, 5_000) + strings.Repeat(`]}`, 5_000)
	long, err := json.Marshal(strings.Repeat("<@U0NIZE> ", 150_000))
	if err != nil {
		t.Fatal(err)
	}
	message := func(more string) string {
		return `{"type":"message","channel":"C0GENERAL","channel_type":"channel","user":"U0ANN","ts":"1700000000.000001"` + more + `}`
	}
	for i, e := range []string{
		`null`, `[]`, `7`, `"x"`, `{}`, `{"type":7}`, `{"type":"never_heard_of"}`, `{"type":"message"}`, message(`,"text":null`), message(`,"text":` + string(long)),
		message(`,"text":"<@U0NIZE> x","blocks":` + nested[:len(nested)-2]), `{"type":"app_mention","channel":{"id":"C0GENERAL"},"user":"U0ANN","ts":"1.1"}`,
		message(`,"text":"<@U0NIZE> #x","blocks":[` + nested + `]`), message(`,"text":"<@U0NIZE> #x","blocks":{"a":1}`), message(`,"text":"<@U0NIZE> #x","thread_ts":"../../etc"`),
		`{"type":"app_mention","channel":"C0GENERAL","user":"U0ANN","ts":"99999999999999999999.1","text":"<@U0NIZE>"}`, `{"type":"app_mention","channel":"c0general\u0000","user":"U0ANN","ts":"1.1"}`,
		`{"type":"agent_session_stopped"}`, `{"type":"app_home_opened","tab":"home"}`, `{"type":"app_home_opened","tab":"home","user":"U0NOBODY"}`, `{"type":"assistant_thread_started","assistant_thread":7}`,
		`{"type":"user_change"}`, `{"type":"user_change","user":"U0ANN"}`, `{"type":"user_change","user":{"id":"U0NOBODY","deleted":true}}`, `{"type":"agent_session_title_changed","channel":"C0GENERAL","thread_ts":"1.1","title":` + string(long) + `}`,
	} {
		s.event(fmt.Sprintf("EvHostile%d", i), slacktest.Team, e)
	}
	s.event("EvOther", slacktest.OtherTeam, message(`,"text":"<@U0NIZE> #otherteam"`))
	s.event("EvOther2", "", message(`,"text":"<@U0NIZE> #noteam"`))
	for i, kind := range []string{"events_api", "interactive", "slash_commands", "hello", "disconnected", "", "..."} {
		for j, payload := range []string{
			`null`, `7`, `{}`, `[]`, deep, `{"type":"block_actions"}`, `{"type":"block_actions","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"}}`,
			`{"type":"block_actions","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"actions":[` + strings.Repeat(`{"block_id":"b","action_id":"call-run","value":"run x y"},`, 5_000) + `{}]}`,
			`{"type":"block_actions","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"actions":[{"block_id":"b","action_id":"call-run"},{"block_id":"b","action_id":"call-edit"},{"block_id":"b","action_id":"call-show","value":"\u0000"},{"action_id":"page"},{"action_id":"result:"},{"block_id":"b","action_id":"call-retry","action_ts":"\u0000"}]}`,
			`{"type":"view_submission","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"}}`, `{"type":"view_submission","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"view":{"callback_id":"edit","private_metadata":"{\"call\":7}","state":{"values":{"json":{"value":{"value":null}}}}}}`,
			`{"type":"view_submission","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"view":{"callback_id":"edit","private_metadata":"{\"call\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"form\":true}"}}`,
			`{"type":"message_action","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"callback_id":"ask_about_message"}`, `{"type":"view_closed","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"}}`,
			`{"command":"/nize","user_id":"U0ANN","team_id":"T0FAKE","channel_id":"C0GENERAL","text":"\u0000\u202e","trigger_id":"\u0000"}`, `{"command":"/nize","user_id":"U0ANN","team_id":"T0FAKE","channel_id":"C0GENERAL","text":` + string(long) + `}`,
		} {
			s.fake.SendRaw(fmt.Appendf(nil, `{"type":%q,"envelope_id":"h-%d-%d","payload":%s}`, kind, i, j, payload))
		}
	}
	for _, frame := range []string{``, `{`, `null`, `[]`, `"hello"`, "\xff\xfe", `{"type":"hello","num_connections":-1}`, `{"type":"hello","num_connections":"x"}`, `{"envelope_id":{}}`, `{"type":"events_api","envelope_id":"` + strings.Repeat("x", 300) + `"}`, deep} {
		s.fake.SendRaw([]byte(frame))
	}
	s.settled("one")
	s.fake.SendRaw(make([]byte, 5<<20)) // more than a frame may have: the link ends, and comes back
	s.settled("two")
	list, err := api.ListBots.Call(t.Context(), s.Client, api.Empty{})
	if err != nil || len(list.Items) != 1 || list.Items[0].State != "connected" {
		t.Errorf("the bot is %+v, %v", list, err)
	}
	for _, m := range s.fake.Messages(slacktest.General) {
		if m.User == slacktest.Bot && (strings.Contains(m.Text, "otherteam") || strings.Contains(m.Text, "noteam")) {
			t.Errorf("an answer to another workspace: %q", m.Text)
		}
	}
	if v, err := api.CheckAudit(t.Context(), s.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}
