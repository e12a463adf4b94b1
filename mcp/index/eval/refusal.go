package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// toolboxes are how many servers small toolboxes have. The second is the one of
// the floors.
var toolboxes = []int{1, 3, 10}

// thresholds of index.min_similarity that are tried.
var thresholds = []float64{0.3, 0.35, 0.4, 0.45, 0.5}

// printRefusal prints how often a small toolbox with the right server answers,
// and how often one without it says that no tool fits.
func printRefusal(w io.Writer, all []*corpus) ([]figure, error) {
	fmt.Fprintf(w, "\n## Saying no\nToolboxes of a few servers, with the request's own and without: answered with it / refused without it, in percent,\nby least score.\n\n| corpus, servers |")
	for _, t := range thresholds {
		fmt.Fprintf(w, " %g |", t)
	}
	fmt.Fprint(w, "\n|---|")
	for range thresholds {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w)
	var figures []figure
	for _, c := range all {
		for _, size := range toolboxes {
			kept, refused, err := refusal(c, size)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(w, "| %s, %d |", c.Name, size)
			for i, t := range thresholds {
				fmt.Fprintf(w, " %.0f / %.0f |", 100*kept[i], 100*refused[i])
				if c.Name == "mcp" && t == 0.4 && size == 3 {
					figures = append(figures, figure{name: "small toolboxes of mcp: answered with the right server", value: kept[i], floor: 0.92},
						figure{name: "small toolboxes of mcp: refused without it", value: refused[i], floor: 0.60})
				}
			}
			fmt.Fprintln(w)
		}
	}
	return figures, nil
}

// refusal returns the shares of the requests that are answered with the right
// server and refused without it, by threshold.
func refusal(c *corpus, size int) (kept, refused []float64, err error) {
	kept, refused = make([]float64, len(thresholds)), make([]float64, len(thresholds))
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
		with := append(slices.Clone(right), others[:min(len(others), max(0, size-len(right)))]...)
		for k, servers := range [][]store.Server{with, others} {
			best, err := bestScore(c, servers, r)
			if err != nil {
				return nil, nil, err
			}
			for i, t := range thresholds {
				switch share := 1 / float64(len(c.Requests)); {
				case k == 0 && best >= t:
					kept[i] += share
				case k == 1 && best < t:
					refused[i] += share
				}
			}
		}
	}
	return kept, refused, nil
}

// bestScore is the score of the first hit among some servers' tools.
func bestScore(c *corpus, servers []store.Server, r request) (float64, error) {
	few := corpus{Servers: servers, Tools: c.Tools}
	x, err := build(&few, index.Options{})
	if err != nil {
		return 0, err
	}
	defer x.Close()
	a, err := x.Search(context.Background(), plain(r))
	if err != nil || len(a.Hits) == 0 {
		return 0, err
	}
	return a.Hits[0].Score, nil
}
