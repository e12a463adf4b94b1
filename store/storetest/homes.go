package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// homes: which are open outlives a restart, for an hour, and there are never
// more than so many; who is removed has none.
func homes(e *env) {
	ctx := e.Context()
	now := time.Now().UTC().Truncate(time.Second)
	list := func(prefix string, since time.Time) []store.OpenHome {
		all := must(e.ListHomes(ctx, prefix, since))(e)
		slices.SortFunc(all, func(a, b store.OpenHome) int { return cmp.Compare(a.Identity, b.Identity) })
		return all
	}
	a := store.OpenHome{Identity: "slack:T:UA", Seen: now.Add(-50 * time.Minute), State: json.RawMessage(`{"pages":{"grants":1}}`)}
	b := store.OpenHome{Identity: "slack:T:UB", Seen: now.Add(-10 * time.Minute)}
	c := store.OpenHome{Identity: "slack:T2:UC", Seen: now.Add(-10 * time.Minute)}
	for _, h := range []store.OpenHome{a, b, c} {
		e.ok(e.PutHome(ctx, h))
	}
	e.reopen()
	e.same(list("slack:T:", now.Add(-time.Hour)), []store.OpenHome{a, b})
	e.same(list("slack:T:", now.Add(-20*time.Minute)), []store.OpenHome{b})
	a.Seen, a.State = now, nil
	e.ok(e.PutHome(ctx, a))
	e.same(list("slack:T:", now.Add(-time.Hour)), []store.OpenHome{a, b})

	e.is(e.PutHome(ctx, store.OpenHome{Seen: now}), store.ErrInvalid)
	e.is(e.PutHome(ctx, store.OpenHome{Identity: "slack:T:UX", Seen: now, State: json.RawMessage(`"` + strings.Repeat("x", store.MaxHomeState) + `"`)}), store.ErrInvalid)
	e.same(len(e.kinds()), 0) // it is no change of anything

	// The first that comes half an hour later finds b and c still open, one that
	// comes an hour later does not.
	e.ok(e.PutHome(ctx, store.OpenHome{Identity: "slack:T:UD", Seen: now.Add(55 * time.Minute)}))
	e.same(len(list("slack:", time.Time{})), 2)

	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < store.MaxHomes+5; i += 16 {
				if err := e.PutHome(ctx, store.OpenHome{Identity: fmt.Sprintf("slack:T:V%04d", i), Seen: now.Add(time.Duration(i+1) * time.Second)}); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all := list("slack:", time.Time{})
	e.same(len(all), store.MaxHomes)
	if slices.ContainsFunc(all, func(h store.OpenHome) bool { return h.Identity == "slack:T:UA" }) {
		e.Error("the one that was seen longest ago is kept")
	}

	ada := must(e.AddUser(ctx, store.System, store.User{Name: "Ada", Role: store.Member, Identities: []string{"slack:T:UADA"}}))(e)
	e.ok(e.PutHome(ctx, store.OpenHome{Identity: "slack:T:UADA", Seen: now.Add(time.Hour)}))
	e.ok(e.RemoveUser(ctx, store.System, ada.ID))
	e.same(len(list("slack:T:UADA", time.Time{})), 0)

	must(e.Prune(ctx, store.Retention{Conversations: time.Nanosecond}))(e)
	e.same(len(list("slack:", time.Time{})), store.MaxHomes-1) // seen within the hour
	e.ok(e.PutHome(ctx, store.OpenHome{Identity: "slack:T:OLD", Seen: now.Add(-2 * time.Hour)}))
	must(e.Prune(ctx, store.Retention{Conversations: time.Nanosecond}))(e)
	e.same(len(list("slack:T:OLD", time.Time{})), 0)
}
