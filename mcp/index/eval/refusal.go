package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// toolboxes lists the numbers of servers of small toolboxes. The thresholds use the second.
var toolboxes = []int{1, 3, 10}

// thresholds lists the tested values of index.min_similarity; those between the printed
// ones are only used for fitting.
var thresholds = []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7}

// shownFrom and shownTo are the range of thresholds that is printed; standing is the index
// of the default setting.
const shownFrom, shownTo, standing = 2, 7, 4

// toolbox is a request to a small toolbox.
type toolbox struct {
	corpus string
	fold   int
	size   int
	// The first hit's score by factor of [index.Said], in the toolbox with the request's
	// own server and in the one without it.
	with, without []float64
}

// printRefusal prints how often a small toolbox with the right server answers, and how
// often one without it reports that no tool fits.
func printRefusal(w io.Writer, all []*corpus) ([]figure, error) {
	var boxes []toolbox
	for _, c := range all {
		for _, size := range toolboxes {
			more, err := fillToolboxes(c, size)
			if err != nil {
				return nil, err
			}
			boxes = append(boxes, more...)
		}
	}
	fmt.Fprintf(w, "\n## Saying no\nToolboxes of a few servers, with the request's own and without: answered with it / refused without it, in percent,\nby least score.\n\n| corpus, servers |")
	for _, t := range thresholds[shownFrom:shownTo] {
		fmt.Fprintf(w, " %g |", t)
	}
	fmt.Fprintln(w, "\n|---|---|---|---|---|---|")
	each(all, func(name string, of func(toolbox) bool) {
		fmt.Fprintf(w, "| %s |", name)
		for t := shownFrom; t < shownTo; t++ {
			kept, refused := judgeRefusal(boxes, of, func(toolbox) rule { return rule{plainFactor, t} })
			fmt.Fprintf(w, " %.0f / %.0f |", 100*kept.mean(), 100*refused.mean())
		}
		fmt.Fprintln(w)
	})
	return printRefusalLeftOut(w, all, boxes), nil
}

// printRefusalLeftOut prints the same for rules that were fitted without the data on which
// they are judged.
func printRefusalLeftOut(w io.Writer, all []*corpus, boxes []toolbox) (figures []figure) {
	fmt.Fprintf(w, `
The same with the 95 %% interval (Wilson): at %g, and with a least score and a weight of what one tool says of the request
(0, 0.5, 1 or 1.5 times) that were fitted to the other corpora, and to other servers.

| corpus, servers | requests | as it is: answered | refused | other corpora's: answered | refused | other servers': answered | refused |
|---|---|---|---|---|---|---|---|
`, thresholds[standing])
	byCorpus, byFold := make(map[string]rule), make(map[int]rule)
	for _, c := range all {
		byCorpus[c.Name] = fitRule(boxes, func(b toolbox) bool { return b.corpus == c.Name })
	}
	for n := range folds {
		byFold[n] = fitRule(boxes, func(b toolbox) bool { return b.fold == n })
	}
	asItIs := func(toolbox) rule { return rule{plainFactor, standing} }
	row := func(name string, of func(toolbox) bool) {
		fmt.Fprintf(w, "| %s |", name)
		for i, by := range []func(toolbox) rule{asItIs, func(b toolbox) rule { return byCorpus[b.corpus] }, func(b toolbox) rule { return byFold[b.fold] }} {
			kept, refused := judgeRefusal(boxes, of, by)
			if i == 0 {
				fmt.Fprintf(w, " %.0f |", kept.n)
			}
			fmt.Fprintf(w, " %s | %s |", kept.percent(), refused.percent())
			if name == "mcp, 3" && i == 0 {
				figures = []figure{{name: "small toolboxes of mcp: answered with the right server", value: kept.mean(), give: kept.interval(), floor: 0.92},
					{name: "small toolboxes of mcp: refused without it", value: refused.mean(), give: refused.interval(), floor: 0.60}}
			}
		}
		fmt.Fprintln(w)
	}
	each(all, row)
	for n := range folds {
		row(fmt.Sprintf("servers, fold %d", n+1), func(b toolbox) bool { return b.fold == n })
	}
	return figures
}

// each calls row for each corpus and size of a toolbox.
func each(all []*corpus, row func(name string, of func(toolbox) bool)) {
	for _, c := range all {
		for _, size := range toolboxes {
			row(fmt.Sprintf("%s, %d", c.Name, size), func(b toolbox) bool { return b.corpus == c.Name && b.size == size })
		}
	}
}

// rule refuses below a threshold of the score that a factor yields; both are indexes.
type rule struct{ factor, threshold int }

// judgeRefusal counts the requests that are answered with the right server, and those that
// are refused without it.
func judgeRefusal(boxes []toolbox, of func(toolbox) bool, by func(toolbox) rule) (kept, refused sample) {
	for _, b := range boxes {
		if !of(b) {
			continue
		}
		r := by(b)
		kept.add(toShare(b.with[r.factor] >= thresholds[r.threshold]))
		refused.add(toShare(b.without[r.factor] < thresholds[r.threshold]))
	}
	return kept, refused
}

func toShare(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// fitRule returns the rule that is right most often for the data that is not held out.
func fitRule(boxes []toolbox, out func(toolbox) bool) rule {
	best, most := rule{plainFactor, standing}, -1.0
	for f := range factors {
		for t := range thresholds {
			kept, refused := judgeRefusal(boxes, func(b toolbox) bool { return !out(b) }, func(toolbox) rule { return rule{f, t} })
			if right := kept.mean() + refused.mean(); right > most {
				best, most = rule{f, t}, right
			}
		}
	}
	return best
}

// percent formats a share in percent with Wilson's interval.
func (s sample) percent() string {
	const z = 1.96
	p, n := s.mean(), max(s.n, 1)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return fmt.Sprintf("%.0f (%.0f–%.0f)", 100*p, 100*(middle-half), 100*(middle+half))
}

// fillToolboxes asks the requests of a corpus in toolboxes of that size.
func fillToolboxes(c *corpus, size int) ([]toolbox, error) {
	var out []toolbox
	for n, r := range c.Requests {
		var right, others []store.Server
		for i := range c.Servers {
			s := c.Servers[(i+n*7919)%len(c.Servers)]
			own := slices.ContainsFunc(r.Gold, func(id string) bool { server, _, _ := store.SplitToolID(id); return server == s.Name })
			if own {
				right = append(right, s)
			} else if len(others) < size {
				others = append(others, s)
			}
		}
		right = append(right, others[:min(len(others), max(0, size-len(right)))]...)
		b := toolbox{corpus: c.Name, fold: foldOf(r), size: size}
		var err error
		if b.with, err = bestScores(c, right, r); err != nil {
			return nil, err
		}
		if b.without, err = bestScores(c, others, r); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// bestScores returns the scores of the first hit among some servers' tools, by factor of
// [index.Said].
func bestScores(c *corpus, servers []store.Server, r request) ([]float64, error) {
	few := corpus{Servers: servers, Tools: c.Tools}
	x, err := build(&few, index.Options{})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	out := make([]float64, len(factors))
	for i, f := range factors {
		q := plain(r)
		q.Weigh = weighing{index.Said: f}
		a, err := x.Search(context.Background(), q)
		if err != nil {
			return nil, err
		}
		if len(a.Hits) > 0 {
			out[i] = a.Hits[0].Score
		}
	}
	return out, nil
}
