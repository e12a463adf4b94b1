package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prose returns running text as intended, without characters that could control a terminal,
// change the direction of text or hide in it:
//
//   - controls, bidi controls, tags, fillers and other invisible characters are
//     removed; every kind of line break becomes a line feed, and tabs stay
//   - joiners, variation selectors and tags stay where a script or an emoji needs
//     them ([Belongs])
//   - blanks stay, including the braille one, which is used for charts; so do letters
//     of a later Unicode version than this program's
//   - private-use characters, noncharacters and invalid UTF-8 bytes become
//     U+FFFD: there was something that can't be shown
//   - of stacked marks the first few stay
//
// It only looks back, so a [Stream] can show an answer while it arrives.
func Prose(s string) string {
	if plain(s, "\n\t") {
		return s
	}
	var st Stream
	return st.Next(s)
}

// A Stream is [Prose] for a text that arrives in pieces, each of whole characters: the
// concatenated results are the Prose of the whole text. The zero value is ready to use.
type Stream struct {
	before tail
	on     marks
}

// Next returns the Prose of the next piece.
func (st *Stream) Next(piece string) string {
	var b strings.Builder
	b.Grow(len(piece))
	for _, r := range piece { // an invalid byte is U+FFFD
		switch {
		case r == '\n' && st.before.rune == '\r':
		case lineBreak(r):
			b.WriteByte('\n')
		case r == utf8.RuneError, unicode.In(r, unicode.Co, unicode.Noncharacter_Code_Point):
			b.WriteRune(utf8.RuneError)
		case !reads(r) && !st.before.takes(r):
		case st.on.piled(r) && st.on.n > maxMarks: // a mark without a base character does no harm here
		default:
			b.WriteRune(r)
		}
		st.before.add(r)
	}
	return b.String()
}

// lineBreak reports whether r ends a line according to UAX 14: classes BK, CR, LF and NL.
func lineBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// reads reports whether r can be a part of running text by itself. Some of Cf are visible
// signs (Prepended_Concatenation_Mark, such as U+0600).
func reads(r rune) bool {
	switch {
	case r == '\t', unicode.Is(unicode.Zs, r), r == 0x2800, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return true
	case Is(r):
		return true
	}
	return !unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blanks)
}

// tail is the end of the text so far.
type tail struct {
	rune rune
	flag string // the tags of a flag so far, as letters, beginning with the flag
}

func (t *tail) add(r rune) {
	switch {
	case r == blackFlag:
		t.flag = string(r)
	case t.flag != "" && t.takes(r):
		t.flag += string(r)
	default:
		t.flag = ""
	}
	t.rune = r
}

// takes reports whether r, which is invisible by itself, belongs to the tail.
func (t *tail) takes(r rune) bool {
	if r < 0xE0020 || r > 0xE007F {
		return Belongs(t.rune, r)
	}
	for _, f := range Flags {
		if t.flag != "" && strings.HasPrefix(f, t.flag+string(r)) {
			return true
		}
	}
	return false
}

const blackFlag = 0x1F3F4

// Flags are the emoji tag sequences that UTS 51 recommends: England, Scotland, Wales. Any
// other run of tags is invisible text.
var Flags = func() (out []string) {
	for _, name := range []string{"gbeng", "gbsct", "gbwls"} {
		f := []rune{blackFlag}
		for _, c := range name {
			f = append(f, 0xE0000+c)
		}
		out = append(out, string(append(f, 0xE007F)))
	}
	return out
}()

// Belongs reports whether r, which is invisible by itself, changes how the character before
// it is displayed: joiners and variation selectors in places defined by Unicode.
func Belongs(before, r rune) bool {
	switch {
	case r == 0x200D:
		return Pictograph(before) || Joins(before)
	case r == 0x200C:
		return Joins(before)
	case r == 0xFE0E, r == 0xFE0F: // of emoji; #, * and digits are keycaps with it
		return before > 0x7F && Is(before) || before >= '0' && before <= '9' || before == '#' || before == '*'
	case r >= 0xFE00 && r <= 0xFE02: // of ideographs and of signs of mathematics
		return unicode.In(before, unicode.Han, unicode.Sm)
	case r >= 0xE0100 && r <= 0xE01EF:
		return unicode.Is(unicode.Han, before)
	case r >= 0x180B && r <= 0x180F:
		return unicode.Is(unicode.Mongolian, before) && unicode.IsLetter(before)
	}
	return false
}

// Pictograph reports whether r can be next to a joiner in an emoji.
func Pictograph(r rune) bool {
	return r == 0xFE0F || r > 0x7F && unicode.In(r, unicode.So, unicode.Sk)
}

// joining are the scripts that are written with joiners: cursive ones, and those
// of South and South-East Asia.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
	unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// Joins reports whether r belongs to a script that is written with joiners.
func Joins(r rune) bool { return unicode.In(r, joining...) }
