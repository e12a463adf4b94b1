package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// orders is the number of orders in which the requests of a corpus are replayed.
const orders = 3

// replayed is the effect of learning on the requests of a corpus over time: on all of them,
// on those whose tools include one that was used before, and on the rest.
type replayed struct{ all, used, fresh change }

// replay asks an index that learns, and one that doesn't, all requests of a corpus in turn:
// only earlier uses count. A tool is learned like in the daemon: only if the search
// returned it and it was one of the right ones, because a wrong one would not have been
// called successfully.
func replay(c *corpus) (replayed, error) {
	var out replayed
	x, err := build(c, index.Options{})
	if err != nil {
		return out, err
	}
	defer x.Close()
	plainly, err := rankings(x, c.Requests)
	if err != nil {
		return out, err
	}
	for seed := range uint64(orders) {
		x.ClearFeedback()
		known := make(map[string][]store.Feedback)
		for _, n := range rand.New(rand.NewPCG(seed, 1)).Perm(len(c.Requests)) {
			r := c.Requests[n]
			hits, err := rankings(x, []request{r})
			if err != nil {
				return out, err
			}
			before, after := rate(plainly[n], r.Gold), rate(hits[0], r.Gold)
			part := &out.fresh
			if slices.ContainsFunc(r.Gold, func(id string) bool { return known[id] != nil }) {
				part = &out.used
			}
			part.add(before, after)
			out.all.add(before, after)
			for _, id := range hits[0][:min(len(hits[0]), index.DefaultTopK)] {
				if slices.Contains(r.Gold, id) {
					words, values := x.FeedbackWords(r.Text)
					known[id] = store.MergeFeedback(known[id], store.Feedback{Tool: id, Words: words, Values: values})
					x.SetFeedback(id, known[id])
				}
			}
		}
	}
	return out, nil
}

// rankings returns the first ten tools for each request.
func rankings(x *index.Index, requests []request) ([][]string, error) {
	out := make([][]string, len(requests))
	for i, r := range requests {
		a, err := x.Search(context.Background(), plain(r))
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", r.ID, err)
		}
		out[i] = ids(a.Hits)
	}
	return out, nil
}

func ids(hits []store.Hit) (out []string) {
	for _, h := range hits {
		out = append(out, h.Tool.ID())
	}
	return out
}

func coin(s string) uint32 {
	h := fnv.New32a()
	io.WriteString(h, s)
	return h.Sum32() >> 7 & 1
}

// printReplay prints the gain from learning from use, and shows that it doesn't cost tools
// which were never used.
func printReplay(w io.Writer, all []*corpus) ([]figure, error) {
	fmt.Fprintf(w, `
## Learning from use
The requests of a corpus one after the other, in %d orders; only the uses before a request count for it. In points,
with the 95 %% interval.

| corpus | all: requests | R@1 | R@5 | a right tool was used before: requests | R@1 | R@5 | never used: requests | R@1 | R@5 |
|---|---|---|---|---|---|---|---|---|---|
`, orders)
	var figures []figure
	var fresh change
	for _, c := range all {
		r, err := replay(c)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", c.Name, r.all, r.used, r.fresh)
		fresh.join(r.fresh)
		if c.Name == "mcp" {
			figures = append(figures, figure{name: "learned: mcp R@1 gains, tools used before", value: r.used.r1.mean(), give: r.used.r1.interval(), floor: 0.02},
				figure{name: "learned: mcp R@5 gains, tools used before", value: r.used.r5.mean(), give: r.used.r5.interval(), floor: 0})
		}
	}
	return append(figures, figure{name: "learned: never-used tools lose R@1", value: -fresh.r1.mean(), give: fresh.r1.interval(), floor: 0.005, below: true},
		figure{name: "learned: never-used tools lose R@5", value: -fresh.r5.mean(), give: fresh.r5.interval(), floor: 0.005, below: true}), nil
}
