package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prose is running text as it was meant, without what could steer a terminal,
// turn text round or hide in it:
//
//   - controls, bidi controls, tags, fillers and other characters that are not
//     seen are lost; every kind of line break is a line feed, and tabs stay
//   - joiners, variation selectors and tags stay where a script or an emoji is
//     written with them ([Belongs])
//   - blanks stay, also the braille one, of which charts are made; so do letters
//     of a later Unicode than this program's
//   - private-use characters, noncharacters and bytes that are no UTF-8 become
//     U+FFFD: something stood there that can't be shown
//   - of marks that are piled up the first few stay
//
// It only looks back, so a [Stream] shows an answer while it arrives.
func Prose(s string) string {
	if plain(s, "\n\t") {
		return s
	}
	var st Stream
	return st.Next(s)
}

// A Stream is [Prose] of a text that comes piece by piece, each of whole
// characters: what it returns together is the Prose of the whole. The zero value
// is ready.
type Stream struct {
	before tail
	on     marks
}

// Next is what the next piece of the text adds.
func (st *Stream) Next(piece string) string {
	var b strings.Builder
	b.Grow(len(piece))
	for _, r := range piece { // a broken byte is U+FFFD
		switch {
		case r == '\n' && st.before.rune == '\r':
		case lineBreak(r):
			b.WriteByte('\n')
		case r == utf8.RuneError, unicode.In(r, unicode.Co, unicode.Noncharacter_Code_Point):
			b.WriteRune(utf8.RuneError)
		case !reads(r) && !st.before.takes(r):
		case st.on.piled(r) && st.on.n > maxMarks: // one on nothing is drawn somehow, and decides nothing
		default:
			b.WriteRune(r)
		}
		st.before.add(r)
	}
	return b.String()
}

// lineBreak is what UAX 14 makes a line end of: classes BK, CR, LF and NL.
func lineBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// reads says whether r can be a part of running text by itself. Some of Cf are
// signs that are seen (Prepended_Concatenation_Mark, such as U+0600).
func reads(r rune) bool {
	switch {
	case r == '\t', unicode.Is(unicode.Zs, r), r == 0x2800, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return true
	case Is(r):
		return true
	}
	return !unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blanks)
}

// tail is what a text ends with so far.
type tail struct {
	rune rune
	flag string // the tags of a flag so far, as letters; it begins with the flag
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

// takes says whether r, which is not seen by itself, belongs to the tail.
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

// Flags are the emoji tag sequences that UTS 51 recommends: England, Scotland,
// Wales. Any other run of tags is a text that nobody sees.
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

// Belongs says whether r, which is not seen by itself, changes how the character
// before it is seen: joiners and variation selectors where Unicode has them.
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

// Pictograph says whether r can stand beside a joiner in an emoji.
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

// Joins says whether r is of a script that is written with joiners.
func Joins(r rune) bool { return unicode.In(r, joining...) }
