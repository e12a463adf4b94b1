// Package filetext reads the text of a file. What can't be read is an error that says
// so in a sentence; nothing is guessed.
package filetext

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"nize/mcp/native/page"
	"nize/store"
)

// Text is what a file says. A form feed stands between its pages, where it has some.
type Text struct {
	Type string // media type of the file
	Text string
}

func unreadable(format string, args ...any) error {
	return store.Mark(fmt.Errorf(format, args...), store.ErrInvalid)
}

// Read reads a file. Its name tells kinds of text from one another, and its content
// everything else.
func Read(name string, data []byte) (Text, error) {
	var t Text
	if !isText(data) {
		return t, unreadable("it cannot be read: it is no text in UTF-8 or UTF-16, and no kind of file that is known")
	}
	t.Text = page.Decode(data, "text/plain; charset=utf-8")
	switch ext := strings.ToLower(path.Ext(name)); {
	case ext == ".html" || ext == ".htm" || ext == ".xhtml" || ext == "" && strings.HasPrefix(http.DetectContentType(data), "text/html"):
		t.Type, t.Text = "text/html", page.Markdown(t.Text, nil)
	case ext == ".md" || ext == ".markdown":
		t.Type = "text/markdown"
	case ext == ".csv":
		t.Type = "text/csv"
	case ext == ".json":
		t.Type = "application/json"
	default:
		t.Type = "text/plain"
	}
	t.Text = strings.ReplaceAll(t.Text, "\r\n", "\n")
	if strings.TrimSpace(t.Text) == "" {
		return t, unreadable("there is no text in it")
	}
	return t, nil
}

// isText says whether a file is text, and not something that could be read as such.
func isText(data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return len(data)%2 == 0
	}
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}
