package slack

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// gateScene is a bot with a bots.access setting.
type gateScene struct {
	*Bot
	t     *testing.T
	fake  *slacktest.Server
	db    store.DB
	heard *heard
	only  atomic.Pointer[string] // bots.access
}

func newGateScene(t *testing.T) *gateScene {
	s := &gateScene{t: t, fake: startFake(t, slacktest.Options{Unlimited: true}), db: databasetest.Open(t), heard: newHeard()}
	s.set("members")
	commands := &bots.Commands{}
	s.Bot = runBot(t, s.fake, Options{Store: storeOf(s.db), Commands: commands, Keeper: noKeeper{}, Admit: func(_ context.Context, u store.User) (bool, error) {
		a, err := store.ParseAccess(*s.only.Load())
		return err == nil && a.Admits(u, nil), err
	}}, s.heard)
	commands.Add(bots.CoreCommands(commands, bots.Core{Threads: s.db, Claims: s.db, Handler: s.heard, Calls: s.db})...)
	s.until("the link", linked(s.fake))
	return s
}

func (s *gateScene) set(access string) { s.only.Store(&access) }

// until waits until nize's messages satisfy ok.
func (s *gateScene) until(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.fake.Wait(ctx, ok); err != nil {
		for _, user := range []string{slacktest.Ben, slacktest.Cho, slacktest.Ann, slacktest.Guest} {
			for _, m := range append(s.fake.Messages(s.fake.DMChannel(user)), s.fake.Ephemerals(slacktest.General, user)...) {
				s.t.Logf("%s reads %.200q", user, m.Text)
			}
		}
		s.t.Fatalf("%s did not come", what)
	}
}

// told returns how many of nize's private messages to a user contain the text.
func (s *gateScene) told(user, text string) (n int) {
	list := s.fake.Messages(s.fake.DMChannel(user))
	for _, m := range append(list, s.fake.Ephemerals(slacktest.General, user)...) {
		if m.User == slacktest.Bot && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

func (s *gateScene) known(user string) bool {
	_, err := s.db.FindUser(s.t.Context(), "slack:"+slacktest.Team+":"+user)
	return err == nil
}

// People excluded by bots.access get one private sentence a day, whatever they do except
// asking for help, which is always answered; they become no users and no model is called. A
// change takes effect at once.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := newGateScene(t)
	ctx := t.Context()
	say := func(user, text string) {
		t.Helper()
		if _, err := s.fake.Mention(user, slacktest.General, text); err != nil {
			t.Fatal(err)
		}
	}
	say(slacktest.Ben, "hello")
	s.heard.wait(t, 1)
	s.set("admins")
	card, err := s.fake.Say(slacktest.Bot, slacktest.General, "a card of before")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		say(slacktest.Ben, "let me in")
		if err := s.fake.Slash(ctx, slacktest.Ben, slacktest.General, "/nize usage"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.fake.DM(slacktest.Cho, "let me in"); err != nil {
			t.Fatal(err)
		}
	}
	s.fake.SendRaw([]byte(`{"type":"interactive","envelope_id":"raw-1","payload":{"type":"block_actions","user":{"id":"` + slacktest.Ben + `","team_id":"` + slacktest.Team + `"},"team":{"id":"` + slacktest.Team +
		`"},"container":{"message_ts":"` + card.TS + `","channel_id":"` + card.Channel + `"},"actions":[{"action_id":"words:0","block_id":"b","action_ts":"1.1","value":"help"}]}}`))
	s.fake.OpenHome(slacktest.Ben)
	s.until("Ben's Home", func() bool {
		v, ok := s.fake.Home(slacktest.Ben)
		return ok && strings.Contains(string(v.Blocks), "the admins of nize") && !strings.Contains(string(v.Blocks), "button")
	})
	s.until("Ben is told", func() bool { return s.told(slacktest.Ben, "the admins of nize") == 1 })
	s.until("Cho is told", func() bool { return s.told(slacktest.Cho, "nize 管理员") == 1 })
	ben, err := s.db.FindUser(ctx, "slack:"+slacktest.Team+":"+slacktest.Ben)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.Direct(ctx, ben); err == nil {
		t.Errorf("a card is brought to whom access keeps out, at %+v", at)
	}

	// The opposite change, by name, takes effect at once too.
	s.set("user:" + ben.ID)
	say(slacktest.Ben, "again")
	s.heard.wait(t, 1)
	if _, err := s.Direct(ctx, ben); err != nil {
		t.Errorf("a card for whom access lets in: %v", err)
	}
	if s.known(slacktest.Cho) {
		t.Error("whom access keeps out became a user")
	}
	if n := s.told(slacktest.Ben, "the admins of nize"); n != 1 {
		t.Errorf("Ben was told %d times", n)
	}
	if got := s.heard.texts(); len(got) != 2 {
		t.Errorf("heard %q", got)
	}
}

// A claim code comes from the operator: it makes a full member whom access excludes an
// admin. It never works for guests, and a wrong code creates no user.
func TestAccessClaim(t *testing.T) {
	t.Parallel()
	s := newGateScene(t)
	s.set("admins")
	ctx := t.Context()
	if err := s.db.PutClaim(ctx, store.System, store.OnSlack, bots.HashClaim("RIGHT"), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{slacktest.Guest, slacktest.Ben} {
		if err := s.fake.Join(user, slacktest.General); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"/nize claim WRONG", "/nize tokens new x"} {
		if err := s.fake.Slash(ctx, slacktest.Ben, slacktest.General, line); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.fake.Slash(ctx, slacktest.Guest, slacktest.General, "/nize claim RIGHT"); err != nil {
		t.Fatal(err)
	}
	s.until("the guest is refused", func() bool { return s.told(slacktest.Guest, "full members") == 1 })
	s.until("the wrong code is told", func() bool { return s.told(slacktest.Ben, "not valid") == 1 })
	if s.known(slacktest.Ben) || s.known(slacktest.Guest) {
		t.Error("a wrong code made a user")
	}
	if _, err := s.fake.Mention(slacktest.Ben, slacktest.General, "claim RIGHT"); err != nil {
		t.Fatal(err)
	}
	s.until("the claim", func() bool { return s.told(slacktest.Ben, "You are an admin") == 1 })
	if _, err := s.fake.Mention(slacktest.Ben, slacktest.General, "hello"); err != nil {
		t.Fatal(err)
	}
	s.heard.wait(t, 1)
}

// The first contact, of any kind, creates one member and tells them once what data is kept;
// several at once do so once, also across a restart.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	s := newGateScene(t)
	ctx := t.Context()
	for _, contact := range []struct {
		user string
		come func(user string)
	}{
		{slacktest.Ann, func(user string) {
			for range 10 {
				if _, err := s.fake.Mention(user, slacktest.General, "hello"); err != nil {
					t.Fatal(err)
				}
			}
			s.heard.wait(t, 10)
		}},
		{slacktest.Ben, func(user string) {
			if err := s.fake.Slash(ctx, user, slacktest.General, "/nize help"); err != nil {
				t.Fatal(err)
			}
		}},
		{slacktest.Cho, func(user string) { s.fake.OpenHome(user) }},
	} {
		contact.come(contact.user)
		text := map[string]string{slacktest.Cho: "90 天"}[contact.user]
		if text == "" {
			text = "is kept for 90"
		}
		s.until(contact.user+" is welcomed", func() bool { return s.told(contact.user, text) == 1 })
		s.until(contact.user+" was told", func() bool {
			u, err := s.db.FindUser(ctx, "slack:"+slacktest.Team+":"+contact.user)
			return err == nil && !u.PrivacyNotice.IsZero()
		})
		contact.come(contact.user)
	}
	if _, err := s.fake.Mention(slacktest.Ann, slacktest.General, "last"); err != nil {
		t.Fatal(err)
	}
	s.heard.wait(t, 1)
	for user, text := range map[string]string{slacktest.Ann: "is kept for", slacktest.Ben: "is kept for", slacktest.Cho: "90 天"} {
		if n := s.told(user, text); n != 1 {
			t.Errorf("%s was welcomed %d times", user, n)
		}
	}
	users, err := s.db.ListUsers(ctx)
	if err != nil || len(users) != 3 {
		t.Errorf("%d users, %v", len(users), err)
	}
	for _, u := range users {
		if u.Role != store.Member {
			t.Errorf("%s is %s", u.Name, u.Role)
		}
	}
}

// event sends the bot an event as Slack would.
func (s *gateScene) event(id, team, through, event string) {
	s.fake.SendRaw([]byte(`{"type":"events_api","envelope_id":"raw-` + id + `","payload":{"type":"event_callback","team_id":"` + team + `","context_team_id":"` + through + `","api_app_id":"A0NIZE","event_id":"` + id + `","event":` + event + `}}`))
}

func mentionBy(user, channel, ts, text string) string {
	return `{"type":"app_mention","channel":"` + channel + `","user":"` + user + `","ts":"` + ts + `","text":"<@` + slacktest.Bot + `> ` + text + `"}`
}

// In a shared channel an event may have happened in another workspace: it is handled by the
// installation that received it, with its author's own access. Bots without a bot_id get no
// notice.
func TestShared(t *testing.T) {
	t.Parallel()
	s := newGateScene(t)
	s.event("Ev1", slacktest.OtherTeam, slacktest.OtherTeam, mentionBy(slacktest.Ann, slacktest.Shared, "1700000001.000001", "for another"))
	s.event("Ev2", slacktest.OtherTeam, slacktest.Team, mentionBy(slacktest.Stranger, slacktest.Shared, "1700000002.000001", "as a stranger"))
	s.event("Ev3", slacktest.Team, slacktest.Team, mentionBy(slacktest.OtherBot, slacktest.General, "1700000003.000001", "as a bot"))
	s.event("Ev4", slacktest.OtherTeam, slacktest.Team, mentionBy(slacktest.Ann, slacktest.Shared, "1700000004.000001", "as a member"))
	s.heard.wait(t, 1)
	if got := s.heard.texts(); len(got) != 1 || got[0] != "as a member" {
		t.Errorf("heard %q", got)
	}
	s.until("the stranger is told", func() bool {
		for _, m := range s.fake.Ephemerals(slacktest.Shared, slacktest.Stranger) {
			if strings.Contains(m.Text, "full members") {
				return true
			}
		}
		return false
	})
	if n := s.told(slacktest.OtherBot, ""); n != 0 {
		t.Errorf("a bot was told %d things", n)
	}
	if s.known(slacktest.Stranger) || s.known(slacktest.OtherBot) {
		t.Error("a stranger or a bot became a user")
	}
}

// A person who becomes a guest loses access at once but stays a user: they may return.
func TestBecomesGuest(t *testing.T) {
	t.Parallel()
	s := newGateScene(t)
	if _, err := s.fake.DM(slacktest.Ben, "hello"); err != nil {
		t.Fatal(err)
	}
	s.heard.wait(t, 1)
	change := func(guest bool) {
		for _, u := range s.fake.Users() {
			if u.ID == slacktest.Ben {
				u.Guest = guest
				s.fake.AddUser(u)
			}
		}
		s.event("EvChange"+map[bool]string{true: "1", false: "2"}[guest], slacktest.Team, slacktest.Team, `{"type":"user_change","user":{"id":"`+slacktest.Ben+`","deleted":false}}`)
	}
	change(true)
	for range 2 {
		if _, err := s.fake.DM(slacktest.Ben, "hello again"); err != nil {
			t.Fatal(err)
		}
	}
	s.fake.OpenHome(slacktest.Ben)
	s.until("Ben is told", func() bool { return s.told(slacktest.Ben, "full members") == 1 })
	s.until("Ben's Home", func() bool {
		v, ok := s.fake.Home(slacktest.Ben)
		return ok && strings.Contains(string(v.Blocks), "full members")
	})
	u, err := s.db.FindUser(t.Context(), "slack:"+slacktest.Team+":"+slacktest.Ben)
	if err != nil || u.State != store.Active {
		t.Errorf("Ben is %+v, %v", u, err)
	}
	if at, err := s.Direct(t.Context(), u); err == nil {
		t.Errorf("a card is brought to a guest, at %+v", at)
	}
	change(false)
	if _, err := s.fake.DM(slacktest.Ben, "a member again"); err != nil {
		t.Fatal(err)
	}
	s.heard.wait(t, 1)
	if n := s.told(slacktest.Ben, "full members"); n != 1 {
		t.Errorf("Ben was told %d times", n)
	}
}
