package storetest

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"nize/store"
)

func callLife(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	c.Hooks = []store.HookRef{{ID: "h", Revision: 2}}
	c.Warnings = []store.Text{store.Plain("definition changed")}
	from := e.Last()
	e.ok(e.Begin(ctx, ada, c))
	e.same(must(e.GetCall(ctx, c.ID))(e), c)

	_, err := e.Start(ctx, c.ID, "d1")
	e.is(err, store.ErrRefused) // nobody said yes
	got := must(e.Decide(ctx, bert, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}))(e)
	if got.State != store.Pending || got.Approved.IsZero() || got.Waiting() {
		e.Fatalf("after the yes: %+v", got)
	}
	if d := got.Decisions[0]; len(got.Decisions) != 1 || d.By != "bert" || d.Name != "Bert" || d.Surface != store.OnSlack || d.At.IsZero() {
		e.Fatalf("decisions: %+v", got.Decisions)
	}
	got = must(e.Start(ctx, c.ID, "d1"))(e)
	if got.State != store.Running || got.Owner != "d1" || got.Started.IsZero() {
		e.Fatalf("after the start: %+v", got)
	}
	result := &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"<done> & gone"}]}`), Shown: json.RawMessage(`{"content":[]}`)}
	got = must(e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Done, Result: result}))(e)
	if got.State != store.Done || got.Finished.IsZero() {
		e.Fatalf("after the end: %+v", got)
	}
	e.same(got.Result, result)
	again, err := e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Failed})
	e.is(err, store.ErrDecided)
	e.same(again.State, store.Done)
	e.same(must(e.GetCall(ctx, c.ID))(e), got)

	e.same(e.kinds(), "call.pending call.approve call.running call.done")
	want := []store.Change{
		{Kind: "call", ID: c.ID, Thread: "t1", State: store.Pending, Waited: true},
		{Kind: "call", ID: c.ID, Thread: "t1", State: store.Pending, Approved: true, Waited: true},
		{Kind: "call", ID: c.ID, Thread: "t1", State: store.Running},
		{Kind: "call", ID: c.ID, Thread: "t1", State: store.Done},
	}
	changes := e.changes(from)
	for i := range changes {
		if changes[i].Seq != from+store.Seq(i)+1 {
			e.Fatalf("sequence: %v", changes)
		}
		changes[i].Seq = 0
	}
	e.same(changes, want)

	e.reopen()
	e.same(must(e.GetCall(ctx, c.ID))(e), got)
}

// callBytes: what is shown is what runs, byte for byte.
func callBytes(e *env) {
	ctx := e.Context()
	c := newCall(store.Running)
	c.Args = json.RawMessage(`{"big":9007199254740993,"html":"<a>&amp;</a>","n":1.50,"s":"é\u2028"}`)
	c.Decisions = []store.Decision{{Verb: store.Edit, By: "ada", Args: json.RawMessage(`{"old": "<>"}`)}}
	c.Result = &store.Result{IsError: true, Raw: json.RawMessage("{ \"isError\" : true,\n\"x\":\"<\" }")}
	e.ok(e.Begin(ctx, ada, c))
	got := must(e.GetCall(ctx, c.ID))(e)
	e.same(string(got.Args), string(c.Args))
	e.same(string(got.Decisions[0].Args), `{"old": "<>"}`)
	e.same(string(got.Result.Raw), string(c.Result.Raw))

	c = newCall(store.Pending) // our own error, and no result
	e.ok(e.Begin(ctx, ada, c))
	fail := &store.Result{Error: &store.CallError{Code: store.CodeTimeout, Message: store.Plain("no answer in 30s"), Retryable: true}}
	got = must(e.Finish(ctx, store.System, c.ID, store.Outcome{State: store.Failed, Reason: store.Plain("no answer"), Result: fail}))(e)
	e.same(got.Result, fail)
	e.same(got.Reason.String(), "no answer")
}

func beginTwice(e *env) {
	ctx := e.Context()
	c := newCall(store.Running)
	e.same(e.race(20, func(int) error { return e.Begin(ctx, ada, c) }), map[string]int{"ok": 1, "already exists": 19})
	must(e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Done}))(e)
	e.is(e.Begin(ctx, ada, c), store.ErrExists) // also after its end
	for _, s := range []store.State{store.Done, store.Lost, "nonsense", ""} {
		e.is(e.Begin(ctx, ada, newCall(s)), store.ErrInvalid)
	}
	c = newCall(store.Refused)
	e.ok(e.Begin(ctx, ada, c))
	if got := must(e.GetCall(ctx, c.ID))(e); got.Finished.IsZero() {
		e.Fatal("a refused call has no end")
	}
}

func replaces(e *env) {
	ctx := e.Context()
	old := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, old))
	edits := func(int) error {
		c := newCall(store.Pending)
		c.Replaces = old.ID
		return e.Begin(ctx, ada, c)
	}
	e.same(e.race(20, edits), map[string]int{"ok": 1, "already decided": 19})
	got := must(e.GetCall(ctx, old.ID))(e)
	e.same(got.State, store.Cancelled)
	e.same(got.Reason.String(), "edited")
	e.same(len(must(e.ListCalls(ctx, store.CallQuery{Waiting: true}))(e)), 1) // the losers left nothing

	decided := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, decided))
	must(e.Decide(ctx, ada, decided.ID, store.Decision{Verb: store.Approve}))(e)
	c := newCall(store.Pending)
	c.Replaces = decided.ID
	e.is(e.Begin(ctx, ada, c), store.ErrDecided)
	_, err := e.GetCall(ctx, c.ID)
	e.is(err, store.ErrNotFound)
}

// decideRace: the first answer stands, whichever it is; the yes is the one
// that leaves the call pending, so it is tried as the first by itself too.
func decideRace(e *env) {
	ctx := e.Context()
	for _, verbs := range [][]store.Verb{{store.Approve, store.Deny, store.Cancel}, {store.Approve}, {store.Deny}} {
		c := newCall(store.Pending)
		e.ok(e.Begin(ctx, ada, c))
		var winner atomic.Int32
		got := e.race(100, func(i int) error {
			after, err := e.Decide(ctx, ada, c.ID, store.Decision{Verb: verbs[i%len(verbs)]})
			if err == nil {
				winner.Store(int32(i))
			}
			if after.ID != c.ID || len(after.Decisions) != 1 {
				e.Errorf("who decided sees %+v", after)
			}
			return err
		})
		e.same(got, map[string]int{"ok": 1, "already decided": 99})
		after := must(e.GetCall(ctx, c.ID))(e)
		e.same(after.Decisions[0].Verb, verbs[int(winner.Load())%len(verbs)])
		_, err := e.Decide(ctx, store.System, c.ID, store.Decision{Verb: store.Expire})
		e.is(err, store.ErrDecided) // nor does time change it
	}
	e.same(len(must(e.Events(ctx, store.EventQuery{}))(e)), 6)
}

func startRace(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	must(e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Approve}))(e)
	var owner atomic.Value
	got := e.race(100, func(i int) error {
		after, err := e.Start(ctx, c.ID, id("d", i))
		if err == nil {
			owner.Store(after.Owner)
		}
		return err
	})
	e.same(got, map[string]int{"ok": 1, "already decided": 99})
	e.same(must(e.GetCall(ctx, c.ID))(e).Owner, owner.Load().(string))
}

func finishRace(e *env) {
	ctx := e.Context()
	c := newCall(store.Running)
	e.ok(e.Begin(ctx, ada, c))
	states := []store.State{store.Done, store.Failed, store.Lost}
	got := e.race(50, func(i int) error {
		_, err := e.Finish(ctx, ada, c.ID, store.Outcome{State: states[i%3]})
		return err
	})
	e.same(got, map[string]int{"ok": 1, "already decided": 49})
}

func decideExpired(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	c.Expires = time.Now().Add(-time.Second)
	e.ok(e.Begin(ctx, ada, c))
	got, err := e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Approve})
	e.is(err, store.ErrExpired)
	e.same(got.State, store.Expired)
	e.same(must(e.GetCall(ctx, c.ID))(e).State, store.Expired) // and it stays so
	_, err = e.Start(ctx, c.ID, "d")
	e.is(err, store.ErrDecided)
	_, err = e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Deny})
	e.is(err, store.ErrDecided)

	c = newCall(store.Pending)
	c.Expires = time.Now().Add(-time.Second)
	e.ok(e.Begin(ctx, ada, c))
	got = must(e.Decide(ctx, store.System, c.ID, store.Decision{Verb: store.Expire}))(e)
	e.same(got.State, store.Expired)

	c = newCall(store.Pending)
	c.Expires = time.Now().Add(-time.Second)
	e.ok(e.Begin(ctx, ada, c))
	edit := newCall(store.Pending)
	edit.Replaces = c.ID
	e.is(e.Begin(ctx, ada, edit), store.ErrExpired)
}

func decideWrong(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	_, err := e.Decide(ctx, ada, "nobody", store.Decision{Verb: store.Approve})
	e.is(err, store.ErrNotFound)
	_, err = e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Approve, Digest: "another"})
	e.is(err, store.ErrConflict)
	for _, v := range []store.Verb{store.Edit, "maybe", ""} {
		_, err = e.Decide(ctx, ada, c.ID, store.Decision{Verb: v})
		e.is(err, store.ErrInvalid)
	}
	if got := must(e.GetCall(ctx, c.ID))(e); !got.Waiting() || len(got.Decisions) > 0 {
		e.Fatalf("a wrong decision did something: %+v", got)
	}
	for _, s := range []store.State{store.Done, store.Lost, store.Running, "x"} {
		_, err = e.Finish(ctx, ada, c.ID, store.Outcome{State: s})
		e.is(err, store.ErrInvalid)
	}
	got := must(e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Deny, Reason: store.Plain("no thanks")}))(e)
	e.same(got.State, store.Refused)
	e.same(got.Reason.String(), "no thanks")
	e.same(e.kinds(), "call.pending call.deny")
}

func callList(e *env) {
	ctx := e.Context()
	start := time.Now().UTC().Truncate(time.Second)
	for i := range 12 {
		c := newCall([]store.State{store.Pending, store.Running, store.Refused}[i%3])
		c.ID, c.Created = id("c", i), start.Add(time.Duration(i)*time.Millisecond)
		c.By, c.Thread = []string{"ada", "bert"}[i%2], []string{"", "t1", "t2"}[i/4]
		e.ok(e.Begin(ctx, ada, c))
	}
	must(e.Decide(ctx, ada, "c0009", store.Decision{Verb: store.Approve}))(e)
	for _, test := range []struct {
		name string
		q    store.CallQuery
		want []string
	}{
		{"all", store.CallQuery{Limit: 3}, []string{"c0011", "c0010", "c0009"}},
		{"waiting", store.CallQuery{Waiting: true}, []string{"c0006", "c0003", "c0000"}},
		{"pending", store.CallQuery{States: []store.State{store.Pending}}, []string{"c0009", "c0006", "c0003", "c0000"}},
		{"two states", store.CallQuery{States: []store.State{store.Refused, store.Pending}, Limit: 3}, []string{"c0011", "c0009", "c0008"}},
		{"user", store.CallQuery{User: "bert", Limit: 2}, []string{"c0011", "c0009"}},
		{"thread", store.CallQuery{Thread: "t1"}, []string{"c0007", "c0006", "c0005", "c0004"}},
		{"thread, user, state", store.CallQuery{Thread: "t1", User: "ada", States: []store.State{store.Running}}, []string{"c0004"}},
		{"waiting user", store.CallQuery{Waiting: true, User: "bert"}, []string{"c0003"}},
		{"nobody", store.CallQuery{User: "b"}, nil},
	} {
		var got []string
		for _, c := range must(e.ListCalls(ctx, test.q))(e) {
			got = append(got, c.ID)
			e.same(string(c.Args), `{"a":1}`)
		}
		if len(got) != len(test.want) {
			e.Fatalf("%s: got %v, want %v", test.name, got, test.want)
		}
		for i := range got {
			if got[i] != test.want[i] {
				e.Fatalf("%s: got %v, want %v", test.name, got, test.want)
			}
		}
	}
	// What taints a conversation does so once its output is there.
	c := newCall(store.Running)
	c.ID, c.Thread, c.Taints = "c0100", "t9", true
	e.ok(e.Begin(ctx, ada, c))
	tainted := store.CallQuery{Thread: "t9", Tainted: true}
	e.same(len(must(e.ListCalls(ctx, tainted))(e)), 0)
	must(e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Done}))(e)
	e.same(len(must(e.ListCalls(ctx, tainted))(e)), 1)
	e.same(len(must(e.ListCalls(ctx, store.CallQuery{Thread: "t1", Tainted: true}))(e)), 0)
}

func record(e *env) {
	ctx := e.Context()
	var ids []string
	for i := range 300 {
		c := newCall(store.Done)
		c.ReadOnly = true
		c.Result = &store.Result{Raw: json.RawMessage(`{"content":[]}`)}
		c.Started, c.Finished = c.Created, c.Created.Add(time.Duration(i)*time.Millisecond)
		e.Record(ada, c)
		e.same(must(e.GetCall(ctx, c.ID))(e), c) // before it is written
		ids = append(ids, c.ID)
	}
	e.ok(e.Flush(ctx))
	e.same(len(must(e.ListCalls(ctx, store.CallQuery{Limit: 1000}))(e)), 300)
	c := newCall(store.Done)
	e.Record(ada, c)
	e.reopen() // a clean end writes what waits
	for _, id := range append(ids, c.ID) {
		must(e.GetCall(ctx, id))(e)
	}
	n := must(e.VerifyEvents(ctx))(e)
	e.same(n, 301)
}

func recordTwice(e *env) {
	ctx := e.Context()
	c, other := newCall(store.Done), newCall(store.Failed)
	e.Record(ada, c)
	e.Record(ada, c)
	e.Record(ada, newCall(store.Running))
	e.Record(ada, other)
	err := e.Flush(ctx)
	e.is(err, store.ErrExists)
	e.is(err, store.ErrInvalid)
	e.ok(e.Flush(ctx)) // told once
	must(e.GetCall(ctx, other.ID))(e)
	e.same(e.kinds(), "call.done call.failed")

	e.ok(e.Begin(ctx, ada, newCall(store.Running)))
	e.Record(ada, newCall(store.Done))
	_, err = e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Approve})
	e.is(err, store.ErrDecided)
}
