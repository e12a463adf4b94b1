// Package filetext extracts the text of a file.
//
// If a file can't be read, it returns an error in one sentence and doesn't guess.
//
// Text, Markdown, CSV and JSON are returned unchanged, and HTML as Markdown. A PDF or a
// DOCX file may be built to keep its reader busy, or to fill its memory: those are read in
// a child process with limited time, memory and output (child.go).
package filetext

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"nize/mcp/native/page"
	"nize/store"
)

// Text is the text of a file. A form feed separates its pages, if it has any.
type Text struct {
	Type string // media type of the file
	Text string
}

func unreadable(why string) error {
	return store.Mark(fmt.Errorf("it cannot be read: %s", why), store.ErrInvalid)
}

// Media types that a child process reads.
const (
	typePDF  = "application/pdf"
	typeDOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
)

// Read returns the text of a file, of at most most bytes. The file's name distinguishes
// kinds of text, and its content everything else. Read starts a child process, so the
// program must call [ChildMain] first.
func Read(ctx context.Context, name string, data []byte, most int) (t Text, err error) {
	switch ext := strings.ToLower(path.Ext(name)); {
	case bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), 1024)], " \t\r\n\ufeff"), []byte("%PDF-")):
		t.Type = typePDF
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		t.Type = typeDOCX
	case !isText(data) || bytes.HasPrefix(data, []byte(`{\rtf`)):
		return t, unreadable("it is neither text in UTF-8 or UTF-16 nor PDF or DOCX")
	case ext == ".html" || ext == ".htm" || ext == ".xhtml" || ext == "" && strings.HasPrefix(http.DetectContentType(data), "text/html"):
		t.Type, t.Text = "text/html", page.Markdown(page.Decode(data, "text/html; charset=utf-8"), nil)
	default:
		t.Type, t.Text = typeOf(ext), page.Decode(data, "text/plain; charset=utf-8")
	}
	if t.Text == "" && (t.Type == typePDF || t.Type == typeDOCX) {
		if t.Text, err = readInChild(ctx, t.Type, data, most); err != nil {
			return t, err
		}
	}
	t.Text = strings.ReplaceAll(t.Text, "\r\n", "\n")
	if strings.TrimSpace(t.Text) == "" {
		return t, unreadable("there is no text in it")
	}
	return t, nil
}

func typeOf(ext string) string {
	switch ext {
	case ".md", ".markdown":
		return "text/markdown"
	case ".csv":
		return "text/csv"
	case ".json":
		return "application/json"
	}
	return "text/plain"
}

// isText reports whether a file is text, and not another format that could be read as text.
func isText(data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return len(data)%2 == 0
	}
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// output collects the text of a file. It panics with errTooLong if the text exceeds its
// limit.
type output struct {
	strings.Builder
	most int
}

type tooLong struct{}

func (o *output) add(s string) {
	if o.Len()+len(s) > o.most {
		panic(tooLong{})
	}
	o.WriteString(s)
}

// unmapped reports whether a text consists mostly of unreadable characters: the fonts of a
// PDF need not declare which characters they show.
func unmapped(text string) bool {
	bad, all := 0, 0
	for _, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		all++
		if r == utf8.RuneError || unicode.Is(unicode.Co, r) || unicode.IsControl(r) {
			bad++
		}
	}
	return bad*4 > all
}
