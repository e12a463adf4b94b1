package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"nize/store"
	"nize/store/database/databasetest"
)

// TestViews: what a view told goes with the next message of who looks at it, once and as
// it was told last, also after a restart; it and what a view keeps go with the conversation.
func TestViews(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	db := databasetest.OpenIn(t, dir)
	defer func() { _ = db.Close() }()
	ann, ben := store.Caller{User: "ann", Name: "ann", Role: store.Member}, store.Caller{User: "ben", Name: "ben", Role: store.Member}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(db.PutThread(ctx, ann, store.Thread{ID: "t", User: "ann"}))
	var calls []string
	for i := range 9 {
		c := store.Call{ID: fmt.Sprint("c", i), Server: "far", Tool: "show", Thread: "t", By: "ann", Surface: store.OnWeb, RunsAs: store.Plain("nobody"), Args: json.RawMessage(`{}`), Pin: "p", State: store.Running, Created: time.Now()}
		c.Digest = c.ComputeDigest()
		ok(db.Begin(ctx, ann, c))
		_, err := db.Finish(ctx, ann, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"content":[]}`)}})
		ok(err)
		calls = append(calls, c.ID)
	}
	tell := func(call, text string) error {
		return db.PutViewContext(ctx, "t", store.ViewContext{Call: call, Tool: "far:show", User: "ann", Text: text, Untrusted: true})
	}
	said := func(n int, by store.Caller, before ...store.ViewContext) (views []store.ViewContext) {
		t.Helper()
		ok(db.Append(ctx, by, store.Turn{Thread: "t", N: n, Role: store.FromUser, By: by, Text: "x", Earlier: &store.Earlier{Views: before}}, false))
		turns, err := db.Turns(ctx, "t")
		ok(err)
		if e := turns[n].Earlier; e != nil {
			views = e.Views
		}
		return views
	}
	ok(tell("c0", "old"))
	ok(tell("c0", "new"))
	ok(tell("c1", "taken back"))
	ok(tell("c1", ""))
	ok(db.PutViewState(ctx, "t", "c0", "ann", json.RawMessage(`{"page":2}`)))
	ok(db.Close())
	db = databasetest.OpenIn(t, dir)
	if got := said(0, ben); len(got) != 0 {
		t.Errorf("with somebody else's message: %+v", got)
	}
	if th, err := db.GetThread(ctx, "t"); err != nil || th.Tainted {
		t.Errorf("before it was told: %+v, %v", th, err)
	}
	if got := said(1, ann, store.ViewContext{Call: "c0", User: "ann", Text: "of the message that it replaces"}); len(got) != 1 || got[0].Text != "new" {
		t.Errorf("with her message: %+v", got)
	}
	if th, err := db.GetThread(ctx, "t"); err != nil || !th.Tainted {
		t.Errorf("untrusted output does not taint: %+v, %v", th, err)
	}
	if got := said(2, ann); len(got) != 0 {
		t.Errorf("told twice: %+v", got)
	}
	for i, call := range calls {
		if err := tell(call, "x"); (i == 8) != errors.Is(err, store.ErrConflict) {
			t.Errorf("view %d: %v", i, err)
		}
	}
	if got, err := db.GetViewState(ctx, "c0", "ann"); err != nil || string(got) != `{"page":2}` {
		t.Errorf("kept: %s, %v", got, err)
	}
	if _, err := db.GetViewState(ctx, "c0", "ben"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("kept for somebody else: %v", err)
	}
	_, err := db.ForgetThread(ctx, ann, "t")
	ok(err)
	if got, err := db.GetViewState(ctx, "c0", "ann"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("kept of what is forgotten: %s, %v", got, err)
	}
	if err := tell("c0", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("told of what is forgotten: %v", err)
	}
	ok(db.PutThread(ctx, ann, store.Thread{ID: "t", User: "ann"}))
	if got := said(0, ann); len(got) != 0 {
		t.Errorf("what was told outlived its conversation: %+v", got)
	}
}
