package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// folds is the number of parts into which the servers of all corpora are divided.
const folds = 5

// foldOf returns the part that contains the server of a request's first tool.
func foldOf(r request) int {
	server, _, _ := store.SplitToolID(r.Gold[0])
	h := fnv.New32a()
	io.WriteString(h, server)
	return int(h.Sum32() % folds)
}

// weighing maps signals to factors of their weights.
type weighing map[index.Signal]float64

// fits holds weights that were fitted without the data on which they are judged: to all
// corpora but one, and to all servers but a fifth.
type fits struct {
	corpora map[string]weighing // by the corpus that is left out
	servers [folds]weighing     // by the fold that is left out
}

// ways lists how a figure is judged: with the current weights, which were chosen with all
// requests in sight, and with those of fits.
var ways = []string{"as they are", "other corpora's", "other servers'"}

// of returns the weights of a way for a request.
func (f fits) of(way int, corpus string, r request) weighing {
	switch way {
	case 1:
		return f.corpora[corpus]
	case 2:
		return f.servers[foldOf(r)]
	}
	return nil
}

// fitWeights selects the best of the factors for each signal and every part that is left
// out.
func fitWeights(all []*corpus, tried map[index.Signal][]trial) fits {
	f := fits{corpora: make(map[string]weighing)}
	pick := func(out func(trial) bool) weighing {
		w := make(weighing)
		for s, trials := range tried {
			w[s] = factors[fit(trials, out)]
		}
		return w
	}
	for _, c := range all {
		f.corpora[c.Name] = pick(func(t trial) bool { return t.corpus == c.Name })
	}
	for n := range f.servers {
		f.servers[n] = pick(func(t trial) bool { return t.fold == n })
	}
	return f
}

// judged is a request with its score in each way.
type judged struct {
	figure, family string
	fold           int
	got            [3]score
}

// printJudged prints the quality of every corpus, and of the variants with thresholds, for
// the current weights and for those fitted without it.
func printJudged(w io.Writer, all []*corpus, built []*index.Index, f fits) error {
	fmt.Fprintf(w, `
## What was left out
R@1 and R@5 in points, with the 95 %% interval: with the weights as they are, with weights that were fitted to the other corpora
(each one 0, 0.5, 1 or 1.5 times), and with weights that were fitted to other servers; then the same by fold of the servers.

| | requests |`)
	for _, way := range ways {
		fmt.Fprintf(w, " %s: R@1 | R@5 |", way)
	}
	fmt.Fprint(w, "\n|---|---|---|---|---|---|---|---|\n")
	var rows []judged
	var figures []string
	for i, c := range all {
		for _, v := range variantsOf(c) {
			name := c.Name + v.name
			figures = append(figures, name)
			for _, r := range c.Requests {
				q := v.how(r)
				if q.Text == "" {
					continue
				}
				j := judged{figure: name, family: r.Family, fold: foldOf(r)}
				for way := range ways {
					q.Weigh = f.of(way, c.Name, r)
					a, err := built[i].Search(context.Background(), q)
					if err != nil {
						return fmt.Errorf("request %s: %w", r.ID, err)
					}
					j.got[way] = rate(ids(a.Hits), r.Gold)
				}
				rows = append(rows, j)
			}
		}
	}
	for _, name := range figures {
		printJudgedRow(w, name, rows, func(j judged) (string, bool) { return j.family, j.figure == name })
	}
	for n := range folds {
		plain := func(j judged) (string, bool) {
			return "", j.fold == n && slices.ContainsFunc(all, func(c *corpus) bool { return c.Name == j.figure })
		}
		printJudgedRow(w, fmt.Sprintf("servers, fold %d", n+1), rows, plain)
	}
	return nil
}

// variant is a way to ask the requests of a corpus.
type variant struct {
	name string
	how  ask
}

// variantsOf returns plain, and the variants with their own threshold.
func variantsOf(c *corpus) []variant {
	out := []variant{{"", plain}}
	if c.Name == "mcp" {
		out = append(out, variant{", server known", serverKnown}, variant{", one misspelled word", misspelled})
	}
	if len(c.Chinese) > 0 {
		out = append(out, variant{", in Chinese", func(r request) index.Query { return index.Query{Text: c.Chinese[r.ID], TopK: 10} }})
	}
	return out
}

// printJudgedRow prints the rows that of selects, averaged over the families that it
// returns.
func printJudgedRow(w io.Writer, name string, rows []judged, of func(judged) (string, bool)) {
	n := 0
	var got [3]struct{ r1, r5 families }
	for _, j := range rows {
		family, ok := of(j)
		if !ok {
			continue
		}
		n++
		for way := range ways {
			got[way].r1.add(family, j.got[way].R1)
			got[way].r5.add(family, j.got[way].R5)
		}
	}
	fmt.Fprintf(w, "| %s | %d |", name, n)
	for _, g := range got {
		fmt.Fprintf(w, " %s | %s |", g.r1, g.r5)
	}
	fmt.Fprintln(w)
}

// families holds samples that count equally in an average.
type families map[string]*sample

func (f *families) add(family string, x float64) {
	if *f == nil {
		*f = make(families)
	}
	if (*f)[family] == nil {
		(*f)[family] = new(sample)
	}
	(*f)[family].add(x)
}

// mean returns the mean of the families' means, with half the width of its 95 % interval.
func (f families) mean() (mean, interval float64) {
	for _, s := range f {
		mean += s.mean() / float64(len(f))
		interval += s.interval() * s.interval()
	}
	return mean, math.Sqrt(interval) / float64(len(f))
}

// String formats the mean in points with its interval.
func (f families) String() string {
	mean, interval := f.mean()
	return fmt.Sprintf("%.1f ± %.1f", 100*mean, 100*interval)
}
