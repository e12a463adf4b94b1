package storetest

import (
	"time"

	"nize/store"
)

// votes: a policy that wants several people is settled by as many different
// ones, in one transaction each.
func votes(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	c.Policy = "3 of group:ops not requester"
	e.ok(e.Begin(ctx, ada, c))
	yes := func(who string, voids ...string) error {
		_, err := e.Decide(ctx, store.Caller{User: who}, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest, Voids: voids})
		return err
	}
	e.is(yes(c.By), store.ErrRefused)
	e.ok(yes("v1"))
	e.is(yes("v1"), store.ErrDecided)
	_, err := e.Start(ctx, c.ID, "d1")
	e.is(err, store.ErrRefused)
	e.ok(yes("v2", "v1"))
	e.reopen()
	e.same(must(e.GetCall(ctx, c.ID))(e).Yes(), []string{"v2"})
	e.same(e.race(20, func(i int) error { return yes([]string{"v3", "v4", "v5", "v2"}[i%4]) }), map[string]int{"ok": 2, "already decided": 18})
	got := must(e.GetCall(ctx, c.ID))(e)
	if got.Waiting() || got.State != store.Pending || len(got.Yes()) != 3 {
		e.Fatalf("after the votes: %+v", got)
	}
	e.same(e.kinds(), "call.pending call.vote call.vote call.vote call.approve")
	must(e.Start(ctx, c.ID, "d1"))(e)
}

// redo: what failed or expired is replaced once, and stays what it was.
func redo(e *env) {
	ctx := e.Context()
	for _, end := range []store.State{store.Failed, store.Expired} {
		old := newCall(store.Pending)
		if end == store.Expired {
			old.Expires = time.Now().Add(-time.Minute)
		}
		e.ok(e.Begin(ctx, ada, old))
		if end == store.Expired {
			must(e.Decide(ctx, store.System, old.ID, store.Decision{Verb: store.Expire}))(e)
		} else {
			must(e.Decide(ctx, ada, old.ID, store.Decision{Verb: store.Approve}))(e)
			must(e.Start(ctx, old.ID, "d1"))(e)
			must(e.Finish(ctx, ada, old.ID, store.Outcome{State: end}))(e)
		}
		again := func(int) error {
			c := newCall(store.Pending)
			c.Replaces = old.ID
			return e.Begin(ctx, ada, c)
		}
		e.same(e.race(20, again), map[string]int{"ok": 1, "already decided": 19})
		got := must(e.GetCall(ctx, old.ID))(e)
		e.same(got.State, end)
		e.same(must(e.GetCall(ctx, got.Successor))(e).Replaces, old.ID)
	}
}

// remind: people are told once of a call that waits.
func remind(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	from := e.Last()
	e.same(e.race(10, func(int) error { _, err := e.Remind(ctx, c.ID); return err }), map[string]int{"ok": 1, "already decided": 9})
	told := 0
	for _, change := range e.changes(from) {
		if change.Kind == "reminder" && change.ID == c.ID && change.Thread == c.Thread {
			told++
		}
	}
	e.same(told, 1)
	must(e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Approve}))(e)
	_, err := e.Remind(ctx, c.ID)
	e.is(err, store.ErrDecided)
	_, err = e.Remind(ctx, "nothing")
	e.is(err, store.ErrNotFound)
}
