package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// forget: nothing that is kept names or quotes a person who was forgotten, the
// chain holds, and the numbers stay.
func forget(e *env) {
	ctx := e.Context()
	boss := must(e.EnsureUser(ctx, "local:1", "Boss", store.Admin))(e)
	old := must(e.EnsureUser(ctx, "discord:MIA", "Mia Discord", store.Member))(e)
	mia := must(e.EnsureUser(ctx, "slack:T:MIA", "Mia Wallace", store.Member))(e)
	by, admin := callerOf(mia), callerOf(boss)
	begin := func(u store.User, state store.State) store.Call {
		c := newCall(state)
		c.By, c.ByName, c.Why, c.Args = u.ID, u.Name, "for hermother", json.RawMessage(`{"to":"hermother"}`)
		if u.ID == boss.ID {
			c.Why, c.Args = "", json.RawMessage(`{"to":"all"}`)
		}
		c.Digest = c.ComputeDigest()
		e.ok(e.Begin(ctx, callerOf(u), c))
		return c
	}
	first := begin(old, store.Running)
	must(e.Finish(ctx, store.System, first.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"said":"hermother"}`)}}))(e)
	_, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(old), old.ID, hash))(e)
	must(e.Join(ctx, by, hash, ""))(e)
	runs := begin(mia, store.Running)
	his := begin(boss, store.Pending)
	must(e.Decide(ctx, by, his.ID, store.Decision{Verb: store.Deny, Reason: store.Plain("because hermother")}))(e)
	must(e.CreateToken(ctx, admin, e.newToken(mia.ID, "miaphone", "one"), false))(e)
	for i, u := range []store.User{mia, boss} {
		thread := fmt.Sprint("t", i)
		e.ok(e.PutThread(ctx, callerOf(u), store.Thread{ID: thread, User: u.ID, Title: "with " + u.Name}))
		for n := range 3 {
			who := []store.User{mia, boss, mia}[n]
			e.ok(e.Append(ctx, callerOf(who), store.Turn{Thread: thread, N: n, Role: store.FromUser, By: callerOf(who), Text: "words of " + who.Name}, false))
		}
	}
	e.ok(e.Append(ctx, by, store.Turn{Thread: "t1", N: 3, Role: store.FromModel, Text: "for hermother", For: mia.ID, Opaque: json.RawMessage(`"hermother"`),
		Calls: []store.ToolCall{{ID: "c1", Name: "send", Args: `{"to":"hermother"}`}}}, false))
	e.ok(e.AddSpend(ctx, store.Spend{User: mia.ID, Thread: "t0", Model: "m", Provider: "p", Prompt: 7}))

	must(e.PutServer(ctx, admin, store.Server{Name: "box", Transport: store.Stdio, Command: "/bin/box"}, 0))(e)
	must(e.PutTools(ctx, admin, "box", []store.Tool{{Name: "send", State: store.ToolAccepted}}))(e)
	for _, id := range []string{mia.ID, old.ID, boss.ID} {
		must(e.RecordFeedback(ctx, store.Feedback{Tool: "box:send", User: id, Words: []string{"mother"}}))(e)
	}

	f := must(e.ForgetUser(ctx, admin, mia.ID, nil))(e)
	if f.Events == 0 {
		e.Error("no event was erased")
	}
	f.Events = 0
	e.same(f, store.Forgotten{Conversations: 1, Turns: 3, Calls: 1, Running: 1, Feedback: 2})
	if left := must(e.ListFeedback(ctx))(e)["box:send"]; len(left) != 1 || left[0].User != boss.ID {
		e.Errorf("of what was learned %+v is left", left)
	}
	must(e.Finish(ctx, store.System, runs.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"said":"hermother"}`)}}))(e)
	e.reopen()
	f = must(e.ForgetUser(ctx, admin, mia.ID, nil))(e) // asked again, for what ran
	e.same(f.Calls, 1)
	e.same(f.Running, 0)
	e.is(last(e.ForgetUser(ctx, admin, mia.ID, nil)), store.ErrNotFound)
	e.reopen()

	var kept []any
	for _, c := range must(e.ListCalls(ctx, store.CallQuery{}))(e) {
		if c.By != boss.ID {
			kept = append(kept, c, string(c.Args), c.Result)
		}
		kept = append(kept, c.Decisions)
	}
	kept = append(kept, must(e.Events(ctx, store.EventQuery{Limit: 1000}))(e), must(e.ListThreads(ctx, "", 0))(e), must(e.Turns(ctx, "t1"))(e),
		must(e.ListUsers(ctx))(e), must(e.ListTokens(ctx, ""))(e), must(e.ListMembers(ctx, "", ""))(e))
	text := string(must(json.Marshal(kept))(e))
	for _, word := range []string{"Mia", "MIA", "hermother", "miaphone"} {
		if i := strings.Index(text, word); i >= 0 {
			e.Errorf("it is kept that %s", text[max(0, i-200):min(len(text), i+100)])
		}
	}
	if !strings.Contains(text, "words of Boss") {
		e.Error("other people's words are gone")
	}
	e.is(last(e.GetThread(ctx, "t0")), store.ErrNotFound)
	e.same(string(must(e.GetCall(ctx, his.ID))(e).Args), `{"to":"all"}`) // his own
	rows := must(e.Usage(ctx, store.UsageQuery{By: "user"}))(e).Rows
	e.same(rows[0].Key, mia.ID) // nobody's name any more
	must(e.VerifyEvents(ctx))(e)
}
