package index

import (
	"math/bits"
	"slices"
)

// Signal is one reason for a tool's place in the ranking.
type Signal string

// The signals. Words alone is BM25F; each other one is a function below.
const (
	Words    Signal = "words"    // BM25F over the request's own words
	Values   Signal = "values"   // less weight for quoted and machine-made words
	Synonyms Signal = "synonyms" // other words for the same thing
	Spelling Signal = "spelling" // corrected typos
	Chinese  Signal = "chinese"  // the English words for Chinese ones
	Name     Signal = "name"     // the share of the tool's name that the request says
	Coverage Signal = "coverage" // the share of the request that the tool says
	Server   Signal = "server"   // the share of the request that its server and the tools beside it say
	Action   Signal = "action"   // another one of create, read, update, delete, send or run
	Number   Signal = "number"   // one thing or many
	Sentence Signal = "sentence" // the best sentence of a request of several
	History  Signal = "history"  // servers that were used earlier in the conversation
	Use      Signal = "use"      // likeness to requests that led to a call of the tool, or of its server
	Vector   Signal = "vector"   // cosine of the vectors
	Said     Signal = "said"     // of the score, not of the ranking: how much of the request one tool says
)

// Signals lists those of the ranking that can be left out.
var Signals = []Signal{Values, Synonyms, Spelling, Chinese, Name, Coverage, Server, Action, Number, Sentence, History, Use, Vector}

// weights is everything that was tuned, on the evaluation's dev requests only;
// eval prints what each signal is worth, family by family.
type weights struct {
	fields   fieldWeights
	idfPower float64 // below 1: a rare word outweighs common ones less than idf says
	value    float64 // of a word inside a literal
	synonym  float64
	joined   float64 // of two words written as one
	mended   float64 // of a corrected word
	chinese  float64 // of the English word for a Chinese one
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

// nameShare is how much of the tool's name the request says. A name is what
// its maker thought the tool does in the fewest words, so each word of it that
// nobody asked for speaks against it.
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

// coverage is how much of the request the tool says: BM25F can be won by one
// rare word alone, this one needs many.
func (s *search) coverage(d uint32) float64 {
	if s.asked == 0 {
		return 0
	}
	return s.said(s.sc.near[d], s.sc.like[d], func(c *concept) float64 { return c.weight * c.idf }) / s.asked
}

// said adds up what the words weigh that a tool says, near and like them.
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

// likeShare is how much of a word's coverage a synonym gives.
const likeShare = 0.5

// serverShares fills in how much of the request a server and its tools in the
// running say together: most requests are the business of one server, and of
// two equal tools the one among relatives is meant.
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

// saidBy returns a bit for each word of the request that the server says about itself.
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

// contradicts says whether the tool does something else than the request's verb
// says: "delete the file" is no request to create one, however alike the rest.
func (s *search) contradicts(d *doc) bool {
	return d.action != actUnknown && s.req.action != actUnknown && d.action != s.req.action
}

// bestSentences fills in how well a tool does for the sentence of the request
// that it fits best, against the best tool for that sentence. Who writes
// several sentences wants several things, and a tool does one of them; in the
// sum over all words the tools for the shorter request would be lost.
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

// sentences is how many the request has.
func (s *search) sentences() int {
	n := 0
	for i := range s.concepts {
		n = max(n, bits.Len32(s.concepts[i].sentences))
	}
	return n
}

// in is what the concept adds to the words of one tool.
func (c *concept) in(d *doc) float32 {
	for i := range c.terms {
		e := &c.terms[i]
		if at := d.find(e.term); at >= 0 {
			return e.unit * float32(d.terms()[at].impact())
		}
	}
	return 0
}

// find returns where in its terms the doc has t, -1 for nowhere.
func (d *doc) find(t term) int {
	at, _ := slices.BinarySearch(d.terms(), posting(t<<8))
	if at < len(d.terms()) && d.terms()[at].doc() == t {
		return at
	}
	return -1
}

func (d *doc) has(t term) bool { return d.find(t) >= 0 }
