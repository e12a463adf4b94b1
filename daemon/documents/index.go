package documents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strings"

	"nize/store"
	"nize/store/kv"
)

// The index of a scope. A new document is fresh: its list of terms is stored as it is. Many
// fresh documents become a segment, and several segments of about the same size become a larger
// one, so that a search opens one block in each of a few segments, however many documents there
// are:
//
//	scope 0 f document           size (4), list of terms
//	scope 0 s segment (4) d      of each document: id (26), size (4)
//	scope 0 s segment (4) b block (4)  terms that begin with the bits of the block
//
// A segment is written in small transactions and becomes part of its scope in the last one.
// Blocks of a segment that the scope doesn't name were left by an interruption or by a merge;
// the next merge deletes them.

type segment struct {
	ID   uint32 `json:"id"`
	Docs int    `json:"docs"` // including those that were deleted since
	Bits int    `json:"bits"`
	Size int64  `json:"size"` // bytes of its blocks
}

const (
	freshMost   = 32      // fresh documents that are merged into a segment
	segmentMost = 4       // segments of a size that are merged into a larger one
	blockSize   = 4 << 10 // of a block, on average
	mergeChunk  = 1 << 20 // bytes of blocks in one transaction
	idSize      = 26
	rowSize     = idSize + 4
)

func freshKey(scope Scope, id string) []byte { return docKey(scope, "f"+id) }

func segmentKey(scope Scope, id uint32) []byte {
	return binary.BigEndian.AppendUint32(docKey(scope, "s"), id)
}

func blockKey(scope Scope, id uint32, block int) []byte {
	return binary.BigEndian.AppendUint32(append(segmentKey(scope, id), 'b'), uint32(block))
}

// blockOf returns the block of a term.
func (s segment) blockOf(hash uint32) int { return int(uint64(hash) >> (32 - s.Bits)) }

// level returns the size class of a segment.
func (s segment) level() int { return bits.Len(uint(s.Docs/freshMost)) / 2 }

// mergeInput is a segment or a fresh document whose terms a merge reads.
type mergeInput struct {
	fresh string // id of the document; "" for a segment
	segment
	docs  []byte   // rows
	to    []uint32 // the new number of each; noDocument if it was deleted
	block int      // the next one to be read
	list  *termReader
	hash  uint32
	row   []byte
	more  bool
}

const noDocument = ^uint32(0)

// Merge merges the parts of a scope's index where there are too many, in small transactions. It
// is not for concurrent use.
func (s Store) Merge(ctx context.Context, scope Scope) error {
	return s.merge(ctx, scope, false)
}

// merge implements Merge. If all is set and segments still contain deleted documents, everything
// becomes one segment without them.
func (s Store) merge(ctx context.Context, scope Scope, all bool) error {
	if err := s.dropSegments(ctx, scope); err != nil {
		return err
	}
	for {
		var inputs []*mergeInput
		err := s.db.View(ctx, "looking what is to be merged", func(r kv.Reader) error {
			sc, err := scopeOf(r, scope)
			if err != nil {
				return err
			}
			inputs, err = mergeInputs(r, scope, sc, all)
			return err
		})
		if err != nil || len(inputs) == 0 {
			return err
		}
		if err := s.mergeInto(ctx, scope, inputs); err != nil {
			return err
		}
		all = false
	}
}

// mergeInputs returns the inputs of the next merge; none if nothing has to be merged.
func mergeInputs(r kv.Reader, scope Scope, sc storedScope, all bool) (inputs []*mergeInput, err error) {
	byLevel := map[int][]segment{}
	var segments []segment
	for _, seg := range sc.Segments {
		l := seg.level()
		if byLevel[l] = append(byLevel[l], seg); len(byLevel[l]) >= segmentMost && segments == nil {
			segments = byLevel[l]
		}
	}
	if deleted := sc.indexed() + sc.Fresh - sc.Count; all && deleted > 0 || deleted*2 > sc.Count+2*freshMost {
		segments = sc.Segments
	}
	if sc.Fresh >= freshMost && segments == nil {
		keys, err := kv.FirstKeys(r, indexBucket, freshKey(scope, ""), nil, 2*freshMost)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			b, err := r.Unseal(indexBucket, k)
			if err != nil || len(b) < 4 {
				return nil, errors.Join(kv.ErrDamaged, err)
			}
			id := string(k[len(scope)+2:])
			inputs = append(inputs, &mergeInput{fresh: id, segment: segment{Size: int64(len(b))}, docs: append([]byte(id), b[:4]...), list: newTermReader(b[4:])})
		}
	}
	for _, seg := range segments {
		docs, err := r.Unseal(indexBucket, append(segmentKey(scope, seg.ID), 'd'))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, &mergeInput{segment: seg, docs: docs, list: newTermReader(nil)})
	}
	next := uint32(0)
	for _, in := range inputs {
		for row := range slices.Chunk(in.docs, rowSize) {
			if _, err := r.Get(headBucket, docKey(scope, string(row[:idSize]))); errors.Is(err, store.ErrNotFound) {
				in.to = append(in.to, noDocument)
				continue
			} else if err != nil {
				return nil, err
			}
			in.to = append(in.to, next)
			next++
		}
	}
	return inputs, nil
}

// next moves an input to its next term.
func (s Store) next(ctx context.Context, scope Scope, in *mergeInput) (err error) {
	for {
		if in.hash, in.row, in.more, err = in.list.Next(); err != nil || in.more || in.fresh != "" || in.block >= 1<<in.Bits {
			return err
		}
		var b []byte
		err := s.db.View(ctx, "reading a block of an index", func(r kv.Reader) (err error) {
			b, err = r.Unseal(indexBucket, blockKey(scope, in.ID, in.block))
			if errors.Is(err, store.ErrNotFound) {
				return nil // no term is in this block
			}
			return err
		})
		if err != nil {
			return err
		}
		in.list = newTermReader(b)
		in.block++
	}
}

// mergeInto writes a new segment with the content of the inputs, in their order, and replaces
// them by it.
func (s Store) mergeInto(ctx context.Context, scope Scope, inputs []*mergeInput) error {
	var out segment
	size, docs := int64(0), []byte(nil)
	for _, in := range inputs {
		size += in.Size
		for i, to := range in.to {
			if to != noDocument {
				docs = append(docs, in.docs[i*rowSize:(i+1)*rowSize]...)
				out.Docs++
			}
		}
		if err := s.next(ctx, scope, in); err != nil {
			return err
		}
	}
	out.Bits = min(20, bits.Len64(uint64(size/blockSize)))
	err := s.db.Update(ctx, "beginning a segment", func(tx kv.Tx) error {
		sc, err := scopeOf(tx, scope)
		if err != nil || sc.Key == nil {
			return errors.Join(store.ErrNotFound, err)
		}
		out.ID = sc.Next
		sc.Next++
		return kv.SealJSON(tx, scopeBucket, []byte(scope), sc)
	})
	if err != nil {
		return err
	}
	type block struct {
		number int
		list   []byte
	}
	var (
		pending []block
		held    int
		w       = new(termWriter)
		at      = -1
	)
	write := func() error {
		err := s.db.Update(ctx, "writing a segment", func(tx kv.Tx) error {
			for _, b := range pending {
				if err := tx.PutSealed(indexBucket, blockKey(scope, out.ID, b.number), b.list); err != nil {
					return err
				}
			}
			return nil
		})
		pending, held = nil, 0
		return err
	}
	finish := func() error {
		if list := w.Bytes(); at >= 0 && len(list) > 0 {
			pending, held, out.Size = append(pending, block{at, list}), held+len(list), out.Size+int64(len(list))
		}
		w = new(termWriter)
		if held < mergeChunk {
			return nil
		}
		return write()
	}
	for {
		var first *mergeInput
		for _, in := range inputs {
			if in.more && (first == nil || in.hash < first.hash) {
				first = in
			}
		}
		if first == nil {
			break
		}
		merged := term{Hash: first.hash}
		for _, in := range inputs {
			if !in.more || in.hash != merged.Hash {
				continue
			}
			list, err := decodePostings(in.row)
			if err != nil {
				return err
			}
			for _, p := range list {
				if int(p.Doc) >= len(in.to) {
					return kv.ErrDamaged
				}
				if p.Doc = in.to[p.Doc]; p.Doc != noDocument {
					merged.Postings = append(merged.Postings, p)
				}
			}
			if err := s.next(ctx, scope, in); err != nil {
				return err
			}
		}
		if len(merged.Postings) == 0 {
			continue
		}
		if b := out.blockOf(merged.Hash); b != at {
			if err := finish(); err != nil {
				return err
			}
			at = b
		}
		w.Add(merged)
	}
	if err := errors.Join(finish(), write()); err != nil {
		return err
	}
	err = s.db.Update(ctx, "putting a segment in its place", func(tx kv.Tx) error {
		sc, err := scopeOf(tx, scope)
		if err != nil {
			return err
		}
		for _, in := range inputs {
			if in.fresh != "" {
				if _, err := tx.Get(indexBucket, freshKey(scope, in.fresh)); err == nil {
					sc.Fresh--
				}
				if err := tx.Delete(indexBucket, freshKey(scope, in.fresh)); err != nil {
					return err
				}
				continue
			}
			i := slices.IndexFunc(sc.Segments, func(o segment) bool { return o.ID == in.ID })
			if i < 0 {
				return store.ErrConflict // the scope was erased meanwhile
			}
			sc.Segments = slices.Delete(sc.Segments, i, i+1)
		}
		if sc.Key == nil {
			return store.ErrConflict
		}
		if out.Docs > 0 {
			sc.Segments = append(sc.Segments, out)
			if err := tx.PutSealed(indexBucket, append(segmentKey(scope, out.ID), 'd'), docs); err != nil {
				return err
			}
		}
		return kv.SealJSON(tx, scopeBucket, []byte(scope), sc)
	})
	return errors.Join(err, s.dropSegments(ctx, scope))
}

// dropSegments deletes the parts of segments that the scope doesn't name.
func (s Store) dropSegments(ctx context.Context, scope Scope) error {
	prefix := docKey(scope, "s")
	for from := prefix; ; {
		var at []byte
		named := false
		err := s.db.View(ctx, "looking for parts of an index", func(r kv.Reader) error {
			sc, err := scopeOf(r, scope)
			if err != nil {
				return err
			}
			keys, err := kv.FirstKeys(r, indexBucket, prefix, from, 1)
			if err != nil || len(keys) == 0 {
				return err
			}
			at = keys[0][:len(prefix)+4]
			id := binary.BigEndian.Uint32(at[len(prefix):])
			named = slices.ContainsFunc(sc.Segments, func(o segment) bool { return o.ID == id })
			return nil
		})
		if err != nil || at == nil {
			return err
		}
		if !named {
			if err := kv.DeletePrefix(ctx, s.db, "deleting a part of an index", indexBucket, at); err != nil {
				return err
			}
		}
		from = append(bytes.Clone(at), 0xff)
	}
}

// part is a segment, or all fresh documents, in a search.
type part struct {
	scope Scope
	docs  []byte // rows
	terms [][]posting
}

// Search ranks the documents that contain words of the query. Rare words weigh more; their
// number of documents is counted within the scopes only.
func (s Store) Search(ctx context.Context, scopes []Scope, query string, most int) (hits []Hit, err error) {
	words := wordsOf(query)
	words = words[:min(len(words), maxQueryWords)]
	err = s.db.View(ctx, "searching documents", func(r kv.Reader) error {
		hits = nil
		var parts []part
		count, size := 0, int64(0)
		for _, scope := range scopes {
			sc, err := scopeOf(r, scope)
			if err != nil {
				return err
			}
			count, size = count+sc.Count, size+sc.Size
			found, err := searchScope(r, scope, sc, words)
			if err != nil {
				return err
			}
			parts = append(parts, found...)
		}
		ranked := rank(parts, len(words), count, float64(size)/float64(max(count, 1)))
		for _, c := range ranked {
			if len(hits) == most {
				break
			}
			h, ok, err := hitOf(r, parts[c.of], c, words)
			if err != nil {
				return err
			}
			if ok {
				hits = append(hits, h)
			}
		}
		return nil
	})
	return hits, err
}

const (
	maxQueryWords = 32
	maxSnippet    = 240 // bytes
)

// searchScope returns the parts of a scope that contain the words.
func searchScope(r kv.Reader, scope Scope, sc storedScope, words []string) (parts []part, err error) {
	if sc.Key == nil {
		return nil, nil
	}
	h := hasher{Key: sc.Key}
	hashes := make([]uint32, len(words))
	for i, w := range words {
		hashes[i] = h.Hash(w)
	}
	for _, seg := range sc.Segments {
		p := part{scope: scope, terms: make([][]posting, len(words))}
		found := false
		for i, hash := range hashes {
			b, err := r.Unseal(indexBucket, blockKey(scope, seg.ID, seg.blockOf(hash)))
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if p.terms[i], err = findTerm(b, hash); err != nil {
				return nil, err
			}
			found = found || len(p.terms[i]) > 0
		}
		if !found {
			continue
		}
		if p.docs, err = r.Unseal(indexBucket, append(segmentKey(scope, seg.ID), 'd')); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	fresh := part{scope: scope, terms: make([][]posting, len(words))}
	err = r.Each(indexBucket, freshKey(scope, ""), nil, func(k, _ []byte) error {
		b, err := r.Unseal(indexBucket, k)
		if err != nil || len(b) < 4 {
			return errors.Join(kv.ErrDamaged, err)
		}
		n := uint32(len(fresh.docs) / rowSize)
		fresh.docs = append(append(fresh.docs, k[len(scope)+2:]...), b[:4]...)
		for i, hash := range hashes {
			one, err := findTerm(b[4:], hash)
			if err != nil {
				return err
			}
			for _, p := range one {
				p.Doc = n
				fresh.terms[i] = append(fresh.terms[i], p)
			}
		}
		return nil
	})
	return append(parts, fresh), err
}

// candidate is a document of a part, with its score and the page of its rarest word.
type candidate struct {
	score   float64
	of, row int
	page    uint32
}

func rank(parts []part, words, count int, average float64) (list []candidate) {
	idf := make([]float64, words)
	for i := range idf {
		have := 0
		for _, p := range parts {
			have += len(p.terms[i])
		}
		idf[i] = inverseFrequency(have, count)
	}
	for of, p := range parts {
		rows := make([]candidate, len(p.docs)/rowSize)
		best := make([]float64, len(rows))
		for i, list := range p.terms {
			for _, t := range list {
				if int(t.Doc) >= len(rows) {
					continue
				}
				c := &rows[t.Doc]
				c.of, c.row = of, int(t.Doc)
				c.score += bm25(idf[i], t.Count, float64(binary.BigEndian.Uint32(p.docs[c.row*rowSize+idSize:])), average)
				if idf[i] > best[t.Doc] {
					best[t.Doc], c.page = idf[i], t.Page
				}
			}
		}
		list = append(list, slices.DeleteFunc(rows, func(c candidate) bool { return c.score == 0 })...)
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	return list
}

// hitOf reads a candidate. ok is false if it was deleted, or if its text contains none of the
// words after all: two words may have the same hash.
func hitOf(r kv.Reader, p part, c candidate, words []string) (h Hit, ok bool, err error) {
	id := string(p.docs[c.row*rowSize : c.row*rowSize+idSize])
	if h.Document, err = kv.UnsealJSON[Document](r, headBucket, docKey(p.scope, id)); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return h, false, err
	}
	h.Score = c.score
	inName := countWords(h.Name, words)
	h.Page = max(int(c.page), 1)
	text, err := readPage(r, p.scope, id, h.Page)
	if err != nil {
		return h, false, err
	}
	most, n := 0, text.Line
	for line := range strings.SplitSeq(text.Text, "\n") {
		if got := countWords(line, words); got > most {
			most, h.Line, h.Text = got, n, snippet(line, words, maxSnippet)
		}
		n++
	}
	return h, most+inName > 0, nil
}
