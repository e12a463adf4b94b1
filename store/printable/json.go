package printable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON escapes the strings of a JSON document as [Escape] does. The document stays the
// same, including line feeds and tabs between its parts.
func JSON(raw []byte) []byte {
	if plain(string(raw), "\n\t") {
		return raw
	}
	return []byte(escapeDocument(string(raw)))
}

// PrettyJSON is [JSON], indented. If raw is not JSON, it is returned quoted and ok is
// false.
func PrettyJSON(raw json.RawMessage) (text string, ok bool) {
	var out bytes.Buffer
	if !utf8.Valid(raw) || json.Indent(&out, bytes.Trim(raw, " \t\r\n"), "", "  ") != nil {
		return strconv.QuoteToASCII(string(raw)), false
	}
	return escapeDocument(out.String()), true
}

// escapeDocument may keep or drop line feeds, tabs and carriage returns: inside a JSON
// string there can be no controls, and outside they are white space. Invisible characters
// only occur in strings, since everything else is printable ASCII.
func escapeDocument(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 16)
	var on marks
	for _, r := range s { // an invalid byte is U+FFFD
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
