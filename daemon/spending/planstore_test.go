package spending

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/plan"
)

// TestPlans: the nearest plan counts, once for each message, and no more than it has.
func TestPlans(t *testing.T) {
	db, ctx := planStore{databasetest.Open(t, planBuckets...)}, t.Context()
	by := store.Caller{User: "ada", Role: store.Admin}
	three, five := int64(3), int64(5)
	for _, p := range []plan.Plan{{ID: "own", Name: "Own", Messages: &three}, {ID: "team", Name: "Team", Messages: &five}, {ID: "free", Name: "Free", Credits: 2.5, Tokens: 1000}} {
		if err := db.put(ctx, by, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.put(ctx, by, plan.Plan{ID: "bad", Name: " "}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no name: %v", err)
	}
	of := func(user string) []string { return plan.Subjects(user, "slack:T1") }
	if _, err := db.find(ctx, "ben", of("ben")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without a plan: %v", err)
	}
	if err := db.count(ctx, "ben", of("ben"), "k"); err != nil {
		t.Errorf("without a plan: %v", err)
	}
	for subject, id := range map[string]string{"user:*": "free", "team:slack:T1": "team", "user:ben": "own"} {
		if err := db.assign(ctx, by, subject, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.assign(ctx, by, "user:ben", "nothing"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no such plan: %v", err)
	}
	if err := db.delete(ctx, by, "own"); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a plan that somebody has: %v", err)
	}
	var used *plan.UsedUpError
	for i, key := range []string{"a", "a", "b", "c", "c", "d"} { // a and c come twice
		if err := db.count(ctx, "ben", of("ben"), key); (err != nil) != (i == 5) || err != nil && !errors.As(err, &used) {
			t.Errorf("message %d: %v", i, err)
		}
	}
	_, ends := store.Monthly.Bounds(time.Now())
	if got := used.In(time.UTC).Error(); !errors.Is(used, store.ErrRefused) || !strings.Contains(got, "all 3 messages a month of the plan Own are used up. It resets on "+ends.Format("Monday, 2 January")) {
		t.Errorf("told: %s", got)
	}
	// A team's are its members' together, also at once.
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			user := fmt.Sprint("u", i%4)
			if db.count(ctx, user, of(user), fmt.Sprint(i)) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	u, err := db.find(ctx, "u1", of("u1"))
	if err != nil || taken.Load() != 5 || u.Used != 5 || u.Context() != "team" || u.Plan.Name != "Team" || !u.Ends.Equal(ends) {
		t.Errorf("%d taken, %+v, %v", taken.Load(), u, err)
	}
	// Of everybody's each person has their own; without a bound they are counted still.
	for _, key := range []string{"x", "y"} {
		if err := db.count(ctx, "eve", plan.Subjects("eve", "local"), key); err != nil {
			t.Fatal(err)
		}
	}
	if u, err = db.find(ctx, "eve", plan.Subjects("eve", "local")); err != nil || u.Used != 2 || u.Context() != "user" || u.Plan.Messages != nil {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = db.find(ctx, "kim", plan.Subjects("kim", "local")); err != nil || u.Used != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if err := db.assign(ctx, by, "user:ben", ""); err != nil {
		t.Fatal(err)
	}
	if u, err = db.find(ctx, "ben", of("ben")); err != nil || u.Plan.ID != "team" {
		t.Errorf("after it was taken: %+v, %v", u, err)
	}
	if err := db.delete(ctx, by, "own"); err != nil {
		t.Error(err)
	}
	if got := u.Plan.Budgets("team:slack:T1"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := (plan.Plan{Credits: 2.5, Tokens: 1000}).Budgets("user:*"); len(got) != 2 || got[1].Limit != 2_500_000 || got[0].Limit != 1000 {
		t.Errorf("%+v", got)
	}
}
