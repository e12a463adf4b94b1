package main

import (
	"context"
	"fmt"
	"io"

	"nize/mcp/index"
)

// factors lists the tested factors of a signal's weight; 1 is the current weight, 0
// disables the signal.
var factors = []float64{0, 0.5, 1, 1.5}

// plainFactor is the index of 1 in factors.
const plainFactor = 2

// trial is one request with its score by factor.
type trial struct {
	corpus string
	fold   int // of its server
	scores []score
}

// printSignals prints the value of each signal, judged across corpora: the cost of
// disabling it, and the same with its weight fitted to other data: each corpus in turn is
// held out, and each fifth of the servers; the weight is fitted to the rest among the
// factors (best mean of R@1 and R@5), and the held-out requests are asked with that weight
// and without the signal. The other weights stay unchanged. A change of a weight counts
// only if both improve.
func printSignals(w io.Writer, all []*corpus, tried map[index.Signal][]trial) {
	fmt.Fprint(w, `
## What each signal is worth
In points, with the 95 % interval, over the requests of all corpora: what leaving it out costs with its weight as it is, with
its weight fitted to the other corpora (0, 0.5, 1 or 1.5 times), and with its weight fitted to other servers.

| signal | left out: R@1 | R@5 | other corpora: R@1 | R@5 | other servers: R@1 | R@5 | both |
|---|---|---|---|---|---|---|---|
`)
	for _, s := range index.Signals {
		trials := tried[s]
		if trials == nil {
			continue
		}
		left := cost(trials, func(trial) bool { return true }, plainFactor)
		var corpora, servers change
		for _, c := range all {
			out := func(t trial) bool { return t.corpus == c.Name }
			corpora.join(cost(trials, out, fit(trials, out)))
		}
		for f := range folds {
			out := func(t trial) bool { return t.fold == f }
			servers.join(cost(trials, out, fit(trials, out)))
		}
		both := "no"
		if worth(corpora) && worth(servers) {
			both = "yes"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", s, left.r1.points(), left.r5.points(),
			corpora.r1.points(), corpora.r5.points(), servers.r1.points(), servers.r5.points(), both)
	}
}

// leftOut prints the results with weights that were fitted without the judged data: for the
// corpora, and for each signal.
func leftOut(w io.Writer, all []*corpus) error {
	built := make([]*index.Index, len(all))
	for i, c := range all {
		x, err := build(c, index.Options{})
		if err != nil {
			return err
		}
		defer x.Close()
		built[i] = x
	}
	tried := make(map[index.Signal][]trial)
	for _, s := range index.Signals {
		if s == index.History || s == index.Use || s == index.Chinese {
			continue // see the variants, and learning from use
		}
		trials, err := try(all, built, s)
		if err != nil {
			return err
		}
		tried[s] = trials
	}
	if err := printJudged(w, all, built, fitWeights(all, tried)); err != nil {
		return err
	}
	printSignals(w, all, tried)
	return nil
}

// try asks all requests with each factor of a signal's weight.
func try(all []*corpus, built []*index.Index, s index.Signal) ([]trial, error) {
	var out []trial
	for i, c := range all {
		for _, r := range c.Requests {
			t := trial{corpus: c.Name, fold: foldOf(r)}
			for _, f := range factors {
				q := plain(r)
				q.Weigh = map[index.Signal]float64{s: f}
				a, err := built[i].Search(context.Background(), q)
				if err != nil {
					return nil, fmt.Errorf("request %s: %w", r.ID, err)
				}
				t.scores = append(t.scores, rate(ids(a.Hits), r.Gold))
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// fit returns the best factor for the data that is not held out.
func fit(trials []trial, out func(trial) bool) int {
	best, most := plainFactor, -1.0
	for f := range factors {
		sum := 0.0
		for _, t := range trials {
			if !out(t) {
				sum += t.scores[f].R1 + t.scores[f].R5
			}
		}
		if sum > most {
			best, most = f, sum
		}
	}
	return best
}

// cost returns the cost of disabling the signal for the selected trials, relative to a
// factor.
func cost(trials []trial, of func(trial) bool, factor int) (c change) {
	for _, t := range trials {
		if of(t) {
			c.add(t.scores[factor], t.scores[0])
		}
	}
	return c
}

// worth reports whether disabling the signal costs more than chance.
func worth(c change) bool {
	return c.r1.mean()+c.r5.mean() < -max(c.r1.interval(), c.r5.interval())
}
