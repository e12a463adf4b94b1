package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// depth is how many of the best tools by words are re-ranked.
const depth = 100

// scratch is the memory of one search, reused by the next.
type scratch struct {
	score   []float32 // by doc number
	near    []uint64  // a bit for each word of the request that the tool contains
	like    []uint64  // the same for synonyms
	touched []uint32
	factor  []float32 // by term: how well it represents a word of the request
	terms   []term    // terms set in factor
	kept    []uint32
	cands   []candidate
	sorted  []candidate
	rarity  []float64 // idf by the number of tools that have a word, 0 if not computed yet
	of      int       // the number of tools for which rarity is valid
	cosine  []float32 // by doc number, of a configured embedder
}

// candidate is one tool that may be returned.
type candidate struct {
	num   uint32
	doc   *doc
	parts [parts]float64
	total float64
	cover float64 // coverage of the request, absolute
	sure  float64 // a configured embedder's confidence in it
}

// The parts of a candidate's total, before weighting.
const (
	byWords = iota
	byName
	byCoverage
	byServer
	byAction
	byNumber
	bySentence
	byHistory
	byUse
	byVector
	parts
)

// Search answers q. It returns ctx's error only.
func (x *Index) Search(ctx context.Context, q Query) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, fmt.Errorf("searching tools: %w", err)
	}
	snap := x.now.Load()
	switch {
	case strings.TrimSpace(q.Text) == "":
		return Answer{Note: "The query is empty: say in a few words what the tool should do."}, nil
	case snap.live == 0:
		return Answer{Note: "No tools are indexed yet."}, nil
	}
	sc := x.scratch.Get().(*scratch)
	defer x.scratch.Put(sc)
	s := search{snap: snap, q: q.limited(), w: &x.weights, sc: sc}
	if q.Weigh != nil {
		s.w = x.weights.weighed(q.Weigh)
	}
	err := s.candidates(ctx, x)
	var a Answer
	if err == nil {
		a, err = x.finish(ctx, &s)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("searching tools: %w", err)
	}
	return a, nil
}

// limited returns the query with a valid TopK.
func (q Query) limited() *Query {
	if q.TopK <= 0 {
		q.TopK = DefaultTopK
	}
	q.TopK = min(q.TopK, MaxTopK)
	return &q
}

// search is one search in progress.
type search struct {
	snap     *snapshot
	q        *Query
	w        *weights
	sc       *scratch
	req      request
	concepts []concept
	asked    float64     // total weight of the request's words
	whole    []float32   // the request's embedded vector
	parts    [][]float32 // the same of each sentence if there are several
}

// candidates makes the best tools by words and the nearest by embedded vectors candidates
// and computes their signals.
func (s *search) candidates(ctx context.Context, x *Index) error {
	s.req = parse(s.q.Text)
	s.sc.reset(len(s.snap.docs), len(s.snap.lists), s.snap.live)
	s.concepts = s.resolve()
	for i := range s.concepts {
		s.asked += s.concepts[i].weight * s.concepts[i].idf
	}
	s.words()
	s.pick()
	if err := s.addNearest(ctx); err != nil {
		return err
	}
	s.signals()
	s.votes(&x.memory, x.learned())
	return nil
}

// reset allocates room for n docs and clears the entries that the last search set.
func (sc *scratch) reset(docs, terms, live int) {
	for _, d := range sc.touched {
		sc.score[d], sc.near[d], sc.like[d] = 0, 0, 0
	}
	for _, t := range sc.terms {
		sc.factor[t] = 0
	}
	sc.touched, sc.terms, sc.cands = sc.touched[:0], sc.terms[:0], sc.cands[:0]
	if len(sc.score) < docs {
		docs += docs / 8
		sc.score, sc.near, sc.like = make([]float32, docs), make([]uint64, docs), make([]uint64, docs)
	}
	if sc.of != live {
		sc.of, sc.rarity = live, make([]float64, live+1)
	}
	if len(sc.factor) < terms {
		sc.factor = make([]float32, terms+terms/8)
	}
}

// words computes BM25F over the lists of the request's terms.
func (s *search) words() {
	sc := s.sc
	for i := range s.concepts {
		c := &s.concepts[i]
		bit := uint64(1) << i
		for k := range c.terms {
			e := &c.terms[k]
			if sc.factor[e.term] == 0 {
				sc.terms = append(sc.terms, e.term)
			}
			sc.factor[e.term] = max(sc.factor[e.term], float32(e.factor))
			l := s.snap.lists[e.term]
			idf := s.idf(int(l.live))
			if !e.near() {
				idf = min(idf, c.idf) // a rare synonym must not outweigh the word
			}
			e.unit = float32(c.weight * e.factor * idf * maxImpact / impactSteps)
			marks := sc.like
			if e.near() {
				marks = sc.near
			}
			for _, p := range l.posts {
				d := p.doc()
				if (sc.near[d]|sc.like[d])&bit != 0 {
					continue // the word itself, or a closer one, already counts
				}
				if sc.score[d] == 0 {
					sc.touched = append(sc.touched, d)
				}
				sc.score[d] += e.unit * float32(p.impact())
				marks[d] |= bit
			}
		}
	}
}

// keeps reports whether the query's filters accept the tool.
func (s *search) keeps(d uint32) bool {
	if !s.snap.alive(d) {
		return false
	}
	doc := s.snap.docs[d]
	if !s.inDomain(doc.about) {
		return false
	}
	return s.q.Keep == nil || s.q.Keep(doc.tool())
}

// pick makes the best tools by words that the filters accept candidates. It first filters
// the best tools by words only, and filters all tools if too few are left.
func (s *search) pick() {
	sc := s.sc
	limit := max(depth, 2*s.q.TopK)
	front := sc.touched
	if len(front) > 4*limit {
		front = s.front(2 * limit)
	}
	s.take(front, limit)
	if len(sc.cands) < limit && len(front) < len(sc.touched) {
		sc.cands = sc.cands[:0]
		s.take(sc.touched, limit)
	}
}

// front returns at least n of the best tools by words, unfiltered, in no order.
func (s *search) front(n int) []uint32 {
	score := s.sc.score
	top := float32(0)
	for _, d := range s.sc.touched {
		top = max(top, score[d])
	}
	if top <= 0 {
		return s.sc.touched
	}
	var counts [1 << 12]int
	step := func(d uint32) int { return int(max(0, score[d]/top) * float32(len(counts)-1)) }
	for _, d := range s.sc.touched {
		counts[step(d)]++
	}
	least := len(counts) - 1
	for sum := counts[least]; sum < n && least > 0; sum += counts[least] {
		least--
	}
	out := make([]uint32, 0, 2*n)
	for _, d := range s.sc.touched {
		if step(d) >= least {
			out = append(out, d)
		}
	}
	return out
}

// take makes the best limit of nums that the filters accept candidates.
func (s *search) take(nums []uint32, limit int) {
	sc := s.sc
	kept := sc.kept[:0]
	for _, d := range nums {
		if s.keeps(d) {
			kept = append(kept, d)
		}
	}
	slices.SortFunc(kept, func(a, b uint32) int {
		if c := cmp.Compare(sc.score[b], sc.score[a]); c != 0 {
			return c
		}
		return compareDocs(s.snap.docs[a], s.snap.docs[b])
	})
	for _, d := range kept[:min(len(kept), limit)] {
		c := candidate{num: d, doc: s.snap.docs[d]}
		c.parts[byWords] = float64(sc.score[d])
		sc.cands = append(sc.cands, c)
	}
	sc.kept = kept
}

// signals computes the other parts.
func (s *search) signals() {
	cands := s.sc.cands
	for i := range cands {
		c := &cands[i]
		c.parts[byName] = s.nameShare(c.doc)
		c.cover = s.coverage(c.num)
		c.parts[byCoverage] = c.cover
		if s.contradicts(c.doc) {
			c.parts[byAction] = -1
		}
		c.parts[byNumber] = -s.disagreement(c.doc)
		if slices.Contains(s.q.Servers, c.doc.about.name) {
			c.parts[byHistory] = 1
		}
	}
	s.serverShares()
	s.bestSentences()
	s.likenesses()
}

// scale returns the factor of each part: its weight divided by the best candidate's value.
func (s *search) scale() [parts]float64 {
	cands := s.sc.cands
	weight := [parts]float64{1, s.w.name, s.w.coverage, s.w.server, s.w.action, s.w.number, s.w.sentence, s.w.history, s.w.use, s.w.vector}
	for p := range weight {
		if p == byAction || p == byNumber || p == byUse || p == byVector {
			continue // these are already within -1 to 1
		}
		top := 0.0
		for i := range cands {
			top = max(top, cands[i].parts[p])
		}
		if top > 0 {
			weight[p] /= top
		}
	}
	return weight
}

// order computes the totals and sorts.
func (s *search) order() {
	cands, weight := s.sc.cands, s.scale()
	for i := range cands {
		c := &cands[i]
		c.total = 0
		for p, w := range weight {
			c.total += w * c.parts[p]
		}
	}
	s.sort()
}

// sort sorts the candidates by their totals. It moves each only once, because they are
// large.
func (s *search) sort() {
	sc := s.sc
	sc.kept = sc.kept[:0]
	for i := range sc.cands {
		sc.kept = append(sc.kept, uint32(i))
	}
	slices.SortFunc(sc.kept, func(i, j uint32) int {
		a, b := &sc.cands[i], &sc.cands[j]
		return cmp.Or(cmp.Compare(b.total, a.total), compareDocs(a.doc, b.doc))
	})
	sc.sorted = sc.sorted[:0]
	for _, i := range sc.kept {
		sc.sorted = append(sc.sorted, sc.cands[i])
	}
	sc.cands, sc.sorted = sc.sorted, sc.cands
}

// answer copies the first candidates to Hits if one of them fits, and to Near otherwise. A
// tool that ranks before another one has at least its score, so that order and score agree.
func (s *search) answer(a *Answer) {
	hits := make([]store.Hit, min(len(s.sc.cands), s.q.TopK))
	said := s.mostSaid()
	score, fit := 0.0, 0
	for i := len(hits) - 1; i >= 0; i-- {
		c := &s.sc.cands[i]
		score = max(score, s.fit(c, said), c.sure)
		hits[i] = store.Hit{Tool: c.doc.tool(), Score: score}
		if score >= s.q.MinScore {
			fit++
		}
	}
	switch {
	case len(hits) == 0:
		a.Note = "No tool fits this request. Try other words, or browse the domains."
	case fit == 0:
		a.Near, a.Note = hits, "No tool fits this request. Those that come nearest may do something else."
	default:
		a.Hits = hits[:fit]
	}
}
