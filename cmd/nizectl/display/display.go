// Package display makes text from outside safe for a terminal and measures its width.
package display

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"nize/store/printable"
)

// Clean returns s for one line of a terminal, with every character visible
// ([printable.Escape]). All text that nizectl didn't write itself passes through Clean,
// CleanLines, or, if it is running text, through [printable.Prose].
func Clean(s string) string { return printable.Escape(s) }

// CleanLines is Clean for text of several lines: newlines and tabs are kept.
func CleanLines(s string) string { return printable.EscapeLines(s) }

// Width returns how many columns s takes on a terminal.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += RuneWidth(r)
	}
	return n
}

// RuneWidth returns how many columns r takes: two for wide and fullwidth characters (UAX
// 11), none for marks and format characters. It counts runes instead of grapheme clusters,
// like the most widely used terminals (xterm, VTE, tmux): otherwise a line would break a
// frame there.
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

// Shorten cuts a text to that many columns; mark, one column wide, marks the cut.
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

// ShortenWords is Shorten that cuts between words if that leaves a third of the text or
// more.
func ShortenWords(s string, columns int, mark string) string {
	short := Shorten(s, columns, mark)
	if at := strings.LastIndexByte(short, ' '); short != s && 3*at >= len(short) {
		return short[:at+1] + mark
	}
	return short
}

// CleanJSON escapes within JSON what Clean would; the value is unchanged.
func CleanJSON(b []byte) []byte { return printable.JSON(b) }
