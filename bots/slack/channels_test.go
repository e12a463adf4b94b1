package slack

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/people"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// Members and admins of a channel as Slack has them: departures count; guests and people
// unknown to nize are not included.
func TestChannels(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	b := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	ids := map[string]string{}
	for _, id := range []string{slacktest.Ann, slacktest.Ben, slacktest.Guest} {
		u, err := db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+id, id, store.Member)
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = u.ID
	}
	at := func(channel string) store.Address {
		return store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: channel, Thread: "1.1"}
	}
	for _, test := range []struct {
		user, channel string
		want          bool
	}{
		{slacktest.Ann, slacktest.General, true}, {slacktest.Ben, slacktest.Secret, true}, {slacktest.Guest, slacktest.General, false},
	} {
		if got, err := b.Member(t.Context(), at(test.channel), ids[test.user]); err != nil || got != test.want {
			t.Errorf("%s in %s: %v, %v", test.user, test.channel, got, err)
		}
	}
	if _, err := b.Member(t.Context(), at(slacktest.General), "nobody"); err == nil {
		t.Error("a user that is not there is a member")
	}
	admins, err := b.Admins(t.Context(), at(slacktest.General))
	if err != nil || !slices.Contains(admins, ids[slacktest.Ann]) || slices.Contains(admins, ids[slacktest.Ben]) {
		t.Errorf("admins %v, %v", admins, err)
	}
	if got, err := b.Member(t.Context(), store.Address{Surface: store.OnSlack, Team: "T0OTHER", Channel: slacktest.General}, ids[slacktest.Ann]); err == nil || got {
		t.Errorf("in another workspace: %v, %v", got, err)
	}
}

// A person's rights are those at the moment of the decision: after they became a guest, or
// ceased to be a workspace admin, neither a command nor a press of theirs works, even
// without an event from Slack.
func TestDecidesAsTheyAre(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	commands := &bots.Commands{}
	ran := make(chan string, 10)
	commands.Add(bots.Command{Name: "approve", Fits: func(string) bool { return true }, Most: 1, Decides: true, Run: func(_ context.Context, a bots.Asked) (bots.Answer, error) {
		ran <- a.Words
		return bots.Said("decided " + a.Words), nil
	}})
	b := runBot(t, fake, Options{Store: storeOf(db), Commands: commands, Now: now, Keeper: noKeeper{}}, nobody{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := func(text string) {
		t.Helper()
		err := fake.Wait(ctx, func() bool {
			return slices.ContainsFunc(append(fake.Messages(fake.DMChannel(slacktest.Ben)), fake.Ephemerals(slacktest.General, slacktest.Ben)...), func(m slacktest.Message) bool { return strings.Contains(m.Text, text) })
		})
		if err != nil {
			t.Fatalf("Ben is not told %q", text)
		}
	}
	become := func(id string, change func(*slacktest.User)) {
		for _, u := range fake.Users() {
			if u.ID == id {
				change(&u)
				fake.AddUser(u)
			}
		}
		ahead.Add(int64(time.Minute))
	}
	if err := fake.Wait(ctx, linked(fake)); err != nil {
		t.Fatal(err)
	}
	if err := fake.Slash(ctx, slacktest.Ben, slacktest.General, "/nize approve one"); err != nil {
		t.Fatal(err)
	}
	told("decided one")
	become(slacktest.Ben, func(u *slacktest.User) { u.Guest = true })
	if err := fake.Slash(ctx, slacktest.Ben, slacktest.General, "/nize approve two"); err != nil {
		t.Fatal(err)
	}
	told("full members")
	if n := len(ran); n != 1 {
		t.Errorf("%d decisions", n)
	}

	ann, err := db.EnsureUser(ctx, "slack:"+slacktest.Team+":"+slacktest.Ann, "Ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: slacktest.General, Thread: "1.1"}
	admins, err := b.Admins(ctx, at)
	if err != nil || !slices.Contains(admins, ann.ID) {
		t.Fatalf("admins %v, %v", admins, err)
	}
	become(slacktest.Ann, func(u *slacktest.User) { u.Admin, u.Guest = false, true })
	if _, err := b.Current().people.Who(ctx, slacktest.Ann, people.Fresh); err != nil { // as before each press
		t.Fatal(err)
	}
	if admins, err := b.Admins(ctx, at); err != nil || slices.Contains(admins, ann.ID) {
		t.Errorf("admins %v, %v", admins, err)
	}
}
