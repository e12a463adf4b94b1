package printable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON escapes as [Escape] does inside the strings of a JSON document, which
// stays the same document, with its line feeds and tabs between the parts.
func JSON(raw []byte) []byte {
	if plain(string(raw), "\n\t") {
		return raw
	}
	return []byte(escapeDocument(string(raw)))
}

// PrettyJSON is [JSON], indented. What is no JSON comes back quoted, with ok
// false.
func PrettyJSON(raw json.RawMessage) (text string, ok bool) {
	var out bytes.Buffer
	if !utf8.Valid(raw) || json.Indent(&out, bytes.Trim(raw, " \t\r\n"), "", "  ") != nil {
		return strconv.QuoteToASCII(string(raw)), false
	}
	return escapeDocument(out.String()), true
}

// escapeDocument may leave line feeds, tabs and carriage returns as they are, or
// out: inside a string of JSON no control can stand, and outside they are blanks.
// What isn't seen stands in a string, since everything else is printable ASCII.
func escapeDocument(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 16)
	var on marks
	for _, r := range s { // a broken byte is U+FFFD
		piled := on.piled(r)
		switch {
		case r == '\r':
		case r == '\n', r == '\t', Is(r) && !piled:
			b.WriteRune(r)
		default:
			writeEscape(&b, r)
		}
	}
	return b.String()
}
