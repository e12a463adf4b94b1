package limit

import (
	"errors"
	"fmt"
	"testing"

	"nize/store"
)

// TestStreams: one person opens so many streams and no more. With as many open as may
// be, the person with the most loses the oldest to one who has fewer.
func TestStreams(t *testing.T) {
	q := store.Quota{Each: 8, All: 500, Limit: "each", LimitAll: "all"}
	s := &Streams{Quota: func() store.Quota { return q }}
	ended := map[string]int{}
	enter := func(user string) func() {
		t.Helper()
		leave, err := s.Enter(user, func() { ended[user]++ })
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return leave
	}
	refused := func(user, setting string) {
		t.Helper()
		var problem *StreamsError
		if _, err := s.Enter(user, func() {}); !errors.As(err, &problem) || problem.Setting != setting {
			t.Errorf("one more of %s: %v", user, err)
		}
	}
	for n := range int(q.All) {
		user := fmt.Sprint("person-", n/int(q.Each))
		leave := enter(user)
		if n%int(q.Each) == int(q.Each)-1 {
			refused(user, "each")
			leave()
			enter(user) // there is room again
		}
	}
	if len(ended) != 0 {
		t.Errorf("ended without need: %v", ended)
	}
	leave := enter("somebody")
	for range q.Each - 2 {
		enter("somebody")
	}
	if ended["person-0"] != 1 || ended["somebody"] != 0 || s.Count() != int(q.All) {
		t.Errorf("ended: %v; %d are open", ended, s.Count())
	}
	leave()
	enter("somebody else")()
	if s.Count() != int(q.All)-1 {
		t.Errorf("%d are open", s.Count())
	}
	few := store.Quota{Each: 8, All: 1, Limit: "each", LimitAll: "all"}
	s = &Streams{Quota: func() store.Quota { return few }}
	enter("a")
	refused("b", "all") // a has no more than b would have
}
