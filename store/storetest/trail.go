package storetest

import (
	"encoding/json"
	"strings"

	"nize/store"
)

// erase: nothing in the trail names a person who was forgotten, and the chain
// holds.
func erase(e *env) {
	ctx := e.Context()
	boss := must(e.EnsureUser(ctx, "local:1", "Boss", store.Admin))(e)
	mia := must(e.EnsureUser(ctx, "slack:T:MIA", "Mia Wallace", store.Member))(e)
	admin := store.Caller{User: boss.ID, Name: boss.Name, Role: store.Admin, Surface: store.OnCLI, Identity: "local:1"}
	by := store.Caller{User: mia.ID, Name: mia.Name, Surface: store.OnSlack, Identity: "slack:T:MIA", Address: "203.0.113.77", Token: "tok77"}

	e.ok(e.PutSetting(ctx, by, mia.ID, "language", "zh"))
	e.ok(e.PutSetting(ctx, admin, mia.ID, "theme", "violet")) // by another, about her
	must(e.CreateToken(ctx, admin, e.newToken(mia.ID, "miaphone", "one"), false))(e)
	renamed := mia
	renamed.Name = "somebody" // while there is a record, its name is shown for the pseudonym
	e.ok(e.PutUser(ctx, admin, renamed))
	hers := newCall(store.Pending)
	hers.By, hers.Args = mia.ID, json.RawMessage(`{"to":"hermother"}`)
	hers.Digest = hers.ComputeDigest()
	e.ok(e.Begin(ctx, by, hers))
	must(e.Decide(ctx, admin, hers.ID, store.Decision{Verb: store.Approve, Digest: hers.Digest}))(e)
	must(e.Start(ctx, hers.ID, "d"))(e)
	must(e.Finish(ctx, store.System, hers.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"said":"hi hermother"}`)}}))(e)
	his := newCall(store.Pending)
	his.By = boss.ID
	e.ok(e.Begin(ctx, admin, his))
	must(e.Decide(ctx, by, his.ID, store.Decision{Verb: store.Deny, Reason: store.Plain("because hermother")}))(e)
	e.AddEvent(by, store.Event{Kind: "meta.discover_tools", Data: json.RawMessage(`{"query":"hermother"}`)}) // not on disk yet
	e.ok(e.PutSetting(ctx, admin, "", "agent.tools.maxSteps", "7"))
	e.ok(e.Flush(ctx))
	before := must(e.Events(ctx, store.EventQuery{Limit: 1000}))(e)

	// All of hers and about her, but not: the first admin, his call's beginning, the last setting.
	e.same(must(e.EraseEvents(ctx, admin, mia.ID))(e), len(before)-3)
	e.reopen()
	after := must(e.Events(ctx, store.EventQuery{Limit: 1000}))(e)
	text := string(must(json.Marshal(after))(e))
	for _, word := range []string{"Mia", "slack:T:MIA", "203.0.113.77", "tok77", "hermother", "miaphone", "violet"} {
		if strings.Contains(text, word) {
			e.Errorf("the trail still says %s", word)
		}
	}
	e.same(len(after), len(before)+2)
	done, asked := after[0], after[1]
	if done.Kind != "audit.erased" || done.User != store.System.User || done.Subject != mia.ID || asked.Kind != "audit.erase" || asked.User != boss.ID || asked.Identity != "local:1" {
		e.Fatalf("the erasure: %+v, %+v", asked, done)
	}
	for i, ev := range after[2:] {
		was := before[i]
		if ev.Seq != was.Seq || ev.Kind != was.Kind || ev.Chain != was.Chain || ev.Subject != was.Subject || !ev.At.Equal(was.At) {
			e.Errorf("event %d is another now: %+v", was.Seq, ev)
		}
		if ev.Erased && ev.Kind == "user.put" && ev.Seq > 2 && ev.UserName != "Boss" {
			e.Errorf("who changed her is not known any more: %+v", ev)
		}
		if !ev.Erased && string(ev.Data) != string(was.Data) {
			e.Errorf("event %d was not hers: %+v", was.Seq, ev)
		}
	}
	if got := must(e.Events(ctx, store.EventQuery{User: mia.ID}))(e); len(got) != 4 {
		e.Errorf("%d of her events are found", len(got))
	}
	e.same(must(e.VerifyEvents(ctx))(e), len(after))
	e.same(must(e.Checkpoints(ctx, 10))(e), after[:1])

	e.same(must(e.EraseEvents(ctx, admin, mia.ID))(e), 0) // and what says who asked for it stays
	e.same(must(e.EraseEvents(ctx, admin, "stranger"))(e), 0)
	e.same(must(e.ResumeErasures(ctx))(e), 0)
	for _, bad := range []string{"", store.System.User} {
		_, err := e.EraseEvents(ctx, admin, bad)
		e.is(err, store.ErrInvalid)
	}
	_, err := e.EraseEvents(ctx, store.Caller{}, mia.ID)
	e.is(err, store.ErrInvalid)
	if got := must(e.ResumeErasures(ctx))(e); got != 0 {
		e.Errorf("what was refused began: %d events", got)
	}
}

// eraseOwn: who asks for their own does not come back by asking, and many at
// once count each event once.
func eraseOwn(e *env) {
	ctx := e.Context()
	const n = 700 // more than one transaction
	for range n {
		e.AddEvent(bert, store.Event{Kind: "test.event"})
	}
	e.ok(e.Flush(ctx))
	counts := make([]int, 4)
	got := e.race(4, func(i int) (err error) {
		counts[i], err = e.EraseEvents(ctx, bert, bert.User)
		return err
	})
	e.same(got, map[string]int{"ok": 4})
	sum := 0
	for _, c := range counts {
		sum += c
	}
	if sum < n || sum > n+3 { // an earlier request is of his own
		e.Errorf("erased %v", counts)
	}
	list := must(e.Events(ctx, store.EventQuery{Limit: 2 * n}))(e)
	for _, ev := range list {
		if ev.UserName == bert.Name {
			e.Fatalf("it is still there: %+v", ev)
		}
	}
	e.same(must(e.VerifyEvents(ctx))(e), len(list))
}
