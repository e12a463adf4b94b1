package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nize/store"
)

// countQuotas: of each kind of record a person keeps so many and no more, whatever
// others keep, and the refusal names the setting. What holds for nothing any more goes
// first, and what somebody removes makes room.
func countQuotas(e *env) {
	ctx := e.Context()
	type credentials interface {
		PutCredentialWithin(ctx context.Context, by store.Caller, c store.Credential, q store.Quota) error
	}
	people := map[string]store.User{}
	for _, name := range []string{"mia", "bob", "ann"} {
		people[name] = must(e.EnsureUser(ctx, "slack:T:"+name, name, store.Member))(e)
	}
	q := store.Quota{Each: 3, All: 7, Limit: "limits.one", LimitAll: "limits.all"}
	grant := func(who, id string, change func(*store.Grant)) error {
		g := store.Grant{ID: who + id, User: people[who].ID, Tool: "box:look", Quota: q}
		if change != nil {
			change(&g)
		}
		return e.PutGrant(ctx, callerOf(people[who]), g)
	}
	key := func(who, id string) store.CredentialKey {
		return store.CredentialKey{Scope: "user", Owner: people[who].ID, Service: "box", Name: id}
	}
	for _, kind := range []struct {
		name        string
		put, remove func(who, id string) error
	}{
		{"grants of one's own", func(who, id string) error { return grant(who, id, nil) }, func(who, id string) error { return e.DeleteGrant(ctx, callerOf(people[who]), who+id) }},
		{"grants of sessions", func(who, id string) error {
			return grant(who, id, func(g *store.Grant) {
				g.Scope, g.Thread, g.Expires = store.ForConversation, "session-"+id, time.Now().Add(time.Hour)
			})
		}, func(who, id string) error { return e.DeleteGrant(ctx, callerOf(people[who]), who+id) }},
		{"credentials", func(who, id string) error {
			return e.DB.(credentials).PutCredentialWithin(ctx, callerOf(people[who]), store.Credential{CredentialKey: key(who, id), Secret: store.NewSecret("s")}, q)
		}, func(who, id string) error { return e.DeleteCredential(ctx, callerOf(people[who]), key(who, id)) }},
	} {
		put := func(who, id, refused string) {
			e.Helper()
			err := kind.put(who, id)
			if (refused == "") != (err == nil) {
				e.Fatalf("%s: %s of %s: %v", kind.name, id, who, err)
			}
			if err != nil {
				e.is(err, store.ErrRefused)
				if !strings.Contains(err.Error(), refused) {
					e.Errorf("%s: the refusal does not name %s: %v", kind.name, refused, err)
				}
			}
		}
		for n := range 3 {
			put("mia", fmt.Sprint(n), "")
		}
		put("mia", "3", "limits.one")
		put("mia", "2", "") // in place of another one it is no more
		for n := range 3 {
			put("bob", fmt.Sprint(n), "")
		}
		put("ann", "0", "")
		put("ann", "1", "limits.all")
		e.ok(kind.remove("mia", "0"))
		put("ann", "1", "")
		e.ok(kind.remove("ann", "1"))
		e.reopen()
		put("mia", "0", "")
		put("mia", "3", "limits.one")
		for _, id := range []string{"mia0", "mia1", "mia2", "bob0", "bob1", "bob2", "ann0"} {
			e.ok(kind.remove(id[:3], id[3:]))
		}
	}

	// Grants that hold for nothing any more make room.
	e.ok(grant("mia", "0", func(g *store.Grant) { g.Expires = time.Now().Add(-time.Hour) }))
	e.ok(grant("mia", "1", func(g *store.Grant) { g.Scope, g.Thread = store.ForConversation, "gone" }))
	e.ok(grant("mia", "2", nil))
	e.ok(grant("mia", "3", nil))
	var left []string
	for _, g := range must(e.ListGrants(ctx, ""))(e) {
		left = append(left, g.ID)
	}
	e.same(left, []string{"mia2", "mia3"})
}

// threadQuotas: a person keeps so many conversations, of so many bytes. Empty ones go
// first, but none that a message may wait for; what others said in a channel is not
// theirs.
func threadQuotas(e *env) {
	ctx := e.Context()
	mia := callerOf(must(e.EnsureUser(ctx, "slack:T:mia", "Mia", store.Member))(e))
	bob := callerOf(must(e.EnsureUser(ctx, "slack:T:bob", "Bob", store.Member))(e))
	q := store.ThreadQuota{Count: store.Quota{Each: 3, Limit: "limits.many"}, Size: store.Quota{Each: 4000, Limit: "limits.large"}}
	old := time.Now().Add(-48 * time.Hour)
	start := func(by store.Caller, id string, at time.Time) error {
		return e.StartThread(ctx, by, store.Thread{ID: id, User: by.User, Created: at, Updated: at}, q)
	}
	say := func(by store.Caller, id string, n int, text string) {
		e.Helper()
		e.ok(e.Append(ctx, by, store.Turn{Thread: id, N: n, Role: store.FromUser, By: by, Text: text}, false))
	}
	refused := func(err error, setting string) {
		e.Helper()
		e.is(err, store.ErrRefused)
		if err != nil && !strings.Contains(err.Error(), setting) {
			e.Errorf("the refusal does not name %s: %v", setting, err)
		}
	}
	e.ok(start(mia, "m1", old))
	say(mia, "m1", 0, "hello")
	e.ok(start(mia, "m2", old))
	e.ok(start(mia, "m3", time.Now()))
	e.is(start(mia, "m3", time.Now()), store.ErrExists)
	e.ok(e.CheckThreads(ctx, mia.User, q, true)) // m2 would go
	e.ok(start(mia, "m4", time.Now()))
	_, err := e.GetThread(ctx, "m2")
	e.is(err, store.ErrNotFound)
	refused(start(mia, "m5", time.Now()), "limits.many") // m3 and m4 may have a message that waits
	refused(e.CheckThreads(ctx, mia.User, q, true), "limits.many")
	e.ok(e.CheckThreads(ctx, mia.User, q, false)) // she may go on in those that she has
	e.ok(start(bob, "b1", time.Now()))

	at := store.Address{Surface: store.OnSlack, Team: "T", Channel: "C", Thread: "1"}
	shared, _, err := e.ThreadAt(ctx, bob, store.Thread{ID: "c1", User: bob.User, Address: at})
	e.ok(err)
	say(mia, shared.ID, 0, strings.Repeat("x", 5000))
	e.ok(e.CheckThreads(ctx, bob.User, q, true))
	say(mia, "m1", 1, strings.Repeat("x", 3000))
	_, err = e.EditThread(ctx, mia, "m1", func(th *store.Thread) { th.Title = "long" })
	e.ok(err)
	e.reopen()
	say(mia, "m1", 2, strings.Repeat("x", 1000))
	refused(e.CheckThreads(ctx, mia.User, q, false), "limits.large")
	must(e.ForgetThread(ctx, mia, "m1"))(e)
	e.ok(e.CheckThreads(ctx, mia.User, q, true))
	e.ok(start(mia, "m5", time.Now()))
}
