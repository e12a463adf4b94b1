package index

import (
	"math"
	"slices"
	"strings"

	"nize/store"
)

// The rule of this file: a tool's words and their weights are determined when it is read,
// and by its own definition alone.

// field is a part of a tool that contains words.
type field uint8

const (
	inName field = iota
	inServer
	inFirst // the first sentence of the description
	inDescription
	inParam
	inParamText
	fields
)

// fieldWeights holds, for each field, the weight of a word, how strongly the field's length
// is normalized (b of BM25), and its typical length. The typical lengths were set by hand;
// the means over the evaluation's 1,809 MCP tools are 3, 2, 7, 21, 6 and 23 words. Fixed
// lengths instead of this index's averages keep a tool's weights fixed.
type fieldWeights [fields]struct{ weight, b, typical float64 }

const (
	saturation = 1.4 // k1 of BM25
	maxImpact  = saturation + 1

	maxDescription = 4 << 10 // bytes of a description that are read
	maxParamText   = 400     // bytes of a parameter's description that are read
)

// tally counts the words of one tool by field.
type tally struct {
	counts [][fields]uint16
	terms  []term
	at     []uint32 // by term: its position in terms plus 1, 0 if absent
	length [fields]int
}

func (t *tally) reset() {
	for _, w := range t.terms {
		t.at[w] = 0
	}
	t.counts, t.terms, t.length = t.counts[:0], t.terms[:0], [fields]int{}
}

// note counts a word; the joined form of words that were already counted adds no length.
func (t *tally) note(w term, f field, length int) {
	if int(w) >= len(t.at) {
		t.at = append(t.at, make([]uint32, int(w)+1-len(t.at))...)
	}
	if t.at[w] == 0 {
		t.terms = append(t.terms, w)
		t.counts = append(t.counts, [fields]uint16{})
		t.at[w] = uint32(len(t.terms))
	}
	t.counts[t.at[w]-1][f]++
	t.length[f] += length
}

// reader converts tools and servers to docs.
type reader struct {
	vocab   *vocabulary
	split   splitter
	tally   tally
	field   field
	verbs   map[string]action // actions of the words seen in names
	mean    averager
	meaning bool // the current text is also part of the vector
	words   []posting
}

// meant reads s into field f and into the vector.
func (r *reader) meant(s string, f field) {
	r.meaning = true
	r.mean.begin()
	r.text(s, f)
	r.meaning = false
}

// text reads s into field f.
func (r *reader) text(s string, f field) {
	if r.split.word == nil {
		r.split.word = func(w string) {
			if r.meaning {
				r.mean.add(w)
			}
			if len(w) == 1 && !digit(w[0]) || isStop(w) {
				return
			}
			r.tally.note(r.vocab.term(w), r.field, 1)
		}
		r.split.joined = func(w string, _ int) { r.tally.note(r.vocab.term(w), r.field, 0) }
	}
	r.field = f
	r.split.split(s)
}

// tool reads one tool. It also returns the embedded vector, or nil.
func (r *reader) tool(t store.Tool, a *about, sum uint64) (*doc, []float32) {
	r.tally.reset()
	d := &doc{name: t.Name, description: t.Description, about: a, sum: sum}
	r.meant(t.Name, inName)
	if t.Title == "" {
		t.Title = t.Annotations.Title
	}
	d.named = uint8(min(len(r.tally.terms), math.MaxUint8))
	d.action = r.action(&t)
	d.number = numberOf(t.Name)
	r.text(t.Title, inName)
	r.meant(a.name, inServer)
	if a.domain != a.name {
		r.text(a.domain, inServer)
	}
	description := t.Description[:min(len(t.Description), maxDescription)]
	r.meant(firstSentence(description), inFirst)
	r.meant(description, inDescription)
	for _, p := range readParams(t.InputSchema) {
		r.text(p.name, inParam)
		for _, s := range p.texts {
			r.text(s[:min(len(s), maxParamText)], inParamText)
		}
	}
	d.title = t.Title
	d.words = r.allocate(len(r.tally.terms) + int(d.named))
	d.words = r.weigh(d.words)
	for _, t := range r.tally.terms[:d.named] { // the terms read first
		d.words = append(d.words, posting(t))
	}
	v := r.mean.vector()
	d.subject = subjectOf(v)
	return d, v
}

// allocate returns an empty slice with capacity n. The words of several tools share an
// allocation, because one for each would be rounded up.
func (r *reader) allocate(n int) []posting {
	if cap(r.words)-len(r.words) < n {
		r.words = make([]posting, 0, max(n, 4096))
	}
	at := len(r.words)
	r.words = r.words[:at+n]
	return r.words[at : at : at+n]
}

// weigh appends the weight of each counted word: BM25F without the idf.
func (r *reader) weigh(out []posting) []posting {
	var scale [fields]float64
	for f := range fields {
		w := &tuned.fields[f]
		scale[f] = w.weight / (1 - w.b + w.b*float64(r.tally.length[f])/w.typical)
	}
	for i, t := range r.tally.terms {
		tf := 0.0
		for f, n := range r.tally.counts[i] {
			tf += scale[f] * float64(n)
		}
		impact := tf * (saturation + 1) / (tf + saturation) / maxImpact
		out = append(out, posting(t<<8|max(1, uint32(impact*impactSteps+0.5))))
	}
	slices.Sort(out)
	return out
}

// about reads the texts that a server provides about itself.
func (r *reader) about(s store.Server) *about {
	a := &about{name: s.Name, domain: s.Domain, description: s.Description}
	r.tally.reset()
	r.text(s.Name, inServer)
	r.text(s.Domain, inServer)
	r.text(s.Description[:min(len(s.Description), maxDescription)], inServer)
	a.terms = slices.Clone(r.tally.terms)
	slices.Sort(a.terms)
	return a
}

// firstSentence returns the first sentence or line of s.
func firstSentence(s string) string {
	s = strings.TrimSpace(s)
	for i := range len(s) {
		switch s[i] {
		case '\n':
			return s[:i]
		case '.', '!', '?':
			if i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n' {
				return s[:i]
			}
		}
	}
	if i := strings.Index(s, "。"); i > 0 {
		return s[:i]
	}
	return s
}

// action returns the action of the first verb in a tool's name, or of the verb with which
// its description starts.
func (r *reader) action(t *store.Tool) action {
	found, first := actUnknown, true
	sp := splitter{word: func(w string) {
		if found == actUnknown {
			found = r.verb(w)
		}
	}}
	sp.split(t.Name)
	if found != actUnknown {
		return found
	}
	sp.word = func(w string) {
		if first {
			found = r.verb(w)
		}
		first = false
	}
	sp.split(t.Description[:min(len(t.Description), 40)])
	return found
}

// maxKnown is how many words a reader caches.
const maxKnown = 8192

// verb returns the action of a word.
func (r *reader) verb(w string) action {
	a, ok := r.verbs[w]
	if !ok {
		if r.verbs == nil || len(r.verbs) > maxKnown {
			r.verbs = make(map[string]action)
		}
		a = actions[stem(w)]
		r.verbs[strings.Clone(w)] = a
	}
	return a
}
