package slack

import (
	"testing"

	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// A person's private place has one first message for each thread, even if the response to
// its post was lost, or a process ended before it recorded the place.
func TestAsideHead(t *testing.T) {
	t.Parallel()
	fake, db := startFake(t, slacktest.Options{Unlimited: true}), databasetest.Open(t)
	b := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	ctx := t.Context()
	ann, err := db.EnsureUser(ctx, "slack:"+slacktest.Team+":"+slacktest.Ann, "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	heads := map[string]bool{}
	for n := range 2 {
		root, err := fake.Say(slacktest.Ann, slacktest.General, "hello")
		if err != nil {
			t.Fatal(err)
		}
		in := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
		fake.Fail("chat.postMessage", slacktest.Fault{Status: 500, After: true})
		if at, err := b.PrivateThread(ctx, ann, in); err == nil {
			t.Fatalf("the answer was lost, and it stands at %+v", at)
		}
		first, err := b.PrivateThread(ctx, ann, in)
		if err != nil {
			t.Fatal(err)
		}
		restart(t, b)
		again, err := b.PrivateThread(ctx, ann, in)
		if err != nil || again != first || again.Thread == "" {
			t.Errorf("%+v, then %+v, %v", first, again, err)
		}
		heads[first.Thread] = true
		if list := fake.Messages(first.Channel); len(list) != n+1 || len(heads) != n+1 {
			t.Errorf("%d heads stand there for %d threads: %v", len(list), n+1, heads)
		}
	}
}
