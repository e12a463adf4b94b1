package index

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

const (
	rankOffset = 60 // of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)
	denseDepth = 50
	agreeWords = 5  // first places by words that the vectors should know
	agreeDense = 10 // first places by vectors in which they look for them
	doubtShare = 0.2
)

// fuse ranks by the vectors of a configured embedder and by words together:
// reciprocal ranks, the vectors with share, the words with the rest.
//
// A model that turns out weak must not drag the words down, and nobody has
// labels to tell. But two rankings that are both any good share some of their
// first places, however differently they came about, and a useless one meets
// the other by chance only. So where the model's first places hold none of the
// words' first, and the words do cover the request, the model is not followed.
func (s *search) fuse(ctx context.Context, v []float32, share float64) error {
	dense, err := s.scan(ctx, v, max(denseDepth, 2*s.q.TopK))
	if err != nil {
		return err
	}
	share = min(max(share, 0), 1) * s.agreed(dense)
	for i := range s.sc.cands {
		s.sc.cands[i].total = (1 - share) / float64(rankOffset+i+1)
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
		c.cos = n.cos
		c.cover = max(c.cover, n.cos)
		c.total += share / float64(rankOffset+r+1)
	}
	slices.SortFunc(s.sc.cands, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(a.doc.id, b.doc.id))
	})
	return nil
}

// agreed is how far the vectors' ranking is followed, 0 to 1.
func (s *search) agreed(dense []near) float64 {
	cands := s.sc.cands
	if len(cands) == 0 || cands[0].cover < almostNothing {
		return 1 // the words know nothing better
	}
	met := 0
	for i := range cands[:min(len(cands), agreeWords)] {
		if slices.ContainsFunc(dense[:min(len(dense), agreeDense)], func(n near) bool { return n.num == cands[i].num }) {
			met++
		}
	}
	switch met {
	case 0:
		return doubtShare
	case 1:
		return 0.6
	}
	return 1
}
