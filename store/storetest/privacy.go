package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"nize/store"
)

// privateThread is one with an exchange of Ada's that is for her alone, another
// of hers before it, and one of Bert's for him alone.
func (e *env) privateThread(id string) {
	ctx := e.Context()
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: id, User: "ada", Address: store.Address{Surface: store.OnSlack, Team: "T", Channel: "C", Thread: id}}))
	at := time.Now().UTC()
	for n, t := range []store.Turn{
		0: {Role: store.FromUser, By: ada, Text: "first"},
		1: {Role: store.FromModel, Text: "earlier secret", For: "ada"},
		2: {Role: store.FromUser, By: ada, Text: "read my mail"},
		3: {Role: store.FromModel, Re: 2, Calls: []store.ToolCall{{ID: "c1", Name: "execute_tool", Args: "{}"}}},
		4: {Role: store.FromTool, CallID: "c1", Text: "the mail", For: "ada"},
		5: {Role: store.FromUser, By: bert, Text: "and mine"},
		6: {Role: store.FromTool, CallID: "c2", Text: "of Bert's", For: "bert"},
		7: {Role: store.FromModel, Re: 2, Text: "the mail says", For: "ada", Opaque: json.RawMessage(`[ {"r":1} ]`)},
	} {
		t.Thread, t.N, t.At = id, n, at
		e.ok(e.Append(ctx, ada, t, n < 7))
	}
}

func share(e *env) {
	ctx := e.Context()
	e.privateThread("p1")
	for n, by := range map[int]store.Caller{7: bert, 3: ada, 4: ada, 0: ada, 99: ada} {
		_, err := e.ShareTurns(ctx, by, "p1", n)
		e.is(err, store.ErrRefused)
	}
	_, err := e.ShareTurns(ctx, ada, "none", 7)
	e.is(err, store.ErrNotFound)
	before := must(e.Turns(ctx, "p1"))(e)

	got := must(e.ShareTurns(ctx, ada, "p1", 7))(e)
	e.same(got.Text, "the mail says")
	e.reopen()
	want := before
	for _, n := range []int{4, 7} {
		want[n].For, want[n].SharedBy = "", "ada"
	}
	e.same(must(e.Turns(ctx, "p1"))(e), want)

	again, err := e.ShareTurns(ctx, ada, "p1", 7)
	e.is(err, store.ErrDecided)
	e.same(again.Text, "the mail says")
	_, err = e.ShareTurns(ctx, bert, "p1", 7)
	e.is(err, store.ErrRefused)
	e.same(len(must(e.Events(ctx, store.EventQuery{Kind: "thread.share"}))(e)), 1)
}

func forgetThread(e *env) {
	ctx := e.Context()
	e.privateThread("f1")
	e.privateThread("f2")
	mine, other, waits := newCall(store.Running), newCall(store.Running), newCall(store.Pending)
	mine.Thread, other.Thread, waits.Thread = "f1", "f2", "f1"
	mine.Args, mine.Why = json.RawMessage(`{"secret":"of f1"}`), "since you asked"
	mine.Digest = mine.ComputeDigest()
	for _, c := range []store.Call{mine, other, waits} {
		e.ok(e.Begin(ctx, ada, c))
	}
	e.ok(e.PutPlace(ctx, "f1", "x", store.Address{Surface: store.OnSlack, Channel: "C", Message: "1"}))
	e.ok(e.PutPlace(ctx, mine.ID, "copy/ada", store.Address{Surface: store.OnSlack, Channel: "D", Message: "1"}))
	data := func(thread string) json.RawMessage {
		return json.RawMessage(`{"args":"what","thread":"` + thread + `"}`)
	}
	e.AddEvent(bert, store.Event{Kind: "meta.find", Subject: "find", Data: data("f1")})
	e.AddEvent(bert, store.Event{Kind: "meta.find", Subject: "find", Data: data("f2")})

	refused := func(want error) {
		e.Helper()
		_, err := e.ForgetThread(ctx, ada, "f1")
		e.is(err, want)
	}
	refused(store.ErrConflict) // calls have not ended
	for _, c := range []store.Call{mine, other} {
		must(e.Finish(ctx, ada, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"found"}]}`)}}))(e)
	}
	refused(store.ErrConflict)
	must(e.Decide(ctx, ada, waits.ID, store.Decision{Verb: store.Cancel}))(e)
	e.ok(e.Append(ctx, ada, store.Turn{Thread: "f1", N: 8, Role: store.FromUser, By: bert}, true))
	refused(store.ErrConflict) // a message waits
	e.ok(e.Append(ctx, ada, store.Turn{Thread: "f1", N: 9, Role: store.FromModel, Re: 8, Text: "x"}, false))

	f := must(e.ForgetThread(ctx, ada, "f1"))(e)
	if f.Conversations != 1 || f.Turns != 10 || f.Calls != 2 || f.Events < 5 {
		e.Errorf("forgotten %+v", f)
	}
	refused(store.ErrNotFound)
	e.reopen()
	_, err := e.GetThread(ctx, "f1")
	e.is(err, store.ErrNotFound)
	_, err = e.FindThread(ctx, store.Address{Surface: store.OnSlack, Team: "T", Channel: "C", Thread: "f1"})
	e.is(err, store.ErrNotFound)
	e.is(e.Append(ctx, ada, store.Turn{Thread: "f1", N: 10}, false), store.ErrNotFound)
	for _, owner := range []string{"f1", mine.ID} {
		e.same(len(must(e.ListPlaces(ctx, owner))(e)), 0)
	}
	c := must(e.GetCall(ctx, mine.ID))(e)
	if len(c.Args) > 0 || c.Result != nil || c.Why != "" || c.State != store.Done || c.ComputeDigest() == c.Digest {
		e.Errorf("what is left of a call: %+v", c)
	}
	for _, ev := range must(e.Events(ctx, store.EventQuery{Limit: 1000}))(e) {
		text := string(ev.Data)
		if ev.Kind != "thread.forget" && (strings.Contains(text, `"f1"`) || ev.Subject == mine.ID && !ev.Erased) {
			e.Errorf("the trail tells %+v", ev)
		}
	}
	// The other conversation is whole.
	e.same(len(must(e.Turns(ctx, "f2"))(e)), 8)
	if c := must(e.GetCall(ctx, other.ID))(e); c.Result == nil || len(c.Args) == 0 {
		e.Errorf("another conversation's call: %+v", c)
	}
	e.same(len(must(e.Events(ctx, store.EventQuery{Kind: "meta"}))(e)), 2)
	// There is room for a new one in the same place.
	anew, made, err := e.ThreadAt(ctx, ada, store.Thread{ID: "f3", User: "ada", Address: store.Address{Surface: store.OnSlack, Team: "T", Channel: "C", Thread: "f1"}})
	if e.ok(err); !made || anew.Since.IsZero() || anew.Since.After(time.Now()) {
		e.Errorf("the place has %+v", anew)
	}
}
