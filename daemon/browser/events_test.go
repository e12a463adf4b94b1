package browser

import (
	"errors"
	"fmt"
	"testing"

	"nize/daemon/api"
)

// TestStreams: a person has 8 at most and all together 500; who leaves makes room.
func TestStreams(t *testing.T) {
	b := New(Options{})
	enter := func(user string) func() {
		t.Helper()
		leave, err := b.enter(user)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return leave
	}
	refused := func(user string) {
		t.Helper()
		var problem *api.Error
		if _, err := b.enter(user); !errors.As(err, &problem) || problem.Status() != 503 {
			t.Errorf("one more of %s: %v", user, err)
		}
	}
	var last func()
	for n := range maxStreams {
		last = enter(fmt.Sprint("person-", n/maxTabs))
		if n == maxTabs-1 {
			refused("person-0")
		}
	}
	refused("somebody")
	last()
	enter("somebody")()
	if b.open != maxStreams-1 || len(b.streams) != (maxStreams+maxTabs-1)/maxTabs {
		t.Errorf("%d streams of %d people are open", b.open, len(b.streams))
	}
}
