package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"nize/mcp/index"
	"nize/store"
)

// indexed are the sizes at which the index is measured by itself, with the limits of a
// search.
var indexed = []struct {
	tools      int
	floor, aim float64
}{{100, 0, 0}, {1_000, 0, 0}, {12_000, 3, 0.5}, {100_000, 40, 5}}

// index measures discovery in this process: building, searching, an update of one server,
// searching during updates, memory.
func (b *bench) index(ctx context.Context) error {
	for _, n := range indexed {
		if err := b.indexOf(ctx, n.tools, row{floor: n.floor, aim: n.aim}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) indexOf(ctx context.Context, n int, limits row) error {
	servers := make([][]store.Tool, 0, n/100)
	for _, s := range split(n, 100) {
		servers = append(servers, indexTools(s, ""))
	}
	before := heap()
	x := index.New(index.Options{})
	defer x.Close()
	replace := func(i int, tools []store.Tool) error {
		name := fmt.Sprintf("server-%d", i)
		return x.Replace(ctx, store.Server{Name: name, About: store.About{Description: "The tools of " + name}}.Normal(), tools)
	}
	began := time.Now()
	for i, tools := range servers {
		if err := replace(i, tools); err != nil {
			return err
		}
	}
	built := time.Since(began)
	memory := heap() - before
	search := func(i int) (time.Duration, error) {
		begin := time.Now()
		_, err := x.Search(ctx, index.Query{Text: generate(i * 7919 % min(n, maxTools)).asks})
		return time.Since(begin), err
	}
	quiet, err := searches(queries*5, search)
	if err != nil {
		return err
	}
	update, during, err := whileUpdating(replace, split(n, 100), search)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("in process, %d tools: ", n)
	b.table.add(row{what: what + "building the index", value: millis(built), unit: "ms", reference: fmt.Sprintf("heap %s MB", number(memory))})
	b.table.add(row{what: what + "an update of one server of 100 tools", value: millis(update), unit: "ms"})
	limits.what, limits.value, limits.unit = what+"a search, p50", millis(median(quiet)), "ms"
	limits.reference = fmt.Sprintf("p99 %s ms; during updates p50 %s, p99 %s ms", number(millis(late(quiet))), number(millis(median(during))), number(millis(late(during))))
	b.table.add(limits)
	return nil
}

// whileUpdating updates one server after the other, and searches meanwhile.
func whileUpdating(replace func(int, []store.Tool) error, servers []batch, search func(int) (time.Duration, error)) (update time.Duration, during []time.Duration, err error) {
	const updates = 20
	var done atomic.Bool
	failed := make(chan error, 1)
	var took []time.Duration
	go func() {
		defer done.Store(true)
		for i := range updates {
			at := i * 37 % len(servers)
			changed := indexTools(servers[at], fmt.Sprintf(" Changed %d times.", i+1))
			begin := time.Now()
			if err := replace(at, changed); err != nil {
				failed <- err
				return
			}
			took = append(took, time.Since(begin))
		}
		failed <- nil
	}()
	for i := 0; !done.Load(); i++ {
		one, err := search(i)
		if err != nil {
			return 0, nil, err
		}
		during = append(during, one)
	}
	if err := <-failed; err != nil {
		return 0, nil, err
	}
	return median(took), during, nil
}

func searches(n int, search func(int) (time.Duration, error)) ([]time.Duration, error) {
	var all []time.Duration
	for i := range n {
		one, err := search(i)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// late returns the 99th percentile.
func late(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)*99/100]
}

// indexTools returns the tools of one server; beyond the number of different ones they
// repeat.
func indexTools(b batch, more string) []store.Tool {
	var tools []store.Tool
	for i := range b.Count {
		g := generate((b.First + i) % maxTools)
		tools = append(tools, store.Tool{Name: g.name, Description: strings.TrimSpace(g.description + more), InputSchema: g.schema, State: store.ToolAccepted})
	}
	return tools
}

// heap returns the used heap in MB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // the first only empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
