package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// For every sequence of outcomes of three edits of a message, by one run or by two, it has
// the right content in the end: an edit that is carried out late has no lasting effect.
func TestEditsInEveryOrder(t *testing.T) {
	fates := []fate{{what: "done"}, {what: "lost"}, {what: "taken"}, {what: "killed"}}
	for _, late := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		fates = append(fates, fate{what: "late", late: late}, fate{what: "late", late: late, killed: true})
	}
	var failed []string
	for _, first := range fates {
		for _, second := range fates {
			for _, third := range fates {
				synctest.Test(t, func(t *testing.T) {
					if got := playEdits(t, []fate{first, second, third}); got != "3" {
						failed = append(failed, fmt.Sprintf("%v, %v, %v: it says %s", first, second, third, got))
					}
				})
			}
		}
	}
	if len(failed) > 0 {
		t.Errorf("in %d of %d orders it went wrong, such as %s", len(failed), len(fates)*len(fates)*len(fates), failed[len(failed)/2])
	}
}

// playEdits edits a message of an earlier run to 1, 2 and 3, repeating each until it
// succeeds.
func playEdits(t *testing.T, fates []fate) (says string) {
	w := withdrawing{&chat{places: map[string]store.Address{}}}
	at := store.Address{Channel: "C", Message: "10"}
	cut := &url.Error{Err: context.DeadlineExceeded}
	errKilled := errors.New("killed")
	unsure := func(err error) bool { return errors.Is(err, cut) }
	begin := func() (*Sent, func()) {
		ctx, stop := context.WithCancel(t.Context())
		s := NewSent(w, w, time.Now, slog.New(slog.DiscardHandler))
		go s.RepeatEdits(ctx)
		return s, stop
	}
	s, stop := begin()
	defer func() { stop() }()
	var mu sync.Mutex // guards says and f
	say := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		says = strconv.Itoa(n)
	}
	under := 0
	for n := 1; n <= 3; n++ {
		var f *fate
		if n <= len(fates) {
			f = &fates[n-1]
		}
		for done := false; !done; {
			err := s.Edit(t.Context(), at, func(context.Context) error {
				if under++; under > 1 {
					t.Error("two edits are under way")
				}
				defer func() { under-- }()
				mu.Lock()
				now := f
				f = nil
				mu.Unlock()
				if now == nil || now.what == "done" || now.what == "taken" || now.what == "killed" {
					say(n)
				}
				switch {
				case now == nil || now.what == "done":
					return nil
				case now.what == "late":
					timer := time.AfterFunc(now.late, func() { say(n) })
					t.Cleanup(func() { timer.Stop() })
				}
				if now.killed || now.what == "killed" {
					return errKilled
				}
				return cut
			}, unsure)
			switch {
			case err == nil:
				done = true
			case errors.Is(err, errKilled):
				stop()
				s, stop = begin()
				done = n < 3 // a newer content is expected by now
			default:
				_ = queue.Sleep(t.Context(), time.Second)
				done = n < 3 && n%2 == 1 // the newest is sent
			}
		}
	}
	_ = queue.Sleep(t.Context(), 2*time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.edits) > 0 {
		t.Error("edits are left")
	}
	mu.Lock()
	defer mu.Unlock()
	return says
}
