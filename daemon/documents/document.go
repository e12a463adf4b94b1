package documents

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nize/store"
)

// Scope is the owner of a document: user:ID, team:TEAM or project:ID.
type Scope string

// Kinds of scopes.
const (
	User    = "user"
	Team    = "team"
	Project = "project"
)

// ScopeOf returns the scope of an owner.
func ScopeOf(kind, id string) Scope { return Scope(kind + ":" + id) }

// Kind returns user, team or project.
func (s Scope) Kind() string { kind, _, _ := strings.Cut(string(s), ":"); return kind }

// Owner returns the id after the kind.
func (s Scope) Owner() string { _, id, _ := strings.Cut(string(s), ":"); return id }

// Document is a document without its text.
type Document struct {
	ID      string    `json:"id"`
	Scope   Scope     `json:"scope"`
	Name    string    `json:"name"`
	Type    string    `json:"type"` // media type of the file that it was read from
	Size    int64     `json:"size"` // bytes of its text
	Pages   int       `json:"pages"`
	Lines   int       `json:"lines"`
	By      string    `json:"by,omitempty"` // the user who saved it
	Created time.Time `json:"created"`
}

const maxName = 200

// Check returns an error if the document can't be saved.
func (d Document) Check() error {
	switch {
	case strings.TrimSpace(d.Name) == "" || len(d.Name) > maxName || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl):
		return store.Mark(fmt.Errorf("a document's name has 1 to %d bytes on one line", maxName), store.ErrInvalid)
	case d.Scope.Owner() == "" || strings.IndexByte(string(d.Scope), 0) >= 0:
		return fmt.Errorf("%w scope %q", store.ErrInvalid, d.Scope)
	}
	return nil
}

// Limits limit the stored documents.
type Limits struct {
	Count  int   // documents of one scope
	Person int64 // bytes of text that one person saved, in all scopes; 0 is no limit
	Stored int64 // bytes of text in all scopes
}

// Page is one page of a document's text.
type Page struct {
	Number int
	Line   int // the document's line that the page starts with
	Text   string
}

// Hit is a document that a search found, with a matching line.
type Hit struct {
	Document
	Page  int     `json:"page"`
	Line  int     `json:"line"` // 0 if only the name matches
	Text  string  `json:"text,omitempty"`
	Score float64 `json:"score"`
}

// pageSize is the maximum size of a page in bytes: a model reads one at a time, and each is
// sealed separately.
const pageSize = 12 << 10

// Split divides a text into pages: at form feeds, and where a page would be too long, at the
// end of a line if there is one.
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

// matcher returns a function that reports whether a line matches a query: if it contains the
// whole query in any case, or all of its words.
func matcher(query string) func(line string) bool {
	whole, words := strings.ToLower(strings.TrimSpace(query)), wordsOf(query)
	return func(line string) bool {
		if whole == "" {
			return false
		}
		if strings.Contains(strings.ToLower(line), whole) {
			return true
		}
		return len(words) > 0 && countWords(line, words) == len(words)
	}
}

// eachLine calls do for each line of the pages that read passes. A line that continues on the
// next page, which is rare, is passed in two parts.
func eachLine(read func(do func(Page) error) error, do func(page, line int, text string) error) error {
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
