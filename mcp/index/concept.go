package index

import (
	"math"
	"unicode/utf8"
)

// expansion is one term that stands for a word of the request.
type expansion struct {
	term   term
	factor float64 // 1 for the word itself
	why    Signal  // Words for the word itself, Synonyms or Compound
	unit   float32
}

// concept is one word of a request as this index knows it.
type concept struct {
	word      string
	literal   bool
	mended    bool    // terms are a guess at what was meant
	weight    float64 // less than 1 for values
	sentences uint32
	idf       float64 // damped; of the word itself, also where no tool has it
	terms     []expansion
}

// near says whether the expansion counts as the word itself rather than as
// something like it.
func (e expansion) near() bool { return e.factor >= 0.5 }

// idf is the damped rarity of a word that df of the tools have.
func (s *search) idf(df int) float64 {
	known := &s.sc.rarity[df]
	if *known == 0 {
		n := float64(s.snap.live)
		*known = math.Pow(math.Log(1+(n-float64(df)+0.5)/(float64(df)+0.5)), s.w.idfPower)
	}
	return *known
}

// resolve meets the request with the index's vocabulary.
func (s *search) resolve() []concept {
	lex, req, w, snap := loadLexicon(), &s.req, s.w, s.snap
	out := make([]concept, 0, len(req.words))
	for i := range req.words {
		if len(out) == maxAsked {
			break
		}
		a := &req.words[i]
		c := concept{word: a.word, weight: 1, literal: a.literal, sentences: a.sentences}
		if a.literal {
			c.weight = w.value
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
		if known && !a.literal && w.part > 0 { // correctSpelling knows more of the others
			s.addParts(&c, a.word)
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
				continue // most pairs of signs are no words
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

// minPart is how many letters each part of a compound has: below that most
// parts are endings.
const minPart = 4

// addParts adds the two words of which a compound is made, where tools have both:
// a username is a user's name, a database a base of data. Of several ways to cut
// it the one into the commonest words is taken.
func (s *search) addParts(c *concept, w string) {
	var parts [2]term
	most := 0
	for i := minPart; i <= len(w)-minPart; i++ {
		if !utf8.RuneStart(w[i]) {
			continue
		}
		head, ok := s.snap.words.find(w[:i])
		if !ok {
			continue
		}
		tail, ok := s.snap.words.find(w[i:])
		if !ok {
			continue
		}
		if rarer := min(s.snap.df(head), s.snap.df(tail)); rarer > most {
			most, parts = rarer, [2]term{head, tail}
		}
	}
	if most > 0 {
		c.add(s.snap, parts[0], s.w.part, Compound)
		c.add(s.snap, parts[1], s.w.part, Compound)
	}
}

func cjk(w string) bool {
	for _, r := range w {
		return isCJK(r)
	}
	return false
}

// addWord adds the term of a stem, if a tool has it.
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
