package credentials

import (
	"errors"
	"strings"
	"testing"

	"nize/store"
	"nize/store/credential"
	"nize/store/database/databasetest"
)

func TestDeclarations(t *testing.T) {
	db := Declarations{databasetest.Open(t, Buckets...)}
	by := store.Caller{User: "ada", Role: store.Admin}
	jira := credential.Declaration{ID: "jira", Name: "Jira", Mode: credential.TeamKey, Instructions: "Enter your Jira API token"}
	if err := db.put(t.Context(), by, jira); err != nil {
		t.Fatal(err)
	}
	first, err := db.get(t.Context(), "jira")
	if err != nil || first.WhenMissing != credential.Hide || first.Created.IsZero() {
		t.Fatalf("got %+v, %v", first, err)
	}
	jira.WhenMissing = credential.Fail
	if err := db.put(t.Context(), by, jira); err != nil {
		t.Fatal(err)
	}
	if again, err := db.get(t.Context(), "jira"); err != nil || again.Created != first.Created || again.WhenMissing != credential.Fail {
		t.Errorf("after a change: %+v, %v", again, err)
	}
	if got := jira.Missing().Message.String(); !strings.HasPrefix(got, "Jira is not connected. Please configure it in Team Settings.") {
		t.Errorf("says %q", got)
	}
	oauth := &credential.OAuth{AuthorizationURL: "https://a.example/authorize", TokenURL: "https://a.example/token", ClientID: "nize"}
	for field, bad := range map[string]credential.Declaration{
		"authMode":               {ID: "x", Mode: "password"},
		"whenMissing":            {ID: "x", Mode: credential.UserKey, WhenMissing: "sometimes"},
		"oauth":                  {ID: "x", Mode: credential.UserOAuth},
		"oauth.authorizationUrl": {ID: "x", Mode: credential.UserOAuth, OAuth: &credential.OAuth{AuthorizationURL: "ftp://a", TokenURL: oauth.TokenURL}},
		"oauth.tokenUrl":         {ID: "x", Mode: credential.UserOAuth, OAuth: &credential.OAuth{AuthorizationURL: oauth.AuthorizationURL, TokenURL: "http://a.example/token"}},
		"oauth.clientId":         {ID: "x", Mode: credential.UserOAuth, OAuth: &credential.OAuth{AuthorizationURL: oauth.AuthorizationURL, TokenURL: "http://localhost:1/token"}},
		"is needed":              {ID: "x", Mode: credential.UserOAuth, OAuth: oauth},
		"host":                   {ID: "x", Mode: credential.UserKey, Host: "https://a.example"},
		"name":                   {ID: "x", Mode: credential.UserKey, Name: "a\nb"},
		"userInstructions":       {ID: "x", Mode: credential.UserKey, Instructions: strings.Repeat("a", 1001)},
		"":                       {ID: "not a slug", Mode: credential.UserKey},
	} {
		if err := db.put(t.Context(), by, bad); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := db.put(t.Context(), by, credential.Declaration{ID: "drive", Mode: credential.UserOAuth, Host: "a.example", OAuth: oauth}); err != nil {
		t.Error(err)
	}
	if list, err := db.list(t.Context()); err != nil || len(list) != 2 || list[0].ID != "drive" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if err := errors.Join(db.delete(t.Context(), by, "jira"), db.delete(t.Context(), by, "drive")); err != nil {
		t.Error(err)
	}
	if err := db.delete(t.Context(), by, "jira"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
}
