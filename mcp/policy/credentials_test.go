package policy_test

import (
	"context"
	"errors"
	"testing"

	"nize/mcp/policy"
	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/identity"
)

// TestRunsAsCompanyAccount: at a server of the company, only a person with an account there
// can call a tool; a program and others are told what to do.
func TestRunsAsCompanyAccount(t *testing.T) {
	db := databasetest.Open(t)
	ctx := context.Background()
	add := func(name string, identities ...string) string {
		u, err := db.AddUser(ctx, store.System, store.User{Name: name, Role: store.Member, Identities: identities})
		if err != nil {
			t.Fatal(err)
		}
		return u.ID
	}
	p := policy.New(policy.Options{Store: db})
	tool := &policy.Tool{Tool: store.Tool{Server: "tracker"}, Record: &store.Server{Name: "tracker", Auth: store.AuthUserLogin, Enterprise: true, Headers: map[string]store.Value{"Authorization": {SecretKey: store.LoginName}}}}
	for _, c := range []struct {
		user string
		may  bool
	}{{add("ann", identity.Of("https://acme.example", "1")), true}, {add("bob", "named:bob"), false}, {"project:sales", false}} {
		as, err := p.RunsAs(ctx, store.Caller{User: c.user, Role: store.Member}, tool)
		var refused *store.CallError
		switch {
		case c.may && (err != nil || as.Words.String() != "the requester's own company account"):
			t.Errorf("%s: %v %v", c.user, as.Words, err)
		case !c.may && (!errors.As(err, &refused) || refused.Message != identity.NotSignedIn):
			t.Errorf("%s: %v %v", c.user, as.Words, err)
		}
	}
}
