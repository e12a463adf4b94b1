package storetest

import (
	"bytes"
	"strings"
	"time"

	"nize/store"
)

// files: pictures are kept within the room that there is, the oldest go first,
// and all go with their conversation and with who brought them.
func files(e *env) {
	ctx := e.Context()
	mia := must(e.EnsureUser(ctx, "slack:T:MIA", "Mia Wallace", store.Member))(e)
	by := callerOf(mia)
	for _, id := range []string{"t1", "t2"} {
		e.ok(e.PutThread(ctx, ada, store.Thread{ID: id, User: "ada"}))
	}
	picture := func(id string, n int) store.File {
		return store.File{ID: id, Name: id + ".png", Kind: store.ImageFile, Data: bytes.Repeat([]byte(id[:1]), n)}
	}
	has := func(thread, id string, n int) {
		e.Helper()
		data, err := e.GetFile(ctx, thread, id)
		if n == 0 {
			e.is(err, store.ErrNotFound)
			return
		}
		e.ok(err)
		if !bytes.Equal(data, picture(id, n).Data) {
			e.Errorf("%s of %s has %d bytes, want %d", id, thread, len(data), n)
		}
	}
	const most = 100
	room := store.Quota{Each: most, All: most, Limit: "limits.user.files", LimitAll: "limits.images.stored"}
	e.ok(e.PutFile(ctx, by, "t1", picture("a", 40), room))
	e.ok(e.PutFile(ctx, by, "t1", picture("b", 40), room))
	e.ok(e.PutFile(ctx, by, "t1", picture("b", 30), room)) // once more: it takes no room twice
	e.ok(e.PutFile(ctx, by, "t2", picture("a", 30), room))
	has("t1", "a", 40)
	has("t1", "b", 30)
	e.ok(e.PutFile(ctx, by, "t2", picture("c", 20), room)) // the oldest goes
	has("t1", "a", 0)
	has("t1", "b", 30)
	has("t2", "a", 30)
	has("t2", "c", 20)
	e.is(e.PutFile(ctx, by, "t1", picture("d", most+1), room), store.ErrRefused)
	e.is(e.PutFile(ctx, by, "t1", picture("d", 0), room), store.ErrInvalid)
	e.is(e.PutFile(ctx, by, "t1", picture("d", store.MaxFile+1), store.Quota{Each: 2 * store.MaxFile, All: 2 * store.MaxFile}), store.ErrInvalid)
	e.is(e.PutFile(ctx, by, "none", picture("d", 1), room), store.ErrNotFound)
	e.is(e.PutFile(ctx, by, "t1", store.File{ID: "x\x00y", Data: []byte("x")}, room), store.ErrInvalid)
	e.reopen()
	has("t2", "c", 20)

	// Mia's words, what she brought, and what others quote of her.
	quote := store.Quote{Speaker: store.Speaker{Name: "Mia Wallace", Identity: "slack:T:MIA"}, Text: "secret words"}
	other := store.Quote{Speaker: store.Speaker{Name: "A bot", Bot: true, Outside: true}, Text: "built"}
	turns := []store.Turn{
		{Thread: "t2", N: 0, Role: store.FromUser, By: by, Text: "see this", Files: []store.File{{ID: "a", Name: "a.png", Kind: store.ImageFile}}},
		{Thread: "t2", N: 1, Role: store.FromUser, By: ada, Text: "what is it?", Earlier: &store.Earlier{Quotes: []store.Quote{quote, other}, Left: 2},
			Files: []store.File{{ID: "c", Name: "c.png", Kind: store.ImageFile}, {ID: "n", Name: "n.txt", Kind: store.TextFile, Text: "hers", From: &quote.Speaker}}},
	}
	e.ok(e.Append(ctx, by, turns[0], true))
	if th := must(e.GetThread(ctx, "t2"))(e); th.Tainted {
		e.Error("words of members taint")
	}
	e.ok(e.Append(ctx, ada, turns[1], true))
	if th := must(e.EditThread(ctx, ada, "t2", func(th *store.Thread) { th.Tainted = false }))(e); !th.Tainted {
		e.Error("the words of a program don't taint, or not for good")
	}
	got := must(e.Turns(ctx, "t2"))(e)[1]
	e.same(got.Earlier, turns[1].Earlier)
	e.same(got.Files, turns[1].Files)
	must(e.ForgetUser(ctx, ada, mia.ID, nil))(e)
	has("t2", "a", 0)
	has("t2", "c", 20)
	list := must(e.Turns(ctx, "t2"))(e)
	e.same(len(list[0].Files), 0)
	e.same(list[1].Earlier.Quotes, []store.Quote{other})
	e.same(list[1].Files, turns[1].Files[:1])

	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "t3", User: "ada"}))
	e.ok(e.PutFile(ctx, ada, "t3", picture("f", 5), room))
	must(e.ForgetThread(ctx, ada, "t3"))(e)
	has("t3", "f", 0)
	must(e.Prune(ctx, store.Retention{Conversations: time.Nanosecond}))(e)
	has("t1", "b", 0)
	has("t2", "c", 0)
}

// fileQuotas: a person's files go for their own, what was never sent before what was,
// and a person who keeps less loses nothing to one who keeps more.
func fileQuotas(e *env) {
	ctx := e.Context()
	mia := callerOf(must(e.EnsureUser(ctx, "slack:T:MIA", "Mia", store.Member))(e))
	bob := callerOf(must(e.EnsureUser(ctx, "slack:T:BOB", "Bob", store.Member))(e))
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "t1", User: "ada"}))
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "t2", User: "ada"}))
	q := store.Quota{Each: 50, All: 90, Limit: "limits.user.files", LimitAll: "limits.images.stored"}
	put := func(by store.Caller, thread, id string, n int) error {
		e.Helper()
		return e.PutFile(ctx, by, thread, store.File{ID: id, Name: id, Kind: store.ImageFile, Data: bytes.Repeat([]byte("x"), n)}, q)
	}
	has := func(want string) {
		e.Helper()
		got := ""
		for _, id := range []string{"m1", "m2", "m3", "b1", "b2", "b3", "a1"} {
			for _, thread := range []string{"t1", "t2"} {
				if _, err := e.GetFile(ctx, thread, id); err == nil {
					got += id + " "
				} else {
					e.is(err, store.ErrNotFound)
				}
			}
		}
		e.same(got, want)
	}
	e.ok(put(mia, "t1", "m1", 30))
	e.ok(e.Append(ctx, mia, store.Turn{Thread: "t1", Role: store.FromUser, By: mia, Text: "see", Files: []store.File{{ID: "m1"}}}, true))
	e.ok(put(bob, "t1", "b1", 20))
	for range 30 { // never sent: bob's own go, in whatever conversation
		e.ok(put(bob, "t2", "b2", 20))
		e.ok(put(bob, "t1", "b3", 20))
	}
	has("m1 b2 b3 ")
	e.ok(put(mia, "t2", "m2", 20))
	e.ok(put(mia, "t2", "m3", 10)) // above her quota: what she never sent goes, and not the older one
	has("m1 m3 b2 b3 ")
	e.ok(put(ada, "t1", "a1", 20)) // all is full: bob and mia keep 40 each, and the older of them loses
	has("m1 b2 b3 a1 ")
	err := put(mia, "t1", "m2", 51)
	e.is(err, store.ErrRefused)
	if !strings.Contains(err.Error(), "limits.user.files") {
		e.Errorf("the refusal names no setting: %v", err)
	}
	e.reopen()
	e.ok(put(ada, "t1", "a1", 25)) // still known whose they are
	has("m1 b3 a1 ")
	q.Least = 20
	for _, id := range []string{"m1", "m2", "m3"} { // small ones are bounded in number
		e.ok(put(mia, "t2", id, 1))
	}
	has("m2 m3 b3 a1 ")
}
