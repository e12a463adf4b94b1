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

	"nize/mcp/index"
	"nize/store"
)

// baselines on the requests of mcp, measured before this index was written.
const baselines = `| BM25, name and description | .448 | .601 | .649 | .694 | .564 | .583 | |
| FTS5 porter BM25 (as ToolHive's optimizer) | .406 | .610 | .671 | .730 | .549 | .580 | |
| mcpproxy-go as shipped (bleve) | .495 | .653 | .701 | .764 | .624 | .643 | |
| BM25F, tuned | .519 | .685 | .733 | .808 | .651 | .674 | |
| hashed vectors, 4096 | .454 | .638 | .677 | .758 | .588 | .618 | |
| LSA, 256 | .397 | .598 | .674 | .758 | .548 | .587 | |
| recipe H7 | .583 | .744 | .797 | .833 | .713 | .728 | 402µs |
`

// figure is one number with its floor.
type figure struct {
	name  string
	value float64
	floor float64
	below bool // the floor is a ceiling: less is better
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

// printQuality prints corpora, families and variants.
func printQuality(w io.Writer, all []*corpus) ([]figure, error) {
	results := make(map[string]result)
	variants := make(map[string]result)
	fmt.Fprintf(w, header, "corpus")
	for _, c := range all {
		x, err := build(c, index.Options{})
		if err != nil {
			return nil, err
		}
		defer x.Close()
		r, err := measure(x, c.Requests, plain)
		if err != nil {
			return nil, err
		}
		results[c.Name] = r
		printRow(w, fmt.Sprintf("%s (%d tools, %d requests)", c.Name, c.count(), len(c.Requests)), r.All, r.quantile(0.5))
		if c.Name != "mcp" {
			continue
		}
		fmt.Fprint(w, baselines)
		for name, how := range map[string]ask{
			"server known":                serverKnown,
			"one misspelled word":         misspelled,
			"server among three used":     serverUsed(c.Servers),
			"servers of others were used": otherServersUsed(c.Requests),
		} {
			if variants[name], err = measure(x, c.Requests, how); err != nil {
				return nil, err
			}
		}
	}
	fmt.Fprintf(w, "\n"+header, "family")
	for _, c := range all {
		fams := results[c.Name].Families
		for _, f := range slices.Sorted(maps.Keys(fams)) {
			printRow(w, c.Name+": "+f, fams[f], 0)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(variants)) {
		printRow(w, "mcp, "+v, variants[v].All, variants[v].quantile(0.5))
	}
	mcp := results["mcp"]
	return []figure{
		{name: "mcp R@1", value: mcp.All.R1, floor: 0.56},
		{name: "mcp R@5", value: mcp.All.R5, floor: 0.78},
		{name: "mcp MRR", value: mcp.All.MRR, floor: 0.69},
		{name: "mcp nDCG@10", value: mcp.All.NDCG, floor: 0.70},
		{name: "azure R@5", value: mcp.Families["azure"].R5, floor: 0.96},
		{name: "arcade R@5", value: mcp.Families["arcade"].R5, floor: 0.87},
		{name: "livemcp R@5", value: mcp.Families["livemcp"].R5, floor: 0.70},
		{name: "mongo+chrome R@5", value: mcp.Families["mongo+chrome"].R5, floor: 0.53},
		{name: "server known R@5", value: variants["server known"].All.R5, floor: 0.87},
		{name: "misspelled R@5", value: variants["one misspelled word"].All.R5, floor: 0.75},
		{name: "metatool R@5", value: results["metatool"].All.R5, floor: 0.66},
		{name: "toolbench R@5", value: results["toolbench"].All.R5, floor: 0.73},
		{name: "bfcl R@5", value: results["bfcl"].All.R5, floor: 0.86},
		{name: "refservers R@5", value: results["refservers"].All.R5, floor: 0.80},
	}, nil
}

// printThreshold prints what a least score (index.min_similarity) costs, and
// how many requests it answers with nothing once the gold servers are hidden.
func printThreshold(w io.Writer, all []*corpus) error {
	cuts := []float64{0, 0.05, 0.1, 0.15, 0.2}
	fmt.Fprint(w, "\n| least score: R@5 (refused without the right server) |")
	for _, cut := range cuts {
		fmt.Fprintf(w, " %.2f |", cut)
	}
	fmt.Fprintln(w, "\n|---|---|---|---|---|---|")
	for _, c := range all {
		x, err := build(c, index.Options{})
		if err != nil {
			return err
		}
		defer x.Close()
		fmt.Fprintf(w, "| %s |", c.Name)
		for _, cut := range cuts {
			r, err := measure(x, c.Requests, func(r request) index.Query {
				q := plain(r)
				q.MinScore = cut
				return q
			})
			if err != nil {
				return err
			}
			refused := 0
			for _, r := range c.Requests {
				q := serverKnown(r)
				known := q.Keep
				q.Keep, q.MinScore = func(t store.Tool) bool { return !known(t) }, cut
				a, err := x.Search(context.Background(), q)
				if err != nil {
					return err
				}
				if len(a.Hits) == 0 {
					refused++
				}
			}
			fmt.Fprintf(w, " %.3f (%.0f %%) |", r.All.R5, 100*float64(refused)/float64(len(c.Requests)))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// printLarge prints what 12,000 and 100,000 tools cost.
func printLarge(w io.Writer, all []*corpus) ([]figure, error) {
	fmt.Fprintf(w, "\n| tools | build | heap MiB | p50 | p95 | p99 |\n|---|---|---|---|---|---|\n")
	var figures []figure
	for _, n := range []int{1809, 12000, 100000} {
		c := all[0]
		if n != c.count() {
			c = grow(all, n)
		}
		before := heap()
		start := time.Now()
		x, err := build(c, index.Options{})
		if err != nil {
			return nil, err
		}
		took := time.Since(start)
		used := heap() - before
		r, err := measure(x, all[0].Requests, plain)
		x.Close()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "| %d | %v | %.1f | %v | %v | %v |\n", n, took.Round(time.Millisecond), used,
			r.quantile(0.5).Round(time.Microsecond), r.quantile(0.95).Round(time.Microsecond), r.quantile(0.99).Round(time.Microsecond))
		if n == 12000 {
			figures = append(figures,
				figure{name: "12,000 tools: p95", value: r.quantile(0.95).Seconds() * 1e3, floor: 10, below: true, unit: " ms"},
				figure{name: "12,000 tools: build", value: took.Seconds(), floor: 5, below: true, unit: " s"},
				figure{name: "12,000 tools: heap", value: used, floor: 40, below: true, unit: " MiB"})
		}
		runtime.KeepAlive(c)
	}
	return figures, nil
}

// heap is what is in use, in MiB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // the first only empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// hit is one tool of an answer of discover_tools (SPEC 5).
type hit struct {
	ToolID            string  `json:"tool_id"`
	ToolName          string  `json:"tool_name"`
	Description       string  `json:"description"`
	Domain            string  `json:"domain"`
	ServerID          string  `json:"server_id"`
	ServerName        string  `json:"server_name"`
	ServerDescription string  `json:"server_description"`
	Score             float64 `json:"score"`
}

// printSizes compares answers with listing every tool.
func printSizes(w io.Writer, c *corpus) error {
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
	about := make(map[string]string)
	everything := 0
	for _, s := range c.Servers {
		about[s.Name] = s.Description
		for _, t := range c.Tools[s.Name] {
			everything += size(listed{t.Name, t.Description, t.InputSchema})
		}
	}
	fmt.Fprintf(w, "\n| answer | bytes | about tokens | of listing all |\n|---|---|---|---|\n")
	row := func(name string, bytes int) {
		fmt.Fprintf(w, "| %s | %d | %.0f | %.2f %% |\n", name, bytes, float64(bytes)/bytesPerToken, 100*float64(bytes)/float64(everything))
	}
	row(fmt.Sprintf("all %d tools", c.count()), everything)
	for _, k := range []int{10, 5} {
		sum := 0
		for _, r := range c.Requests {
			a, err := x.Search(context.Background(), index.Query{Text: r.Text, TopK: k})
			if err != nil {
				return err
			}
			for _, h := range a.Hits {
				sum += size(hit{h.Tool.ID(), h.Tool.Name, h.Tool.Description, h.Tool.Server, h.Tool.Server, h.Tool.Server, about[h.Tool.Server], h.Score})
			}
		}
		row(fmt.Sprintf("the first %d, on average", k), sum/len(c.Requests))
	}
	return nil
}

const bytesPerToken = 3.6

func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // a schema that is no JSON is listed by nobody
	}
	return len(b) + 1
}

// printAblation prints what leaving a signal out costs in R@5, by family. A
// signal that helps one family and hurts another fits that one; two points on
// one family are noise.
func printAblation(w io.Writer, all []*corpus) error {
	type row struct {
		name string
		fams map[string]score
		mean score
	}
	var rows []row
	for _, s := range append([]index.Signal{""}, index.Signals...) {
		r := row{name: "without " + string(s), fams: make(map[string]score)}
		o := index.Options{Without: []index.Signal{s}}
		if s == "" {
			r.name, o = "all", index.Options{}
		}
		for _, c := range all {
			x, err := build(c, o)
			if err != nil {
				return err
			}
			res, err := measure(x, c.Requests, plain)
			x.Close()
			if err != nil {
				return err
			}
			maps.Copy(r.fams, res.Families)
		}
		for _, f := range r.fams {
			for i, m := range r.mean.metrics() {
				*m += *f.metrics()[i] / float64(len(r.fams))
			}
		}
		rows = append(rows, r)
	}
	fams := slices.Sorted(maps.Keys(rows[0].fams))
	fmt.Fprintf(w, "\n## What each signal is worth\nR@1 and R@5 over all families, then R@5 by family; differences to all in points. helps/hurts counts the families that move by more than a point.\n\n| | R@1 | R@5 | helps | hurts |")
	for _, f := range fams {
		fmt.Fprintf(w, " %s |", f)
	}
	fmt.Fprint(w, "\n|---|---|---|---|---|")
	for range fams {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w)
	for i, r := range rows {
		if i == 0 {
			fmt.Fprintf(w, "| %s | %.3f | %.3f | | |", r.name, r.mean.R1, r.mean.R5)
			for _, f := range fams {
				fmt.Fprintf(w, " %.3f |", r.fams[f].R5)
			}
			fmt.Fprintln(w)
			continue
		}
		helps, hurts := 0, 0
		for _, f := range fams {
			switch d := rows[0].fams[f].R5 - r.fams[f].R5; {
			case d > 0.01:
				helps++
			case d < -0.01:
				hurts++
			}
		}
		fmt.Fprintf(w, "| %s | %+.1f | %+.1f | %d | %d |", r.name, 100*(r.mean.R1-rows[0].mean.R1), 100*(r.mean.R5-rows[0].mean.R5), helps, hurts)
		for _, f := range fams {
			fmt.Fprintf(w, " %+.1f |", 100*(r.fams[f].R5-rows[0].fams[f].R5))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// printFloors prints every figure beside its floor and counts the low ones.
func printFloors(w io.Writer, figures []figure) (low int) {
	fmt.Fprintf(w, "\n| figure | measured | floor | |\n|---|---|---|---|\n")
	for _, f := range figures {
		verdict := "ok"
		if f.low() {
			verdict = "**low**"
			low++
		}
		sign := "≥"
		if f.below {
			sign = "≤"
		}
		fmt.Fprintf(w, "| %s | %.3f%s | %s %g%s | %s |\n", f.name, f.value, f.unit, sign, f.floor, f.unit, verdict)
	}
	return low
}
