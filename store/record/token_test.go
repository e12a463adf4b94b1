package record_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"nize/store"
	"nize/store/bolt/bolttest"
	"nize/store/oauth"
)

// TestPages: the pages of a query are all of its tokens, once each and the newest
// first, whatever the limit; a page looks at so many that are none of it, and no more.
func TestPages(t *testing.T) {
	db, ctx, now := bolttest.Open(t), t.Context(), time.Now()
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
	var wg sync.WaitGroup // many at once share commits
	for i := range all {
		wg.Go(func() {
			id, err := store.NewID(now.Add(time.Duration(i)*time.Second)), error(nil)
			if all[i], err = db.CreateToken(ctx, store.System, store.Token{ID: id, Name: fmt.Sprintf(kinds[i%3], i), User: people[i%2], Hash: oauth.HashOf(id), Audience: store.ForMCP, Expires: now.Add(time.Hour)}, false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := db.RevokeTokens(ctx, store.System, people[1], ""); err != nil || n != 265 {
		t.Fatal(n, err)
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
