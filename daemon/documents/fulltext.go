package documents

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The parts of an inverted index: words, posting lists and ranking. Words are stored as keyed
// hashes, so that a list reveals nothing without the key. A list is a row of terms in ascending
// order, each with its postings. The terms of a block share their first bits, so that the term
// alone determines the block.

// maxWord is how many bytes of a word are significant.
const maxWord = 64

// eachWord calls do for each word of a text: letters and digits in lower case, an English
// plural without its s. In scripts without spaces, each character is a word, and so is each
// pair of characters.
func eachWord(text string, do func(word []byte)) {
	word := make([]byte, 0, maxWord+2*utf8.UTFMax)
	var before rune // the previous character, if it is of such a script
	flush := func() {
		if len(word) > 0 {
			do(singular(word[:min(len(word), maxWord)]))
			word = word[:0]
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			before = 0
			switch {
			case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			default:
				flush()
				continue
			}
			if len(word) < maxWord {
				word = append(word, c)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			flush()
			one := utf8.AppendRune(word[:0], r)
			do(one)
			if before != 0 {
				do(utf8.AppendRune(utf8.AppendRune(word[:0], before), r))
			}
			word, before = word[:0], r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if len(word) < maxWord {
				word = utf8.AppendRune(word, unicode.ToLower(r))
			}
		default:
			flush()
		}
		before = 0
	}
	flush()
}

func singular(word []byte) []byte {
	if n := len(word); n > 3 && word[n-1] == 's' && word[n-2] != 's' {
		return word[:n-1]
	}
	return word
}

// wordsOf returns the distinct words of a text, in order.
func wordsOf(text string) []string {
	set := map[string]bool{}
	eachWord(text, func(w []byte) { set[string(w)] = true })
	return slices.Sorted(maps.Keys(set))
}

// countWords returns how many of the words a text contains.
func countWords(text string, words []string) int {
	found := map[string]bool{}
	eachWord(text, func(w []byte) {
		if _, ok := slices.BinarySearch(words, string(w)); ok {
			found[string(w)] = true
		}
	})
	return len(found)
}

// wordCounts holds, for each word of a document, how often it occurs, and its first page.
type wordCounts map[string]*posting

// Add counts the words of a page.
func (c wordCounts) Add(text string, page int) {
	eachWord(text, func(w []byte) {
		p := c[string(w)]
		if p == nil {
			p = &posting{Page: uint32(page)}
			c[string(w)] = p
		}
		p.Count++
	})
}

// posting records that a term occurs in a document.
type posting struct{ Doc, Count, Page uint32 }

// term is a term with its postings, in ascending order of documents.
type term struct {
	Hash     uint32
	Postings []posting
}

// hasher converts words into terms. It must not be used concurrently.
type hasher struct{ Key []byte }

// Hash returns the term of a word.
func (h hasher) Hash(word string) uint32 {
	mac := hmac.New(sha256.New, h.Key)
	mac.Write([]byte(word))
	var sum [sha256.Size]byte
	return binary.BigEndian.Uint32(mac.Sum(sum[:0]))
}

// List returns the list for a single document with the number 0.
func (h hasher) List(c wordCounts) []byte {
	terms := make([]term, 0, len(c))
	for w, p := range c {
		terms = append(terms, term{h.Hash(w), []posting{{0, p.Count, p.Page}}})
	}
	slices.SortFunc(terms, func(a, b term) int { return int(int64(a.Hash) - int64(b.Hash)) })
	var l termWriter
	for i, t := range terms {
		if i > 0 && terms[i-1].Hash == t.Hash {
			continue // two words with the same hash: hits are checked against the text
		}
		l.Add(t)
	}
	return l.Bytes()
}

// errDamagedTerms is returned if a list can't be decoded.
var errDamagedTerms = errors.New("damaged list of terms")

// termWriter encodes a list.
type termWriter struct {
	b, row []byte
	last   uint32
}

// Add adds a term; terms must be in ascending order.
func (w *termWriter) Add(t term) {
	w.row = w.row[:0]
	last := uint32(0)
	for _, p := range t.Postings {
		w.row = binary.AppendUvarint(w.row, uint64(p.Doc-last))
		w.row = binary.AppendUvarint(w.row, uint64(p.Count))
		w.row = binary.AppendUvarint(w.row, uint64(p.Page))
		last = p.Doc
	}
	w.b = binary.AppendUvarint(w.b, uint64(t.Hash-w.last))
	w.b = binary.AppendUvarint(w.b, uint64(len(w.row)))
	w.b, w.last = append(w.b, w.row...), t.Hash
}

// Bytes returns the list.
func (w *termWriter) Bytes() []byte { return w.b }

// termReader reads a list, term by term.
type termReader struct {
	b    []byte
	hash uint64
}

// newTermReader returns a reader for the output of a [termWriter].
func newTermReader(b []byte) *termReader { return &termReader{b: b} }

// Next returns the next term and its encoded postings; ok is false at the end.
func (r *termReader) Next() (hash uint32, row []byte, ok bool, err error) {
	if len(r.b) == 0 {
		return 0, nil, false, nil
	}
	gap, w := binary.Uvarint(r.b)
	if w <= 0 {
		return 0, nil, false, errDamagedTerms
	}
	n, v := binary.Uvarint(r.b[w:])
	if v <= 0 || n > uint64(len(r.b)-w-v) || r.hash+gap > math.MaxUint32 {
		return 0, nil, false, errDamagedTerms
	}
	r.hash += gap
	row, r.b = r.b[w+v:w+v+int(n)], r.b[w+v+int(n):]
	return uint32(r.hash), row, true, nil
}

// findTerm returns the postings of a term in a list, nil if the list doesn't contain it.
func findTerm(list []byte, hash uint32) ([]posting, error) {
	for r := newTermReader(list); ; {
		got, row, ok, err := r.Next()
		switch {
		case err != nil || !ok || got > hash:
			return nil, err
		case got == hash:
			return decodePostings(row)
		}
	}
}

// decodePostings decodes the postings of one term.
func decodePostings(row []byte) (list []posting, err error) {
	doc := uint64(0)
	list = make([]posting, 0, len(row)/3)
	for len(row) > 0 {
		var n [3]uint64
		for i := range n {
			v, w := binary.Uvarint(row)
			if w <= 0 || v > math.MaxUint32 {
				return nil, errDamagedTerms
			}
			n[i], row = v, row[w:]
		}
		if doc += n[0]; doc > math.MaxUint32 {
			return nil, errDamagedTerms
		}
		list = append(list, posting{uint32(doc), uint32(n[1]), uint32(n[2])})
	}
	return list, nil
}

// inverseFrequency returns the weight of a term that occurs in have of all documents.
func inverseFrequency(have, all int) float64 {
	return math.Log(1 + (float64(max(all, have)-have)+.5)/(float64(have)+.5))
}

// bm25 returns what a term adds to the score of a document, with the usual constants. size
// and average are the sizes of the document and of the average one.
func bm25(idf float64, count uint32, size, average float64) float64 {
	const k1, b = 1.2, .75
	tf := float64(count)
	return idf * tf * (k1 + 1) / (tf + k1*(1-b+b*size/max(average, 1)))
}

// snippet returns the part of a line around the first of the words, on one line.
func snippet(line string, words []string, most int) string {
	line = strings.Join(strings.Fields(line), " ")
	if len(line) <= most {
		return line
	}
	at := len(line)
	lower := strings.ToLower(line)
	for _, w := range words {
		if i := strings.Index(lower, w); i >= 0 {
			at = min(at, i)
		}
	}
	at %= len(line) // none occurs literally
	from := min(max(0, at-most/3), len(line)-most)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	to := from + most
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	out := line[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(line) {
		out += "…"
	}
	return out
}
