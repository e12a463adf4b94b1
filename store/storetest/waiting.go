package storetest

import (
	"slices"
	"time"

	"nize/store"
)

// waiting: the list of waiting calls follows each change of one, and the feed says which
// changes are about them.
func waiting(e *env) {
	ctx := e.Context()
	a, b := e.pair()
	var last store.Seq
	// check compares the list with what a query of the calls returns, and reports
	// whether a change since the last check was about a waiting call.
	check := func(want ...string) (told bool) {
		e.Helper()
		ids := []string{}
		for i, c := range must(e.ListWaiting(ctx))(e) {
			ids = append(ids, c.ID)
			whole := must(e.ListCalls(ctx, store.CallQuery{Waiting: true}))(e)[i]
			other := whole
			other.Args = []byte(`{"of":"another"}`)
			e.same(len(must(e.FindWaiting(ctx, other))(e)), 0)
			same := must(e.FindWaiting(ctx, whole))(e)
			e.same(slices.ContainsFunc(same, func(s store.Call) bool { return s.ID == whole.ID }), true)
			whole.Args, whole.Result = nil, nil
			e.same(c, whole)
		}
		e.same(ids, append([]string{}, want...))
		few := ids[:len(ids):len(ids)]
		e.same(must(e.GetWaiting(ctx, append(few, "unknown")))(e), must(e.ListCalls(ctx, store.CallQuery{Waiting: true}))(e))
		for _, by := range []string{ada.User, b.ID, ""} {
			own, all, err := e.CountWaiting(ctx, by)
			e.ok(err)
			e.same(all, len(want))
			if by != "" {
				e.same(own, len(must(e.ListCalls(ctx, store.CallQuery{Waiting: true, User: by}))(e)))
			}
		}
		for _, c := range e.changes(last) {
			last, told = c.Seq, told || c.Waited
		}
		return told
	}
	e.same(check(), false)
	c, d := newCall(store.Pending), newCall(store.Pending)
	c.ID, d.ID, d.Created = id("c", 0), id("c", 1), c.Created.Add(1)
	c.By, c.Policy = b.ID, "2 of group:ops not requester"
	e.ok(e.Begin(ctx, callerOf(b), c))
	e.same(check(c.ID), true)
	e.ok(e.Begin(ctx, ada, d))
	e.same(check(d.ID, c.ID), true)
	must(e.Decide(ctx, store.Caller{User: "v1"}, c.ID, store.Decision{Verb: store.Approve}))(e)
	e.same(check(d.ID, c.ID), true) // with a vote
	must(e.Remind(ctx, c.ID))(e)
	e.same(check(d.ID, c.ID), true)

	// What waits for nobody is no change of the list.
	runs := newCall(store.Running)
	e.ok(e.Begin(ctx, ada, runs))
	must(e.Finish(ctx, ada, runs.ID, store.Outcome{State: store.Done}))(e)
	e.ok(e.PutSetting(ctx, ada, "", "language", "en"))
	e.same(check(d.ID, c.ID), false)

	e.reopen()
	check(d.ID, c.ID)
	code, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(b), b.ID, hash))(e)
	must(e.Join(ctx, callerOf(a), must(store.ReadCode(code.Reveal()))(e), ""))(e)
	check(d.ID) // what waited for the absorbed one is cancelled

	// Many are read together, and one that was decided meanwhile is not left out.
	var many []string
	for i := range 2 * 8 {
		one := newCall(store.Pending)
		one.ID, one.Created, one.By = id("m", i), d.Created.Add(time.Duration(i)+2), ada.User
		e.ok(e.Begin(ctx, ada, one))
		many = append([]string{one.ID}, many...)
	}
	check(append(many[:len(many):len(many)], d.ID)...)
	must(e.Decide(ctx, ada, many[3], store.Decision{Verb: store.Deny}))(e)
	for i, c := range must(e.GetWaiting(ctx, many))(e) {
		e.same(c, must(e.GetCall(ctx, many[i]))(e))
	}
	for i, id := range many {
		if i != 3 {
			must(e.Decide(ctx, ada, id, store.Decision{Verb: store.Deny}))(e)
		}
	}
	check(d.ID)

	edited := newCall(store.Pending)
	edited.ID, edited.Created, edited.Replaces = id("c", 2), d.Created.Add(1), d.ID
	e.ok(e.Begin(ctx, ada, edited))
	e.same(check(edited.ID), true)
	must(e.Decide(ctx, ada, edited.ID, store.Decision{Verb: store.Approve}))(e)
	e.same(check(), true)
	must(e.Start(ctx, edited.ID, "d1"))(e)
	e.same(check(), false) // it was approved before
	e.same(len(must(e.FindWaiting(ctx, edited))(e)), 0)
	denied := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, denied))
	e.same(check(denied.ID), true)
	must(e.Decide(ctx, ada, denied.ID, store.Decision{Verb: store.Deny}))(e)
	e.same(check(), true)

	// One that ended may be erased before anybody asks again.
	erased := newCall(store.Pending)
	erased.ID = id("c", 3)
	e.ok(e.Begin(ctx, ada, erased))
	e.same(check(erased.ID), true)
	must(e.Decide(ctx, ada, erased.ID, store.Decision{Verb: store.Deny}))(e)
	must(e.Prune(ctx, store.Retention{Audit: time.Nanosecond}))(e)
	_, err := e.GetCall(ctx, erased.ID)
	e.is(err, store.ErrNotFound)
	check()
}
