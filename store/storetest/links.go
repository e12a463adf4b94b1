package storetest

import (
	"slices"
	"strconv"

	"nize/store"
)

func members(e *env) {
	ctx := e.Context()
	a := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	b := must(e.EnsureUser(ctx, "slack:T1:U1", "B", store.Member))(e)
	must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	m := store.Membership{Team: "slack:T1", User: b.ID, Identity: "slack:T1:U1"}
	for range 2 {
		e.ok(e.PutMember(ctx, ada, m))
	}
	e.is(e.PutMember(ctx, ada, store.Membership{Team: "slack:T1", User: "nobody", Identity: "x"}), store.ErrNotFound)
	teams := func(team, user string) (out []string) {
		for _, m := range must(e.ListMembers(ctx, team, user))(e) {
			if m.Since.IsZero() || m.Identity == "" {
				e.Fatalf("as stored: %+v", m)
			}
			out = append(out, m.Team+"="+m.User)
		}
		return out
	}
	e.same(teams("", a.ID), []string{"local=" + a.ID})
	e.same(teams("slack:T1", ""), []string{"slack:T1=" + b.ID})
	e.same(teams("", ""), []string{"local=" + a.ID, "slack:T1=" + b.ID})
	e.ok(e.DeleteMember(ctx, ada, "slack:T1", b.ID))
	e.is(e.DeleteMember(ctx, ada, "slack:T1", b.ID), store.ErrNotFound)
	e.same(len(teams("", b.ID)), 0)
	e.same(e.kinds(), "user.put user.put member.put member.delete")
}

func callerOf(u store.User) store.Caller {
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnCLI, Identity: u.Identities[0]}
}

// pair is an admin at the socket and a member in a chat, who are one person.
func (e *env) pair() (a, b store.User) {
	e.Helper()
	ctx := e.Context()
	must(e.EnsureUser(ctx, "local:0", "root", store.Admin))(e)
	return must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e), must(e.EnsureUser(ctx, "slack:T1:U1", "B", store.Member))(e)
}

func links(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	// What b has.
	e.ok(e.PutMember(ctx, ada, store.Membership{Team: "slack:T1", User: b.ID, Identity: "slack:T1:U1"}))
	for i, u := range []store.User{a, b} {
		must(e.CreateToken(ctx, ada, e.newToken(u.ID, "laptop", "l"+strconv.Itoa(i)), false))(e)
		e.ok(e.PutGrant(ctx, ada, store.Grant{ID: "g" + strconv.Itoa(i), User: u.ID, Tool: "box:x"}))
		e.ok(e.PutSetting(ctx, ada, u.ID, "language", []string{"en", "zh"}[i]))
	}
	e.ok(e.PutGrant(ctx, ada, store.Grant{ID: "g-all", User: b.ID, Tool: "box:x", Scope: store.ForEveryone}))
	e.ok(e.PutSetting(ctx, ada, b.ID, "theme", "violet"))
	secret := func(owner, name, text string) store.Credential {
		return store.Credential{CredentialKey: store.CredentialKey{Scope: "user", Owner: owner, Service: "box", Name: name}, Secret: store.NewSecret(text)}
	}
	for _, c := range []store.Credential{secret(a.ID, "BOTH", "a's"), secret(b.ID, "BOTH", "b's"), secret(b.ID, "ONE", "b's one")} {
		e.ok(e.PutCredential(ctx, ada, c))
	}
	for _, b := range []store.Budget{{Subject: "user:" + a.ID, Limit: 20}, {Subject: "user:" + b.ID, Limit: 10}} {
		b.Period, b.Unit = store.Daily, store.InTokens
		e.ok(e.PutBudget(ctx, ada, b))
	}
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{b.ID}}))(e)
	must(e.PutServer(ctx, ada, store.Server{Name: "box", Visibility: []string{"user:" + b.ID}}, 0))(e)
	e.ok(e.PutAgent(ctx, ada, store.Agent{ID: "helper", Who: []string{"user:" + b.ID}}))
	done, waits := newCall(store.Running), newCall(store.Pending)
	done.By, waits.By = b.ID, b.ID
	e.ok(e.Begin(ctx, callerOf(b), done))
	must(e.Finish(ctx, callerOf(b), done.ID, store.Outcome{State: store.Done}))(e)
	e.ok(e.Begin(ctx, callerOf(b), waits))
	e.ok(e.PutThread(ctx, callerOf(b), store.Thread{ID: "t1", User: b.ID}))
	e.ok(e.Append(ctx, callerOf(b), store.Turn{Thread: "t1", Role: store.FromUser, By: callerOf(b), Text: "hi"}, false))
	e.ok(e.AddSpend(ctx, store.Spend{User: b.ID, Model: "m", Provider: "p", Prompt: 7}))
	e.ok(e.AddSpend(ctx, store.Spend{User: a.ID, Model: "m", Provider: "p", Prompt: 5}))

	code, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	e.reopen() // it survives
	typed := must(store.ReadCode(code.Reveal()))(e)
	e.same(must(e.FindLink(ctx, callerOf(a), typed))(e).ID, b.ID)
	j := must(e.Join(ctx, callerOf(a), typed, ""))(e)
	e.same(j.User.ID, a.ID)
	e.same(j.User.Role, store.Member) // the lower
	e.same(j.User.Identities, []string{"local:1", "slack:T1:U1"})
	e.same(j.Absorbed.ID, b.ID)
	e.same(j.Renamed, []string{"laptop-2"})
	for range 2 {
		e.is(last(e.Join(ctx, callerOf(a), typed, "")), store.ErrNotFound) // used
		e.joined(a, b, done, waits)
		e.reopen()
	}
	if _, err := e.VerifyEvents(ctx); err != nil {
		e.Fatal(err)
	}
}

// joined checks that all that b had is found as a's, also by b's old id.
func (e *env) joined(a, b store.User, done, waits store.Call) {
	e.Helper()
	ctx := e.Context()
	for _, id := range []string{a.ID, b.ID} {
		e.same(must(e.GetUser(ctx, id))(e).ID, a.ID)
		calls := must(e.ListCalls(ctx, store.CallQuery{User: id}))(e)
		e.same(len(calls), 2)
		for _, c := range calls {
			e.same(c.By, a.ID)
		}
		threads := must(e.ListThreads(ctx, id, 0))(e)
		e.same(len(threads), 1)
		e.same(threads[0].User, a.ID)
		rows := must(e.Usage(ctx, store.UsageQuery{By: "model", User: id}))(e).Rows
		e.same(rows[0].Prompt, int64(12))
		if n := len(must(e.Events(ctx, store.EventQuery{User: id, Kind: "call"}))(e)); n < 3 {
			e.Fatalf("%d events of calls", n)
		}
		teams := must(e.ListMembers(ctx, "", id))(e)
		e.same(len(teams), 2)
	}
	e.same(len(must(e.ListUsers(ctx))(e)), 2)
	e.same(must(e.EnsureUser(ctx, "slack:T1:U1", "x", store.Member))(e).ID, a.ID)
	e.same(must(e.GetCall(ctx, done.ID))(e).By, a.ID)
	e.same(must(e.GetCall(ctx, waits.ID))(e).State, store.Cancelled)
	e.same(must(e.GetThread(ctx, "t1"))(e).User, a.ID)
	e.same(must(e.Turns(ctx, "t1"))(e)[0].By.User, a.ID)
	rows := must(e.Usage(ctx, store.UsageQuery{By: "user"}))(e).Rows
	e.same(len(rows), 1)
	e.same(rows[0].Key, a.ID)
	for _, s := range []string{"l0", "l1"} {
		_, u, err := e.Authenticate(ctx, secretOf(s))
		e.ok(err)
		e.same(u.ID, a.ID)
	}
	grants := must(e.ListGrants(ctx, ""))(e)
	e.same(len(grants), 1)
	e.same(grants[0].User, a.ID)
	e.same(must(e.ListSettings(ctx, a.ID))(e), map[string]string{"language": "en", "theme": "violet"})
	e.same(len(must(e.ListSettings(ctx, b.ID))(e)), 0)
	e.same(len(must(e.ListCredentials(ctx))(e)), 2)
	for name, want := range map[string]string{"BOTH": "a's", "ONE": "b's one"} {
		c := must(e.GetCredential(ctx, store.CredentialKey{Scope: "user", Owner: a.ID, Service: "box", Name: name}))(e)
		e.same(c.Secret.Reveal(), want)
	}
	e.same(must(e.GroupsOf(ctx, a.ID))(e), []string{"ops"})
	budgets := must(e.ListBudgets(ctx))(e)
	e.same(len(budgets), 1)
	e.same(budgets[0].Limit, int64(10))
	e.same(budgets[0].Used, int64(12)) // of both
	e.same(must(e.GetServer(ctx, "box"))(e).Visibility, []string{"user:" + a.ID})
	e.same(must(e.GetAgent(ctx, "helper"))(e).Who, []string{"user:" + a.ID})
}

// linkRaces: a code is used by one of many; of two who confirm each other's at
// once, one survives.
func linkRaces(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	_, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	got := e.race(2, func(int) error { return last(e.Join(ctx, callerOf(a), hash, store.Admin)) })
	e.same(got, map[string]int{"ok": 1, "not found": 1})
	c := must(e.EnsureUser(ctx, "slack:T2:U2", "C", store.Member))(e)
	_, of := store.NewCode()
	_, other := store.NewCode()
	must(e.PutLink(ctx, callerOf(a), a.ID, of))(e)
	must(e.PutLink(ctx, callerOf(c), c.ID, other))(e)
	got = e.race(2, func(i int) error {
		if i == 0 {
			return last(e.Join(ctx, callerOf(a), other, ""))
		}
		return last(e.Join(ctx, callerOf(c), of, ""))
	})
	e.same(got, map[string]int{"ok": 1, "not found": 1})
	e.same(len(must(e.ListUsers(ctx))(e)), 2)
	u := must(e.EnsureUser(ctx, "slack:T1:U1", "x", store.Member))(e)
	e.same(len(u.Identities), 3)
	for _, id := range []string{a.ID, b.ID, c.ID} { // also an alias of an alias
		e.same(must(e.GetUser(ctx, id))(e).ID, u.ID)
	}
}

func linkTries(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	_, hash := store.NewCode()
	_, wrong := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	e.is(last(e.FindLink(ctx, callerOf(b), hash)), store.ErrInvalid) // their own
	got := e.race(8, func(int) error { return last(e.FindLink(ctx, callerOf(a), wrong)) })
	e.same(got, map[string]int{"not found": 5, "refused": 3})
	e.reopen()
	e.is(last(e.Join(ctx, callerOf(a), hash, "")), store.ErrRefused) // also with the right one
	e.same(len(must(e.ListUsers(ctx))(e)), 3)
	c := must(e.EnsureUser(ctx, "slack:T2:U2", "C", store.Member))(e)
	e.is(last(e.Join(ctx, callerOf(c), hash, store.Admin)), store.ErrRefused) // no admin
	off := b
	off.State = store.Disabled
	e.ok(e.PutUser(ctx, ada, off))
	e.is(last(e.Join(ctx, callerOf(c), hash, "")), store.ErrNotFound) // the code went with them
	e.is(last(e.PutLink(ctx, ada, b.ID, hash)), store.ErrRefused)
	// An older code stops working.
	must(e.PutLink(ctx, callerOf(c), c.ID, wrong))(e)
	must(e.PutLink(ctx, callerOf(c), c.ID, hash))(e)
	root := must(e.EnsureUser(ctx, "local:0", "root", store.Admin))(e)
	e.is(last(e.FindLink(ctx, callerOf(root), wrong)), store.ErrNotFound)
	// The last admin would be gone: root is lowered, and A is disabled.
	a.State = store.Disabled
	e.ok(e.PutUser(ctx, ada, a))
	e.is(last(e.Join(ctx, callerOf(root), hash, "")), store.ErrRefused)
	e.same(must(e.Join(ctx, callerOf(root), hash, store.Admin))(e).User.Role, store.Admin)
}

func unlink(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	_, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	e.ok(e.PutMember(ctx, ada, store.Membership{Team: "slack:T1", User: b.ID, Identity: "slack:T1:U1"}))
	must(e.Join(ctx, callerOf(a), hash, store.Admin))(e)
	e.is(last(e.Unlink(ctx, ada, a.ID, "slack:T1:U9")), store.ErrNotFound)
	e.is(last(e.Unlink(ctx, ada, "nobody", "slack:T1:U1")), store.ErrNotFound)
	got := e.race(2, func(i int) error { return last(e.Unlink(ctx, ada, a.ID, []string{"local:1", "slack:T1:U1"}[i])) })
	e.same(got, map[string]int{"ok": 1, "refused": 1}) // one stays
	u := must(e.GetUser(ctx, a.ID))(e)
	e.same(len(u.Identities), 1)
	e.same(len(must(e.ListMembers(ctx, "", a.ID))(e)), 1)
	free := []string{"local:1", "slack:T1:U1"}[slices.Index([]string{"slack:T1:U1", "local:1"}, u.Identities[0])]
	if somebody := must(e.EnsureUser(ctx, free, "new", store.Member))(e); somebody.ID == a.ID || somebody.Role != store.Member {
		e.Fatalf("who comes with it again is %+v", somebody)
	}
}

func leavers(e *env) {
	ctx := e.Context()
	a := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	b := must(e.EnsureUser(ctx, "local:2", "B", store.Member))(e)
	e.is(e.RemoveUser(ctx, ada, a.ID), store.ErrRefused)
	e.is(last(e.ForgetUser(ctx, ada, a.ID, nil)), store.ErrRefused)
	e.is(e.RemoveUser(ctx, ada, "nobody"), store.ErrNotFound)
	must(e.CreateToken(ctx, ada, e.newToken(b.ID, "cli", "one"), false))(e)
	e.giveGrants(b.ID)
	e.ok(e.PutSetting(ctx, ada, b.ID, "language", "zh"))
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{b.ID}}))(e)
	must(e.PutServer(ctx, ada, store.Server{Name: "box", Visibility: []string{"user:" + b.ID}}, 0))(e)
	e.ok(e.PutAgent(ctx, ada, store.Agent{ID: "helper", Who: []string{"user:" + b.ID}}))
	waits := newCall(store.Pending)
	waits.By = b.ID
	e.ok(e.Begin(ctx, callerOf(b), waits))
	got := e.race(5, func(int) error { return e.RemoveUser(ctx, ada, b.ID) })
	e.same(got, map[string]int{"ok": 1, "not found": 4})
	e.reopen()
	_, _, err := e.Authenticate(ctx, secretOf("one"))
	e.is(err, store.ErrRefused)
	e.is(last(e.GetUser(ctx, b.ID)), store.ErrNotFound)
	e.grantsLeft()
	e.same(len(must(e.ListSettings(ctx, b.ID))(e)), 0)
	e.same(len(must(e.GroupsOf(ctx, b.ID))(e)), 0)
	e.same(len(must(e.ListMembers(ctx, "", b.ID))(e)), 0)
	e.same(len(must(e.GetServer(ctx, "box"))(e).Visibility), 0)
	e.same(must(e.GetAgent(ctx, "helper"))(e).Who, []string{"admins"}) // and not everybody
	e.same(must(e.GetCall(ctx, waits.ID))(e).State, store.Cancelled)
	if again := must(e.EnsureUser(ctx, "local:2", "B", store.Member))(e); again.ID == b.ID {
		e.Fatal("who comes again is who was removed")
	}
	ids, ok, err := e.RemovedUser(ctx, b.ID)
	if err != nil || !ok {
		e.Fatalf("%v, %v", ok, err)
	}
	e.same(ids, []string{b.ID})
}
