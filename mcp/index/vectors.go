package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	chromem "github.com/philippgille/chromem-go"
)

// The rule of this file: chromem-go owns the vectors, and every search asks it. Its
// collections are append-only, like the lists of the terms: a search ignores numbers that
// its snapshot doesn't have or that were removed, and a compaction makes new collections.
// chromem-go only gets vectors of the right length, finite and normalized, is never asked
// for more than it holds, and never deletes. That avoids its traps (each has a test):
//
//   - a zero vector becomes NaN and pollutes every ranking;
//   - n above the number of documents is an error, also when a delete races;
//   - a vector of another length breaks every query, so each model has its own space;
//   - a cancelled context returns a partial answer and no error;
//   - Delete races with Add, and with an empty filter deletes everything.
//
// Access depends on the caller and is no property of a tool, so it can't be a where filter: a
// search filters what a collection returns.

// space identifies the embedder of a snapshot's vectors.
type space struct {
	embedder Embedder // nil for the embedded one
	// fresh, if not nil, contains the keys whose vectors were computed for this space. All
	// others are computed again, even if they are in the cache. Used by the worker only.
	fresh  map[string]bool
	dims   int // of the vectors, 0 before the first; used by the worker only
	record record
}

// fits reports whether v is a good vector as long as the others.
func (s *space) fits(v []float32) bool {
	if !good(v) || s.dims != 0 && len(v) != s.dims {
		return false
	}
	s.dims = len(v)
	return true
}

func (s *space) model() string {
	if s.embedder == nil {
		return tableModel
	}
	return s.embedder.Model()
}

// collection holds vectors of one model by the numbers of their docs.
type collection struct {
	tools *chromem.Collection
	dims  int
}

// notEmbedding replaces chromem's default embedder, which would call OpenAI.
func notEmbedding(context.Context, string) ([]float32, error) {
	return nil, errors.New("vectors are made before they are stored")
}

// idOf returns the id of a number in a collection.
func idOf(n uint32) string {
	var id [4]byte
	binary.LittleEndian.PutUint32(id[:], n)
	return string(id[:])
}

// with returns the collection with the vector of a number added, and false if it doesn't
// fit. A nil collection becomes a new one. v must be a good vector.
func (c *collection) with(n uint32, v []float32) (*collection, bool) {
	if c == nil {
		// Only CreateCollection makes collections; the database is not used further.
		tools, err := chromem.NewDB().CreateCollection("tools", nil, notEmbedding)
		if err != nil {
			return nil, false // unreachable: only an empty name is an error
		}
		c = &collection{tools, len(v)}
	}
	if len(v) != c.dims || c.tools.AddDocument(context.Background(), chromem.Document{ID: idOf(n), Embedding: v}) != nil {
		return c, false
	}
	return c, true
}

// vector returns a copy of the vector of a number, or nil.
func (c *collection) vector(n uint32) []float32 {
	if c == nil {
		return nil
	}
	d, err := c.tools.GetByID(context.Background(), idOf(n))
	if err != nil {
		return nil
	}
	return d.Embedding
}

// near is one tool that a vector search found.
type near struct {
	num uint32
	cos float64
}

// nearest returns the n vectors that are nearest to v, a unit vector, in no order if some
// are equal, and whether they are all.
func (c *collection) nearest(ctx context.Context, v []float32, n int) (list []near, all bool, err error) {
	if c == nil || c.dims != len(v) {
		return nil, true, nil
	}
	count := c.tools.Count() // it never shrinks
	found, err := c.tools.QueryEmbedding(ctx, v, min(n, count), nil, nil)
	if cerr := ctx.Err(); cerr != nil {
		return nil, false, cerr // chromem returns a partial answer and no error
	}
	if err != nil {
		return nil, false, fmt.Errorf("searching vectors: %w", err)
	}
	list = make([]near, len(found))
	for i := range found {
		list[i] = near{binary.LittleEndian.Uint32([]byte(found[i].ID)), float64(found[i].Similarity)}
	}
	return list, n >= count, nil
}

// undivided is the number of tools up to which one collection holds all embedded vectors.
const undivided = 256

// noSubject is the subject of a tool without an embedded vector.
const noSubject = math.MaxUint16

// subjects returns the mean vector of each group of the lexicon, one after the other.
var subjects = sync.OnceValue(func() []float32 {
	var out []float32
	for line := range strings.Lines(groups) {
		v := make([]float32, tableDims)
		for w := range strings.FieldsSeq(line) {
			if r, ok := commonWords().rank(w); ok {
				commonWords().add(v, r, 1)
			}
		}
		if good(v) {
			out = append(out, v...)
		}
	}
	return out
})

// subjectOf returns the subject that is nearest to a vector, or noSubject for nil.
func subjectOf(v []float32) uint16 {
	if v == nil {
		return noSubject
	}
	best, most, all := uint16(0), float32(-2), subjects()
	for i := 0; i*tableDims < len(all); i++ {
		if cos := dot(v, all[i*tableDims:][:tableDims]); cos > most {
			best, most = uint16(i), cos
		}
	}
	return best
}

// embedded holds the embedded vectors.
type embedded struct {
	divided bool
	of      []*collection // by subject if divided, otherwise one; nil if empty
}

func newEmbedded(divided bool) embedded {
	n := 1
	if divided {
		n = len(subjects()) / tableDims
	}
	return embedded{divided, make([]*collection, n)}
}

// at returns the index of a doc's collection.
func (e *embedded) at(d *doc) int {
	if e.divided {
		return int(d.subject)
	}
	return 0
}

// vector returns a copy of the vector of a doc with that number, or nil.
func (e *embedded) vector(d *doc, n uint32) []float32 {
	if d.subject == noSubject {
		return nil
	}
	return e.of[e.at(d)].vector(n)
}

// add adds a doc's vector.
func (e *embedded) add(d *doc, n uint32, v []float32) {
	if d.subject == noSubject {
		return
	}
	c := e.of[e.at(d)]
	next, _ := c.with(n, v)
	if c == nil {
		e.of = slices.Clone(e.of) // older snapshots read it
		e.of[e.at(d)] = next
	}
}

// divide puts the embedded vectors into one collection or into one per subject, whichever
// suits the number of tools.
func (u *update) divide() {
	divided := u.live > undivided
	if u.embedded.of != nil && divided == u.embedded.divided {
		return
	}
	old := u.embedded
	u.embedded = newEmbedded(divided)
	for _, sv := range u.servers {
		for _, n := range sv.docs {
			u.embedded.add(u.docs[n], n, old.vector(u.docs[n], n))
		}
	}
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

// insert adds f to the limit nearest tools that the query's filters accept.
func (s *search) insert(list []near, f near, limit int) []near {
	order := func(a, b near) int {
		return cmp.Or(cmp.Compare(b.cos, a.cos), compareDocs(s.snap.docs[a.num], s.snap.docs[b.num]))
	}
	if int(f.num) >= len(s.snap.docs) || len(list) == limit && order(list[limit-1], f) <= 0 || !s.keeps(f.num) {
		return list
	}
	at, _ := slices.BinarySearchFunc(list, f, order)
	return slices.Insert(list[:min(len(list), limit-1)], at, f)
}

const (
	// A search compares the vectors of the nearest subjects: of at most maxSubjects, and of
	// no further one after enoughTools.
	maxSubjects = 6
	enoughTools = 300
	// leastCosine is the cosine of an embedded vector above which it is not chance: one in
	// ten of all tools reaches it, and half of the right ones.
	leastCosine = 0.5
)

// nearest returns the n tools that the query's filters accept whose embedded vectors are
// nearest to v, among those of the nearest subjects.
func (s *search) nearest(ctx context.Context, v []float32, n int) (out []near, err error) {
	compared := 0
	for _, c := range s.nearestSubjects(v) {
		if compared >= enoughTools {
			break
		}
		compared += c.tools.Count()
		// Most callers see most tools: first ask for few, and for all if the filters drop too
		// many. The last of few may be equal to one that is missing, and the choice between
		// them would be chance.
		few := 4 * n
		list, all, err := c.nearest(ctx, v, few)
		if err != nil {
			return nil, err
		}
		if !all {
			last := list[len(list)-1].cos
			list = slices.DeleteFunc(list, func(f near) bool { return f.cos == last })
			kept := 0
			for _, f := range list {
				if int(f.num) < len(s.snap.docs) && s.keeps(f.num) {
					kept++
				}
			}
			if kept < n && last >= leastCosine {
				if list, _, err = c.nearest(ctx, v, math.MaxInt); err != nil {
					return nil, err
				}
			}
		}
		for _, f := range list {
			if f.cos >= leastCosine {
				out = s.insert(out, f, n)
			}
		}
	}
	return out, nil
}

// nearestSubjects returns the collections of the subjects that are nearest to v.
func (s *search) nearestSubjects(v []float32) []*collection {
	e := &s.snap.embedded
	if !e.divided {
		if e.of[0] == nil {
			return nil
		}
		return e.of
	}
	type ranked struct {
		of  *collection
		cos float32
	}
	var best []ranked
	for i, c := range e.of {
		if c == nil {
			continue
		}
		r := ranked{c, dot(v, subjects()[i*tableDims:][:tableDims])}
		at, _ := slices.BinarySearchFunc(best, r, func(a, b ranked) int { return cmp.Compare(b.cos, a.cos) })
		if at < maxSubjects {
			best = slices.Insert(best[:min(len(best), maxSubjects-1)], at, r)
		}
	}
	out := make([]*collection, len(best))
	for i, r := range best {
		out[i] = r.of
	}
	return out
}

func (s *search) inDomain(a *about) bool {
	return s.q.Domain == "" || a.domain == s.q.Domain || a.name == s.q.Domain
}

// almostNothing is the coverage of the best tool below which the words are useless.
const almostNothing = 0.1

// addNearest adds the tools that are nearest by their embedded vectors to the candidates.
func (s *search) addNearest(ctx context.Context) error {
	if s.w.vector <= 0 {
		return nil
	}
	s.whole, s.parts = s.requestVectors()
	if !good(s.whole) {
		return nil
	}
	list, err := s.nearest(ctx, s.whole, s.q.TopK)
	if err != nil {
		return err
	}
	for _, n := range list {
		s.add(n.num)
	}
	return nil
}

// add appends a tool to the candidates if it is not one of them.
func (s *search) add(num uint32) {
	if !slices.ContainsFunc(s.sc.cands, func(c candidate) bool { return c.num == num }) {
		c := candidate{num: num, doc: s.snap.docs[num]}
		c.parts[byWords] = float64(s.sc.score[num])
		s.sc.cands = append(s.sc.cands, c)
	}
}

// likenesses sets how alike the vectors of each candidate and of the request are.
func (s *search) likenesses() {
	if !good(s.whole) {
		return
	}
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		if v := s.snap.embedded.vector(c.doc, c.num); v != nil {
			c.parts[byVector] = likeness(v, s.whole, s.parts)
		}
	}
}

// finish ranks with vectors of a configured embedder and builds the answer.
func (x *Index) finish(ctx context.Context, s *search) (Answer, error) {
	var a Answer
	if x.vectors.failed.Load() {
		a.Degraded = true
	}
	s.order()
	if e := s.snap.space.embedder; e != nil {
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
