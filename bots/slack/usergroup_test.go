package slack

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots/account"
	"nize/bots/slack/people"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// Members of a user group as far as nize may rely on them: never guests, bots, people of
// other workspaces or deactivated ones; people unknown to nize by identity.
func TestUserGroups(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	var ahead atomic.Int64 // the bot's goroutines read the clock too
	b := runBot(t, fake, Options{Store: storeOf(db), Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}, nobody{})
	everybody := []string{slacktest.Ann, slacktest.Ben, slacktest.Guest, slacktest.OtherBot, slacktest.Stranger}
	for _, id := range everybody {
		if _, err := db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+id, id, store.Member); err != nil {
			t.Fatal(err)
		}
	}
	fake.AddGroup(slacktest.UserGroup{ID: "S0MIX", Handle: "mix", Users: append(everybody, slacktest.Cho, "U0GONE")})
	fake.AddGroup(slacktest.UserGroup{ID: "S0OLD", Handle: "old", Users: everybody, Disabled: true})
	for _, name := range []string{"S0MIX", "mix", "@mix"} {
		source, handle, err := b.UserGroup(t.Context(), name)
		if err != nil || source != "slack:"+slacktest.Team+":S0MIX" || handle != "mix" {
			t.Errorf("%s is %s %s, %v", name, source, handle, err)
		}
	}
	for name, want := range map[string]string{"old": "not found", "mixx": "did you mean mix", "": "not found"} {
		if _, _, err := b.UserGroup(t.Context(), name); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	in := func(source string, want ...string) {
		t.Helper()
		got, err := b.InUserGroup(t.Context(), source)
		for i, id := range want {
			want[i] = "slack:" + slacktest.Team + ":" + id
		}
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("in %s are %v, %v; want %v", source, got, err, want)
		}
	}
	mix := "slack:" + slacktest.Team + ":S0MIX"
	in(mix, slacktest.Ann, slacktest.Ben, slacktest.Cho, "U0GONE")
	before := db.Last()
	if err := fake.Deactivate(slacktest.Ben); err != nil {
		t.Fatal(err)
	}
	for _, err := range db.Watch(t.Context(), before) { // he is looked up and disabled in the meantime
		if err != nil {
			t.Fatal(err)
		}
		ben, err := db.FindUser(t.Context(), "slack:"+slacktest.Team+":"+slacktest.Ben)
		if err != nil {
			t.Fatal(err)
		}
		if ben.State == store.Disabled {
			break
		}
	}
	ahead.Add(int64(people.Recent))
	in(mix, slacktest.Ann, slacktest.Cho, "U0GONE")
	for _, source := range []string{"slack:T0OTHER:S0MIX", "slack:" + slacktest.Team + ":S0NONE", "slack:" + slacktest.Team + ":S0OLD", "discord:1:2", "slack", ""} {
		if got, err := b.InUserGroup(t.Context(), source); err == nil {
			t.Errorf("in %q are %v", source, got)
		}
	}
	fake.Fail("users.info", slacktest.Fault{Error: "internal_error", Times: 1000})
	ahead.Add(int64(people.Recent))
	if got, err := b.InUserGroup(t.Context(), mix); err == nil {
		t.Errorf("while Slack does not say who they are: %v", got)
	}
	fake.Mend()

	// If there are too many people to look up one by one, one list is read.
	many := []string{slacktest.Ann, slacktest.Guest}
	for n := range 50 + 10 {
		id := fmt.Sprintf("U0MANY%d", n)
		many = append(many, id)
		fake.AddUser(slacktest.User{ID: id, Name: id, Guest: n%2 == 1})
		if _, err := db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+id, id, store.Member); err != nil {
			t.Fatal(err)
		}
	}
	fake.AddGroup(slacktest.UserGroup{ID: "S0MANY", Handle: "many", Users: many})
	was := fake.Stats().Calls["users.info"]
	got, err := b.InUserGroup(t.Context(), "slack:"+slacktest.Team+":S0MANY")
	if err != nil || len(got) != 1+(50+10)/2 {
		t.Errorf("%d of many, %v", len(got), err)
	}
	if n := fake.Stats().Calls["users.info"] - was; n != 0 {
		t.Errorf("%d people were asked for one by one", n)
	}
}

// An app installed before it requested the scope reports what to do, when connecting, in
// the doctor and for the group.
func TestUserGroupScope(t *testing.T) {
	t.Parallel()
	scopes := slices.DeleteFunc(slices.Clone(slacktest.Scopes), func(s string) bool { return s == "usergroups:read" })
	fake := startFake(t, slacktest.Options{Unlimited: true, Scopes: scopes})
	off := New(Options{Store: storeOf(databasetest.Open(t)), Config: store.Defaults{"slack.api_url": fake.APIURL()}, Transport: http.DefaultTransport})
	if _, err := off.check(t.Context(), []store.Secret{store.NewSecret(fake.BotToken()), store.NewSecret(fake.AppToken())}); err == nil || !strings.Contains(err.Error(), "usergroups:read") {
		t.Errorf("checking the tokens: %v", err)
	}
	if _, _, err := off.UserGroup(t.Context(), "ops"); !errors.Is(err, account.ErrOff) {
		t.Errorf("without an account: %v", err)
	}
	fake = startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{Store: storeOf(databasetest.Open(t))}, nobody{})
	fake.Fail("usergroups.list", slacktest.Fault{Error: "missing_scope"})
	if _, _, err := b.UserGroup(t.Context(), "ops"); err == nil || !strings.Contains(err.Error(), "install it again") || !strings.Contains(err.Error(), "usergroups:read") {
		t.Errorf("without the scope: %v", err)
	}
}
