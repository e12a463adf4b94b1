package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nize/store"
)

func usage(e *env) {
	ctx := e.Context()
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 40 {
		e.ok(e.AddSpend(ctx, store.Spend{
			ID: id("s", i), At: day.Add(time.Duration(i) * 6 * time.Hour), User: []string{"ada", "bert"}[i%2], Team: []string{"local", "slack:T1"}[i%2], Thread: id("t", i%5), Agent: "helper",
			Provider: "main", Model: "main/fast", Prompt: 100, Completion: 10, Cached: 5, Reasoning: 1, Took: 1500 * time.Microsecond,
			Estimated: i%4 == 0, MicroUSD: 7, Priced: i%10 != 0,
		}))
	}
	e.is(e.AddSpend(ctx, store.Spend{ID: "s0000", At: day}), store.ErrExists)
	e.reopen()
	got := must(e.Usage(ctx, store.UsageQuery{By: "provider"}))(e)
	e.same(got.Unpriced, []string{"main/fast"})
	e.same(got.Rows, []store.UsageRow{{
		Key: "main", Calls: 40, Prompt: 4000, Completion: 400, Cached: 200, Reasoning: 40, Estimated: 10, MicroUSD: 36 * 7, Unpriced: 4, TookMS: 60,
	}})
	got = must(e.Usage(ctx, store.UsageQuery{By: "day", Since: day.AddDate(0, 0, 8).Add(23 * time.Hour)}))(e)
	if rows := got.Rows; len(rows) != 2 || rows[0].Key != "2026-03-09" || rows[1].Key != "2026-03-10" || rows[0].Calls != 4 || got.Total.Calls != 8 {
		e.Fatalf("by day: %+v", got)
	}
	for by, want := range map[string]int{"user": 2, "team": 2, "agent": 1, "model": 1, "conversation": 5, "day": 10, "tool": 0} {
		e.same(len(must(e.Usage(ctx, store.UsageQuery{By: by}))(e).Rows), want)
	}
	for by, want := range map[string]int{"user": 1, "team": 1, "agent": 1, "model": 1, "conversation": 5, "day": 10, "tool": 0} { // of one person
		got := must(e.Usage(ctx, store.UsageQuery{By: by, User: "ada"}))(e)
		if len(got.Rows) != want || want > 0 && (got.Total.Calls != 20 || got.Total.Prompt != 2000) {
			e.Fatalf("ada's by %s: %+v", by, got)
		}
	}
	e.same(len(must(e.Usage(ctx, store.UsageQuery{By: "model", User: "nobody"}))(e).Rows), 0)
	top := must(e.Usage(ctx, store.UsageQuery{By: "conversation", Top: 2}))(e)
	if len(top.Rows) != 2 || top.More != 3 || top.Total.Calls != 40 || top.Rows[0].Key != id("t", 0) {
		e.Fatalf("the two largest: %+v", top)
	}
	_, err := e.Usage(ctx, store.UsageQuery{By: "moon"})
	e.is(err, store.ErrInvalid)
	// The day is that of the zone that is asked for, wherever the time was read.
	e.ok(e.AddSpend(ctx, store.Spend{ID: "x", At: time.Date(2026, 5, 1, 1, 0, 0, 0, time.FixedZone("", 2*3600))}))
	got = must(e.Usage(ctx, store.UsageQuery{Since: day.AddDate(0, 1, 0), By: "day"}))(e)
	e.same(got.Rows[0].Key, "2026-04-30")
	e.same(got.Zone, "UTC")
	for name, want := range map[string]string{"Asia/Kathmandu": "2026-05-01", "America/New_York": "2026-04-30"} { // +05:45, -04:00
		zone, err := time.LoadLocation(name)
		e.ok(err)
		got = must(e.Usage(ctx, store.UsageQuery{Since: day.AddDate(0, 1, 0), By: "day", Zone: zone}))(e)
		e.same([]string{got.Rows[0].Key, got.Zone}, []string{want, name})
	}
	// Whatever one asks for, the sum is of the same days: also where they begin within one of
	// UTC.
	for _, name := range []string{"UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		e.ok(err)
		for i := range 10 {
			for _, user := range []string{"", "ada"} {
				since := day.AddDate(0, 0, i)
				want := must(e.Usage(ctx, store.UsageQuery{Since: since, By: "day", Zone: zone, User: user}))(e)
				for _, by := range []string{"user", "team", "agent", "provider", "model", "conversation"} {
					got := must(e.Usage(ctx, store.UsageQuery{Since: since, By: by, Zone: zone, User: user}))(e)
					if got.Total != want.Total || !got.Since.Equal(want.Since) || got.Zone != name {
						e.Fatalf("since day %d of %s, by %s of %q: %+v, by day %+v", i, name, by, user, got, want)
					}
				}
			}
		}
	}
}

func usageTools(e *env) {
	ctx := e.Context()
	for i, s := range []store.State{store.Done, store.Failed, store.Done} {
		c := newCall(store.Running)
		e.ok(e.Begin(ctx, ada, c))
		must(e.Finish(ctx, ada, c.ID, store.Outcome{State: s}))(e)
		if i == 0 {
			_, err := e.Finish(ctx, ada, c.ID, store.Outcome{State: s})
			e.is(err, store.ErrDecided) // and is not counted
		}
	}
	c := newCall(store.Done)
	c.Started, c.Finished = c.Created, c.Created.Add(time.Second)
	e.Record(ada, c)
	e.ok(e.Begin(ctx, ada, newCall(store.Refused)))
	e.ok(e.Begin(ctx, ada, newCall(store.Pending))) // not over yet
	e.ok(e.Flush(ctx))
	got := must(e.Usage(ctx, store.UsageQuery{By: "tool"}))(e)
	if rows := got.Rows; len(rows) != 1 || rows[0].Key != "box:convert" || rows[0].Calls != 5 || rows[0].Failed != 2 || rows[0].TookMS < 1000 || rows[0].TookMS > 60_000 {
		e.Fatalf("got %+v", got)
	}
}

func events(e *env) {
	ctx := e.Context()
	began := time.Now()
	c := newCall(store.Pending)
	c.Args = json.RawMessage(`{"password":"hunter2","text":"` + strings.Repeat("long ", 2000) + `"}`)
	c.Digest = c.ComputeDigest()
	e.ok(e.Begin(ctx, ada, c))
	must(e.Decide(ctx, bert, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}))(e)
	must(e.Start(ctx, c.ID, "d"))(e)
	must(e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"token":"ghp_0123456789abcdef0123","text":"` + strings.Repeat("out ", 100_000) + `"}`)}}))(e)
	e.ok(e.PutSetting(ctx, bert, "", "a", "1"))

	all := must(e.Events(ctx, store.EventQuery{}))(e)
	e.same(len(all), 5)
	for i, ev := range all { // newest first
		e.same(ev.Seq, uint64(5-i))
		if len(ev.Data) > 4<<10 || !json.Valid(ev.Data) || strings.Contains(string(ev.Data), "hunter2") || strings.Contains(string(ev.Data), "ghp_") {
			e.Fatalf("data: %d bytes, %s", len(ev.Data), ev.Data)
		}
		if ev.Chain == "" || ev.At.Before(began.Add(-time.Second)) {
			e.Fatalf("event: %+v", ev)
		}
	}
	yes := all[3]
	if yes.Kind != "call.approve" || yes.User != "bert" || yes.UserName != "Bert" || yes.Surface != store.OnSlack || yes.Subject != c.ID ||
		yes.Tool != "box:convert" || yes.Outcome != store.Pending || !strings.Contains(string(yes.Data), c.Digest) {
		e.Fatalf("the yes: %+v %s", yes, yes.Data)
	}
	e.same(all[4].Identity, "local:1")
	e.same(all[4].Address, "203.0.113.9")
	for _, test := range []struct {
		q    store.EventQuery
		want string
	}{
		{store.EventQuery{Limit: 2}, "[5 4]"},
		{store.EventQuery{After: 3}, "[4 5]"},
		{store.EventQuery{After: 1, Limit: 2}, "[2 3]"},
		{store.EventQuery{After: 5}, "[]"},
		{store.EventQuery{User: "bert"}, "[5 2]"},
		{store.EventQuery{Tool: "box:convert"}, "[4 3 2 1]"},
		{store.EventQuery{Tool: "box:*", Outcome: store.Done}, "[4]"},
		{store.EventQuery{Tool: "bo:*"}, "[]"},
		{store.EventQuery{Kind: "call", After: 2}, "[3 4]"},
		{store.EventQuery{Kind: "setting.put"}, "[5]"},
		{store.EventQuery{Kind: "set"}, "[]"},
		{store.EventQuery{Since: began.Add(time.Hour)}, "[]"},
		{store.EventQuery{Since: began.Add(-time.Hour), Limit: 1}, "[5]"},
	} {
		seqs := []uint64{}
		for _, ev := range must(e.Events(ctx, test.q))(e) {
			seqs = append(seqs, ev.Seq)
		}
		if got := fmt.Sprint(seqs); got != test.want {
			e.Fatalf("%+v: got %s, want %s", test.q, got, test.want)
		}
	}
	e.same(must(e.VerifyEvents(ctx))(e), 5)
	e.reopen()
	e.ok(e.PutSetting(ctx, bert, "", "a", "2"))
	e.same(must(e.VerifyEvents(ctx))(e), 6)
}

func addEvent(e *env) {
	ctx := e.Context()
	e.AddEvent(bert, store.Event{Kind: "meta.discover_tools", Subject: "t1", Tool: "box:x", Outcome: store.Done, Data: json.RawMessage(`{"query":"time","api_key":"abc"}`)})
	e.AddEvent(store.Caller{}, store.Event{Kind: "meta.x"})
	e.is(e.Flush(ctx), store.ErrInvalid)
	list := must(e.Events(ctx, store.EventQuery{}))(e)
	if len(list) != 1 {
		e.Fatalf("got %+v", list)
	}
	if ev := list[0]; ev.Seq != 1 || ev.User != "bert" || ev.Surface != store.OnSlack || ev.Subject != "t1" || ev.Chain == "" || ev.At.IsZero() || strings.Contains(string(ev.Data), "abc") {
		e.Fatalf("got %+v", ev)
	}
}

func prune(e *env) {
	ctx := e.Context()
	old, now := time.Now().UTC().AddDate(0, 0, -100), time.Now().UTC()
	raw := &store.Result{Raw: json.RawMessage(`{}`)}
	for i, at := range []time.Time{old, now} {
		name := id("t", i)
		c := newCall(store.Done)
		c.ID, c.Created, c.Thread, c.Result = id("c", i), at, name, raw
		e.Record(ada, c)
		c.ID, c.Thread = id("free", i), "" // outside any conversation
		e.Record(ada, c)
		e.ok(e.Flush(ctx))
		e.ok(e.AddSpend(ctx, store.Spend{ID: id("s", i), At: at, User: "ada"}))
		e.ok(e.PutThread(ctx, ada, store.Thread{ID: name, User: "ada", Updated: now}))
		e.ok(e.Append(ctx, ada, store.Turn{Thread: name, Role: store.FromUser}, false))
		e.ok(e.PutThread(ctx, ada, store.Thread{ID: name, User: "ada", Updated: at}))
	}
	e.same(must(e.Prune(ctx, store.Retention{}))(e), store.Pruned{}) // 0 is for ever
	month := 30 * 24 * time.Hour
	got := must(e.Prune(ctx, store.Retention{Output: month, Usage: month}))(e)
	e.same(got, store.Pruned{Outputs: 2, Spends: 1})
	if c := must(e.GetCall(ctx, "c0000"))(e); c.Result != nil || string(c.Args) != `{"a":1}` {
		e.Fatalf("the old one: %+v", c)
	}
	if c := must(e.GetCall(ctx, "c0001"))(e); c.Result == nil {
		e.Fatal("the new one lost its result")
	}
	e.same(must(e.Usage(ctx, store.UsageQuery{By: "user"}))(e).Rows[0].Calls, int64(1))
	e.same(must(e.Usage(ctx, store.UsageQuery{By: "agent", User: "ada"}))(e).Total.Calls, int64(1))

	got = must(e.Prune(ctx, store.Retention{Conversations: month}))(e)
	e.same(got, store.Pruned{Threads: 1})
	for _, gone := range []func() error{
		func() error { _, err := e.GetThread(ctx, "t0000"); return err },
		func() error { _, err := e.Turns(ctx, "t0000"); return err },
		func() error { _, err := e.GetCall(ctx, "c0000"); return err },
	} {
		e.is(gone(), store.ErrNotFound)
	}
	must(e.GetCall(ctx, "free0000"))(e)
	e.same(len(must(e.Turns(ctx, "t0001"))(e)), 1)
	must(e.Prune(ctx, store.Retention{Audit: month}))(e)
	_, err := e.GetCall(ctx, "free0000")
	e.is(err, store.ErrNotFound)
	must(e.GetCall(ctx, "free0001"))(e)

	// All events are older than a nanosecond: they go, the chain holds.
	p := must(e.Prune(ctx, store.Retention{Audit: time.Nanosecond}))(e)
	if p.Events < 4 {
		e.Fatalf("pruned: %+v", p)
	}
	e.ok(e.PutSetting(ctx, ada, "", "a", "1"))
	held := must(e.VerifyEvents(ctx))(e)
	if left := must(e.Events(ctx, store.EventQuery{Limit: 1000}))(e); held != len(left) || held == 0 {
		e.Fatalf("%d hold, %d are there", held, len(left))
	}
}

// eventTimes: records that wait to be written together keep the time at which each
// call happened, to the microsecond that it took. Times never decrease along the
// chain, whatever a record says of itself, and none lies ahead.
func eventTimes(e *env) {
	ctx := e.Context()
	e.ok(e.PutSetting(ctx, bert, "", "a", "1"))
	start := must(e.Events(ctx, store.EventQuery{}))(e)[0].At
	var want []time.Time
	for i, took := range []time.Duration{250 * time.Microsecond, 300 * time.Nanosecond, 2500 * time.Microsecond} {
		c := newCall(store.Done)
		c.Finished = start.Add(time.Duration(i + 1))
		c.Started = c.Finished.Add(-took)
		if i == 1 {
			c.Started, c.Finished = start.Add(-time.Hour-took), start.Add(-time.Hour) // before what stands in the trail
		}
		c.Digest = c.ComputeDigest()
		e.Record(ada, c)
		want = append(want, c.Finished)
	}
	e.AddEvent(bert, store.Event{Kind: "meta.x", Subject: "t"})
	ahead := newCall(store.Done)
	ahead.Started = time.Now().Add(time.Hour)
	ahead.Finished = ahead.Started.Add(time.Second)
	e.Record(ada, ahead)
	e.ok(e.Flush(ctx))
	flushed := time.Now()
	list := must(e.Events(ctx, store.EventQuery{Forward: true}))(e)
	e.same(len(list), 6)
	for i := 1; i < len(list); i++ {
		if list[i].At.Before(list[i-1].At) || list[i].At.After(flushed.Add(time.Second)) {
			e.Errorf("event %d is at %v after one at %v", list[i].Seq, list[i].At, list[i-1].At)
		}
	}
	for i, micros := range []string{`"took_us":250`, `"took_us":1`, `"took_ms":2,"took_us":2500`} {
		if at := list[i+1].At; i != 1 && !at.Equal(want[i]) || i == 1 && !at.Equal(list[1].At) {
			e.Errorf("call %d: the event is at %v, it ended at %v", i, at, want[i])
		}
		if data := string(list[i+1].Data); !strings.Contains(data, micros) {
			e.Errorf("call %d: %s, want %s", i, data, micros)
		}
	}
	e.same(len(must(e.Events(ctx, store.EventQuery{Since: want[2]}))(e)), 3)
	e.same(must(e.VerifyEvents(ctx))(e), 6)
}
