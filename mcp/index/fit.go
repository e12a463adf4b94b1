package index

import "math"

// The rule of this file: whether a tool fits does not depend on the other tools in the
// index. In an index of one server's twenty tools every word is common, in one of ten
// thousand few are; so a word is weighted here by its rarity in English, not among the
// tools.

// Weights of a logistic regression over requests to toolboxes of 1 to 40 servers, with and
// without the right one, rounded; eval prints how many requests it answers and refuses. The
// weight of the logarithm of [search.mostSaid] is among the others, in [tuned].
const (
	fitWords = 10.0 // for the share of the request that the tool's heaviest fields contain
	fitNone  = -7.75
	fitDepth = 5 // number of first tools that are examined
)

// fitValues limits the weight of all values relative to the rest: a long text to be sent or
// kept says nothing about the tool.
const fitValues = 0.5

// fitVerb is the factor for the rarity of an action verb: "create" names the action and not
// the object, and nearly every toolbox has a tool that creates something.
const fitVerb = 0.5

// rarity returns how rare a word of a request is in English: the negative logarithm of its
// frequency.
func rarity(word string, english []string) float64 {
	r, ok := commonWords().rankOf(word, english)
	if !ok {
		r = len(commonWords().ends)
	}
	rare := math.Log(float64(r+zipfStart) / zipf)
	if len(english) > 0 {
		word = english[0]
	}
	if actions[stem(word)] != actUnknown {
		return rare * fitVerb
	}
	return rare
}

// fit returns the probability, 0 to 1, that a candidate does what the request asks for.
// said is [search.mostSaid].
func (s *search) fit(c *candidate, said float64) float64 {
	var plain, values struct{ words, all float64 }
	broken := s.broken(c)
	for i := range s.concepts {
		k := &s.concepts[i]
		sum := &plain
		if k.literal {
			sum = &values
		}
		sum.all += k.rarity
		if broken>>i&1 == 1 {
			continue
		}
		best := 0.0
		for j := range k.terms {
			if at := c.doc.find(k.terms[j].term); at >= 0 {
				best = max(best, k.terms[j].factor*float64(c.doc.terms()[at].impact())/impactSteps)
			}
		}
		sum.words += k.rarity * best
	}
	share := 1.0
	if most := plain.all * fitValues; most > 0 && values.all > most {
		share = most / values.all
	}
	words, all := plain.words+share*values.words, plain.all+share*values.all
	if all == 0 {
		return 0
	}
	return 1 / (1 + math.Exp(-fitNone-fitWords*words/all-s.w.said*math.Log1p(said)))
}

// mostSaid returns the largest share of the request that one of the first tools contains.
func (s *search) mostSaid() float64 {
	most := 0.0
	for i := range s.sc.cands[:min(len(s.sc.cands), fitDepth)] {
		c := &s.sc.cands[i]
		broken := s.broken(c)
		most = max(most, s.said(s.sc.near[c.num]&^broken, s.sc.like[c.num]&^broken, func(c *concept) float64 { return c.rarity }))
	}
	return most
}

// broken returns a bit for each part of a compound word that the tool contains neither
// whole nor in all its parts: a tool with a git-like output doesn't mention GitHub.
func (s *search) broken(c *candidate) (parts uint64) {
	said := s.sc.near[c.num] | s.sc.like[c.num]
	for i := range s.concepts {
		k := &s.concepts[i]
		if k.whole == "" || said>>i&1 == 1 {
			continue
		}
		if t, ok := s.snap.words.find(k.whole); ok && c.doc.has(t) {
			continue
		}
		for j := range s.concepts {
			if s.concepts[j].whole == k.whole {
				parts |= 1 << j
			}
		}
	}
	return parts
}
