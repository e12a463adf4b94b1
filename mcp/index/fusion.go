package index

import (
	"context"
	"math"
	"slices"
	"sync"
)

const (
	rankOffset = 60 // for reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)
	denseDepth = 50

	witness  = 3   // number of first tools by words that are compared with all cosines
	doubt    = 2.4 // standard deviations: below this the model is ignored, from 1.5 times this on fully trusted
	doubtOfN = 0.33

	// If the witnesses stood out in at least reliable of a model's requests, the model is
	// also trusted in requests where they do not: increasingly, and fully from proven on.
	reliable = 0.8
	proven   = 0.93
	trials   = 2 // failed requests in the initial record of every model
)

// record counts how well a model did in earlier requests. A new space starts a new record.
type record struct {
	mu         sync.Mutex // guards the fields below
	asked, won float64
}

// note counts a request and returns how far the record alone lets the model be trusted, 0
// to 1.
func (r *record) note(stoodOut bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked >= 1000 { // old requests count less and less
		r.asked, r.won = r.asked/2, r.won/2
	}
	r.asked++
	if stoodOut {
		r.won++
	}
	return min(max((r.won/(r.asked+trials)-reliable)/(proven-reliable), 0), 1)
}

// fuse combines the ranking by the vectors of a configured embedder with the ranking by
// words: reciprocal ranks, the vectors weighted with share, the words with the rest.
//
// A weak model must not degrade the ranking by words, and there are no labels to detect
// one. But two useful rankings correlate, however they were made. So the first tools by
// words, the witnesses, are looked up among the model's cosines for all tools: if they do
// not stand out there, the model is ignored. Measured (eval): the witnesses of random
// vectors are 0 to 1 deviations above the mean, of vectors of mere letters 1 to 2, of a
// large model 3 to 6.
//
// Sometimes all words are misleading, and a better model has no witness among them. A
// single request can't distinguish that from a weak model; earlier requests can ([record]):
// a good model is confirmed nearly every time.
func (s *search) fuse(ctx context.Context, v []float32, share float64) error {
	if !(share > 0) {
		return nil // a setting of 0, or NaN
	}
	limit := max(denseDepth, 2*s.q.TopK)
	var dense []near
	var all spread
	s.sc.cosine = slices.Grow(s.sc.cosine[:0], len(s.snap.docs))[:len(s.snap.docs)]
	for i := range s.sc.cosine {
		s.sc.cosine[i] = unknown
	}
	list, _, err := s.snap.model.nearest(ctx, v, math.MaxInt)
	if err != nil {
		return err
	}
	for _, f := range list {
		if int(f.num) >= len(s.snap.docs) || !s.snap.alive(f.num) {
			continue
		}
		s.sc.cosine[f.num] = float32(f.cos)
		all.add(f.cos)
		if f.cos > 0 {
			dense = s.insert(dense, f, limit)
		}
	}
	trust := s.trust(all)
	share = min(share, 1) * trust
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		c.total = (1 - share) / float64(rankOffset+i+1)
		if s.sc.cosine[c.num] == unknown { // not embedded yet, or not embeddable: only its rank by words counts
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
	s.sort()
	return nil
}

// unknown is the cosine of a tool without a vector.
const unknown = -2

// trust returns how far a ranking is trusted, 0 to 1, whose cosines with all tools are in
// the scratch memory and are distributed like all.
func (s *search) trust(all spread) float64 {
	cands := s.sc.cands
	if len(cands) == 0 || cands[0].cover < almostNothing {
		return 1 // the words have no better ranking
	}
	mean, deviation := all.mean()
	if all.n < 2 || deviation < 1e-4 {
		return 0 // it rates every tool the same
	}
	sum, seen := 0.0, 0
	for i := range cands[:min(len(cands), witness, 1+all.n/10)] {
		if cos := s.sc.cosine[cands[i].num]; cos != unknown {
			sum += float64(cos)
			seen++
		}
	}
	if seen == 0 {
		return 0 // there is no witness
	}
	above := (sum/float64(seen) - mean) / deviation
	limit := min(doubt, doubtOfN*math.Sqrt(float64(all.n))) // among few tools no larger deviation is possible
	return max(min(max(2*(above/limit-1), 0), 1), s.snap.space.record.note(above > 1.4*limit))
}

// spread is the distribution of a request's cosines with all tools.
type spread struct {
	n            int
	sum, squares float64
}

func (d *spread) add(cos float64) {
	d.n++
	d.sum += cos
	d.squares += cos * cos
}

// mean returns the mean and the standard deviation.
func (d *spread) mean() (mean, deviation float64) {
	mean = d.sum / float64(d.n)
	return mean, math.Sqrt(max(0, d.squares/float64(d.n)-mean*mean))
}
