package record

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/document"
	"nize/store/fulltext"
	"nize/store/kv"
)

// Documents implements [document.Store]. All of it is sealed: what is known of a
// document, its pages, and the index of a scope's words (documentindex.go). In clear
// are whose it is and how much there is.
type Documents struct{ db kv.DB }

var _ document.Store = Documents{}

const (
	docHeads  = "documents"
	docPages  = "document_pages"
	docScopes = "document_scopes"
	docIndex  = "document_index"
	docSavers = "document_savers"
)

// documentScope is what is kept of a scope as a whole.
type documentScope struct {
	Key      []byte            `json:"key"` // of the hashes in its index
	Count    int               `json:"count"`
	Size     int64             `json:"size"`
	Fresh    int               `json:"fresh"` // documents whose words are in no segment yet
	Segments []documentSegment `json:"segments"`
	Next     uint32            `json:"next"` // number of the next segment
}

func (s documentScope) indexed() (n int) {
	for _, seg := range s.Segments {
		n += seg.Docs
	}
	return n
}

func docKey(scope document.Scope, id string) []byte { return []byte(string(scope) + "\x00" + id) }

func pageKey(scope document.Scope, id string, page int) []byte {
	return binary.BigEndian.AppendUint32(docKey(scope, id), uint32(page))
}

// scopeOf reads a scope; one without documents is empty.
func scopeOf(r kv.Reader, scope document.Scope) (documentScope, error) {
	s, err := kv.UnsealJSON[documentScope](r, docScopes, []byte(scope))
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return s, err
}

// storedDocuments is how many bytes of text are kept of all scopes.
func storedDocuments(r kv.Reader) (size int64, err error) {
	err = r.Each(docScopes, nil, nil, func(k, _ []byte) error {
		s, err := scopeOf(r, document.Scope(k))
		size += s.Size
		return err
	})
	return size, err
}

// savedBy returns how many bytes of text a person saved. Documents from before that
// was kept are counted the first time that it is asked for.
func savedBy(tx kv.Tx, user string) (int64, error) {
	switch _, err := tx.Get(docSavers, []byte("counted")); {
	case errors.Is(err, store.ErrNotFound):
		sizes := map[string]int64{}
		err := tx.Each(docHeads, nil, nil, func(k, _ []byte) error {
			d, err := kv.UnsealJSON[document.Document](tx, docHeads, k)
			sizes[d.By] += d.Size
			return err
		})
		for by, size := range sizes {
			err = errors.Join(err, putSaved(tx, by, size))
		}
		if err := errors.Join(err, tx.Put(docSavers, []byte("counted"), nil)); err != nil {
			return 0, err
		}
	case err != nil:
		return 0, err
	}
	return savedSize(tx, user)
}

func savedSize(r kv.Reader, user string) (int64, error) {
	v, err := r.Get(docSavers, saverKey(user))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err == nil && len(v) != 8:
		err = ErrDamaged
	}
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func putSaved(tx kv.Tx, user string, size int64) error {
	if size <= 0 {
		return tx.Delete(docSavers, saverKey(user))
	}
	return tx.Put(docSavers, saverKey(user), binary.BigEndian.AppendUint64(nil, uint64(size)))
}

func saverKey(user string) []byte { return append([]byte("u"), user...) }

// PutDocument implements [document.Store].
func (s Documents) PutDocument(ctx context.Context, by store.Caller, d document.Document, pages []string, l document.Limits) (document.Document, error) {
	if err := d.Check(); err != nil {
		return d, err
	}
	d.Size, d.Pages, d.Lines, d.By = 0, len(pages), 0, by.User
	counts := fulltext.Counts{}
	counts.Add(d.Name, 0)
	for i, text := range pages {
		d.Size += int64(len(text))
		d.Lines += strings.Count(text, "\n")
		counts.Add(text, i+1)
	}
	if n := len(pages); n > 0 && pages[n-1] != "" && !strings.HasSuffix(pages[n-1], "\n") {
		d.Lines++
	}
	err := s.db.Update(ctx, "saving a document", func(tx kv.Tx) error {
		d.ID, d.Created = store.NewID(tx.Now()), tx.Now()
		sc, err := scopeOf(tx, d.Scope)
		if err != nil {
			return err
		}
		saved, err := savedBy(tx, by.User)
		if err != nil {
			return err
		}
		stored, err := storedDocuments(tx)
		switch {
		case err != nil:
			return err
		case sc.Count >= l.Count:
			return store.Mark(store.Errorf("%d documents are saved, the most allowed for one owner (the setting limits.documents.count); remove some first", sc.Count), store.ErrRefused)
		case l.Person > 0 && saved+d.Size > l.Person:
			return store.Mark(store.Errorf("your documents hold %s, and one person's may hold %s (the setting limits.user.documents); remove some first", store.Size(saved).String(), store.Size(l.Person).String()), store.ErrRefused)
		case stored+d.Size > l.Stored:
			return store.Mark(store.Errorf("no space is left: all documents together may hold %s (the setting limits.documents.stored)", store.Size(l.Stored).String()), store.ErrRefused)
		}
		if err := putSaved(tx, by.User, saved+d.Size); err != nil {
			return err
		}
		if sc.Key == nil {
			sc.Key = make([]byte, 32)
			rand.Read(sc.Key) // never fails since Go 1.24
		}
		sc.Count, sc.Size, sc.Fresh = sc.Count+1, sc.Size+d.Size, sc.Fresh+1
		line := 1
		for i, text := range pages {
			if err := tx.PutSealed(docPages, pageKey(d.Scope, d.ID, i+1), append(binary.AppendUvarint(nil, uint64(line)), text...)); err != nil {
				return err
			}
			line += strings.Count(text, "\n")
		}
		list := append(binary.BigEndian.AppendUint32(nil, uint32(min(d.Size, 1<<32-1))), fulltext.Hasher{Key: sc.Key}.List(counts)...)
		if err := errors.Join(kv.SealJSON(tx, docHeads, docKey(d.Scope, d.ID), d), tx.PutSealed(docIndex, freshKey(d.Scope, d.ID), list), kv.SealJSON(tx, docScopes, []byte(d.Scope), sc)); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: "document", ID: d.ID})
		return tx.Event(by, store.Event{Kind: "document.put", Subject: d.ID}, struct {
			Scope document.Scope `json:"scope"`
			Type  string         `json:"type"`
			Size  int64          `json:"size"`
		}{d.Scope, d.Type, d.Size})
	})
	return d, err
}

// ListDocuments implements [document.Store].
func (s Documents) ListDocuments(ctx context.Context, scopes []document.Scope) (all []document.Document, err error) {
	err = s.db.View(ctx, "listing documents", func(r kv.Reader) error {
		all = nil
		for _, scope := range scopes {
			err := r.Each(docHeads, docKey(scope, ""), nil, func(k, _ []byte) error {
				d, err := kv.UnsealJSON[document.Document](r, docHeads, k)
				all = append(all, d)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b document.Document) int { return strings.Compare(b.ID, a.ID) })
	return all, err
}

// GetDocument implements [document.Store].
func (s Documents) GetDocument(ctx context.Context, scopes []document.Scope, id string) (d document.Document, err error) {
	if err := kv.CheckID("document", id); err != nil {
		return d, err
	}
	err = s.db.View(ctx, "reading a document", func(r kv.Reader) error {
		for _, scope := range scopes {
			if d, err = kv.UnsealJSON[document.Document](r, docHeads, docKey(scope, id)); !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return store.ErrNotFound
	})
	return d, err
}

// ReadPages implements [document.Store].
func (s Documents) ReadPages(ctx context.Context, d document.Document, from int, do func(document.Page) error) error {
	for n := max(from, 1); n <= d.Pages; n++ {
		var p document.Page
		err := s.db.View(ctx, "reading a page of a document", func(r kv.Reader) (err error) {
			p, err = readPage(r, d.Scope, d.ID, n)
			return err
		})
		if err == nil {
			err = do(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readPage(r kv.Reader, scope document.Scope, id string, n int) (p document.Page, err error) {
	b, err := r.Unseal(docPages, pageKey(scope, id, n))
	if err != nil {
		return p, err
	}
	line, w := binary.Uvarint(b)
	if w <= 0 {
		return p, ErrDamaged
	}
	return document.Page{Number: n, Line: int(line), Text: string(b[w:])}, nil
}

// deleteDocument deletes one with its pages and its fresh words; what segments have
// of it goes when they are merged.
func deleteDocument(tx kv.Tx, d document.Document) error {
	sc, err := scopeOf(tx, d.Scope)
	if err != nil {
		return err
	}
	if _, err := tx.Get(docIndex, freshKey(d.Scope, d.ID)); err == nil {
		sc.Fresh--
	}
	sc.Count, sc.Size = sc.Count-1, sc.Size-d.Size
	saved, err := savedBy(tx, d.By)
	if err != nil {
		return err
	}
	if err := putSaved(tx, d.By, saved-d.Size); err != nil {
		return err
	}
	for n := 1; n <= d.Pages; n++ {
		if err := tx.Delete(docPages, pageKey(d.Scope, d.ID, n)); err != nil {
			return err
		}
	}
	tx.Change(store.Change{Kind: "document", ID: d.ID})
	return errors.Join(tx.Delete(docHeads, docKey(d.Scope, d.ID)), tx.Delete(docIndex, freshKey(d.Scope, d.ID)), kv.SealJSON(tx, docScopes, []byte(d.Scope), sc))
}

// DeleteDocument implements [document.Store].
func (s Documents) DeleteDocument(ctx context.Context, by store.Caller, d document.Document) error {
	return s.db.Update(ctx, "removing a document", func(tx kv.Tx) error {
		d, err := kv.UnsealJSON[document.Document](tx, docHeads, docKey(d.Scope, d.ID))
		if err != nil {
			return err
		}
		if err := deleteDocument(tx, d); err != nil {
			return err
		}
		return tx.Event(by, store.Event{Kind: "document.delete", Subject: d.ID}, map[string]document.Scope{"scope": d.Scope})
	})
}

// EraseDocuments implements [document.Store].
func (s Documents) EraseDocuments(ctx context.Context, by store.Caller, scope document.Scope) (int, error) {
	n, err := EraseDocuments(ctx, s.db, scope)
	if err != nil || n == 0 {
		return n, err
	}
	return n, s.db.Update(ctx, "noting what was removed", func(tx kv.Tx) error {
		return tx.Event(by, store.Event{Kind: "document.erase", Subject: string(scope)}, map[string]int{"documents": n})
	})
}

// EraseDocuments deletes all documents of a scope and their index. It may be repeated.
func EraseDocuments(ctx context.Context, db kv.DB, scope document.Scope) (n int, err error) {
	for more := true; more; {
		gone := 0
		err := db.Update(ctx, "erasing documents", func(tx kv.Tx) error {
			found, err := kv.FirstKeys(tx, docHeads, docKey(scope, ""), nil, maxErased)
			if err != nil {
				return err
			}
			gone, more = 0, len(found) == maxErased
			for _, k := range found {
				d, err := kv.UnsealJSON[document.Document](tx, docHeads, k)
				if err != nil {
					return err
				}
				if err := deleteDocument(tx, d); err != nil {
					return err
				}
				gone++
			}
			return nil
		})
		if n += gone; err != nil {
			return n, err
		}
	}
	if err := kv.DeletePrefix(ctx, db, "deleting a part of an index", docIndex, docKey(scope, "")); err != nil {
		return n, err
	}
	return n, db.Update(ctx, "erasing documents", func(tx kv.Tx) error { return tx.Delete(docScopes, []byte(scope)) })
}

// EraseDocumentsOf deletes the documents of a person's own, by all of their ids.
func EraseDocumentsOf(ctx context.Context, db kv.DB, users []string) (n int, err error) {
	for _, id := range users {
		erased, err := EraseDocuments(ctx, db, document.ScopeOf(document.User, id))
		if n += erased; err != nil {
			return n, err
		}
	}
	return n, nil
}

const maxErased = 10 // documents in one transaction

// PruneDocuments implements [document.Store].
func (s Documents) PruneDocuments(ctx context.Context, before time.Time) (n int, err error) {
	var scopes []document.Scope
	gone := map[document.Scope]bool{}
	err = s.db.View(ctx, "looking for old documents", func(r kv.Reader) error {
		return r.Each(docScopes, nil, nil, func(k, _ []byte) error {
			scope := document.Scope(k)
			scopes = append(scopes, scope)
			if scope.Kind() == document.Project {
				_, err := r.Get(projects.Bucket, []byte(scope.Owner()))
				gone[scope] = errors.Is(err, store.ErrNotFound)
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	oldest := store.NewID(before)[:10] // ids begin with their time
	for _, scope := range scopes {
		if gone[scope] {
			erased, err := EraseDocuments(ctx, s.db, scope)
			if n += erased; err != nil {
				return n, fmt.Errorf("erasing the documents of %s: %w", scope, err)
			}
			continue
		}
		for more := true; more; {
			deleted := 0
			err := s.db.Update(ctx, "removing old documents", func(tx kv.Tx) error {
				keys, err := kv.FirstKeys(tx, docHeads, docKey(scope, ""), nil, maxErased)
				deleted = 0
				for _, k := range keys {
					if string(k[len(scope)+1:])[:10] >= oldest {
						break
					}
					d, err := kv.UnsealJSON[document.Document](tx, docHeads, k)
					if err != nil {
						return err
					}
					if err := deleteDocument(tx, d); err != nil {
						return err
					}
					deleted++
				}
				return err
			})
			if err != nil {
				return n, err
			}
			n, more = n+deleted, deleted == maxErased
		}
		if err := s.mergeDocuments(ctx, scope, true); err != nil {
			return n, err
		}
	}
	return n, nil
}
