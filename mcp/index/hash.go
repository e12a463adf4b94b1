package index

import (
	"context"
	"math"
	"slices"
	"strings"
)

// The embedded embedder: no network, no key, no download. A text becomes the
// sum of signed random directions, one for each stem and a few for the pieces
// of it, so that texts with the same words and with related ones (archive,
// unarchived; 天气预报, 天气) point the same way. It knows nothing of the
// corpus: a tool's vector depends on the tool's text alone, so it is computed
// again from the text at start rather than kept on disk.

const (
	hashDims  = 256
	hashModel = "embedded/subword-256-v1"
	minPiece  = 3
	maxPiece  = 5
)

// embedded is the embedder of [Options] when none is given.
type embedded struct{}

var _ Embedder = embedded{}

func (embedded) Model() string { return hashModel }

func (embedded) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	h := hasher{}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = h.vector(t)
	}
	return out, nil
}

// direction is where one word points: places in the vector with signs.
type direction []int16 // place+1, negative for a minus; the first stands for the whole word

// maxKnown words are remembered by a hasher, about 1 MB.
const maxKnown = 8192

// hasher makes vectors one after the other and remembers the directions of words.
type hasher struct {
	known map[string]direction
	split splitter
	seen  map[string]float32
	order []string
}

// vector returns the unit vector of a text, zero where it has no words. Words
// at the front, where names and summaries stand, weigh more.
func (h *hasher) vector(text string) []float32 {
	if h.known == nil {
		h.known = make(map[string]direction)
		h.seen = make(map[string]float32)
		h.split.word = h.word
	}
	if len(h.known) > maxKnown {
		clear(h.known)
	}
	clear(h.seen)
	h.order = h.order[:0]
	h.split.split(text)
	v := make([]float32, hashDims)
	for _, w := range h.order { // in order, so that sums of floats come out the same
		d, ok := h.known[w]
		if !ok {
			d = directionOf(stem(w))
			h.known[strings.Clone(w)] = d
		}
		weight := h.seen[w]
		for i, p := range d {
			x := weight
			if i > 0 {
				x *= pieceShare
			}
			if p < 0 {
				v[-p-1] -= x
			} else {
				v[p-1] += x
			}
		}
	}
	return unit(v)
}

// pieceShare is the weight of one piece of a word against the whole.
const pieceShare = 0.35

// word counts a word; a second time adds little, and each next word a bit less.
func (h *hasher) word(w string) {
	if len(w) < 2 || isStop(w) {
		return
	}
	at := float32(1 / (1 + float64(len(h.order))/40))
	if was, ok := h.seen[w]; ok {
		h.seen[w] = was + 0.3*at
		return
	}
	h.seen[w] = at
	h.order = append(h.order, w)
}

// directionOf returns the places of a stem and of its pieces.
func directionOf(w string) direction {
	d := direction{place(w)}
	padded := "<" + w + ">"
	for n := minPiece; n <= maxPiece && n < len(padded); n++ {
		for i := 0; i+n <= len(padded); i++ {
			d = append(d, place(padded[i:i+n]))
		}
	}
	return slices.Clip(d)
}

// place hashes a piece to a place and a sign (FNV-1a; it must not change
// between runs).
func place(s string) int16 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 32
	p := int16(h%hashDims) + 1
	if h>>20&1 == 1 {
		return -p
	}
	return p
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
