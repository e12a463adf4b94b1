package mcp_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"nize/store"
)

// TestOutage: an approved call runs exactly once, and its outcome is stored, even if the
// database is unavailable in the meantime.
func TestOutage(t *testing.T) {
	for _, at := range []string{"start", "finish"} {
		t.Run(at, func(t *testing.T) {
			h := newFixture(t, func(s *store.Server) { s.Approval = store.ApproveAlways })
			var lost atomic.Int64
			h.without = func(what string, do func() error) error {
				if what != at || lost.Load() > 0 {
					return do()
				}
				h.away.Set(true)
				defer h.away.Set(false)
				err := do()
				if errors.Is(err, store.ErrNoDatabase) {
					lost.Add(1)
				}
				return err
			}
			c := h.call(h.member, "box:write", `{"what":"it"}`)
			if _, err := h.press(h.member, c, store.Approve); err != nil && !errors.Is(err, store.ErrNoDatabase) {
				t.Fatal(err)
			}
			if c := h.wait(c.ID); c.State != store.Done || h.runner.runs.Load() != 1 || lost.Load() != 1 {
				t.Errorf("it is %s, %q; it ran %d times, %d questions were lost", c.State, c.Reason, h.runner.runs.Load(), lost.Load())
			}
		})
	}
}

// TestOutageAtThePress: an approval during a failed read either counts or leaves the call
// waiting; it never turns into a denial.
func TestOutageAtThePress(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Approval = store.ApproveAlways })
	var left atomic.Int64 // queries until the one that fails
	h.without = func(what string, do func() error) error {
		if what == "user" && left.Add(-1) == 0 {
			h.away.Set(true)
			defer h.away.Set(false)
		}
		return do()
	}
	again := 0
	for n := int64(1); n <= 8; n++ {
		c := h.call(h.member, "box:write", `{"what":"it"}`)
		left.Store(n)
		if _, err := h.press(h.member, c, store.Approve); err != nil {
			again++
			if now, getErr := h.db.GetCall(t.Context(), c.ID); getErr != nil || !now.Waiting() {
				t.Errorf("without an answer to question %d: %v; it is %s, %q, %v", n, err, now.State, now.Reason, getErr)
			}
			if _, err := h.press(h.member, c, store.Approve); err != nil {
				t.Errorf("the yes after it: %v", err)
			}
		}
		if c := h.wait(c.ID); c.State != store.Done {
			t.Errorf("without an answer to question %d it is %s, %q", n, c.State, c.Reason)
		}
	}
	if again == 0 {
		t.Error("no yes met the outage")
	}
}

// TestFullAtTheStart: a call that was approved while the disk was full runs exactly once
// after space becomes available.
func TestFullAtTheStart(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Approval = store.ApproveAlways })
	var full atomic.Int64
	h.without = func(what string, do func() error) error {
		if what == "start" && full.Add(1) <= 2 {
			return store.ErrDiskFull
		}
		return do()
	}
	c := h.call(h.member, "box:write", `{"what":"it"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(c.ID); c.State != store.Done || h.runner.runs.Load() != 1 || full.Load() != 3 {
		t.Errorf("it is %s, %q; it ran %d times after %d tries", c.State, c.Reason, h.runner.runs.Load(), full.Load())
	}
}
