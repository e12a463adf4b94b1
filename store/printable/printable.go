// Package printable makes text from outside safe to show to people.
//
// A text written by a person, a model, a server or in a file may contain terminal control
// sequences, change the text direction, stack marks onto its neighbors, or hide invisible
// characters. Every package that shows such a text uses one of these:
//
//   - [Escape] for the basis of a decision, and for names: every character is
//     shown as itself or as its number. [EscapeLines] does so for several lines.
//   - [Prose] for running text, such as an answer: it reads as intended,
//     letters, emoji and line breaks stay, and controls are removed.
//   - [JSON] and [PrettyJSON] for documents: characters that Escape would escape are escaped
//     as in JSON, so the document stays the same.
//
// All of them are based on [Is], which uses the properties of Unicode instead of a list of
// known cases.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are characters that are assigned, graphic and not ignorable, but have an empty
// glyph in the code charts: the braille pattern without dots, the object replacement
// character, the blank hieroglyphs, the Khitan filler, the null notehead.
var blanks = &unicode.RangeTable{
	R16: []unicode.Range16{{0x2800, 0x2800, 1}, {0xFFFC, 0xFFFC, 1}},
	R32: []unicode.Range32{{0x13441, 0x13442, 1}, {0x16FE4, 0x16FE4, 1}, {0x1D159, 0x1D159, 1}},
}

// Is reports whether a character is visible and unambiguous. These are not:
//
//   - categories Cc, Cf, Cs, Co, Cn, Zl and Zp: controls, format characters
//     (bidi, zero-width, tags), surrogates, private use, unassigned in
//     this version of Unicode, line separators
//   - Zs, all blanks except the ordinary one, which they could be mistaken for
//   - Default_Ignorable_Code_Point, which a font draws as nothing. UAX 44 derives
//     it as Other_Default_Ignorable_Code_Point (fillers, joiners of graphemes),
//     Variation_Selector and Cf, minus some of Cf, which are excluded above anyway
//   - characters with a blank glyph
func Is(r rune) bool {
	if r < 0x7F {
		return r >= 0x20
	}
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blanks)
}

// maxMarks is how many marks one character may have: four, as in the optional detection of
// UTS 39, section 5.4. More reach into the lines above.
const maxMarks = 4

// marks counts the marks on one character.
type marks struct {
	n    int
	base bool // there is a base character
}

// piled reports whether r is a mark too many, or one without a base character in its own
// text: it would be drawn on the preceding character, a quote or a label of nize's.
func (m *marks) piled(r rune) bool {
	switch {
	case r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me):
		m.n++
	case r >= 0x300 && unicode.Is(unicode.Cf, r): // a joiner is not a base character
		return false
	default:
		m.n, m.base = 0, r != '\n' && r != '\t' && r != '"'
		return false
	}
	return !m.base || m.n > maxMarks
}

// Escape shows characters for which [Is] is false as \uXXXX escapes of JSON, including line
// breaks, and stacked marks, too. An invalid UTF-8 byte is \xXX.
func Escape(s string) string { return escape(s, "") }

// EscapeLines is [Escape], but keeps line breaks and tabs.
func EscapeLines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if plain(s, keep) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	var on marks
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		piled := on.piled(r)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case piled || !Is(r) && !strings.ContainsRune(keep, r):
			writeEscape(&b, r)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// plain reports whether s consists of printable ASCII, as most texts do, and characters in
// keep.
func plain(s, keep string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7F || c < 0x20 && strings.IndexByte(keep, c) < 0 {
			return false
		}
	}
	return true
}

func writeEscape(b *strings.Builder, r rune) {
	if r > 0xFFFF {
		hi, lo := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}
