package database

import (
	"errors"
	"slices"
	"testing"
	"time"

	"nize/store"
)

// A look that is too old allows nothing and denies everybody: whose budget it
// is can't be known. A clock that goes back keeps nobody in.
func TestOldLookAtGroup(t *testing.T) {
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	d := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	ctx := t.Context()
	in, err := d.EnsureUser(ctx, "slack:T:IN", "in", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.EnsureUser(ctx, "slack:T:OUT", "out", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddGroup(ctx, store.System, store.Group{Name: "ops", Source: "slack:T:S1"}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutBudget(ctx, store.System, store.Budget{Subject: "group:ops", Period: store.Daily, Unit: store.InTokens, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	allowed := func(u store.User, want ...string) {
		t.Helper()
		if got, err := d.GroupsOf(ctx, u.ID); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is in %v, %v; want %v", u.Name, got, err, want)
		}
	}
	spends := func(u store.User, want bool) {
		t.Helper()
		r := store.Reservation{Spend: store.Spend{ID: store.NewID(now), User: u.ID, Provider: "p", Model: "m"}, Tokens: 100}
		err := d.Reserve(ctx, store.System, r)
		var over *store.BudgetError
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
		if (err == nil) != want {
			t.Errorf("%s spends: %v, want %v", u.Name, err, want)
		}
	}
	see := func(s store.GroupCheck) {
		t.Helper()
		if _, err := d.RecordGroupCheck(ctx, store.System, "ops", s); err != nil {
			t.Fatal(err)
		}
	}
	allowed(in) // never looked at
	see(store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:IN"}})
	allowed(in, "ops")
	allowed(out)
	spends(in, true)
	spends(out, true)
	spends(in, false) // all of it is reserved
	spends(out, true) // who is not in it has nothing to do with it
	now = now.Add(store.GroupAge - time.Second)
	see(store.GroupCheck{Source: "slack:T:S1", Error: "no answer"})
	allowed(in, "ops")
	now = now.Add(time.Second)
	allowed(in)
	allowed(out)
	spends(in, false)
	spends(out, false)
	see(store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:OUT"}})
	allowed(in)
	allowed(out, "ops")
	spends(in, true)
	spends(out, false)
}
