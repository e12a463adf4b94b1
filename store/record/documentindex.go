package record

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
	"nize/store/document"
	"nize/store/fulltext"
	"nize/store/kv"
)

// The index of a scope. A new document's list of terms is kept as it is: it is
// fresh. Many fresh ones become a segment, and several segments of about a size
// become one of the next, so that a search opens a block of each of a few segments,
// whatever there is:
//
//	scope 0 f document           size (4), list of terms
//	scope 0 s segment (4) d      of each document: id (26), size (4)
//	scope 0 s segment (4) b block (4)  terms that begin with the bits of the block
//
// A segment is written in small transactions and becomes part of its scope in the
// last one; blocks of one that the scope does not name were left by an interruption,
// or by a merge, and the next merge deletes them.

type documentSegment struct {
	ID   uint32 `json:"id"`
	Docs int    `json:"docs"` // with those that were deleted since
	Bits int    `json:"bits"`
	Size int64  `json:"size"` // bytes of its blocks
}

const (
	freshMost   = 32      // fresh documents that make a segment
	segmentMost = 4       // segments of a size that make one of the next
	blockSize   = 4 << 10 // that blocks have on average
	mergeChunk  = 1 << 20 // bytes of blocks that one transaction writes
	idSize      = 26
	rowSize     = idSize + 4
)

func freshKey(scope document.Scope, id string) []byte { return docKey(scope, "f"+id) }

func segmentKey(scope document.Scope, id uint32) []byte {
	return binary.BigEndian.AppendUint32(docKey(scope, "s"), id)
}

func blockKey(scope document.Scope, id uint32, block int) []byte {
	return binary.BigEndian.AppendUint32(append(segmentKey(scope, id), 'b'), uint32(block))
}

// blockOf is the block of a term.
func (s documentSegment) blockOf(hash uint32) int { return int(uint64(hash) >> (32 - s.Bits)) }

// level tells segments of a size from others.
func (s documentSegment) level() int { return bits.Len(uint(s.Docs/freshMost)) / 2 }

// mergeInput is what a merge reads terms from: a segment, or a fresh document.
type mergeInput struct {
	fresh string // id of the document; else
	documentSegment
	docs  []byte   // rows
	to    []uint32 // the new number of each; none where it was deleted
	block int      // the next one to be read
	list  *fulltext.Reader
	hash  uint32
	row   []byte
	more  bool
}

const noDocument = ^uint32(0)

// MergeDocuments implements [document.Store].
func (s Documents) MergeDocuments(ctx context.Context, scope document.Scope) error {
	return s.mergeDocuments(ctx, scope, false)
}

// mergeDocuments merges what there is too much of. Where all is set and documents
// were deleted that segments still have, all becomes one segment without them.
func (s Documents) mergeDocuments(ctx context.Context, scope document.Scope, all bool) error {
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
		if err := s.merge(ctx, scope, inputs); err != nil {
			return err
		}
		all = false
	}
}

// mergeInputs are those that shall become one segment; none where all is well.
func mergeInputs(r kv.Reader, scope document.Scope, sc documentScope, all bool) (inputs []*mergeInput, err error) {
	byLevel := map[int][]documentSegment{}
	var segments []documentSegment
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
		keys, err := kv.FirstKeys(r, docIndex, freshKey(scope, ""), nil, 2*freshMost)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			b, err := r.Unseal(docIndex, k)
			if err != nil || len(b) < 4 {
				return nil, errors.Join(ErrDamaged, err)
			}
			id := string(k[len(scope)+2:])
			inputs = append(inputs, &mergeInput{fresh: id, documentSegment: documentSegment{Size: int64(len(b))}, docs: append([]byte(id), b[:4]...), list: fulltext.NewReader(b[4:])})
		}
	}
	for _, seg := range segments {
		docs, err := r.Unseal(docIndex, append(segmentKey(scope, seg.ID), 'd'))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, &mergeInput{documentSegment: seg, docs: docs, list: fulltext.NewReader(nil)})
	}
	next := uint32(0)
	for _, in := range inputs {
		for row := range slices.Chunk(in.docs, rowSize) {
			if _, err := r.Get(docHeads, docKey(scope, string(row[:idSize]))); errors.Is(err, store.ErrNotFound) {
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
func (s Documents) next(ctx context.Context, scope document.Scope, in *mergeInput) (err error) {
	for {
		if in.hash, in.row, in.more, err = in.list.Next(); err != nil || in.more || in.fresh != "" || in.block >= 1<<in.Bits {
			return err
		}
		var b []byte
		err := s.db.View(ctx, "reading a block of an index", func(r kv.Reader) (err error) {
			b, err = r.Unseal(docIndex, blockKey(scope, in.ID, in.block))
			if errors.Is(err, store.ErrNotFound) {
				return nil // no term begins so
			}
			return err
		})
		if err != nil {
			return err
		}
		in.list = fulltext.NewReader(b)
		in.block++
	}
}

// merge writes a new segment of what stands in the inputs, in their order, and puts
// it in their place.
func (s Documents) merge(ctx context.Context, scope document.Scope, inputs []*mergeInput) error {
	var out documentSegment
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
		return kv.SealJSON(tx, docScopes, []byte(scope), sc)
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
		w       = new(fulltext.Writer)
		at      = -1
	)
	write := func() error {
		err := s.db.Update(ctx, "writing a segment", func(tx kv.Tx) error {
			for _, b := range pending {
				if err := tx.PutSealed(docIndex, blockKey(scope, out.ID, b.number), b.list); err != nil {
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
		w = new(fulltext.Writer)
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
		term := fulltext.Term{Hash: first.hash}
		for _, in := range inputs {
			if !in.more || in.hash != term.Hash {
				continue
			}
			list, err := fulltext.Postings(in.row)
			if err != nil {
				return err
			}
			for _, p := range list {
				if int(p.Doc) >= len(in.to) {
					return ErrDamaged
				}
				if p.Doc = in.to[p.Doc]; p.Doc != noDocument {
					term.Postings = append(term.Postings, p)
				}
			}
			if err := s.next(ctx, scope, in); err != nil {
				return err
			}
		}
		if len(term.Postings) == 0 {
			continue
		}
		if b := out.blockOf(term.Hash); b != at {
			if err := finish(); err != nil {
				return err
			}
			at = b
		}
		w.Add(term)
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
				if _, err := tx.Get(docIndex, freshKey(scope, in.fresh)); err == nil {
					sc.Fresh--
				}
				if err := tx.Delete(docIndex, freshKey(scope, in.fresh)); err != nil {
					return err
				}
				continue
			}
			i := slices.IndexFunc(sc.Segments, func(o documentSegment) bool { return o.ID == in.ID })
			if i < 0 {
				return store.ErrConflict // all was erased meanwhile
			}
			sc.Segments = slices.Delete(sc.Segments, i, i+1)
		}
		if sc.Key == nil {
			return store.ErrConflict
		}
		if out.Docs > 0 {
			sc.Segments = append(sc.Segments, out)
			if err := tx.PutSealed(docIndex, append(segmentKey(scope, out.ID), 'd'), docs); err != nil {
				return err
			}
		}
		return kv.SealJSON(tx, docScopes, []byte(scope), sc)
	})
	return errors.Join(err, s.dropSegments(ctx, scope))
}

// dropSegments deletes what is there of segments that the scope does not name.
func (s Documents) dropSegments(ctx context.Context, scope document.Scope) error {
	prefix := docKey(scope, "s")
	for from := prefix; ; {
		var at []byte
		named := false
		err := s.db.View(ctx, "looking for parts of an index", func(r kv.Reader) error {
			sc, err := scopeOf(r, scope)
			if err != nil {
				return err
			}
			keys, err := kv.FirstKeys(r, docIndex, prefix, from, 1)
			if err != nil || len(keys) == 0 {
				return err
			}
			at = keys[0][:len(prefix)+4]
			id := binary.BigEndian.Uint32(at[len(prefix):])
			named = slices.ContainsFunc(sc.Segments, func(o documentSegment) bool { return o.ID == id })
			return nil
		})
		if err != nil || at == nil {
			return err
		}
		if !named {
			if err := kv.DeletePrefix(ctx, s.db, "deleting a part of an index", docIndex, at); err != nil {
				return err
			}
		}
		from = append(bytes.Clone(at), 0xff)
	}
}

// part is a segment, or all that is fresh, in a search.
type part struct {
	scope document.Scope
	docs  []byte // rows
	terms [][]fulltext.Posting
}

// SearchDocuments implements [document.Store]. Words that few have weigh more, and
// how many documents have one is counted within the scopes alone.
func (s Documents) SearchDocuments(ctx context.Context, scopes []document.Scope, query string, most int) (hits []document.Hit, err error) {
	words := fulltext.Words(query)
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

// searchScope finds where the words stand in a scope.
func searchScope(r kv.Reader, scope document.Scope, sc documentScope, words []string) (parts []part, err error) {
	if sc.Key == nil {
		return nil, nil
	}
	h := fulltext.Hasher{Key: sc.Key}
	hashes := make([]uint32, len(words))
	for i, w := range words {
		hashes[i] = h.Hash(w)
	}
	for _, seg := range sc.Segments {
		p := part{scope: scope, terms: make([][]fulltext.Posting, len(words))}
		found := false
		for i, hash := range hashes {
			b, err := r.Unseal(docIndex, blockKey(scope, seg.ID, seg.blockOf(hash)))
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if p.terms[i], err = fulltext.Find(b, hash); err != nil {
				return nil, err
			}
			found = found || len(p.terms[i]) > 0
		}
		if !found {
			continue
		}
		if p.docs, err = r.Unseal(docIndex, append(segmentKey(scope, seg.ID), 'd')); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	fresh := part{scope: scope, terms: make([][]fulltext.Posting, len(words))}
	err = r.Each(docIndex, freshKey(scope, ""), nil, func(k, _ []byte) error {
		b, err := r.Unseal(docIndex, k)
		if err != nil || len(b) < 4 {
			return errors.Join(ErrDamaged, err)
		}
		n := uint32(len(fresh.docs) / rowSize)
		fresh.docs = append(append(fresh.docs, k[len(scope)+2:]...), b[:4]...)
		for i, hash := range hashes {
			one, err := fulltext.Find(b[4:], hash)
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

// candidate is a document of a part, with its score and the page on which its rarest
// word is.
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
		idf[i] = fulltext.IDF(have, count)
	}
	for of, p := range parts {
		rows := make([]candidate, len(p.docs)/rowSize)
		best := make([]float64, len(rows))
		for i, term := range p.terms {
			for _, t := range term {
				if int(t.Doc) >= len(rows) {
					continue
				}
				c := &rows[t.Doc]
				c.of, c.row = of, int(t.Doc)
				c.score += fulltext.BM25(idf[i], t.Count, float64(binary.BigEndian.Uint32(p.docs[c.row*rowSize+idSize:])), average)
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

// hitOf looks at what was found: a document that was deleted is none, nor one in
// which none of the words stands there after all.
func hitOf(r kv.Reader, p part, c candidate, words []string) (h document.Hit, ok bool, err error) {
	id := string(p.docs[c.row*rowSize : c.row*rowSize+idSize])
	if h.Document, err = kv.UnsealJSON[document.Document](r, docHeads, docKey(p.scope, id)); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return h, false, err
	}
	h.Score = c.score
	inName := fulltext.Contains(h.Name, words)
	h.Page = max(int(c.page), 1)
	text, err := readPage(r, p.scope, id, h.Page)
	if err != nil {
		return h, false, err
	}
	most, n := 0, text.Line
	for line := range strings.SplitSeq(text.Text, "\n") {
		if got := fulltext.Contains(line, words); got > most {
			most, h.Line, h.Text = got, n, fulltext.Snippet(line, words, maxSnippet)
		}
		n++
	}
	return h, most+inName > 0, nil
}
