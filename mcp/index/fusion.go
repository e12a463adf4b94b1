package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
)

const (
	rankOffset = 60 // of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)
	denseDepth = 50

	sampled  = 512 // tools that show how a request's cosines are spread
	witness  = 3   // first places by words that are held against the spread
	doubt    = 2.4 // standard deviations: up to here the model is not followed, from half as much again on fully
	doubtOfN = 0.33

	// A model whose witnesses stood out in at least reliable of its requests is
	// followed more and more also where they do not, up to proven fully.
	reliable = 0.8
	proven   = 0.93
	trials   = 2 // failed requests that every model begins with
)

// record counts how a model did in the requests so far. It is one model's: a
// new space begins again.
type record struct {
	mu         sync.Mutex // guards what follows
	asked, won float64
}

// note counts a request and returns how far the model is followed on its
// record alone, 0 to 1.
func (r *record) note(stoodOut bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked >= 1000 { // what was long ago fades
		r.asked, r.won = r.asked/2, r.won/2
	}
	r.asked++
	if stoodOut {
		r.won++
	}
	return min(max((r.won/(r.asked+trials)-reliable)/(proven-reliable), 0), 1)
}

// fuse ranks by the vectors of a configured embedder and by words together:
// reciprocal ranks, the vectors with share, the words with the rest.
//
// A model that turns out weak must not drag the words down, and nobody has
// labels to tell. But two rankings that are both any good lean the same way,
// however they came about. So the first places by words are looked up among
// the model's cosines for all tools: where they do not stand out there, the
// model is not followed. Measured (eval): the witnesses of random vectors stand
// 0 to 1 deviations above the mean, of vectors of mere letters 1 to 2, of a
// large model 3 to 6.
//
// Sometimes the words are all wrong, and a model that knows better has no
// witness among them. A request alone can't tell that from a weak model; the
// requests before it can ([record]): a good one is borne out nearly every time.
func (s *search) fuse(ctx context.Context, v []float32, share float64) error {
	if !(share > 0) {
		return nil // a setting of 0, or no number
	}
	dense, err := s.scan(ctx, v, max(denseDepth, 2*s.q.TopK))
	if err != nil {
		return err
	}
	trust := s.trust(v)
	share = min(share, 1) * trust
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		c.total = (1 - share) / float64(rankOffset+i+1)
		if s.snap.vecs[c.num] == nil { // not embedded yet, or not embeddable: its place by words is all there is
			c.total += share / float64(rankOffset+i+1)
		}
	}
	at := make(map[uint32]int, len(s.sc.cands))
	for i := range s.sc.cands {
		at[s.sc.cands[i].num] = i
	}
	for r, n := range dense {
		i, ok := at[n.num]
		if !ok {
			i = len(s.sc.cands)
			s.sc.cands = append(s.sc.cands, candidate{num: n.num, doc: s.snap.docs[n.num]})
		}
		c := &s.sc.cands[i]
		c.sure = trust * n.cos
		c.total += share / float64(rankOffset+r+1)
	}
	slices.SortFunc(s.sc.cands, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.total, a.total), compareDocs(a.doc, b.doc))
	})
	return nil
}

// trust is how far the ranking by v is followed, 0 to 1.
func (s *search) trust(v []float32) float64 {
	cands := s.sc.cands
	if len(cands) == 0 || cands[0].cover < almostNothing {
		return 1 // the words know nothing better
	}
	mean, deviation, n := s.spread(v)
	if n < 2 || deviation < 1e-4 {
		return 0 // it says the same of every tool
	}
	sum, seen := 0.0, 0
	for i := range cands[:min(len(cands), witness, 1+n/10)] {
		if tv := s.snap.vecs[cands[i].num]; len(tv) == len(v) {
			sum += float64(dot(v, tv))
			seen++
		}
	}
	if seen == 0 {
		return 0 // nobody can vouch for it
	}
	above := (sum/float64(seen) - mean) / deviation
	limit := min(doubt, doubtOfN*math.Sqrt(float64(n))) // few tools leave no room for more
	return max(min(max(2*(above/limit-1), 0), 1), s.snap.space.record.note(above > 1.4*limit))
}

// spread returns mean and standard deviation of the cosines of v with up to
// sampled tools, evenly taken, and their number.
func (s *search) spread(v []float32) (mean, deviation float64, n int) {
	step := 1 + s.snap.live/sampled
	sum, squares, i := 0.0, 0.0, 0
	for _, sv := range s.snap.servers {
		for _, num := range sv.docs {
			if i++; i%step != 0 || len(s.snap.vecs[num]) != len(v) {
				continue
			}
			c := float64(dot(v, s.snap.vecs[num]))
			sum += c
			squares += c * c
			n++
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, squares/float64(n)-mean*mean)), n
}
