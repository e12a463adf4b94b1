// Package printable says what is shown of a text that somebody else wrote: a
// person, a model, a server, a file. Such a text may steer a terminal, run
// backwards, pile marks onto its neighbours, or hold what nobody can see. Every
// room that shows something to people shows it by one of these:
//
//   - [Escape] for what a decision rests on, and for names: every character is
//     seen as itself or as its number. [EscapeLines] is that for several lines.
//   - [Prose] for running text, such as an answer: it reads as it was meant,
//     letters, emoji and line breaks stay, and what steers is lost.
//   - [JSON] and [PrettyJSON] for documents: what Escape would escape is escaped
//     as JSON does, so it is still the same document.
//
// All of them rest on [Is], which goes by the properties of Unicode and not by a
// list of what was tried.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are assigned, graphic, not ignorable, and empty all the same by their
// glyph in the code charts: the braille pattern without dots, the object
// replacement character, the blank hieroglyphs, the Khitan filler, the null
// notehead.
var blanks = &unicode.RangeTable{
	R16: []unicode.Range16{{0x2800, 0x2800, 1}, {0xFFFC, 0xFFFC, 1}},
	R32: []unicode.Range32{{0x13441, 0x13442, 1}, {0x16FE4, 0x16FE4, 1}, {0x1D159, 0x1D159, 1}},
}

// Is says whether a character is seen, and stands for itself. These are not:
//
//   - categories Cc, Cf, Cs, Co, Cn, Zl and Zp: controls, format characters
//     (bidi, zero-width, tags), surrogates, private use, what is not assigned in
//     this version of Unicode, separators of lines
//   - Zs, all blanks but the ordinary one, which they pass for
//   - Default_Ignorable_Code_Point, which a font draws as nothing. UAX 44 derives
//     it as Other_Default_Ignorable_Code_Point (fillers, joiners of graphemes),
//     Variation_Selector and Cf, less some of Cf, which are not seen here anyway
//   - what is blank by its glyph
func Is(r rune) bool {
	if r < 0x7F {
		return r >= 0x20
	}
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blanks)
}

// maxMarks is how many marks may stand on one character: four, as in the
// optional detection of UTS 39, section 5.4. More climb into the lines above.
const maxMarks = 4

// marks counts those that stand on one character.
type marks struct {
	n    int
	base bool // there is a character that they stand on
}

// piled says whether r is a mark too many, or one on nothing of its own text: it
// would be drawn on what stands before that, a quote or a label of nize's.
func (m *marks) piled(r rune) bool {
	switch {
	case r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me):
		m.n++
	case r >= 0x300 && unicode.Is(unicode.Cf, r): // a joiner does not begin a character
		return false
	default:
		m.n, m.base = 0, r != '\n' && r != '\t' && r != '"'
		return false
	}
	return !m.base || m.n > maxMarks
}

// Escape shows what [Is] not as a \uXXXX escape of JSON, line breaks too, as
// well as marks that are piled up. A byte that is no UTF-8 is \xXX.
func Escape(s string) string { return escape(s, "") }

// EscapeLines is [Escape], but line breaks and tabs stay.
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

// plain says whether s is printable ASCII, which most texts are, and what is
// kept beside it.
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
