package daemon_test

import (
	"fmt"
	"strings"

	"nize/bots/discord/discordtest"
	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
	"nize/store/credential"
)

// dialogOf is the dialog that somebody sees, whole, and how it is sent in.
func dialogOf(m *meeting, who string) (shown string, submit func(value string) error) {
	switch c := m.chat.(type) {
	case *slackChat:
		if v := c.Views(c.id(who)); len(v) == 1 {
			return string(v[0].Blocks) + v[0].PrivateMetadata, func(value string) error {
				return c.Submit(m.t.Context(), c.id(who), v[0].ID, map[string][]string{"secret": {value}})
			}
		}
	case *discordChat:
		if d, ok := c.Dialog(c.id(who)); ok {
			return fmt.Sprintf("%+v", d), func(value string) error {
				return c.Submit(m.t.Context(), c.id(who), map[string][]string{"secret": {value}})
			}
		}
	}
	return "", nil
}

// A team's key is given by who administers it where it is at home (a workspace's
// owners and admins, who manages a guild), in a dialog that says what to give, and by
// nobody else.
func testTeamCredential(m *meeting) {
	t, ctx := m.t, m.t.Context()
	d := credential.Declaration{Name: "Desk", Mode: credential.TeamKey, Instructions: "Enter the key of your desk (Settings > Keys)"}
	if _, err := api.Declare.Call(ctx, m.Client, api.DeclareRequest{ID: "desk", Declaration: d}); err != nil {
		t.Fatal(err)
	}
	sealed := func() []store.Credential {
		list, err := api.ListCredentials.Call(ctx, m.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	slash(t, m.chat, "ben", "/nize credentials connect desk")
	m.told("ben", "the team's admins do that")
	if shown, _ := dialogOf(m, "ben"); shown != "" {
		t.Errorf("a dialog for who may not: %s", shown)
	}

	// Ann administers the team; of nize she is no admin.
	slash(t, m.chat, "ann", "/nize help")
	m.told("ann", "usage")
	member, team := store.Member, map[store.Surface]string{store.OnSlack: "slack:" + slacktest.Team, store.OnDiscord: "discord:" + discordtest.Guild}[m.surface()]
	users, err := api.ListUsers.Call(ctx, m.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users.Items {
		if strings.Contains(strings.Join(u.Identities, " "), m.id("ann")) && u.Role == store.Admin {
			if _, err := api.PatchUser.Call(ctx, m.Client, api.PatchUserRequest{ID: u.ID, Role: &member}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slash(t, m.chat, "ann", "/nize credentials connect desk")
	var shown string
	var submit func(string) error
	m.until("a dialog", func() bool { shown, submit = dialogOf(m, "ann"); return submit != nil })
	if strings.Count(shown, "Settings") != 1 {
		t.Errorf("the dialog: %s", shown)
	}
	if err := submit("desk-ATATT3xFfGF0"); err != nil {
		t.Fatal(err)
	}
	m.until("it is sealed", func() bool { return len(sealed()) == 1 })
	if want := (store.CredentialKey{Scope: "team", Owner: team, Service: "desk", Name: credential.KeyName}); sealed()[0].CredentialKey != want {
		t.Errorf("sealed as %+v", sealed()[0])
	}
	slash(t, m.chat, "ann", "/nize credentials disconnect desk")
	m.until("it is gone", func() bool { return len(sealed()) == 0 })
	m.behaved()
}
