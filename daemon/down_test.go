package daemon

import (
	"context"
	"strings"
	"testing"

	"nize/daemon/monitor"
	"nize/store"
)

// broken is a runner of servers that are all down.
type broken struct{}

func (broken) Run(context.Context, store.Caller, *store.Call, store.ProgressFunc) (*store.Result, error) {
	return nil, &store.CallError{Code: store.CodeUnavailable, Message: store.Plain("box is not reachable: it ended; its last words: /home/ops/secret"), Retryable: true}
}

// Who calls a server that is down hears since when, and not what it wrote.
func TestDownNotifier(t *testing.T) {
	w := watch(t, t.TempDir(), nil)
	by := store.Caller{User: "boss", Role: store.Admin}
	if _, err := w.db.PutServer(t.Context(), by, store.Server{Name: "box", Transport: store.HTTP, URL: "http://127.0.0.1:1/mcp"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Sync(t.Context(), by, "box"); err == nil {
		t.Fatal("the server answers")
	}
	run := monitor.DownNotifier{Runner: broken{}, Pool: w.pool, Incidents: w.db, Now: w.now, Log: w.log}
	call := &store.Call{Server: "box", Tool: "x"}
	_, err := run.Run(t.Context(), store.Caller{User: "u", Role: store.Member}, call, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "server box has been unreachable for ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a member hears: %v", err)
	}
	_, err = run.Run(t.Context(), store.Caller{User: "a", Role: store.Admin}, call, nil)
	if err == nil || !strings.Contains(err.Error(), "its last words") {
		t.Errorf("an admin hears: %v", err)
	}
}
