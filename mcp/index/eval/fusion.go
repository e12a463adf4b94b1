package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"nize/mcp/index"
	"nize/store"
)

// recorded is an embedder that ranks like a large model did: each tool has its own
// direction, and a request points to the tools that the model ranked first, in that order.
type recorded struct {
	dims     int
	tools    map[string]int // tool id → direction
	requests map[string][]string
}

func record(c *corpus) *recorded {
	r := &recorded{tools: make(map[string]int), requests: make(map[string][]string)}
	for _, ts := range c.Tools {
		for _, t := range ts {
			r.tools[t.ID()] = len(r.tools)
		}
	}
	r.dims = len(r.tools)
	for _, q := range c.Requests {
		r.requests[q.Text] = c.Dense[q.ID]
	}
	return r
}

func (r *recorded) Model() string { return "recorded/text-embedding-3-large" }

func (r *recorded) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		v := make([]float32, r.dims)
		if top, ok := r.requests[t]; ok {
			for rank, id := range top {
				v[r.tools[id]] = float32(10 - rank)
			}
		} else if at, ok := r.tools[toolOf(t)]; ok {
			v[at] = 1
		} else {
			return nil, errors.New("a text that was not recorded")
		}
		out[i] = v
	}
	return out, nil
}

// toolOf returns the tool's id from the first line of its embedded text: "name (server)".
func toolOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	i := strings.LastIndex(line, " (")
	if i < 0 {
		return ""
	}
	return strings.TrimSuffix(line[i+2:], ")") + ":" + line[:i]
}

// unsteady behaves like a large model for every other request, and returns noise for the
// rest.
type unsteady struct{ *recorded }

func (unsteady) Model() string { return "unsteady/half of text-embedding-3-large" }

func (u unsteady) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out, err := u.recorded.Embed(ctx, texts)
	for i := range out {
		if _, request := u.requests[texts[i]]; request && coin(texts[i]) == 0 {
			rnd := rand.New(rand.NewPCG(uint64(len(texts[i])), 1))
			for j := range out[i] {
				out[i][j] = float32(rnd.NormFloat64())
			}
		}
	}
	return out, err
}

// useless is an embedder that must not degrade the ranking: every text has its own
// direction, or all have the same, or only letters count.
type useless struct{ kind string }

func (u useless) Model() string { return "useless/" + u.kind }

func (u useless) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		v := make([]float32, 32)
		switch u.kind {
		case "random":
			h := fnv.New64a()
			io.WriteString(h, t)
			rnd := rand.New(rand.NewPCG(h.Sum64(), 1))
			for j := range v {
				v[j] = float32(rnd.NormFloat64())
			}
		case "constant":
			v[0] = 1
		case "letters":
			for j := range len(t) {
				v[t[j]%32]++
			}
		}
		out[i] = v
	}
	return out, nil
}

// azureOnly returns the part of the corpus that the recorded model ranked.
func azureOnly(c *corpus) *corpus {
	part := &corpus{Name: "azure", Tools: make(map[string][]store.Tool), Dense: c.Dense}
	for _, s := range c.Servers {
		if strings.HasPrefix(s.Name, "azure-") {
			part.Servers = append(part.Servers, s)
			part.Tools[s.Name] = c.Tools[s.Name]
		}
	}
	for _, r := range c.Requests {
		if r.Family == "azure" {
			part.Requests = append(part.Requests, r)
		}
	}
	return part
}

// patience is the timeout for embedding a corpus on the slowest machine.
const patience = 5 * time.Minute

// settle builds an index of a corpus with a configured embedder and waits until its vectors
// are active.
func settle(c *corpus, e index.Embedder, share float64) (*index.Index, error) {
	x, err := build(c, index.Options{Embedder: e, Fusion: func() float64 { return share }})
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if model, have, tools := x.Vectors(); model == e.Model() && have == tools {
			return x, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.Close()
	return nil, fmt.Errorf("the vectors of %s did not come", e.Model())
}

// printFusion prints the gain from fusing with a large model, and the cost of a useless
// one. The large model's own list is the result of share 1 without the guard: R@1 .983, R@5
// .996.
func printFusion(w io.Writer, c *corpus) ([]figure, error) {
	fmt.Fprintf(w, "\n## With an embedding model\n\n| corpus | model | share | R@1 | R@3 | R@5 |\n|---|---|---|---|---|---|\n")
	row := func(c *corpus, e index.Embedder, share float64) (score, error) {
		x, err := settle(c, e, share)
		if err != nil {
			return score{}, err
		}
		defer x.Close()
		r, err := measure(x, c.Requests, plain)
		if err != nil {
			return score{}, err
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %.3f | %.3f | %.3f |\n", c.Name, e.Model(), share, r.All.R1, r.All.R3, r.All.R5)
		return r.All, nil
	}
	azure := azureOnly(c)
	dense := denseAlone(azure)
	fmt.Fprintf(w, "| azure | the model's own list | | %.3f | %.3f | %.3f |\n", dense.R1, dense.R3, dense.R5)
	var figures []figure
	for _, share := range []float64{0, 0.25, 0.5, 0.75, index.DefaultFusion, 1} {
		s, err := row(azure, record(azure), share)
		if err != nil {
			return nil, err
		}
		if share == index.DefaultFusion {
			figures = append(figures, figure{name: "fused: azure R@1 below the model's own", value: dense.R1 - s.R1, floor: 0.02, below: true},
				figure{name: "fused: azure R@5 below the model's own", value: dense.R5 - s.R5, floor: 0.02, below: true})
		}
	}
	if _, err := row(azure, unsteady{record(azure)}, index.DefaultFusion); err != nil {
		return nil, err
	}
	worst := score{R1: -1, R5: -1} // largest loss from a useless model
	for _, c := range []*corpus{azure, c} {
		words, err := row(c, useless{"random"}, 0)
		if err != nil {
			return nil, err
		}
		for _, kind := range []string{"random", "constant", "letters"} {
			s, err := row(c, useless{kind}, index.DefaultFusion)
			if err != nil {
				return nil, err
			}
			worst.R1, worst.R5 = max(worst.R1, words.R1-s.R1), max(worst.R5, words.R5-s.R5)
		}
	}
	return append(figures, figure{name: "fused: R@1 lost by a useless model", value: worst.R1, floor: 0.005, below: true},
		figure{name: "fused: R@5 lost by a useless model", value: worst.R5, floor: 0.005, below: true}), nil
}

// denseAlone scores the large model's lists.
func denseAlone(c *corpus) (mean score) {
	for _, r := range c.Requests {
		one := rate(c.Dense[r.ID], r.Gold)
		for i, m := range mean.metrics() {
			*m += *one.metrics()[i] / float64(len(c.Requests))
		}
	}
	return mean
}
