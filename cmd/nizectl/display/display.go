// Package display makes what others wrote fit for a terminal: nothing in it acts on
// the terminal, and it is as wide as it is counted.
package display

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Clean returns s for one line of a terminal: control, format (zero-width,
// bidi, tag) and undecodable characters become escapes. Everything that nizectl
// didn't write itself goes through here or through CleanLines.
func Clean(s string) string { return escape(s, false) }

// CleanLines is Clean for text of several lines: newlines and tabs stay.
func CleanLines(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case !unsafeRune(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// unsafeRune says whether a terminal might act on the rune, or a person not
// see it.
func unsafeRune(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true
	case r < 0xad:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// Width is how many columns a terminal gives to s.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += RuneWidth(r)
	}
	return n
}

// RuneWidth is how many columns r takes: two for what Unicode calls wide or
// fullwidth (UAX 11), none for marks and format characters. It counts runes and
// not grapheme clusters: so do the terminals that most people use (xterm, VTE,
// tmux), and a line that is counted otherwise breaks a frame there.
func RuneWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Shorten cuts a text to that many columns; mark, one column wide, says that it
// was cut.
func Shorten(s string, columns int, mark string) string {
	if Width(s) <= columns {
		return s
	}
	used := 0
	for i, r := range s {
		if used += RuneWidth(r); used > columns-1 {
			return s[:i] + mark
		}
	}
	return s
}

// CleanJSON escapes within JSON what a terminal might act on; the value stays
// the same. Such runes can only stand inside strings there.
func CleanJSON(b []byte) []byte {
	if isPlain(strings.ReplaceAll(string(b), "\n", "")) {
		return b
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case r == '\n' || !unsafeRune(r):
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out.Bytes()
}
