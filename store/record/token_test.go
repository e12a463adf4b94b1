package record_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/kv"
	"nize/store/oauth"
)

// TestPages: the pages of a query are all of its tokens, once each and the newest
// first, whatever the limit; a page looks at so many that are none of it, and no more.
func TestPages(t *testing.T) {
	db, ctx, now := databasetest.Open(t), t.Context(), time.Now()
	var people []string
	for i := range 3 {
		u, err := db.EnsureUser(ctx, fmt.Sprintf("local:%d", i), fmt.Sprintf("p%d", i), store.Member)
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, u.ID)
	}
	all := make([]store.Token, 530)
	kinds := []string{"laptop-%d", "oauth:C %d", "browser:%d"}
	err := db.Update(ctx, "storing tokens", func(tx kv.Tx) error { // as the engine does, in one transaction
		for i := range all {
			one := store.Token{ID: store.NewID(now.Add(time.Duration(i) * time.Second)), Name: fmt.Sprintf(kinds[i%3], i), User: people[i%2], Audience: store.ForMCP, Expires: now.Add(time.Hour)}
			if all[i] = one; i%2 == 1 {
				all[i].Revoked = now.Add(-time.Second)
			}
			b, err := json.Marshal(all[i])
			if err := errors.Join(err, tx.Put("tokens", []byte(one.ID), b), tx.Put("tokens_name", []byte(one.User+"\x00"+one.Name+"\x00"+one.ID), nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b store.Token) int { return cmp.Compare(b.ID, a.ID) })
	for _, c := range []struct {
		q    oauth.TokenQuery
		want int
	}{
		{oauth.TokenQuery{}, 530}, {oauth.TokenQuery{User: people[0]}, 265}, {oauth.TokenQuery{User: people[2]}, 0}, {oauth.TokenQuery{Active: true}, 265},
		{oauth.TokenQuery{User: people[1], Active: true}, 0},
		{oauth.TokenQuery{Kinds: []string{oauth.Browser}}, 176}, {oauth.TokenQuery{Kinds: []string{oauth.Made, oauth.SignedInClient}, User: people[0], Active: true}, 177},
	} {
		var want []string
		for _, one := range all {
			if (c.q.User == "" || one.User == c.q.User) && (c.q.Kinds == nil || slices.Contains(c.q.Kinds, oauth.KindOf(one.Name))) && (!c.q.Active || one.User != people[1]) {
				want = append(want, one.ID)
			}
		}
		if len(want) != c.want {
			t.Fatalf("%+v: the test is wrong: %d", c.q, len(want))
		}
		for _, limit := range []int{0, 7, 50, 176, 265, 500} {
			q, got, pages := c.q, []string(nil), 0
			for q.Limit = limit; ; pages++ {
				page, next, err := db.PageTokens(ctx, q)
				if err != nil || limit > 0 && len(page) > limit {
					t.Fatal(len(page), err)
				}
				for _, one := range page {
					got = append(got, one.ID)
				}
				if q.Before = next; next == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v by %d: %d tokens, want %d, or another order", c.q, limit, len(got), len(want))
			}
			if most := c.want/max(1, limit) + 2; limit == 0 && pages != 0 || pages > most {
				t.Errorf("%+v by %d: %d pages", c.q, limit, pages+1)
			}
		}
	}
	if one, err := db.GetToken(ctx, all[7].ID); err != nil || one.Name != all[7].Name {
		t.Errorf("one: %+v %v", one, err)
	}
	if _, err := db.GetToken(ctx, "x"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// TestExpiringTokens: those that somebody made, work and expire by then are listed as they
// are now, the first first, whatever was listed before.
func TestExpiringTokens(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
	by := store.Caller{User: "u", Name: "U", Role: store.Admin, Surface: store.OnCLI}
	u, err := db.EnsureUser(ctx, "local:1", "ada", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	now, n := db.Now(), byte(0)
	create := func(name string, in time.Duration) {
		n++
		if _, err := db.CreateToken(ctx, by, store.Token{Name: name, User: u.ID, Hash: [32]byte{n}, Audience: store.ForMCP, Expires: now.Add(in)}, true); err != nil {
			t.Fatal(err)
		}
	}
	want := func(in time.Duration, names ...string) {
		t.Helper()
		list, err := db.ExpiringTokens(ctx, now.Add(in))
		got := []string{}
		for _, one := range list {
			if got = append(got, one.Name); one.Expires.After(now.Add(in)) || one.User != u.ID {
				t.Errorf("%s is %+v", one.Name, one)
			}
		}
		if err != nil || !slices.Equal(got, append([]string{}, names...)) {
			t.Errorf("by %s expire %q, want %q, %v", in, got, names, err)
		}
	}
	want(1000 * time.Hour)
	create("late", 100*time.Hour)
	create("soon", 2*time.Hour)
	create("sooner", time.Hour)
	create("browser:1", time.Hour) // of somebody who signed in
	want(time.Hour, "sooner")
	want(time.Hour - time.Nanosecond)
	want(3*time.Hour, "sooner", "soon")
	want(1000*time.Hour, "sooner", "soon", "late")
	if _, err := db.RevokeTokens(ctx, by, u.ID, "soon"); err != nil {
		t.Fatal(err)
	}
	want(3*time.Hour, "sooner")
	create("sooner", 3*time.Hour) // in its place
	want(3*time.Hour, "sooner")
	want(2 * time.Hour)
}
