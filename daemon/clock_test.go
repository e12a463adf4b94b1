package daemon

import (
	"encoding/json"
	"testing"
	"time"

	"nize/store"
)

// TestClockSetBack: a clock that ran ahead and was set right again neither ends
// the calls that are made then nor brings back a standing answer that was over.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	ctx := t.Context()
	u, err := w.db.EnsureUser(ctx, "local:0", "root", store.Admin)
	if err != nil {
		t.Fatal(err)
	}
	by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}
	if _, err := w.db.PutServer(ctx, by, store.Server{Name: "box", Transport: store.Stdio, Command: "/bin/box", TrustAnnotations: true}, 0); err != nil {
		t.Fatal(err)
	}
	no := false
	tool := store.Tool{Server: "box", Name: "write", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p", Annotations: store.Annotations{Destructive: &no}}
	if _, err := w.db.PutTools(ctx, by, "box", []store.Tool{tool}); err != nil {
		t.Fatal(err)
	}
	if err := w.gateway.Catalog.Refresh(ctx, "box"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gateway.Policy.AddGrant(ctx, by, store.Grant{Tool: "box:write", Expires: w.now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	w.off.Store(int64(24 * time.Hour))
	if _, err := w.db.EnsureUser(ctx, "local:7", "mia", store.Member); err != nil { // a record of tomorrow
		t.Fatal(err)
	}
	w.off.Store(0)
	c, err := w.gateway.Call(ctx, by, store.Request{Tool: "box:write"})
	if err != nil || !c.Waiting() {
		t.Fatalf("with an answer that was over: %+v, %v", c, err)
	}
	if got, err := w.gateway.Decide(ctx, by, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}); err != nil || got.Approved.IsZero() {
		t.Errorf("a press at once: %+v, %v", got, err)
	}
}

// TestClockBehind: whoever takes over with a clock that is some seconds behind goes on
// from the newest record, so that messages keep their order and nothing is due again;
// an hour is not waited for.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{5 * time.Second, time.Hour} {
		path := t.TempDir()
		w := watch(t, path, nil)
		w.off.Store(int64(ahead))
		first := store.Item{ID: store.NewID(w.now()), Kind: "test", At: w.now()}
		if _, err := w.db.Accept(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		w.end()
		next := watch(t, path, nil)
		second := store.Item{ID: store.NewID(next.now()), Kind: "test", At: next.now()}
		if second.At.Before(first.At) != (ahead == time.Hour) {
			t.Errorf("after one that is %v ahead: first %v, then %v", ahead, first.At, second.At)
		}
		if _, err := next.db.Accept(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		list, err := next.db.Pending(t.Context())
		if err != nil || len(list) != 2 || ahead < time.Minute && list[0].ID != first.ID {
			t.Errorf("after one that is %v ahead, in this order: %+v, %v", ahead, list, err)
		}
		next.end()
	}
}
