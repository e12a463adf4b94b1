package index

import (
	"math/bits"
	"slices"
)

// Signal is one reason for a tool's rank.
type Signal string

// The signals. Words alone is BM25F; each other one is a function below.
const (
	Words    Signal = "words"    // BM25F over the request's own words
	Values   Signal = "values"   // less weight for quoted and generated words
	Synonyms Signal = "synonyms" // other words for the same thing
	Spelling Signal = "spelling" // corrected typos
	Chinese  Signal = "chinese"  // the English words for Chinese ones
	Name     Signal = "name"     // the share of the tool's name that the request contains
	Coverage Signal = "coverage" // the share of the request that the tool contains
	Server   Signal = "server"   // the share of the request that its server and the server's other tools contain
	Action   Signal = "action"   // a different action: create, read, update, delete, send or run
	Number   Signal = "number"   // one thing or many
	Sentence Signal = "sentence" // the best match among several sentences of a request
	History  Signal = "history"  // servers that were used earlier in the conversation
	Use      Signal = "use"      // similarity to requests that led to a call of the tool, or of its server
	Vector   Signal = "vector"   // cosine of the vectors
	Said     Signal = "said"     // only for the score, not the ranking: how much of the request one tool contains
)

// Signals lists the signals of the ranking that can be disabled.
var Signals = []Signal{Values, Synonyms, Spelling, Chinese, Name, Coverage, Server, Action, Number, Sentence, History, Use, Vector}

// weights holds all tuned parameters. They were tuned on the evaluation's dev requests
// only; eval prints the value of each signal, by family.
type weights struct {
	fields   fieldWeights
	idfPower float64 // below 1: a rare word outweighs common ones by less than its idf
	value    float64 // for a word inside a literal
	synonym  float64
	joined   float64 // for two words written as one
	mended   float64 // for a corrected word
	chinese  float64 // for the translation of a Chinese word
	name     float64
	coverage float64
	server   float64
	action   float64
	number   float64
	sentence float64
	history  float64
	use      float64
	vector   float64
	said     float64 // see fit.go
}

var tuned = weights{
	fields: fieldWeights{
		inName:        {1.5, 0.75, 3},
		inServer:      {3, 0, 2},
		inFirst:       {0.5, 0.75, 9},
		inDescription: {0.5, 0.75, 20},
		inParam:       {1, 0.9, 6},
		inParamText:   {0.6, 0.9, 35},
	},
	idfPower: 0.8,
	value:    0.5,
	synonym:  0.3,
	joined:   0.6,
	mended:   0.5,
	chinese:  0.8,
	name:     0.3,
	coverage: 0.3,
	server:   0.3,
	action:   0.1,
	number:   0.2,
	sentence: 0.25,
	history:  0.25,
	use:      1,
	vector:   0.45,
	said:     2,
}

// weighed returns the weights with some of them multiplied.
func (w weights) weighed(by map[Signal]float64) *weights {
	for s, f := range by {
		switch s {
		case Values:
			w.value = 1 - f*(1-w.value)
		case Synonyms:
			w.synonym *= f
		case Spelling:
			w.mended *= f
		case Chinese:
			w.chinese *= f
		case Name:
			w.name *= f
		case Coverage:
			w.coverage *= f
		case Server:
			w.server *= f
		case Action:
			w.action *= f
		case Number:
			w.number *= f
		case Sentence:
			w.sentence *= f
		case History:
			w.history *= f
		case Use:
			w.use *= f
		case Vector:
			w.vector *= f
		case Said:
			w.said *= f
		}
	}
	return &w
}

// nameShare returns how much of the tool's name the request contains. A name is its
// author's shortest summary of the tool, so each word of it that is not in the request
// counts against the tool.
func (s *search) nameShare(d *doc) float64 {
	said, all := 0.0, 0.0
	for _, p := range d.nameTerms() {
		t := term(p)
		idf := s.idf(s.snap.df(t))
		all += idf
		said += idf * float64(s.sc.factor[t])
	}
	if all == 0 {
		return 0
	}
	return said / all
}

// coverage returns how much of the request the tool contains. One rare word can win BM25F;
// this signal requires many.
func (s *search) coverage(d uint32) float64 {
	if s.asked == 0 {
		return 0
	}
	return s.said(s.sc.near[d], s.sc.like[d], func(c *concept) float64 { return c.weight * c.idf }) / s.asked
}

// said returns the total weight of the words that a tool contains, near and like them.
func (s *search) said(near, like uint64, weight func(*concept) float64) float64 {
	sum := 0.0
	for i := range s.concepts {
		switch bit := uint64(1) << i; {
		case near&bit != 0:
			sum += weight(&s.concepts[i])
		case like&bit != 0:
			sum += weight(&s.concepts[i]) * likeShare
		}
	}
	return sum
}

// likeShare is a synonym's share of a word's coverage.
const likeShare = 0.5

// serverShares sets how much of the request a server and its candidates contain together:
// most requests concern one server, and of two equal tools the one with related tools is
// meant.
func (s *search) serverShares() {
	cands := s.sc.cands
	said := make(map[*about]uint64, 16)
	for i := range cands {
		a := cands[i].doc.about
		if _, ok := said[a]; !ok {
			said[a] = s.saidBy(a)
		}
		said[a] |= s.sc.near[cands[i].num]
	}
	for i := range cands {
		sum := 0.0
		for m := said[cands[i].doc.about]; m != 0; m &= m - 1 {
			c := &s.concepts[bits.TrailingZeros64(m)]
			sum += c.weight * c.idf
		}
		cands[i].parts[byServer] = sum
	}
}

// saidBy returns a bit for each word of the request that the server's own texts contain.
func (s *search) saidBy(a *about) (said uint64) {
	for i := range s.concepts {
		for _, e := range s.concepts[i].terms {
			if !e.near() {
				continue
			}
			if _, ok := slices.BinarySearch(a.terms, e.term); ok {
				said |= 1 << i
				break
			}
		}
	}
	return said
}

// contradicts reports whether the tool's action differs from that of the request's verb:
// "delete the file" is not a request to create one, however similar the rest is.
func (s *search) contradicts(d *doc) bool {
	return d.action != actUnknown && s.req.action != actUnknown && d.action != s.req.action
}

// bestSentences sets how well a tool matches the sentence of the request that it fits best,
// relative to the best tool for that sentence. A user who writes several sentences wants
// several things, and a tool does one of them; in the sum over all words the tools for the
// shorter sentence would be lost.
func (s *search) bestSentences() {
	n := s.sentences()
	if n < 2 {
		return
	}
	cands := s.sc.cands
	sums := make([][maxSentences]float32, len(cands))
	var top [maxSentences]float32
	for j := range cands {
		for i := range s.concepts {
			c := &s.concepts[i]
			got := c.in(cands[j].doc)
			if got == 0 {
				continue
			}
			for m := c.sentences; m != 0; m &= m - 1 {
				k := bits.TrailingZeros32(m)
				sums[j][k] += got
				top[k] = max(top[k], sums[j][k])
			}
		}
	}
	for j := range cands {
		best := float32(0)
		for k := range n {
			if top[k] > 0 {
				best = max(best, sums[j][k]/top[k])
			}
		}
		cands[j].parts[bySentence] = float64(best)
	}
}

// sentences returns the number of sentences of the request.
func (s *search) sentences() int {
	n := 0
	for i := range s.concepts {
		n = max(n, bits.Len32(s.concepts[i].sentences))
	}
	return n
}

// in returns what the concept adds to the words of one tool.
func (c *concept) in(d *doc) float32 {
	for i := range c.terms {
		e := &c.terms[i]
		if at := d.find(e.term); at >= 0 {
			return e.unit * float32(d.terms()[at].impact())
		}
	}
	return 0
}

// find returns the index of t in the doc's terms, or -1.
func (d *doc) find(t term) int {
	at, _ := slices.BinarySearch(d.terms(), posting(t<<8))
	if at < len(d.terms()) && d.terms()[at].doc() == t {
		return at
	}
	return -1
}

func (d *doc) has(t term) bool { return d.find(t) >= 0 }
