package browser

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// TestStreamsPerPerson: one person opens so many streams and no more. With as many
// open as may be, whoever has the most makes way for somebody who has fewer.
func TestStreamsPerPerson(t *testing.T) {
	b := New(Options{Config: store.Defaults{"limits.user.streams": "8", "limits.streams": "500"}})
	ended := map[string]int{}
	enter := func(user string) func() {
		t.Helper()
		leave, err := b.enter(user, func() { ended[user]++ })
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return leave
	}
	refused := func(user, setting string) {
		t.Helper()
		var problem *api.Error
		if _, err := b.enter(user, func() {}); !errors.As(err, &problem) || problem.Status() != 503 || !strings.Contains(problem.Message, setting) {
			t.Errorf("one more of %s: %v", user, err)
		}
	}
	const most, tabs = 500, 8
	for n := range most {
		leave := enter(fmt.Sprint("person-", n/tabs))
		if n%tabs == tabs-1 {
			refused(fmt.Sprint("person-", n/tabs), "limits.user.streams")
			leave()
			enter(fmt.Sprint("person-", n/tabs)) // there is room again
		}
	}
	if len(ended) != 0 {
		t.Errorf("ended without need: %v", ended)
	}
	leave := enter("somebody")
	for range tabs - 2 {
		enter("somebody")
	}
	if ended["person-0"] != 1 || ended["somebody"] != 0 || b.streams.Count() != most {
		t.Errorf("ended: %v; %d are open", ended, b.streams.Count())
	}
	leave()
	enter("somebody else")()
	if b.streams.Count() != most-1 {
		t.Errorf("%d are open", b.streams.Count())
	}
	few := New(Options{Config: store.Defaults{"limits.user.streams": "8", "limits.streams": "1"}})
	if _, err := few.enter("a", func() {}); err != nil {
		t.Fatal(err)
	}
	b = few
	refused("b", "limits.streams") // who has as many makes no way
}
