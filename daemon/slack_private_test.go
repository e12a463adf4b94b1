package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// vault adds a server whose results are private; its tool open runs by itself
// and answers with a secret.
func (s *fixture) vault() {
	s.t.Helper()
	yes := true
	up := mcptest.New(s.t, mcptest.Options{Name: "vault", Tools: []mcptest.Tool{
		{Name: "open", Description: "Open the vault.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: yes}, Do: func(context.Context, json.RawMessage) json.RawMessage {
			return json.RawMessage(strings.Replace(imageResult, "drawn", "the vault holds rubies", 1))
		}},
		{Name: "burn", Description: "Burn something.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			return json.RawMessage(`{"content":[{"type":"text","text":"only emeralds are left"}]}`)
		}},
	}})
	if _, err := api.AddServer.Call(s.t.Context(), s.Client, api.AddServerRequest{Server: store.Server{Name: "vault", URL: up.HTTP(), Visibility: []string{"all"}, Private: true, TrustAnnotations: true}}); err != nil {
		s.t.Fatal(err)
	}
	s.says.plan("vault", plan{tool: "vault:open", args: `{}`, then: "It holds red rubies."})
}

// public is all of a thread that everybody reads.
func (s *scene) public(root slacktest.Message) string {
	var all []string
	for _, m := range s.fake.Thread(root.Channel, root.Root()) {
		all = append(all, m.Text+" "+string(m.Blocks))
	}
	return strings.Join(all, "\n")
}

// offered waits for the message by which an answer is shared.
func (s *scene) offered(user string) (found slacktest.Message) {
	s.t.Helper()
	s.until("an offer to share", func() bool {
		for _, m := range s.fake.Messages(s.fake.DMChannel(user)) {
			if strings.Contains(string(m.Blocks), `"share"`) {
				found = m
			}
		}
		return found.TS != ""
	})
	return found
}

// What came of a private tool goes to who asked, through streaming and over a
// restart, and is nobody else's to read, to be told or to share until they do.
func TestSlackPrivate(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.vault()
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "It holds red rubies.")
	offer := s.offered(slacktest.Ben)
	if !strings.Contains(offer.Text, "<#"+slacktest.General+">") || offer.ThreadTS == "" {
		t.Errorf("the offer %+v", offer)
	}
	s.until("the thread says where the answer went", func() bool { return strings.Contains(s.public(root), "private result") })
	s.until("the thread says that the tool ran", func() bool { return strings.Contains(s.public(root), "vault:open: done") })
	if all := s.public(root); strings.Contains(all, "rubies") {
		t.Errorf("the thread shows %s", all)
	}

	// Somebody else in the thread.
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> what was #that")
	s.until("Cho is answered", func() bool { return s.answers(root, "You said that.") == 1 })
	if read := s.says.heard("that"); strings.Contains(read, "rubies") || !strings.Contains(read, "look into") || !strings.Contains(read, "not shared") {
		t.Errorf("the model read for Cho: %s", read)
	}
	for user, shown := range map[string]bool{slacktest.Cho: false, slacktest.Ann: false, slacktest.Ben: true} { // Ann is an admin
		if err := s.fake.Press(t.Context(), user, s.line(root, "vault:open"), s.resultButton(root)); err != nil {
			t.Fatal(err)
		}
		s.until("a dialog", func() bool { return len(s.fake.Views(user)) == 1 })
		if v := s.fake.Views(user)[0]; strings.Contains(string(v.Blocks), "rubies") != shown {
			t.Errorf("%s is shown %s", user, v.Blocks)
		}
	}

	// Only Ben shares it, once, whatever is pressed how often.
	value := valueOf(t, offer, "share")
	s.share(slacktest.Cho, value, offer, 1)
	s.until("Cho's press is in the audit", func() bool { return s.count("thread.share_refused") == 1 })
	if all := s.public(root); strings.Contains(all, "rubies") {
		t.Errorf("the thread shows %s", all)
	}
	for range 2 {
		if err := s.fake.Press(t.Context(), slacktest.Ben, offer, "share"); err != nil && !strings.Contains(err.Error(), "to act on") {
			t.Fatal(err)
		}
	}
	s.until("the answer is in the thread", func() bool { return s.answers(root, "It holds red rubies.") == 1 })
	s.until("the offer is over", func() bool {
		m, _ := s.fake.Message(offer.Channel, offer.TS)
		return strings.Contains(m.Text, "shared") && !strings.Contains(string(m.Blocks), `"share"`)
	})
	s.share(slacktest.Ben, value, offer, 2)
	s.share(slacktest.Cho, value, offer, 3)
	s.until("Cho's second press is in the audit", func() bool { return s.count("thread.share_refused") == 2 })
	if n, shared := s.answers(root, "It holds red rubies."), s.count("thread.share"); n != 1 || shared != 3 {
		t.Errorf("shared %d times, %d events", n, shared)
	}
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> and #now")
	s.until("Cho is answered", func() bool { return s.answers(root, "You said now.") == 1 })
	if read := s.says.heard("now"); !strings.Contains(read, "red rubies") || !strings.Contains(read, "the vault holds") {
		t.Errorf("the model read for Cho: %s", read)
	}
	s.wellBehaved()
	if v, err := api.CheckAudit(t.Context(), s.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
	if trail := s.trail(); strings.Contains(trail, "rubies") {
		t.Errorf("the audit tells %s", trail)
	}
}

// In one's own conversation with nize nothing changes.
func TestSlackPrivateAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.vault()
	root, err := s.fake.DM(slacktest.Ben, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the answer", func() bool { return s.answers(root, "It holds red rubies.") == 1 })
	if all := s.public(root); strings.Contains(all, `"share"`) || !strings.Contains(all, "vault:open: done – the vault holds rubies") {
		t.Errorf("the conversation shows %s", all)
	}
}

// Who can't be reached in private is shown nothing, and nobody else is.
func TestSlackPrivateUnreached(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.vault()
	s.fake.Fail("conversations.open", slacktest.Fault{Error: "cannot_dm_bot", Times: 100})
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the thread says so", func() bool { return s.answers(root, "could not reach") == 1 })
	s.until("the turn ends", func() bool { return s.fake.Session(root.Channel, root.TS).Status == "active" })
	if all := s.public(root); strings.Contains(all, "rubies") {
		t.Errorf("the thread shows %s", all)
	}
}

// A call that a private turn proposes shows its card to its requester alone; it
// runs over a restart, and the button that shares works after one.
func TestSlackPrivateCard(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.vault()
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "It holds red rubies.")

	// Ben goes on: his model still knows, so the thread still does not.
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> and #more")
	s.told(slacktest.Ben, "You said more.")
	if read := s.says.heard("more"); !strings.Contains(read, "rubies") {
		t.Errorf("the model read for Ben: %s", read)
	}
	if n := s.answers(root, "You said more."); n != 0 {
		t.Error("what rests on a private result is shown to everybody")
	}

	s.says.plan("burn", plan{tool: "vault:burn", args: `{"what":"red rubies"}`, then: "Emeralds only."})
	s.reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> please #burn")
	posted := s.told(slacktest.Ben, "\nstate: waiting for approval")
	if all := s.public(root); strings.Contains(all, "rubies") || strings.Contains(all, "\ncall: ") {
		t.Errorf("the thread shows %s", all)
	}
	if err := s.fake.Press(t.Context(), slacktest.Ben, posted, "call-run"); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "Emeralds only.")
	s.until("the card says so", func() bool {
		m, _ := s.fake.Message(posted.Channel, posted.TS)
		return strings.Contains(m.Text, "\nstate: done") && !strings.Contains(m.Text, "emeralds")
	})
	if all := s.public(root); strings.Contains(all, "rubies") || strings.Contains(all, "meralds") || !strings.Contains(all, "vault:burn: done") {
		t.Errorf("the thread shows %s", all)
	}
}

// The process is killed between the answer and the press that shares it, and
// again right after the press.
func TestSlackPrivateKilled(t *testing.T) {
	t.Parallel()
	s := &scene{fixture: &fixture{says: newSpeaker(t)}}
	s.killable = newKillable(t)
	s.vault()
	s.says.use(t, s.Client)
	s.fake = onSlack(t, s.killable)
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "look into the #vault")
	if err != nil {
		t.Fatal(err)
	}
	offer := s.offered(slacktest.Ben)
	for range 2 {
		s.restart(s.fake)
		if err := s.fake.Press(t.Context(), slacktest.Ben, offer, "share"); err != nil && !strings.Contains(err.Error(), "to act on") {
			t.Fatal(err)
		}
	}
	s.until("the answer is in the thread", func() bool { return s.answers(root, "It holds red rubies.") == 1 })
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> and #now")
	s.until("Cho is answered", func() bool { return s.answers(root, "You said now.") == 1 })
	if read := s.says.heard("now"); !strings.Contains(read, "red rubies") {
		t.Errorf("the model read for Cho: %s", read)
	}
	if n := s.answers(root, "It holds red rubies."); n != 1 {
		t.Errorf("it is shown %d times", n)
	}
}

// line is the message about tools that names one.
func (s *scene) line(root slacktest.Message, tool string) slacktest.Message {
	s.t.Helper()
	for _, m := range s.fake.Thread(root.Channel, root.Root()) {
		if strings.Contains(m.Text, tool) {
			return m
		}
	}
	s.t.Fatal("no line of " + tool)
	return slacktest.Message{}
}

// resultButton is the action of the first "Show result".
func (s *scene) resultButton(root slacktest.Message) string {
	s.t.Helper()
	all := s.public(root)
	at := strings.Index(all, `"result:`)
	if at < 0 {
		s.t.Fatalf("nobody is offered a result: %s", all)
	}
	rest := all[at+1:]
	return rest[:strings.IndexByte(rest, '"')]
}

// share presses the button with a payload that Slack would not make.
func (s *scene) share(user, value string, m slacktest.Message, stamp int) {
	payload := fmt.Sprintf(`{"type":"block_actions","user":{"id":%q,"team_id":%q},"team":{"id":%q},"container":{"message_ts":%q,"channel_id":%q},"actions":[{"action_id":"share","block_id":"b","action_ts":"%d.1","value":%q}]}`,
		user, slacktest.Team, slacktest.Team, m.TS, m.Channel, stamp, value)
	s.fake.SendRaw([]byte(`{"type":"interactive","envelope_id":"raw-` + store.NewID(time.Now()) + `","payload":` + payload + `}`))
}

// count is how many events of a kind, or of kinds under it, there are.
func (s *fixture) count(kind string) (n int) {
	s.t.Helper()
	for e, err := range api.ReadAudit.Call(s.t.Context(), s.Client, api.AuditRequest{Limit: 10_000}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.HasPrefix(e.Kind, kind) {
			n++
		}
	}
	return n
}

// trail is all that the audit says.
func (s *fixture) trail() string {
	s.t.Helper()
	var all strings.Builder
	for e, err := range api.ReadAudit.Call(s.t.Context(), s.Client, api.AuditRequest{Limit: 10_000}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(e.Data)
	}
	return all.String()
}
