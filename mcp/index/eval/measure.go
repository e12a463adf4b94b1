package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode"

	"nize/mcp/index"
	"nize/store"
)

// score is the average quality of the answers to requests.
type score struct {
	R1, R3, R5, R10, MRR, NDCG float64
}

// metrics returns the components of a score, for adding and dividing.
func (s *score) metrics() []*float64 {
	return []*float64{&s.R1, &s.R3, &s.R5, &s.R10, &s.MRR, &s.NDCG}
}

// rate scores one ranking: recall is the share of the gold tools among the
// first k, MRR takes the first gold tool, nDCG has binary gains.
func rate(hits, gold []string) score {
	var s score
	dcg, ideal := 0.0, 0.0
	for i, h := range hits[:min(len(hits), 10)] {
		if !slices.Contains(gold, h) {
			continue
		}
		share := 1 / float64(len(gold))
		for k, r := range map[int]*float64{1: &s.R1, 3: &s.R3, 5: &s.R5, 10: &s.R10} {
			if i < k {
				*r += share
			}
		}
		if s.MRR == 0 {
			s.MRR = 1 / float64(i+1)
		}
		dcg += 1 / math.Log2(float64(i+2))
	}
	for i := range min(len(gold), 10) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	s.NDCG = dcg / ideal
	return s
}

// result is the measurement of a corpus.
type result struct {
	All      score            // the mean of the families, so that a large one doesn't dominate
	Families map[string]score // averages
	Times    []time.Duration  // of each search, sorted
	r1, r5   families
}

// quantile returns a quantile of the search times.
func (r result) quantile(p float64) time.Duration {
	if len(r.Times) == 0 {
		return 0
	}
	return r.Times[min(len(r.Times)-1, int(p*float64(len(r.Times))))]
}

// ask converts a request to a query.
type ask func(r request) index.Query

func plain(r request) index.Query { return index.Query{Text: r.Text, TopK: 10} }

// serverKnown searches only the servers of the gold tools.
func serverKnown(r request) index.Query {
	servers := make(map[string]bool)
	for _, g := range r.Gold {
		s, _, _ := store.SplitToolID(g)
		servers[s] = true
	}
	q := plain(r)
	q.Keep = func(t store.Tool) bool { return servers[t.Server] }
	return q
}

// serverUsed returns an ask with three servers used earlier in the conversation, including
// that of the first gold tool.
func serverUsed(all []store.Server) ask {
	return func(r request) index.Query {
		s, _, _ := store.SplitToolID(r.Gold[0])
		q := plain(r)
		at := len(r.Text) % len(all) // two arbitrary others, the same in each run
		q.Servers = []string{all[at].Name, s, all[(at+97)%len(all)].Name}
		return q
	}
}

// otherServersUsed returns an ask with the servers of three other requests as used.
func otherServersUsed(requests []request) ask {
	return func(r request) index.Query {
		q := plain(r)
		for i := range 3 {
			s, _, _ := store.SplitToolID(requests[(7*len(r.Text)+97*i)%len(requests)].Gold[0])
			q.Servers = append(q.Servers, s)
		}
		return q
	}
}

// misspelled swaps two letters inside the longest word.
func misspelled(r request) index.Query {
	r.Text = misspell(r.Text)
	return plain(r)
}

func misspell(text string) string {
	best, at := "", -1
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && text[j] < 128 && unicode.IsLetter(rune(text[j])) {
			j++
		}
		if j-i > len(best) {
			best, at = text[i:j], i
		}
		i = j + 1
	}
	if len(best) < 6 {
		return text
	}
	for m := at + len(best)/2; m < at+len(best)-1; m++ {
		if text[m] != text[m+1] {
			return text[:m] + string(text[m+1]) + string(text[m]) + text[m+2:]
		}
	}
	return text
}

// build builds an index of a corpus with the same functions as the daemon.
func build(c *corpus, o index.Options) (*index.Index, error) {
	x := index.New(o)
	for _, s := range c.Servers {
		if err := x.Replace(context.Background(), s, c.Tools[s.Name]); err != nil {
			x.Close()
			return nil, err
		}
	}
	return x, nil
}

// measure answers and scores all requests.
func measure(x *index.Index, requests []request, how ask) (result, error) {
	res := result{Families: make(map[string]score)}
	n := make(map[string]float64)
	for _, r := range requests {
		q := how(r)
		start := time.Now()
		a, err := x.Search(context.Background(), q)
		res.Times = append(res.Times, time.Since(start))
		if err != nil {
			return res, fmt.Errorf("request %s: %w", r.ID, err)
		}
		one, sum := rate(ids(a.Hits), r.Gold), res.Families[r.Family]
		res.r1.add(r.Family, one.R1)
		res.r5.add(r.Family, one.R5)
		for i, m := range sum.metrics() {
			*m += *one.metrics()[i]
		}
		res.Families[r.Family] = sum
		n[r.Family]++
	}
	for f, sum := range res.Families {
		for _, m := range sum.metrics() {
			*m /= n[f]
		}
		res.Families[f] = sum
		for i, m := range res.All.metrics() {
			*m += *sum.metrics()[i] / float64(len(n))
		}
	}
	slices.Sort(res.Times)
	return res, nil
}

// grow returns a corpus of n tools: mcp unchanged, and then the other corpora repeatedly,
// under other server names.
func grow(all []*corpus, n int) *corpus {
	big := &corpus{Name: fmt.Sprintf("%d tools", n), Tools: make(map[string][]store.Tool)}
	total := 0
	add := func(s store.Server, tools []store.Tool) bool {
		for _, t := range tools[:min(len(tools), n-total)] {
			t.Server = s.Name
			big.Tools[s.Name] = append(big.Tools[s.Name], t)
			total++
		}
		big.Servers = append(big.Servers, s)
		return total == n
	}
	for round := 0; ; round++ {
		for _, c := range all {
			if c.Name == "mcp" && round > 0 && len(all) > 1 {
				continue // a copy of the right tool would be just as right
			}
			for _, s := range c.Servers {
				tools := c.Tools[s.Name]
				if c.Name != "mcp" || round > 0 {
					s.Name = fmt.Sprintf("%s-%s-%d", c.Name, s.Name, round)
				}
				if add(s, tools) {
					return big
				}
			}
		}
	}
}
