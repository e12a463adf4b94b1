package documents

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
	"nize/store/kv"
)

// Store keeps documents, sealed: what is known of a document, its pages, and the index of a
// scope's words (index.go). The owners and the sizes are in clear. Methods that take scopes see
// nothing outside of them.
type Store struct{ db kv.DB }

// Over returns the store over a database that was opened with [Buckets].
func Over(db kv.DB) Store { return Store{db} }

const (
	headBucket  = "documents"
	pageBucket  = "document_pages"
	scopeBucket = "document_scopes"
	indexBucket = "document_index"
	saverBucket = "document_savers"
)

// Buckets are the buckets of documents.
var Buckets = []kv.Bucket{
	{Name: headBucket, Key: "scope 0 id", Value: "JSON", Sealed: true},
	{Name: pageBucket, Key: "scope 0 id page", Value: "its first line, its text", Sealed: true},
	{Name: scopeBucket, Key: "scope", Value: "JSON: the number of documents, and the segments of their index", Sealed: true},
	{Name: indexBucket, Key: "scope 0 f document; scope 0 s segment", Value: "terms and their postings", Sealed: true},
	{Name: saverBucket, Key: "u user", Value: "bytes of text that they saved; \"counted\" exists once older documents are included"},
}

// storedScope is the record of a scope.
type storedScope struct {
	Key      []byte    `json:"key"` // of the hashes in its index
	Count    int       `json:"count"`
	Size     int64     `json:"size"`
	Fresh    int       `json:"fresh"` // documents whose words are in no segment yet
	Segments []segment `json:"segments"`
	Next     uint32    `json:"next"` // number of the next segment
}

func (s storedScope) indexed() (n int) {
	for _, seg := range s.Segments {
		n += seg.Docs
	}
	return n
}

func docKey(scope Scope, id string) []byte { return []byte(string(scope) + "\x00" + id) }

func pageKey(scope Scope, id string, page int) []byte {
	return binary.BigEndian.AppendUint32(docKey(scope, id), uint32(page))
}

// scopeOf returns the record of a scope, an empty one if it has no documents.
func scopeOf(r kv.Reader, scope Scope) (storedScope, error) {
	s, err := kv.UnsealJSON[storedScope](r, scopeBucket, []byte(scope))
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return s, err
}

// storedSize returns the bytes of text in all scopes.
func storedSize(r kv.Reader) (size int64, err error) {
	err = r.Each(scopeBucket, nil, nil, func(k, _ []byte) error {
		s, err := scopeOf(r, Scope(k))
		size += s.Size
		return err
	})
	return size, err
}

// savedBy returns the bytes of text that a person saved. The first call counts the documents of
// versions that didn't keep the number.
func savedBy(tx kv.Tx, user string) (int64, error) {
	switch _, err := tx.Get(saverBucket, []byte("counted")); {
	case errors.Is(err, store.ErrNotFound):
		sizes := map[string]int64{}
		err := tx.Each(headBucket, nil, nil, func(k, _ []byte) error {
			d, err := kv.UnsealJSON[Document](tx, headBucket, k)
			sizes[d.By] += d.Size
			return err
		})
		for by, size := range sizes {
			err = errors.Join(err, putSaved(tx, by, size))
		}
		if err := errors.Join(err, tx.Put(saverBucket, []byte("counted"), nil)); err != nil {
			return 0, err
		}
	case err != nil:
		return 0, err
	}
	return savedSize(tx, user)
}

func savedSize(r kv.Reader, user string) (int64, error) {
	v, err := r.Get(saverBucket, saverKey(user))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err == nil && len(v) != 8:
		err = kv.ErrDamaged
	}
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func putSaved(tx kv.Tx, user string, size int64) error {
	if size <= 0 {
		return tx.Delete(saverBucket, saverKey(user))
	}
	return tx.Put(saverBucket, saverKey(user), binary.BigEndian.AppendUint64(nil, uint64(size)))
}

func saverKey(user string) []byte { return append([]byte("u"), user...) }

// Put saves a new document under a new id. It returns store.ErrRefused if that would exceed the
// limits.
func (s Store) Put(ctx context.Context, by store.Caller, d Document, pages []string, l Limits) (Document, error) {
	if err := d.Check(); err != nil {
		return d, err
	}
	d.Size, d.Pages, d.Lines, d.By = 0, len(pages), 0, by.User
	counts := wordCounts{}
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
		stored, err := storedSize(tx)
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
			if err := tx.PutSealed(pageBucket, pageKey(d.Scope, d.ID, i+1), append(binary.AppendUvarint(nil, uint64(line)), text...)); err != nil {
				return err
			}
			line += strings.Count(text, "\n")
		}
		list := append(binary.BigEndian.AppendUint32(nil, uint32(min(d.Size, 1<<32-1))), hasher{Key: sc.Key}.List(counts)...)
		if err := errors.Join(kv.SealJSON(tx, headBucket, docKey(d.Scope, d.ID), d), tx.PutSealed(indexBucket, freshKey(d.Scope, d.ID), list), kv.SealJSON(tx, scopeBucket, []byte(d.Scope), sc)); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: "document", ID: d.ID})
		return tx.Event(by, store.Event{Kind: "document.put", Subject: d.ID}, struct {
			Scope Scope  `json:"scope"`
			Type  string `json:"type"`
			Size  int64  `json:"size"`
		}{d.Scope, d.Type, d.Size})
	})
	return d, err
}

// List returns the documents of the scopes, the newest first.
func (s Store) List(ctx context.Context, scopes []Scope) (all []Document, err error) {
	err = s.db.View(ctx, "listing documents", func(r kv.Reader) error {
		all = nil
		for _, scope := range scopes {
			err := r.Each(headBucket, docKey(scope, ""), nil, func(k, _ []byte) error {
				d, err := kv.UnsealJSON[Document](r, headBucket, k)
				all = append(all, d)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Document) int { return strings.Compare(b.ID, a.ID) })
	return all, err
}

// Get returns a document by its id, or store.ErrNotFound if the scopes have none.
func (s Store) Get(ctx context.Context, scopes []Scope, id string) (d Document, err error) {
	if err := kv.CheckID("document", id); err != nil {
		return d, err
	}
	err = s.db.View(ctx, "reading a document", func(r kv.Reader) error {
		for _, scope := range scopes {
			if d, err = kv.UnsealJSON[Document](r, headBucket, docKey(scope, id)); !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return store.ErrNotFound
	})
	return d, err
}

// ReadPages calls do for the pages from one on, until it returns an error.
func (s Store) ReadPages(ctx context.Context, d Document, from int, do func(Page) error) error {
	for n := max(from, 1); n <= d.Pages; n++ {
		var p Page
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

func readPage(r kv.Reader, scope Scope, id string, n int) (p Page, err error) {
	b, err := r.Unseal(pageBucket, pageKey(scope, id, n))
	if err != nil {
		return p, err
	}
	line, w := binary.Uvarint(b)
	if w <= 0 {
		return p, kv.ErrDamaged
	}
	return Page{Number: n, Line: int(line), Text: string(b[w:])}, nil
}

// deleteDocument deletes a document with its pages and its fresh words. Its words in segments
// are deleted when the segments are merged.
func deleteDocument(tx kv.Tx, d Document) error {
	sc, err := scopeOf(tx, d.Scope)
	if err != nil {
		return err
	}
	if _, err := tx.Get(indexBucket, freshKey(d.Scope, d.ID)); err == nil {
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
		if err := tx.Delete(pageBucket, pageKey(d.Scope, d.ID, n)); err != nil {
			return err
		}
	}
	tx.Change(store.Change{Kind: "document", ID: d.ID})
	return errors.Join(tx.Delete(headBucket, docKey(d.Scope, d.ID)), tx.Delete(indexBucket, freshKey(d.Scope, d.ID)), kv.SealJSON(tx, scopeBucket, []byte(d.Scope), sc))
}

// Delete deletes a document.
func (s Store) Delete(ctx context.Context, by store.Caller, d Document) error {
	return s.db.Update(ctx, "removing a document", func(tx kv.Tx) error {
		d, err := kv.UnsealJSON[Document](tx, headBucket, docKey(d.Scope, d.ID))
		if err != nil {
			return err
		}
		if err := deleteDocument(tx, d); err != nil {
			return err
		}
		return tx.Event(by, store.Event{Kind: "document.delete", Subject: d.ID}, map[string]Scope{"scope": d.Scope})
	})
}

// Erase deletes all documents of a scope and records how many, in small transactions.
func (s Store) Erase(ctx context.Context, by store.Caller, scope Scope) (int, error) {
	n, err := s.eraseScope(ctx, scope)
	if err != nil || n == 0 {
		return n, err
	}
	return n, s.db.Update(ctx, "noting what was removed", func(tx kv.Tx) error {
		return tx.Event(by, store.Event{Kind: "document.erase", Subject: string(scope)}, map[string]int{"documents": n})
	})
}

// eraseScope deletes all documents of a scope and their index. It may be repeated after an
// interruption.
func (s Store) eraseScope(ctx context.Context, scope Scope) (n int, err error) {
	for more := true; more; {
		gone := 0
		err := s.db.Update(ctx, "erasing documents", func(tx kv.Tx) error {
			found, err := kv.FirstKeys(tx, headBucket, docKey(scope, ""), nil, maxErased)
			if err != nil {
				return err
			}
			gone, more = 0, len(found) == maxErased
			for _, k := range found {
				d, err := kv.UnsealJSON[Document](tx, headBucket, k)
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
	if err := kv.DeletePrefix(ctx, s.db, "deleting a part of an index", indexBucket, docKey(scope, "")); err != nil {
		return n, err
	}
	return n, s.db.Update(ctx, "erasing documents", func(tx kv.Tx) error { return tx.Delete(scopeBucket, []byte(scope)) })
}

// EraseUsers deletes the documents that belong to people. It may be repeated after an
// interruption.
func (s Store) EraseUsers(ctx context.Context, users []string) (n int, err error) {
	for _, id := range users {
		erased, err := s.eraseScope(ctx, ScopeOf(User, id))
		if n += erased; err != nil {
			return n, err
		}
	}
	return n, nil
}

const maxErased = 10 // documents in one transaction

// Prune deletes the documents that were saved before a time and those of projects that don't
// exist any more, and merges what the index still has of deleted ones.
func (s Store) Prune(ctx context.Context, before time.Time, exists func(ctx context.Context, project string) (bool, error)) (n int, err error) {
	var scopes []Scope
	err = s.db.View(ctx, "looking for old documents", func(r kv.Reader) error {
		return r.Each(scopeBucket, nil, nil, func(k, _ []byte) error {
			scopes = append(scopes, Scope(k))
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	oldest := store.NewID(before)[:10] // ids begin with their time
	for _, scope := range scopes {
		if scope.Kind() == Project {
			there, err := exists(ctx, scope.Owner())
			if err != nil {
				return n, err
			}
			if !there {
				erased, err := s.eraseScope(ctx, scope)
				if n += erased; err != nil {
					return n, fmt.Errorf("erasing the documents of %s: %w", scope, err)
				}
				continue
			}
		}
		for more := true; more; {
			deleted := 0
			err := s.db.Update(ctx, "removing old documents", func(tx kv.Tx) error {
				keys, err := kv.FirstKeys(tx, headBucket, docKey(scope, ""), nil, maxErased)
				deleted = 0
				for _, k := range keys {
					if string(k[len(scope)+1:])[:10] >= oldest {
						break
					}
					d, err := kv.UnsealJSON[Document](tx, headBucket, k)
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
		if err := s.merge(ctx, scope, true); err != nil {
			return n, err
		}
	}
	return n, nil
}
