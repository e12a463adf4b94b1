package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

type tellingRunner func(progress store.ProgressFunc)

func (r tellingRunner) Run(_ context.Context, _ store.Caller, _ *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	r(progress)
	return nil, nil
}

// A conversation is told every two seconds at most, and nothing after the call's
// end; who waits for the call is told all.
func TestProgressTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told, waiter []float64
		var late store.ProgressFunc
		p := progressTeller{now: time.Now,
			tell: func(_ context.Context, _ store.Call, done, _ float64, _ string) error {
				told = append(told, done)
				return nil
			},
			Runner: tellingRunner(func(progress store.ProgressFunc) {
				for i := range 7 {
					progress(float64(i), 0, "")
					time.Sleep(time.Second)
				}
				late = progress
			})}
		if _, err := p.Run(t.Context(), store.Caller{}, &store.Call{Thread: "T"}, func(done, _ float64, _ string) { waiter = append(waiter, done) }); err != nil {
			t.Fatal(err)
		}
		late(9, 0, "")
		if len(told) != 4 || told[3] != 6 || len(waiter) != 8 {
			t.Errorf("told %v, who waits %v", told, waiter)
		}
		p.Runner = tellingRunner(func(progress store.ProgressFunc) {
			if progress != nil {
				t.Error("a call of no conversation has somebody to tell")
			}
		})
		if _, err := p.Run(t.Context(), store.Caller{}, &store.Call{}, nil); err != nil {
			t.Fatal(err)
		}
	})
}
