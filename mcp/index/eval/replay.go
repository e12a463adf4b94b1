package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// usesPerServer is how many requests each server learns from at most.
const usesPerServer = 20

// replayed is what two halves of a corpus's requests were worth to each other.
type replayed struct {
	before, after           score // of all requests
	freshBefore, freshAfter score // of those of whose tools nothing was learned
	fresh                   int
}

// halves puts a request into one of two halves.
type halves func(r request) uint32

// byText leaves most servers, and many tools, with requests in both halves.
func byText(r request) uint32 { return coin(r.Text) }

// byServer leaves a server's requests in one half: what others were used for is
// all that is known.
func byServer(r request) uint32 {
	s, _, _ := store.SplitToolID(r.Gold[0])
	return coin("server " + s)
}

func coin(s string) uint32 {
	h := fnv.New32a()
	io.WriteString(h, s)
	return h.Sum32() >> 7 & 1
}

// replay asks each half of the requests of an index that has learned from the
// other, and of one that has not. A tool is learned as in the daemon: only
// where the search answered with it, and it was one of the right ones, since a
// wrong one would not have been called with success.
func replay(c *corpus, half halves) (replayed, error) {
	var out replayed
	all, fresh := [2]tallies{{}, {}}, [2]tallies{{}, {}}
	x, err := build(c, index.Options{})
	if err != nil {
		return out, err
	}
	defer x.Close()
	for fold := range uint32(2) {
		x.ClearFeedback()
		var asked []request
		var used []request
		for _, r := range c.Requests {
			if half(r) == fold {
				asked = append(asked, r)
			} else {
				used = append(used, r)
			}
		}
		before, err := rankings(x, asked)
		if err != nil {
			return out, err
		}
		known, err := learn(x, used)
		if err != nil {
			return out, err
		}
		after, err := rankings(x, asked)
		if err != nil {
			return out, err
		}
		for i, r := range asked {
			all[0].add(r.Family, rate(before[i], r.Gold))
			all[1].add(r.Family, rate(after[i], r.Gold))
			if !slices.ContainsFunc(r.Gold, func(id string) bool { return known[id] != nil }) {
				// Over all of them: by family they are too few.
				fresh[0].add("", rate(before[i], r.Gold))
				fresh[1].add("", rate(after[i], r.Gold))
				out.fresh++
			}
		}
	}
	out.before, out.after = all[0].mean(), all[1].mean()
	out.freshBefore, out.freshAfter = fresh[0].mean(), fresh[1].mean()
	return out, nil
}

// learn teaches the index what the requests would have taught the daemon.
func learn(x *index.Index, used []request) (map[string][]store.Feedback, error) {
	known := make(map[string][]store.Feedback)
	uses := make(map[string]int)
	for _, r := range used {
		a, err := x.Search(context.Background(), index.Query{Text: r.Text})
		if err != nil {
			return nil, err
		}
		for _, h := range a.Hits {
			id := h.Tool.ID()
			if uses[h.Tool.Server] < usesPerServer && slices.Contains(r.Gold, id) {
				uses[h.Tool.Server]++
				words, values := x.FeedbackWords(r.Text)
				known[id] = store.MergeFeedback(known[id], store.Feedback{Tool: id, Words: words, Values: values})
			}
		}
	}
	for id, list := range known {
		x.SetFeedback(id, list)
	}
	return known, nil
}

// rankings are the first ten tools for each request.
func rankings(x *index.Index, requests []request) ([][]string, error) {
	out := make([][]string, len(requests))
	for i, r := range requests {
		a, err := x.Search(context.Background(), plain(r))
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", r.ID, err)
		}
		for _, h := range a.Hits {
			out[i] = append(out[i], h.Tool.ID())
		}
	}
	return out, nil
}

// tally is a sum of scores.
type tally struct {
	sum score
	n   float64
}

// tallies sum scores up by family.
type tallies map[string]*tally

func (t tallies) add(family string, one score) {
	f := t[family]
	if f == nil {
		f = new(tally)
		t[family] = f
	}
	f.n++
	for i, m := range f.sum.metrics() {
		*m += *one.metrics()[i]
	}
}

// mean is that of the families' means.
func (t tallies) mean() score {
	var all score
	for _, f := range t {
		for i, m := range all.metrics() {
			*m += *f.sum.metrics()[i] / f.n / float64(len(t))
		}
	}
	return all
}

// printReplay shows what learning from use gives, and that tools and servers
// which were never used do not pay for it.
func printReplay(w io.Writer, all []*corpus) ([]figure, error) {
	fmt.Fprintf(w, `
## Learning from use
Half of the requests after up to %d of the other half for each server, both ways round; then the servers of one half
after the requests of the other servers. Never used: nothing was learned of any of the right tools.

| corpus | requests | R@1 | R@5 | never used: requests | R@1 | R@5 |
|---|---|---|---|---|---|---|
`, usesPerServer)
	var figures []figure
	var loss [2]float64 // summed over the never-used tools of all corpora
	var fresh float64
	for _, how := range []struct {
		name string
		half halves
	}{{"", byText}, {", other servers used", byServer}} {
		for _, c := range all {
			r, err := replay(c, how.half)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(w, "| %s%s | %d | %.3f → %.3f | %.3f → %.3f | %d | %.3f → %.3f | %.3f → %.3f |\n", c.Name, how.name, len(c.Requests),
				r.before.R1, r.after.R1, r.before.R5, r.after.R5, r.fresh, r.freshBefore.R1, r.freshAfter.R1, r.freshBefore.R5, r.freshAfter.R5)
			n := float64(r.fresh)
			fresh += n
			loss[0] += n * (r.freshBefore.R1 - r.freshAfter.R1)
			loss[1] += n * (r.freshBefore.R5 - r.freshAfter.R5)
			if c.Name == "mcp" && how.name == "" {
				figures = append(figures, figure{name: "learned: mcp R@1 gains", value: r.after.R1 - r.before.R1, floor: 0.02},
					figure{name: "learned: mcp R@5 gains", value: r.after.R5 - r.before.R5, floor: 0})
			}
		}
	}
	return append(figures, figure{name: "learned: never-used tools lose R@1", value: loss[0] / fresh, floor: 0.01, below: true},
		figure{name: "learned: never-used tools lose R@5", value: loss[1] / fresh, floor: 0.01, below: true}), nil
}
