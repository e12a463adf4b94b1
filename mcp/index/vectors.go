package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	chromem "github.com/philippgille/chromem-go"

	"nize/store"
)

// The rule of this file: chromem-go never sees a vector that is not of the
// right length, finite and of length 1, is never asked for more than it holds,
// and never changes while it is asked. A collection holds the vectors of one
// server by one model and is not touched once it is built; an update makes a
// new one. Its traps are out of reach that way (each is a test):
//
//   - a zero vector becomes NaN and pollutes every ranking;
//   - n above the number of documents is an error, also when a delete races;
//   - a vector of another length breaks every query, so a model is a space of
//     its own;
//   - a cancelled context gives part of the answer and no error;
//   - Delete races with Add, and with an empty filter deletes everything.

// space is the embedder whose vectors a snapshot has.
type space struct {
	embedder Embedder
	builtin  bool
	// fresh, if not nil, are the keys whose vectors were computed for this space:
	// all others are computed again, though the cache has them. The worker's own.
	fresh  map[string]bool
	record record
}

// shelf is the vectors of one server in one space.
type shelf struct {
	vectors *chromem.Collection
	count   int
	dims    int
}

// notEmbedding is what chromem is given in place of its default, which would
// call OpenAI.
func notEmbedding(context.Context, string) ([]float32, error) {
	return nil, errors.New("vectors are made before they are stored")
}

// newShelf puts the vectors of a server's docs into a collection, nil if there
// are none.
func newShelf(name string, snap *snapshot, nums []uint32) *shelf {
	var s *shelf
	for _, n := range nums {
		v := snap.vecs[n]
		if v == nil || s != nil && len(v) != s.dims {
			continue
		}
		if s == nil {
			// A database of its own: collections then go with their snapshot.
			c, err := chromem.NewDB().CreateCollection(name, nil, notEmbedding)
			if err != nil {
				return nil // only without a name
			}
			s = &shelf{vectors: c, dims: len(v)}
		}
		if s.vectors.AddDocument(context.Background(), chromem.Document{ID: snap.docs[n].id, Embedding: v}) == nil {
			s.count++
		}
	}
	return s
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

// textOf is what is embedded for a tool.
func textOf(d *doc) string {
	var b strings.Builder
	b.WriteString(d.tool.Name)
	b.WriteString(" (")
	b.WriteString(d.tool.Server)
	b.WriteString(")\n")
	if d.tool.Title != "" && d.tool.Title != d.tool.Name {
		b.WriteString(d.tool.Title)
		b.WriteByte('\n')
	}
	b.WriteString(d.tool.Description[:min(len(d.tool.Description), maxDescription)])
	return b.String()
}

// shelve gives the server's new docs their embedded vectors and builds its
// collection. Vectors of a configured embedder follow in the background.
func (u *update) shelve(s *server) {
	if u.space.builtin {
		for _, n := range s.docs {
			if u.vecs[n] == nil { // a new number, which no older snapshot sees
				if v := u.hash.vector(textOf(u.docs[n])); good(v) {
					u.vecs[n] = v
				}
			}
		}
	}
	s.shelf = newShelf(s.about.name, &u.snapshot, s.docs)
}

// near is one tool that a vector search found.
type near struct {
	num uint32
	cos float64
}

// scan returns the n tools that the query's filters let through whose vectors
// are nearest to v, a unit vector.
func (s *search) scan(ctx context.Context, v []float32, n int) ([]near, error) {
	var out []near
	for _, sv := range s.snap.servers {
		if sv.shelf == nil || sv.shelf.dims != len(v) || !s.inDomain(sv.about) {
			continue
		}
		want := sv.shelf.count
		if s.q.Keep == nil {
			want = min(want, n)
		}
		found, err := sv.shelf.vectors.QueryEmbedding(ctx, v, want, nil, nil)
		if cerr := ctx.Err(); cerr != nil {
			return nil, cerr // chromem answers with a part and no error
		}
		if err != nil {
			return nil, fmt.Errorf("searching the vectors of %s: %w", sv.about.name, err)
		}
		for _, f := range found {
			if f.Similarity <= 0 {
				continue
			}
			i, ok := slices.BinarySearchFunc(sv.docs, f.ID, func(num uint32, id string) int { return strings.Compare(s.snap.docs[num].id, id) })
			if ok && s.keeps(sv.docs[i]) {
				out = append(out, near{sv.docs[i], float64(f.Similarity)})
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
		return strings.Compare(s.snap.docs[a.num].id, s.snap.docs[b.num].id)
	})
	return out[:min(len(out), n)], nil
}

func (s *search) inDomain(a *about) bool {
	return s.q.Domain == "" || a.domain == s.q.Domain || a.name == s.q.Domain
}

const (
	// almostNothing is the coverage of the best tool below which the words are
	// no help and the embedded vectors are searched.
	almostNothing = 0.1
	// leastCosine of an embedded vector that is more than chance.
	leastCosine = 0.2
)

// finish ranks with vectors and makes the answer.
func (x *Index) finish(ctx context.Context, s *search) (Answer, error) {
	var a Answer
	if x.vectors.failed.Load() {
		a.Degraded = true
	}
	byVectors := false
	if s.snap.space.builtin {
		found, err := s.rerank(ctx)
		if err != nil {
			return a, err
		}
		byVectors = found
	} else {
		switch v, err := x.vectors.query(ctx, s.snap.space.embedder, s.q.Text); {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err != nil:
			a.Degraded = true
			s.order()
		default:
			s.order()
			if err := s.fuse(ctx, v, x.fusion()); err != nil {
				return a, err
			}
		}
	}
	a.Hits = s.hits()
	a.Note = s.note(a.Hits, byVectors)
	return a, nil
}

// rerank adds the embedded vectors' part to the running, or searches with them
// alone where the words found almost nothing; found says that it did.
func (s *search) rerank(ctx context.Context) (found bool, err error) {
	v := s.sc.hash.vector(s.q.Text[:min(len(s.q.Text), maxRequest)])
	if s.w.vector <= 0 || !good(v) {
		s.order()
		return false, nil
	}
	best := 0.0
	cands := s.sc.cands
	for i := range cands {
		c := &cands[i]
		if tv := s.snap.vecs[c.num]; len(tv) == len(v) {
			c.cos = max(0, float64(dot(v, tv)))
			c.parts[byVector] = c.cos
		}
		best = max(best, c.cover)
	}
	s.order()
	if best >= almostNothing {
		return false, nil
	}
	list, err := s.scan(ctx, v, s.q.TopK)
	if err != nil {
		return false, err
	}
	for _, n := range list {
		if n.cos < leastCosine {
			break
		}
		s.add(n)
		found = true
	}
	return found, nil
}

// add puts a tool that vectors found behind the running.
func (s *search) add(n near) {
	for i := range s.sc.cands {
		if c := &s.sc.cands[i]; c.num == n.num {
			c.cover = max(c.cover, n.cos)
			return
		}
	}
	s.sc.cands = append(s.sc.cands, candidate{num: n.num, doc: s.snap.docs[n.num], cos: n.cos, cover: n.cos})
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// note says in words when nothing fits well.
func (s *search) note(hits []store.Hit, byVectors bool) string {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	switch {
	case len(hits) == 0:
		return "No tool fits this request. Try other words, or browse the domains."
	case byVectors:
		return "No tool has the words of this request; these are the nearest by the look of the words."
	case best < poorFit:
		return fmt.Sprintf("No tool fits well: the best has %.0f %% of what the request says. Ask in other words, for one thing at a time, or browse the domains.", 100*best)
	}
	return ""
}

// poorFit is the coverage below which an answer says that nothing fits well.
// Requests in other words than the right tool's reach little more.
const poorFit = 0.12
