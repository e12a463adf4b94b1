package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

func threads(e *env) {
	ctx := e.Context()
	start := time.Now().UTC().Add(-time.Hour)
	for i, user := range []string{"ada", "bert", "ada"} {
		e.ok(e.PutThread(ctx, ada, store.Thread{
			ID: id("t", i), User: user, Address: store.Address{Surface: store.OnSlack, Channel: "C"}, Title: "<hi>",
			Created: start, Updated: start.Add(time.Duration(i) * time.Second),
		}))
	}
	names := func(list []store.Thread) []string {
		var out []string
		for _, th := range list {
			out = append(out, th.ID)
		}
		return out
	}
	e.same(names(must(e.ListThreads(ctx, "", 0))(e)), []string{"t0002", "t0001", "t0000"})
	e.same(names(must(e.ListThreads(ctx, "ada", 1))(e)), []string{"t0002"})

	turns := []store.Turn{
		{Thread: "t0000", N: 0, Role: store.FromUser, By: bert, Text: "what <time>?", Key: "k", At: start},
		{Thread: "t0000", N: 1, Role: store.FromModel, Calls: []store.ToolCall{{ID: "c", Name: "x", Args: `{"broken`}}, Opaque: json.RawMessage(`[ {"r":"<"} ]`), At: start},
		{Thread: "t0000", N: 2, Role: store.FromTool, CallID: "c", Text: "noon", At: start},
	}
	from := e.Last()
	for i, turn := range turns {
		e.ok(e.Append(ctx, ada, turn, i < 2))
	}
	e.same(must(e.Turns(ctx, "t0000"))(e), turns)
	var got []string
	for _, c := range e.changes(from) {
		got = append(got, c.Kind+" "+c.ID+" "+c.Thread)
	}
	e.same(got, []string{"turn t0000/0 t0000", "turn t0000/1 t0000", "turn t0000/2 t0000"})
	e.same(names(must(e.ListThreads(ctx, "ada", 0))(e)), []string{"t0000", "t0002"}) // it was used last
	e.same(len(must(e.Open(ctx))(e)), 0)

	e.is(e.Append(ctx, ada, turns[1], true), store.ErrExists)
	e.is(e.Append(ctx, ada, store.Turn{Thread: "t0000", N: 9}, true), store.ErrConflict)
	e.is(e.Append(ctx, ada, store.Turn{Thread: "t0000", N: -1}, true), store.ErrInvalid)
	e.is(e.Append(ctx, ada, store.Turn{Thread: "none"}, true), store.ErrNotFound)
	_, err := e.Turns(ctx, "none")
	e.is(err, store.ErrNotFound)
	e.ok(e.Append(ctx, ada, store.Turn{Thread: "t0001", Role: store.FromUser, Text: "hello"}, true))
	e.reopen()
	e.same(names(must(e.Open(ctx))(e)), []string{"t0001"})
	th := must(e.GetThread(ctx, "t0001"))(e)
	if !th.Open || th.Address.Channel != "C" {
		e.Fatalf("got %+v", th)
	}
	// The first message of who began it gives a conversation its title.
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "named", User: "ada"}))
	for i, turn := range []store.Turn{
		{By: bert, Text: "not mine"}, {By: ada, Text: "  What time\n\tis it in the city of Tokyo, and when does the next train to Osaka leave?"}, {By: ada, Text: "and now?"},
	} {
		turn.Thread, turn.N, turn.Role = "named", i, store.FromUser
		e.ok(e.Append(ctx, ada, turn, false))
	}
	e.same(must(e.GetThread(ctx, "named"))(e).Title, "What time is it in the city of Tokyo, and when does the…")
	e.same(e.kinds(), "") // conversations are no audit
}

func appendRace(e *env) {
	ctx := e.Context()
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "t", User: "ada"}))
	for n := range 3 {
		got := e.race(30, func(i int) error {
			return e.Append(ctx, ada, store.Turn{Thread: "t", N: n, Role: store.FromUser, Text: id("m", i)}, true)
		})
		e.same(got, map[string]int{"ok": 1, "already exists": 29})
	}
	e.same(len(must(e.Turns(ctx, "t"))(e)), 3)
}

func inbox(e *env) {
	ctx := e.Context()
	item := func(i int) store.Item {
		return store.Item{
			ID: id("i", i), Kind: "message", Keys: []string{id("event", i), id("client", i)},
			Payload: json.RawMessage(`{ "text":"<hi>" }`), At: time.Unix(int64(1000+i), 0).UTC(),
		}
	}
	// Each event three times, in any order, some of them under another item id.
	var order []store.Item
	for i := range 40 {
		order = append(order, item(i), item(i), item(i))
		order[len(order)-1].ID = id("again", i)
		order[len(order)-1].Keys = order[len(order)-1].Keys[1:]
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	fresh := map[string]int{}
	for _, it := range order {
		if must(e.Accept(ctx, it))(e) {
			fresh[it.Keys[len(it.Keys)-1]]++
		}
	}
	for i := range 40 {
		e.same(fresh[id("client", i)], 1)
	}
	e.reopen()
	list := must(e.Pending(ctx))(e)
	e.same(must(e.CountPending(ctx))(e), len(list))
	e.same(len(list), 40)
	if !slices.IsSortedFunc(list, func(a, b store.Item) int { return a.At.Compare(b.At) }) {
		e.Fatal("not by age")
	}
	e.same(string(list[0].Payload), `{ "text":"<hi>" }`)
	for _, it := range list {
		e.ok(e.Done(ctx, it.ID))
		e.ok(e.Done(ctx, it.ID)) // twice is fine
	}
	e.is(e.Done(ctx, "never"), store.ErrNotFound)
	e.same(len(must(e.Pending(ctx))(e)), 0)
	if must(e.Accept(ctx, item(7)))(e) {
		e.Fatal("what is done came in again")
	}
	_, err := e.Accept(ctx, store.Item{})
	e.is(err, store.ErrInvalid)
}

func inboxRace(e *env) {
	ctx := e.Context()
	var fresh atomic.Int32
	e.race(50, func(i int) error {
		ok, err := e.Accept(ctx, store.Item{ID: id("i", i), Keys: []string{"same"}})
		if ok {
			fresh.Add(1)
		}
		return err
	})
	e.same(fresh.Load(), int32(1))
	e.same(len(must(e.Pending(ctx))(e)), 1)
}

func feed(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	e.same(e.Last(), store.Seq(0))
	got := make(chan store.Change)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(got)
		for c, err := range e.Watch(ctx, 0) {
			if err != nil {
				e.Errorf("watching: %v", err)
				return
			}
			got <- c
		}
	})
	e.ok(e.PutSetting(ctx, ada, "", "a", "1"))
	e.same(<-got, store.Change{Seq: 1, Kind: "setting", ID: "a"})
	e.ok(e.PutThread(ctx, ada, store.Thread{ID: "t"}))
	e.same(<-got, store.Change{Seq: 2, Kind: "thread", ID: "t", Thread: "t"})
	cancel()
	if _, more := <-got; more {
		e.Fatal("something after the end")
	}

	for _, err := range e.Watch(e.Context(), 99) { // from a number that was never given
		e.is(err, store.ErrNotFound)
	}
	e.reopen()
	e.same(e.Last(), store.Seq(2))
	e.same(len(e.changes(0)), 2) // the feed survives
}

// feedOrder: whoever watches sees every commit once, in order, and what it
// tells of is there to be read.
func feedOrder(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	const writers, each = 8, 25
	var watchers sync.WaitGroup
	for range 3 {
		watchers.Go(func() {
			last := map[string]int{}
			next := store.Seq(1)
			for c, err := range e.Watch(ctx, 0) {
				if err != nil || c.Seq != next {
					e.Errorf("got change %+v, %v, want number %d", c, err, next)
					return
				}
				next++
				th, err := e.GetThread(ctx, c.Thread)
				if err != nil {
					e.Errorf("change %d tells of what is not there: %v", c.Seq, err)
					return
				}
				if c.Kind == "turn" {
					if want := id(th.ID+"/", last[th.ID]); want != id(th.ID+"/", lastNumber(c.ID)) {
						e.Errorf("got turn %s, want number %d", c.ID, last[th.ID])
					}
					last[th.ID]++
				}
				if c.Seq == writers*(each+1) {
					return
				}
			}
		})
	}
	got := e.race(writers, func(w int) error {
		name := id("t", w)
		err := e.PutThread(ctx, ada, store.Thread{ID: name})
		for n := range each {
			err = errors.Join(err, e.Append(ctx, ada, store.Turn{Thread: name, N: n}, true))
		}
		return err
	})
	e.same(got, map[string]int{"ok": writers})
	watchers.Wait()
}

func lastNumber(id string) int {
	n := 0
	for i := len(id) - 1; i >= 0 && id[i] != '/'; i-- {
		n++
	}
	v := 0
	for _, c := range id[len(id)-n:] {
		v = v*10 + int(c-'0')
	}
	return v
}
