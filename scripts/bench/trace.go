package main

import (
	"context"
	"runtime"
	"time"

	"nize/daemon/trace"
	"nize/store"
)

// untraced simulates a call's upstream, which takes no time here.
type untraced struct{ result store.Result }

func (u *untraced) Run(context.Context, store.Caller, *store.Call, store.ProgressFunc) (*store.Result, error) {
	return &u.result, nil
}

// tracing measures the cost of a call's traces while no endpoint is configured.
func (b *bench) tracing(ctx context.Context) error {
	const calls = 1_000_000
	tr := trace.New(trace.Options{Now: time.Now})
	runner, by, call := tr.Runner(new(untraced)), store.Caller{}, &store.Call{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range calls {
		below, end := tr.MetaTool(ctx, "execute_tool", "")
		if _, err := runner.Run(below, by, call, nil); err != nil {
			return err
		}
		end(false)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	b.table.add(row{what: "traces that are off, for each call", value: float64(took.Nanoseconds()) / calls, unit: "ns", floor: 1000, aim: 100})
	b.table.add(row{what: "their allocations for each call", value: float64(after.Mallocs-before.Mallocs) / calls, floor: 0.01, aim: 0.01, counted: true})
	return nil
}
