package index

import "math"

// The rule of this file: whether a tool fits does not depend on which other tools
// there are. In an index of one server's twenty tools every word is common, in one
// of ten thousand few are; so a word weighs here by how rare it is in English, not
// among the tools.

// A logistic regression over requests to toolboxes of 1 to 40 servers, with and
// without the right one, rounded; eval prints what it keeps and refuses.
const (
	fitWords = 10.0 // of the share of the request that the tool's weightiest fields say
	fitSaid  = 2.0  // of the logarithm of how much of it one of the first tools says
	fitNone  = -8.0
	fitDepth = 5 // first tools that are looked at
)

// fit is how likely a candidate does what is asked for, 0 to 1; said is [search.mostSaid].
func (s *search) fit(c *candidate, said float64) float64 {
	words, all := 0.0, 0.0
	for i := range s.concepts {
		k := &s.concepts[i]
		all += k.rarity
		best := 0.0
		for j := range k.terms {
			if at := c.doc.find(k.terms[j].term); at >= 0 {
				best = max(best, k.terms[j].factor*float64(c.doc.terms()[at].impact())/impactSteps)
			}
		}
		words += k.rarity * best
	}
	if all == 0 {
		return 0
	}
	return 1 / (1 + math.Exp(-fitNone-fitWords*words/all-fitSaid*math.Log1p(said)))
}

// mostSaid is how much of the request the first tool says that says the most of it.
func (s *search) mostSaid() float64 {
	most := 0.0
	for i := range s.sc.cands[:min(len(s.sc.cands), fitDepth)] {
		most = max(most, s.said(s.sc.cands[i].num, func(c *concept) float64 { return c.rarity }))
	}
	return most
}
