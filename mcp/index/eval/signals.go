package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"nize/mcp/index"
)

// factors are what a signal's weight is tried with; 1 is as tuned, 0 without.
var factors = []float64{0, 0.5, 1, 1.5}

// printSignals prints what each signal is worth in R@1 and R@5: what leaving it
// out costs with all weights as they are tuned, and the same cross-validated
// over families. There each family in turn is held out, the signal's weight is
// fitted again on the others among the factors (best mean of R@1 and R@5), and
// the held-out family is asked with that weight and without the signal; the
// other weights stay. So what is printed last was not fitted to the family that
// it is measured on.
func printSignals(w io.Writer, all []*corpus) error {
	built := make(map[string]*index.Index)
	for _, c := range all {
		x, err := build(c, index.Options{})
		if err != nil {
			return err
		}
		defer x.Close()
		built[c.Name] = x
	}
	families := func(weigh map[index.Signal]float64) (map[string]score, error) {
		out := make(map[string]score)
		for _, c := range all {
			r, err := measure(built[c.Name], c.Requests, func(r request) index.Query {
				q := plain(r)
				q.Weigh = weigh
				return q
			})
			if err != nil {
				return nil, err
			}
			maps.Copy(out, r.Families)
		}
		return out, nil
	}
	tuned, err := families(nil)
	if err != nil {
		return err
	}
	fams := slices.Sorted(maps.Keys(tuned))
	fmt.Fprint(w, `
## What each signal is worth
In points. Left out: what that costs with the other weights as they are, as the mean of the families, and how many
families it costs or gains more than a point of R@5. Cross-validated: the same for each family with the signal's weight
fitted anew on the other families alone (0, 0.5, 1 or 1.5 times as tuned). Two points on one family are noise.

| signal | left out: R@1 | R@5 | costs | gains | cross-validated: R@1 | R@5 | by family, R@5 left out: `)
	for i, f := range fams {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprint(w, f)
	}
	fmt.Fprint(w, " |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range index.Signals {
		if s == index.History || s == index.Use {
			continue // they need a past: see the variants, and learning from use
		}
		by := make(map[float64]map[string]score)
		for _, f := range factors {
			if by[f] = tuned; f != 1 {
				if by[f], err = families(map[index.Signal]float64{s: f}); err != nil {
					return err
				}
			}
		}
		printSignal(w, s, fams, by)
	}
	return nil
}

// printSignal prints one row; by has the families' scores by factor.
func printSignal(w io.Writer, s index.Signal, fams []string, by map[float64]map[string]score) {
	var plainCost, validated score
	costs, gains, list := 0, 0, ""
	for i, f := range fams {
		without, with := by[0][f], by[1][f]
		fitted := by[fit(by, fams, f)][f]
		n := float64(len(fams))
		plainCost.R1 += (without.R1 - with.R1) / n
		plainCost.R5 += (without.R5 - with.R5) / n
		validated.R1 += (without.R1 - fitted.R1) / n
		validated.R5 += (without.R5 - fitted.R5) / n
		switch d := with.R5 - without.R5; {
		case d > 0.01:
			costs++
		case d < -0.01:
			gains++
		}
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%+.1f", 100*(without.R5-with.R5))
	}
	fmt.Fprintf(w, "| %s | %+.1f | %+.1f | %d | %d | %+.1f | %+.1f | %s |\n", s, 100*plainCost.R1, 100*plainCost.R5, costs, gains, 100*validated.R1, 100*validated.R5, list)
}

// fit returns the factor that is best for all families but one.
func fit(by map[float64]map[string]score, fams []string, but string) float64 {
	best, most := 1.0, -1.0
	for _, factor := range factors {
		sum := 0.0
		for _, f := range fams {
			if f != but {
				sum += by[factor][f].R1 + by[factor][f].R5
			}
		}
		if sum > most {
			best, most = factor, sum
		}
	}
	return best
}
