// Package display makes what others wrote fit for a terminal: nothing in it acts on
// the terminal, and it is as wide as it is counted.
package display

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"nize/store/printable"
)

// Clean returns s for one line of a terminal, every character seen
// ([printable.Escape]). Everything that nizectl didn't write itself goes through
// here, through CleanLines, or, where it is running text, through
// [printable.Prose].
func Clean(s string) string { return printable.Escape(s) }

// CleanLines is Clean for text of several lines: newlines and tabs stay.
func CleanLines(s string) string { return printable.EscapeLines(s) }

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

// ShortenWords is Shorten that cuts between words, where that leaves a third of it or more.
func ShortenWords(s string, columns int, mark string) string {
	short := Shorten(s, columns, mark)
	if at := strings.LastIndexByte(short, ' '); short != s && 3*at >= len(short) {
		return short[:at+1] + mark
	}
	return short
}

// CleanJSON escapes within JSON what Clean would; the value stays the same.
func CleanJSON(b []byte) []byte { return printable.JSON(b) }
