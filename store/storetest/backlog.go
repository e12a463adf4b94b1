package storetest

import (
	"time"

	"nize/store"
)

// backlog: what a chat may lack is known from the moment at which it is stored
// until the chat is said to have it.
func backlog(e *env) {
	ctx := e.Context()
	at := store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: "1.0"}
	th, _, err := e.ThreadAt(ctx, ada, store.Thread{ID: "chat", User: "ada", Address: at})
	e.ok(err)
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "terminal", User: "ada", Address: store.Address{Surface: store.OnTerminal, Thread: "terminal"}}))
	say := func(thread string, n int, open bool) {
		e.Helper()
		role := []store.TurnRole{store.FromUser, store.FromModel}[n%2]
		e.ok(e.Append(ctx, ada, store.Turn{Thread: thread, N: n, Role: role, Text: "hello"}, open))
	}
	behind := func(want map[string]int) {
		e.Helper()
		e.same(must(e.LaggingThreads(ctx))(e), want)
	}
	none := map[string]int{}
	behind(none)
	say("terminal", 0, true)
	behind(none) // it keeps nothing that could lag
	say(th.ID, 0, true)
	say(th.ID, 1, false)
	behind(map[string]int{th.ID: 0}) // from the first on
	e.reopen()
	behind(map[string]int{th.ID: 0})
	e.ok(e.RecordShown(ctx, th.ID, 1))
	behind(map[string]int{th.ID: 1})
	e.ok(e.RecordShown(ctx, th.ID, 0)) // never back
	behind(map[string]int{th.ID: 1})
	e.ok(e.RecordShown(ctx, th.ID, 2))
	behind(none)
	say(th.ID, 2, true)
	e.ok(e.RecordShown(ctx, th.ID, 3))
	behind(map[string]int{th.ID: 3}) // it is open: more comes
	say(th.ID, 3, false)
	e.ok(e.RecordShown(ctx, th.ID, 4))
	behind(none)
	e.ok(e.RecordShown(ctx, "none", 4))

	// A call that was put to people, after the answer.
	call := newCall(store.Planned)
	call.ID, call.Thread, call.Expires = "silent", th.ID, time.Time{}
	e.ok(e.Begin(ctx, ada, call))
	behind(none)
	call = newCall(store.Pending)
	call.ID, call.Thread, call.Expires = "asked", th.ID, time.Now().Add(time.Hour)
	e.ok(e.Begin(ctx, ada, call))
	behind(map[string]int{th.ID: 4})
	e.ok(e.RecordShown(ctx, th.ID, 4))
	behind(none)

	say(th.ID, 4, false)
	if _, err := e.Prune(ctx, store.Retention{Conversations: time.Nanosecond}); err != nil {
		e.Fatal(err)
	}
	behind(none)
}
