package index

import (
	"math"
	"strings"
)

// expansion is one term that represents a word of the request.
type expansion struct {
	term   term
	factor float64 // 1 for the word itself
	why    Signal  // Words for the word itself, otherwise Synonyms
	unit   float32
}

// concept is one word of a request, resolved against this index.
type concept struct {
	word      string
	whole     string   // as in asked
	english   []string // translations of a Chinese word
	literal   bool
	mended    bool    // terms are guessed corrections
	weight    float64 // below 1 for values
	sentences uint32
	idf       float64 // damped idf of the word itself, even if no tool has it
	rarity    float64 // weight by the word's rarity in English
	terms     []expansion
}

// near reports whether the expansion counts as the word itself, not as a similar word.
func (e expansion) near() bool { return e.factor >= 0.5 }

// idf returns the damped inverse document frequency of a word that df of the tools have.
func (s *search) idf(df int) float64 {
	known := &s.sc.rarity[df]
	if *known == 0 {
		n := float64(s.snap.live)
		*known = math.Pow(math.Log(1+(n-float64(df)+0.5)/(float64(df)+0.5)), s.w.idfPower)
	}
	return *known
}

// resolve resolves the request's words against the index's vocabulary.
func (s *search) resolve() []concept {
	lex, req, w, snap := loadLexicon(), &s.req, s.w, s.snap
	out := make([]concept, 0, len(req.words))
	for i := range req.words {
		if len(out) == maxAsked {
			break
		}
		a := &req.words[i]
		c := concept{word: a.word, whole: a.whole, weight: 1, english: a.english, literal: a.literal, sentences: a.sentences}
		if a.literal {
			c.weight = w.value
		}
		if _, place := places[a.word]; !place && strings.Trim(a.word, "0123456789") != "" { // a number or a place names no tool
			c.rarity = c.weight * rarity(a.word, a.english)
		}
		own, known := snap.words.find(a.word)
		known = known && snap.df(own) > 0
		if known {
			c.idf = s.idf(snap.df(own))
			c.add(snap, own, 1, Words)
		}
		if a.joined != "" {
			if t, ok := snap.words.find(a.joined); ok {
				c.add(snap, t, w.joined, Words)
			}
		}
		for _, e := range a.english {
			c.addWord(snap, stem(e), w.chinese)
			for _, syn := range lex.synonyms[stem(e)] {
				c.addWord(snap, syn, w.synonym)
			}
		}
		for _, syn := range lex.synonyms[stem(a.word)] {
			c.addWord(snap, syn, w.synonym)
		}
		if !known {
			if cjk(a.word) && len(a.english) == 0 {
				continue // most pairs of characters are not words
			}
			if w.mended > 0 && len(c.terms) == 0 {
				snap.correctSpelling(a, &c, w)
				c.mended = true
			}
			c.idf = s.idf(0)
			if len(c.terms) > 0 && c.terms[0].near() {
				c.idf = s.idf(snap.df(c.terms[0].term))
			}
		}
		out = append(out, c)
	}
	return out
}

func cjk(w string) bool {
	for _, r := range w {
		return isCJK(r)
	}
	return false
}

// addWord adds the term of a stem if a tool has it.
func (c *concept) addWord(s *snapshot, stem string, factor float64) {
	if t, ok := s.words.stems.find(stem); ok {
		c.add(s, t, factor, Synonyms)
	}
}

// add adds a term, once, if a tool has it.
func (c *concept) add(s *snapshot, t term, factor float64, why Signal) {
	if factor <= 0 || s.df(t) == 0 {
		return
	}
	for i := range c.terms {
		if c.terms[i].term == t {
			if factor > c.terms[i].factor {
				c.terms[i].factor, c.terms[i].why = factor, why
			}
			return
		}
	}
	c.terms = append(c.terms, expansion{term: t, factor: factor, why: why})
}
