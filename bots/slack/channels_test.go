package slack

import (
	"slices"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/store"
)

// Who is in a channel and who runs it, as Slack has it: leaving counts, guests
// and people whom nize does not know do not.
func TestChannels(t *testing.T) {
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := openBolt(t)
	b := runBot(t, fake, Options{Store: db}, nobody{})
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
