package storetest

import "nize/store"

// reassigned: after a join every rule names the survivor, and one person's yes
// stays one.
func reassigned(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	c := must(e.EnsureUser(ctx, "slack:T1:U3", "C", store.Member))(e)
	was, now, other := "user:"+b.ID, "user:"+a.ID, "user:"+c.ID
	policies := map[string][2]string{ // before and after
		"alone":   {was, now},
		"among":   {"group:ops," + was + "," + other + " not requester", "group:ops," + now + "," + other + " not requester"},
		"both":    {now + "," + was, now},
		"several": {"2 of " + now + "," + was + "," + other, "2 of " + now + "," + other},
		"toofew":  {"2 of " + now + "," + was, "2 of " + now + ",admins"},
		"nobody":  {other, other},
		"none":    {"", ""},
	}
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops"}))(e)
	for name, p := range policies {
		must(e.PutServer(ctx, ada, store.Server{Name: name, Approvers: store.Policy(p[0])}, 0))(e)
		must(e.EditChannel(ctx, ada, "slack:T1:"+name, func(ch *store.Channel) {
			ch.Mode, ch.Approvers, ch.Admins = store.ModeAll, store.Policy(p[0]), []string{was, other}
		}))(e)
	}
	e.ok(e.PutSetting(ctx, ada, "", "approvals.approvers", policies["toofew"][0]))
	e.ok(e.PutSetting(ctx, ada, "", "bots.access", "group:ops,"+was+","+now))
	// Two calls of C's wait: B said yes to one.
	voted, waits := newCall(store.Pending), newCall(store.Pending)
	for i, call := range []*store.Call{&voted, &waits} {
		call.By, call.Policy = c.ID, store.Policy(policies[[]string{"several", "alone"}[i]][0])
		call.Digest = call.ComputeDigest()
		e.ok(e.Begin(ctx, callerOf(c), *call))
	}
	must(e.Decide(ctx, callerOf(b), voted.ID, store.Decision{Verb: store.Approve}))(e)

	_, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	must(e.Join(ctx, callerOf(a), hash, ""))(e)
	for range 2 {
		for name, p := range policies {
			e.same(must(e.GetServer(ctx, name))(e).Approvers, store.Policy(p[1]))
			ch := must(e.GetChannel(ctx, "slack:T1:"+name))(e)
			e.same(ch.Approvers, store.Policy(p[1]))
			e.same(ch.Admins, []string{now, other})
		}
		system := must(e.ListSettings(ctx, ""))(e)
		e.same(system["approvals.approvers"], policies["toofew"][1])
		e.same(system["bots.access"], "group:ops,"+now)
		e.same(must(e.GetCall(ctx, waits.ID))(e).Policy, store.Policy(now))
		got := must(e.GetCall(ctx, voted.ID))(e)
		e.same(got.Policy, store.Policy(policies["several"][1]))
		e.same(got.State, store.Pending)
		e.same(got.Yes(), []string{a.ID})
		e.reopen()
	}
	e.is(last(e.Decide(ctx, callerOf(a), voted.ID, store.Decision{Verb: store.Approve})), store.ErrDecided) // they did
	done := must(e.Decide(ctx, callerOf(c), voted.ID, store.Decision{Verb: store.Approve}))(e)
	e.same(done.Approved.IsZero(), false)
	e.same(must(e.Decide(ctx, callerOf(a), waits.ID, store.Decision{Verb: store.Approve}))(e).Approved.IsZero(), false)
	if _, err := e.VerifyEvents(ctx); err != nil {
		e.Fatal(err)
	}
}
