// Package document has the types of documents, which people, teams and projects keep for
// assistants and programs.
//
// A document is its text alone, in pages: what a file held besides is not kept. Whose
// it is, its [Scope], is who may read it; who that is for somebody is decided in one
// place (daemon/documents), and given to every reading method here.
package document

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nize/store"
	"nize/store/fulltext"
)

// Scope is whose a document is: user:ID, team:TEAM or project:ID.
type Scope string

// Kinds of scopes.
const (
	User    = "user"
	Team    = "team"
	Project = "project"
)

// ScopeOf is the scope of one of that kind.
func ScopeOf(kind, id string) Scope { return Scope(kind + ":" + id) }

// Kind is user, team or project.
func (s Scope) Kind() string { kind, _, _ := strings.Cut(string(s), ":"); return kind }

// Owner is the id behind the kind.
func (s Scope) Owner() string { _, id, _ := strings.Cut(string(s), ":"); return id }

// Document is what is known of one besides its text.
type Document struct {
	ID      string    `json:"id"`
	Scope   Scope     `json:"scope"`
	Name    string    `json:"name"`
	Type    string    `json:"type"` // media type of what it was read from
	Size    int64     `json:"size"` // bytes of its text
	Pages   int       `json:"pages"`
	Lines   int       `json:"lines"`
	By      string    `json:"by,omitempty"` // who saved it
	Created time.Time `json:"created"`
}

const maxName = 200

// Check says why it cannot be saved.
func (d Document) Check() error {
	switch {
	case strings.TrimSpace(d.Name) == "" || len(d.Name) > maxName || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl):
		return store.Mark(fmt.Errorf("a document's name has 1 to %d bytes on one line", maxName), store.ErrInvalid)
	case d.Scope.Owner() == "" || strings.IndexByte(string(d.Scope), 0) >= 0:
		return fmt.Errorf("%w scope %q", store.ErrInvalid, d.Scope)
	}
	return nil
}

// Limits bound what is kept.
type Limits struct {
	Count  int   // documents of one scope
	Person int64 // bytes of text that one person saved, in whatever scope; 0 is no limit
	Stored int64 // bytes of text of all scopes
}

// Page is one page of a document's text.
type Page struct {
	Number int
	Line   int // its first line is this one of the document
	Text   string
}

// Hit is a document that a search found, and a line that shows why.
type Hit struct {
	Document
	Page  int     `json:"page"`
	Line  int     `json:"line"` // 0: its name is what was found
	Text  string  `json:"text,omitempty"`
	Score float64 `json:"score"`
}

// Store keeps documents, sealed. What takes scopes sees nothing outside of them.
type Store interface {
	// PutDocument keeps a new one under an id of its own. ErrRefused beyond the limits.
	PutDocument(ctx context.Context, by store.Caller, d Document, pages []string, l Limits) (Document, error)
	// ListDocuments returns those of the scopes, the newest first.
	ListDocuments(ctx context.Context, scopes []Scope) ([]Document, error)
	// GetDocument finds one by its id. ErrNotFound if the scopes have none.
	GetDocument(ctx context.Context, scopes []Scope, id string) (Document, error)
	// ReadPages gives do the pages from one on, until it errs.
	ReadPages(ctx context.Context, d Document, from int, do func(Page) error) error
	// SearchDocuments ranks those in which words of the query stand.
	SearchDocuments(ctx context.Context, scopes []Scope, query string, most int) ([]Hit, error)
	DeleteDocument(ctx context.Context, by store.Caller, d Document) error
	// EraseDocuments deletes all of a scope, in small transactions.
	EraseDocuments(ctx context.Context, by store.Caller, scope Scope) (int, error)
	// MergeDocuments puts the index of a scope in order, in small transactions. It is
	// not for concurrent use.
	MergeDocuments(ctx context.Context, scope Scope) error
	// PruneDocuments deletes those that were saved before a time and those of
	// projects that are gone, and what the index still had of deleted ones.
	PruneDocuments(ctx context.Context, before time.Time) (int, error)
}

// pageSize is how many bytes of text a page has at most: what a model reads at once,
// and what is sealed and opened at once.
const pageSize = 12 << 10

// Split cuts a text into pages: at form feeds, and where a page would be too long at
// the end of a line, if it has one.
func Split(text string) (pages []string) {
	for part := range strings.SplitSeq(text, "\f") {
		for len(part) > pageSize {
			at := strings.LastIndexByte(part[:pageSize], '\n') + 1
			if at == 0 {
				for at = pageSize; !utf8.RuneStart(part[at]); at-- {
				}
			}
			pages, part = append(pages, part[:at]), part[at:]
		}
		pages = append(pages, part)
	}
	for len(pages) > 1 && strings.TrimSpace(pages[len(pages)-1]) == "" {
		pages = pages[:len(pages)-1]
	}
	return pages
}

// Matcher says which lines a query finds: those in which it stands as it is, in any
// case, or all its words do.
func Matcher(query string) func(line string) bool {
	whole, words := strings.ToLower(strings.TrimSpace(query)), fulltext.Words(query)
	return func(line string) bool {
		if whole == "" {
			return false
		}
		if strings.Contains(strings.ToLower(line), whole) {
			return true
		}
		return len(words) > 0 && fulltext.Contains(line, words) == len(words)
	}
}

// Lines calls do for each line of the pages that read gives. A line that goes on over
// the end of a page, which few do, is given in two parts.
func Lines(read func(do func(Page) error) error, do func(page, line int, text string) error) error {
	return read(func(p Page) error {
		n := p.Line
		for line := range strings.Lines(p.Text) {
			if err := do(p.Number, n, strings.TrimSuffix(line, "\n")); err != nil {
				return err
			}
			n++
		}
		return nil
	})
}
