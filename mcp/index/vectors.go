package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	chromem "github.com/philippgille/chromem-go"
)

// The rule of this file: chromem-go only gets vectors of the right length, finite and
// normalized, is never asked for more than it holds, and never changes during a query. A
// collection holds the vectors of a range of numbers by one model and is immutable once it
// is built; an update replaces the collection of the last range. That avoids its traps
// (each has a test):
//
//   - a zero vector becomes NaN and pollutes every ranking;
//   - n above the number of documents is an error, also when a delete races;
//   - a vector of another length breaks every query, so each model has its own space;
//   - a cancelled context returns a partial answer and no error;
//   - Delete races with Add, and with an empty filter deletes everything.

// space identifies the embedder of a snapshot's vectors.
type space struct {
	embedder Embedder // nil for the embedded one
	// fresh, if not nil, contains the keys whose vectors were computed for this space. All
	// others are computed again, even if they are in the cache. Used by the worker only.
	fresh  map[string]bool
	record record
}

func (s *space) model() string {
	if s.embedder == nil {
		return tableModel
	}
	return s.embedder.Model()
}

// shelf holds the vectors of a range of numbers in one space.
type shelf struct {
	vectors *chromem.Collection
	count   int
	dims    int
}

// notEmbedding replaces chromem's default embedder, which would call OpenAI.
func notEmbedding(context.Context, string) ([]float32, error) {
	return nil, errors.New("vectors are made before they are stored")
}

// shelfSize is a map's capacity before it doubles: a collection is a map, and half empty it
// would use as much memory as the vectors.
const shelfSize = 112

// newShelf puts the vectors of the docs from number first on into a collection. It returns
// nil if there are none.
func newShelf(snap *snapshot, first int) *shelf {
	var s *shelf
	for n := uint32(first); n < uint32(min(first+shelfSize, len(snap.docs))); n++ {
		v := snap.vector(n)
		if v == nil || !snap.alive(n) || s != nil && len(v) != s.dims {
			continue
		}
		if s == nil {
			// Each collection has its own database, so that it is freed with its snapshot.
			c, err := chromem.NewDB().CreateCollection("tools", nil, notEmbedding)
			if err != nil {
				return nil // unreachable: only an empty name is an error
			}
			s = &shelf{vectors: c, dims: len(v)}
		}
		var id [4]byte
		binary.LittleEndian.PutUint32(id[:], n)
		if s.vectors.AddDocument(context.Background(), chromem.Document{ID: string(id[:]), Embedding: v}) == nil {
			s.count++
		}
	}
	return s
}

// textOf returns the text that is embedded for a tool.
func textOf(d *doc) string {
	var b strings.Builder
	t := d.tool()
	b.WriteString(t.Name)
	b.WriteString(" (")
	b.WriteString(t.Server)
	b.WriteString(")\n")
	if t.Title != "" && t.Title != t.Name {
		b.WriteString(t.Title)
		b.WriteByte('\n')
	}
	b.WriteString(t.Description[:min(len(t.Description), maxDescription)])
	return b.String()
}

// shelve builds the collections of the new numbers. Vectors of a configured embedder follow
// in the background.
func (u *update) shelve() {
	if len(u.docs) == len(u.old.docs) {
		return
	}
	first := len(u.old.docs) / shelfSize
	u.shelves = slices.Clone(u.shelves[:first])
	for n := first * shelfSize; n < len(u.docs); n += shelfSize {
		u.shelves = append(u.shelves, newShelf(&u.snapshot, n))
	}
}

// near is one tool that a vector search found.
type near struct {
	num uint32
	cos float64
}

// scan returns the n tools that the query's filters accept whose vectors are nearest to v,
// a unit vector.
func (s *search) scan(ctx context.Context, v []float32, n int) ([]near, error) {
	var out []near
	for _, sh := range s.snap.shelves {
		if sh == nil || sh.dims != len(v) {
			continue
		}
		found, err := sh.vectors.QueryEmbedding(ctx, v, sh.count, nil, nil)
		if cerr := ctx.Err(); cerr != nil {
			return nil, cerr // chromem returns a partial answer and no error
		}
		if err != nil {
			return nil, fmt.Errorf("searching vectors: %w", err)
		}
		kept := 0
		for _, f := range found { // nearest first
			if f.Similarity <= 0 || kept == n {
				break
			}
			if num := binary.LittleEndian.Uint32([]byte(f.ID)); s.keeps(num) {
				out = append(out, near{num, float64(f.Similarity)})
				kept++
			}
		}
	}
	slices.SortFunc(out, func(a, b near) int {
		if a.cos != b.cos {
			if a.cos > b.cos {
				return -1
			}
			return 1
		}
		return compareDocs(s.snap.docs[a.num], s.snap.docs[b.num])
	})
	return out[:min(len(out), n)], nil
}

func (s *search) inDomain(a *about) bool {
	return s.q.Domain == "" || a.domain == s.q.Domain || a.name == s.q.Domain
}

const (
	// almostNothing is the coverage of the best tool below which the words are useless and
	// the embedded vectors are searched.
	almostNothing = 0.1
	// leastCosine is the cosine of an embedded vector above which it is not chance: one in
	// ten of all tools reaches it, and half of the right ones.
	leastCosine = 0.5
)

// finish ranks with vectors and builds the answer.
func (x *Index) finish(ctx context.Context, s *search) (Answer, error) {
	var a Answer
	if x.vectors.failed.Load() {
		a.Degraded = true
	}
	whole := s.rerank()
	if e := s.snap.space.embedder; e == nil {
		if err := s.scanEmbedded(ctx, whole); err != nil {
			return a, err
		}
	} else {
		switch v, err := x.vectors.query(ctx, e, s.q.Text); {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err != nil:
			a.Degraded = true
		default:
			if err := s.fuse(ctx, v, x.fusion()); err != nil {
				return a, err
			}
		}
	}
	s.answer(&a)
	return a, nil
}

// rerank adds the embedded vectors' part to the candidates and sorts them; it returns the
// request's vector.
func (s *search) rerank() []float32 {
	whole, sentences := s.requestVectors()
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		if c.doc.vector != nil {
			c.parts[byVector] = likeness(c.doc.vector[:], whole, sentences)
		}
	}
	s.order()
	return whole
}

// scanEmbedded adds tools that only the embedded vectors find, if the words found almost
// nothing.
func (s *search) scanEmbedded(ctx context.Context, whole []float32) error {
	if s.w.vector <= 0 || !good(whole) || slices.ContainsFunc(s.sc.cands, func(c candidate) bool { return c.cover >= almostNothing }) {
		return nil
	}
	list, err := s.scan(ctx, whole, s.q.TopK)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.cos < leastCosine {
			break
		}
		s.add(n)
	}
	return nil
}

// add appends a tool that vectors found to the candidates.
func (s *search) add(n near) {
	if !slices.ContainsFunc(s.sc.cands, func(c candidate) bool { return c.num == n.num }) {
		s.sc.cands = append(s.sc.cands, candidate{num: n.num, doc: s.snap.docs[n.num]})
	}
}

// requestVectors returns the vectors of the whole request and, if it has several, of each
// of its sentences; they are zero if no word is known. A word has the same weight as in the
// ranking by words.
func (s *search) requestVectors() (whole []float32, sentences [][]float32) {
	n := s.sentences()
	whole = make([]float32, tableDims)
	if n > 1 {
		sentences = make([][]float32, n)
		for i := range sentences {
			sentences[i] = make([]float32, tableDims)
		}
	}
	for i := range s.concepts {
		c := &s.concepts[i]
		r, ok := commonWords().rankOf(c.word, c.english)
		if !ok {
			continue
		}
		commonWords().add(whole, r, c.weight*c.idf)
		for k := range sentences {
			if c.sentences>>k&1 == 1 {
				commonWords().add(sentences[k], r, c.weight*c.idf)
			}
		}
	}
	for _, v := range sentences {
		unit(v)
	}
	return unit(whole), sentences
}

// likeness returns the cosine of a tool's vector with the request's. With several sentences
// it is the mean of the whole request's and the best sentence's.
func likeness(tool, whole []float32, sentences [][]float32) float64 {
	cos := dot(tool, whole)
	if len(sentences) > 0 {
		best := float32(-1)
		for _, v := range sentences {
			best = max(best, dot(tool, v))
		}
		cos = (cos + best) / 2
	}
	return max(0, float64(cos))
}
