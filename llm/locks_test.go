package llm

import (
	"context"
	"errors"
	"slices"
	"testing"

	"nize/store"
)

// TestLocks: one worker at a time on a thread, whatever happens on others; a worker that gives up
// waiting leaves nothing behind.
func TestLocks(t *testing.T) {
	var l Locks
	lock := func(thread string) func() {
		t.Helper()
		leave, err := l.Lock(t.Context(), thread)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	first, other := lock("a"), lock("b")
	why := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := l.Lock(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("a worker that gave up: %v", err)
	}
	held, n := make(chan func()), 0
	go func() { leave, _ := l.Lock(context.Background(), "a"); n++; held <- leave }()
	n++ // a race, if the lock were not exclusive
	first()
	(<-held)()
	other()
	if n != 2 || len(l.locks) != 0 {
		t.Errorf("%d workers, %d locks are left", n, len(l.locks))
	}
}

// TestTurn: the ids of a reply's calls are in their order.
func TestTurn(t *testing.T) {
	ids := []string{"3", "1", "2"}
	r := Reply{Text: "a", Finish: FinishLength, Model: "m", Calls: []store.ToolCall{{Name: "x"}, {Name: "y"}, {Name: "z"}}}
	got := r.Turn(func() string { id := ids[0]; ids = ids[1:]; return id })
	var list []string
	for _, c := range got.Calls {
		list = append(list, c.ID+c.Name)
	}
	if !slices.Equal(list, []string{"1x", "2y", "3z"}) || got.Role != store.FromModel || got.Finish != FinishLength || r.Calls[0].ID != "" {
		t.Errorf("%+v", got)
	}
}
