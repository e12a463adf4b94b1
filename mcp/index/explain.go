package index

import (
	"context"
	"strings"
)

// Share is the contribution of one signal to a tool's rank.
type Share struct {
	Signal Signal
	Value  float64 // relative to the best tool's score for words, which is 1
}

// Explain returns each signal's contribution for one tool, first the words and their
// corrections. With a configured embedder the vector's value is its cosine, which is fused
// by rank and not added. It returns nil for a tool that is not indexed and for an empty
// request.
func (x *Index) Explain(q Query, toolID string) []Share {
	snap := x.now.Load()
	if snap.live == 0 || strings.TrimSpace(q.Text) == "" {
		return nil
	}
	num, ok := snap.find(toolID)
	if !ok {
		return nil
	}
	sc := x.scratch.Get().(*scratch)
	defer x.scratch.Put(sc)
	s := search{snap: snap, q: q.limited(), w: &x.weights, sc: sc}
	if s.candidates(context.Background(), x) != nil {
		return nil // unreachable: the context is never cancelled
	}
	c := s.candidate(num)
	scale := s.scale()
	kinds := make(map[Signal]float64)
	for i := range s.concepts {
		kind, v := s.concepts[i].kind(c.doc)
		kinds[kind] += float64(v) * scale[byWords]
	}
	out := []Share{
		{Words, kinds[Words]},
		{Values, kinds[Values]},
		{Synonyms, kinds[Synonyms]},
		{Spelling, kinds[Spelling]},
	}
	for part, signal := range [parts]Signal{byName: Name, byCoverage: Coverage, byServer: Server, byAction: Action, byNumber: Number, bySentence: Sentence, byHistory: History, byUse: Use} {
		if signal != "" {
			out = append(out, Share{signal, scale[part] * c.parts[part]})
		}
	}
	out = append(out, Share{Vector, scale[byVector] * c.parts[byVector]})
	return out
}

// candidate returns the tool's entry among the candidates, and adds it if it is missing.
func (s *search) candidate(num uint32) *candidate {
	cands := s.sc.cands
	for i := range cands {
		if cands[i].num == num {
			return &cands[i]
		}
	}
	s.add(num)
	s.signals()
	return s.candidate(num)
}

// kind returns the signal through which the concept adds to one tool's words, and the
// amount.
func (c *concept) kind(d *doc) (Signal, float32) {
	for i := range c.terms {
		one := *c
		one.terms = c.terms[i : i+1]
		v := one.in(d)
		switch {
		case v == 0:
			continue
		case !c.terms[i].near():
			return c.terms[i].why, v
		case c.mended:
			return Spelling, v
		case c.literal:
			return Values, v
		}
		return Words, v
	}
	return Words, 0
}
