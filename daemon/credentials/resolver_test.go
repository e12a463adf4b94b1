package credentials

import (
	"errors"
	"strings"
	"testing"

	"nize/store"
	"nize/store/credential"
	"nize/store/database/databasetest"
)

// Whose value a call has: a person's own, their team's, or their project's, never
// another's, and of a team only of one that they are in.
func TestResolver(t *testing.T) {
	db, ctx := databasetest.Open(t, Buckets...), t.Context()
	r := &Resolver{Declarations: Declarations{db}, Values: db, Members: db}
	admin := store.Caller{User: "root", Name: "root", Role: store.Admin}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Declarations.put(ctx, admin, credential.Declaration{ID: "mine", Name: "Mine", Mode: credential.UserKey}))
	must(r.Declarations.put(ctx, admin, credential.Declaration{ID: "ours", Name: "Ours", Mode: credential.TeamKey, WhenMissing: credential.Fail}))
	must(r.Declarations.put(ctx, admin, credential.Declaration{ID: "signed", Name: "Signed", Mode: credential.UserOAuth, Host: "a.example", OAuth: &credential.OAuth{AuthorizationURL: "https://a.example/a", TokenURL: "https://a.example/t", ClientID: "nize"}}))
	put := func(scope, owner, service, value string) {
		t.Helper()
		key := store.CredentialKey{Scope: scope, Owner: owner, Service: service, Name: credential.KeyName}
		must(db.PutCredential(ctx, admin, store.Credential{CredentialKey: key, Secret: store.NewSecret(value)}))
	}
	put("user", "ann", "mine", "anns")
	put("system", "", "mine", "everybodys")
	put("team", "slack:T1", "mine", "a team's, where each person's is wanted")
	put("team", "slack:T2", "ours", "another team's")
	put("user", "ann", "ours", "anns, where a team's is wanted")
	put("project", "p1", "mine", "the project's")
	put("user", "ann", "signed", "a key, where signing in is wanted")
	for _, c := range []struct{ user, id, want string }{
		{"ann", "mine", "anns"},
		{"ben", "mine", "Mine is not connected. Please configure it in User Settings."},
		{"project:p1", "mine", "the project's"},
		{"project:p2", "mine", "Mine is not connected."},
		{"ann", "ours", "Ours is not connected. Please configure it in Team Settings."},
		{"project:p1", "ours", "Ours is not connected."},
		{"ann", "signed", "Signed is not connected."},
		{"ann", "theirs", "the credential theirs, which it needs, is not declared"},
		{"", "mine", "Mine is not connected."},
		{store.System.User, "mine", "Mine is not connected."},
	} {
		_, v, err := r.Find(ctx, c.user, c.id)
		got := v.Secret().Reveal()
		var refused *store.CallError
		if errors.As(err, &refused) && refused.Code == store.CodeRefused {
			got = refused.Message.String()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s of %s: %q, %v", c.id, c.user, got, err)
		}
		of, err := r.Offered(ctx, c.user)
		must(err)
		if want := got == c.want || c.id == "ours"; of[c.id].Offered != want {
			t.Errorf("%s is offered to %q: %t", c.id, c.user, !want)
		}
	}
}
