package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"nize/mcp"
	"nize/mcp/index"
	"nize/store"
)

// baselines holds results for the requests of mcp, measured before this index was written.
const baselines = `| BM25, name and description | .448 | .601 | .649 | .694 | .564 | .583 | |
| FTS5 porter BM25 (as ToolHive's optimizer) | .406 | .610 | .671 | .730 | .549 | .580 | |
| mcpproxy-go as shipped (bleve) | .495 | .653 | .701 | .764 | .624 | .643 | |
| BM25F, tuned | .519 | .685 | .733 | .808 | .651 | .674 | |
| hashed vectors, 4096 | .454 | .638 | .677 | .758 | .588 | .618 | |
| LSA, 256 | .397 | .598 | .674 | .758 | .548 | .587 | |
| recipe H7 | .583 | .744 | .797 | .833 | .713 | .728 | 402µs |
`

// figure is one number with its threshold.
type figure struct {
	name  string
	value float64
	give  float64 // half the width of its 95 % interval, 0 if it has none
	floor float64
	below bool // the threshold is a maximum: less is better
	clock bool // it depends on the machine and its load
	unit  string
}

func (f figure) low() bool {
	if f.below {
		return f.value > f.floor
	}
	return f.value < f.floor
}

func printRow(w io.Writer, name string, s score, p50 time.Duration) {
	fmt.Fprintf(w, "| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | ", name, s.R1, s.R3, s.R5, s.R10, s.MRR, s.NDCG)
	if p50 > 0 {
		fmt.Fprintf(w, "%v ", p50.Round(time.Microsecond))
	}
	fmt.Fprintln(w, "|")
}

const header = "| %s | R@1 | R@3 | R@5 | R@10 | MRR | nDCG@10 | p50 |\n|---|---|---|---|---|---|---|---|\n"

// results holds the results of the corpora, and of the variants of mcp.
type results struct {
	corpora, variants map[string]result
}

// printQuality prints a row for each corpus, then the families, the variants of mcp and the
// baselines.
func printQuality(w io.Writer, all []*corpus) (results, error) {
	out := results{make(map[string]result), make(map[string]result)}
	fmt.Fprintf(w, header, "corpus")
	for _, c := range all {
		x, err := build(c, index.Options{})
		if err != nil {
			return out, err
		}
		defer x.Close()
		r, err := measure(x, c.Requests, plain)
		if err != nil {
			return out, err
		}
		out.corpora[c.Name] = r
		printRow(w, c.Name, r.All, r.quantile(0.5))
		if c.Name != "mcp" {
			continue
		}
		for name, how := range map[string]ask{
			"server known":                serverKnown,
			"one misspelled word":         misspelled,
			"server among three used":     serverUsed(c.Servers),
			"servers of others were used": otherServersUsed(c.Requests),
		} {
			if out.variants[name], err = measure(x, c.Requests, how); err != nil {
				return out, err
			}
		}
		if err := measureChinese(x, c, out); err != nil {
			return out, err
		}
	}
	fmt.Fprintf(w, "\n"+header, "family")
	for _, c := range all {
		fams := out.corpora[c.Name].Families
		for _, f := range slices.Sorted(maps.Keys(fams)) {
			printRow(w, c.Name+": "+f, fams[f], 0)
		}
	}
	return out, nil
}

// measureChinese asks the translated requests in both languages, and in Chinese without the
// Chinese lexicon.
func measureChinese(x *index.Index, c *corpus, out results) (err error) {
	var both []request
	for _, r := range c.Requests {
		if c.Chinese[r.ID] != "" {
			both = append(both, r)
		}
	}
	chinese := func(weigh map[index.Signal]float64) ask {
		return func(r request) index.Query { return index.Query{Text: c.Chinese[r.ID], TopK: 10, Weigh: weigh} }
	}
	for name, how := range map[string]ask{
		"100 requests":            plain,
		"100 requests in Chinese": chinese(nil),
		"100 requests in Chinese, without its dictionary": chinese(map[index.Signal]float64{index.Chinese: 0}),
	} {
		if out.variants[name], err = measure(x, both, how); err != nil {
			return err
		}
	}
	return nil
}

// printVariants prints mcp under other conditions, beside the results of other systems.
func printVariants(w io.Writer, r results) {
	mcp, ok := r.corpora["mcp"]
	if !ok {
		return
	}
	fmt.Fprintf(w, "\n"+header, "variant")
	for _, v := range slices.Sorted(maps.Keys(r.variants)) {
		printRow(w, "mcp, "+v, r.variants[v].All, r.variants[v].quantile(0.5))
	}
	fmt.Fprintf(w, "\n"+header, "baseline on the requests of mcp")
	fmt.Fprint(w, baselines)
	printRow(w, "this index", mcp.All, mcp.quantile(0.5))
}

// floors returns the measured figures that have thresholds.
func (r results) floors() (out []figure) {
	add := func(name string, got result, value func(result) families, floor float64) {
		if len(got.Times) > 0 {
			mean, interval := value(got).mean()
			out = append(out, figure{name: name, value: mean, give: interval, floor: floor})
		}
	}
	r1, r5 := func(r result) families { return r.r1 }, func(r result) families { return r.r5 }
	for _, f := range []struct {
		corpus string
		r1, r5 float64
	}{{"mcp", 0.59, 0.80}, {"metatool", 0.38, 0.69}, {"bfcl", 0.66, 0.88}, {"toolbench", 0.32, 0.71}} {
		add(f.corpus+" R@1", r.corpora[f.corpus], r1, f.r1)
		add(f.corpus+" R@5", r.corpora[f.corpus], r5, f.r5)
	}
	add("refservers R@5", r.corpora["refservers"], r5, 0.80)
	add("mcp, server known R@5", r.variants["server known"], r5, 0.87)
	add("mcp, 100 requests in Chinese R@5", r.variants["100 requests in Chinese"], r5, 0.65)
	add("mcp, misspelled R@5", r.variants["one misspelled word"], r5, 0.77)
	return out
}

// printLarge prints the cost of 1,809 to 100,000 tools, and adds to the variants how well
// the requests of mcp find their tools among 12,000.
func printLarge(w io.Writer, all []*corpus, out results) ([]figure, error) {
	fmt.Fprintf(w, "\n| tools | build | heap MiB | p50 | p95 | p99 |\n|---|---|---|---|---|---|\n")
	var figures []figure
	mcp := find(all, "mcp")
	for _, n := range []int{mcp.count(), 12000, 100000} {
		c := grow(all, n)
		before := heap()
		start := time.Now()
		x, err := build(c, index.Options{})
		if err != nil {
			return nil, err
		}
		took := time.Since(start)
		used := heap() - before
		r, err := measure(x, mcp.Requests, plain)
		x.Close()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "| %d | %v | %.1f | %v | %v | %v |\n", n, took.Round(time.Millisecond), used,
			r.quantile(0.5).Round(time.Microsecond), r.quantile(0.95).Round(time.Microsecond), r.quantile(0.99).Round(time.Microsecond))
		if n == 12000 {
			out.variants["12,000 tools"] = r
			figures = append(figures,
				figure{name: "12,000 tools: p95", value: r.quantile(0.95).Seconds() * 1e3, floor: 10, below: true, clock: true, unit: " ms"},
				figure{name: "12,000 tools: build", value: took.Seconds(), floor: 5, below: true, clock: true, unit: " s"},
				figure{name: "12,000 tools: heap", value: used, floor: 10, below: true, unit: " MiB"})
		}
		runtime.KeepAlive(c)
	}
	return figures, nil
}

// heap returns the memory in use, in MiB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // the first run only empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// printSizes compares the size of answers with that of listing every tool, and also the
// text that a model reads before its first call (an answer, then the tool's schema).
func printSizes(w io.Writer, all []*corpus) error {
	fmt.Fprint(w, `
What a model reads, as structured content, in bytes and about tokens (3.6 bytes each):

| corpus | tools | requests | listing all | discover, first 5 | first 10 | first 5 and one schema | of listing all |
|---|---|---|---|---|---|---|---|
`)
	for _, c := range all {
		if err := printSize(w, c); err != nil {
			return err
		}
	}
	return nil
}

func printSize(w io.Writer, c *corpus) error {
	x, err := build(c, index.Options{})
	if err != nil {
		return err
	}
	defer x.Close()
	type listed struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	servers, schemas := make(map[string]store.Server), make(map[string]int)
	everything := 0
	for _, s := range c.Servers {
		servers[s.Name] = s.Normal()
		for _, t := range c.Tools[s.Name] {
			everything += size(listed{t.Name, t.Description, t.InputSchema})
			schemas[t.ID()] = size(mcp.Description{ToolID: t.ID(), Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Server: s.Name, Domain: servers[s.Name].Domain})
		}
	}
	type answer struct {
		Tools []mcp.FoundTool `json:"tools"`
	}
	var five, ten, schema int
	for _, r := range c.Requests {
		a, err := x.Search(context.Background(), index.Query{Text: r.Text, TopK: 10})
		if err != nil {
			return err
		}
		var found answer
		for i, h := range a.Hits {
			if i == 5 {
				five += size(found)
			}
			found.Tools = append(found.Tools, mcp.NewFoundTool(servers[h.Tool.Server], h.Tool, h.Score))
		}
		if len(a.Hits) <= 5 {
			five += size(found)
		}
		ten += size(found)
		if len(a.Hits) > 0 {
			schema += schemas[a.Hits[0].Tool.ID()]
		}
	}
	n := len(c.Requests)
	both := func(bytes int) string { return fmt.Sprintf("%d (%.0f)", bytes, float64(bytes)/bytesPerToken) }
	fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s | %s | %.2f %% |\n", c.Name, c.count(), n, both(everything), both(five/n), both(ten/n), both((five+schema)/n),
		100*float64(five+schema)/float64(n)/float64(everything))
	return nil
}

const bytesPerToken = 3.6

func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // a tool with an invalid schema is not listed
	}
	return len(b) + 1
}

// printFloors prints every figure beside its threshold and counts the low ones, among those
// that don't depend on the machine.
func printFloors(w io.Writer, figures []figure) (low int) {
	fmt.Fprintf(w, "\n| figure | measured | floor | |\n|---|---|---|---|\n")
	for _, f := range figures {
		verdict := "ok"
		switch {
		case f.low() && f.clock:
			verdict = "low, on this machine now"
		case f.low():
			verdict = "**low**"
			low++
		}
		sign := "≥"
		if f.below {
			sign = "≤"
		}
		value := fmt.Sprintf("%.3f", f.value)
		if f.give > 0 {
			value += fmt.Sprintf(" ± %.3f", f.give)
		}
		fmt.Fprintf(w, "| %s | %s%s | %s %g%s | %s |\n", f.name, value, f.unit, sign, f.floor, f.unit, verdict)
	}
	return low
}
