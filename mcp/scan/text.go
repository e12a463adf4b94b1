package scan

import (
	"nize/store/printable"
	"slices"
	"strings"
	"unicode"
)

// class is a kind of character that is invisible, or that makes a person see something else
// than a machine reads.
type class int

const (
	plain class = iota
	control
	ansi
	zeroWidth
	bidi
	tag
	private
	selector
	format
	separator
)

var classNames = map[class]string{
	control: "control character", ansi: "terminal escape", zeroWidth: "invisible character",
	bidi: "text direction control", tag: "invisible tag character", private: "private-use character",
	selector: "hidden variation selector", format: "invisible format character", separator: "line separator",
}

// classOf returns the class of r by itself. Tabs and newlines are plain.
func classOf(r rune) class {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		return plain
	case r == 0x1b || r == 0x9b:
		return ansi
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return control
	case r < 0xad:
		return plain
	}
	return wideClass(r)
}

// wideClass uses Unicode properties. A graphic character that is invisible is a filler, or
// blank by its glyph; letters of a newer Unicode version than this program's are plain.
func wideClass(r rune) class {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return bidi
	case r == 0x2028, r == 0x2029:
		return separator
	case r >= 0xe0000 && r <= 0xe007f:
		return tag
	case unicode.Is(unicode.Variation_Selector, r):
		return selector
	case unicode.Is(unicode.Co, r):
		return private
	case r == 0xad, r == 0x180e, r >= 0x200b && r <= 0x200d, r >= 0x2060 && r <= 0x2064, r == 0xfeff, unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return zeroWidth
	case unicode.Is(unicode.Cf, r):
		return format
	case unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r) && !printable.Is(r):
		return zeroWidth
	}
	return plain
}

// isPlain reports whether s consists of printable ASCII, tabs and newlines.
func isPlain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b >= 0x7f || b < ' ' && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

// keycap reports whether a U+FE0F between prev and rest makes an emoji such as 1️⃣.
func keycap(prev rune, rest string) bool {
	return (prev >= '0' && prev <= '9' || prev == '#' || prev == '*') && strings.HasPrefix(rest, "\u20e3")
}

// hidden is one kind of hidden character in one string.
type hidden struct {
	class class
	first rune
	count int
}

// findHidden returns the hidden characters in s, by class in order of first occurrence.
// oneLine is for names, in which a newline or tab also counts.
func findHidden(s string, oneLine bool) []hidden {
	if isPlain(s) && !(oneLine && strings.ContainsAny(s, "\n\t")) {
		return nil
	}
	var found []hidden
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		c := classOf(r)
		if oneLine && (r == '\n' || r == '\t' || r == '\r') {
			c = control
		} else if c == plain {
			continue
		} else if n := allowed(runes, i); n > 0 {
			i += n - 1
			continue
		}
		found = note(found, c, r)
	}
	return found
}

func note(found []hidden, c class, r rune) []hidden {
	for i := range found {
		if found[i].class == c {
			found[i].count++
			return found
		}
	}
	return append(found, hidden{c, r, 1})
}

// allowed returns how many of the special runes at i are legitimate: CRLF, emoji sequences,
// joiners in scripts that use them.
func allowed(runes []rune, i int) int {
	r := runes[i]
	prev, next := rune(0), rune(0)
	if i > 0 {
		prev = runes[i-1]
	}
	if i+1 < len(runes) {
		next = runes[i+1]
	}
	ok := false
	switch r {
	case '\r':
		ok = true // old line ends; never written raw to a terminal
	case 0x2028, 0x2029:
		ok = true // pasted from word processors; visible as a line end
	case 0x200d:
		ok = printable.Pictograph(prev) && printable.Pictograph(next) || printable.Joins(prev) && (printable.Joins(next) || next == 0 || !unicode.IsLetter(next))
	case 0x200c:
		ok = printable.Joins(prev) && printable.Joins(next)
	case 0xfe0e, 0xfe0f:
		ok = prev > 0x7f && classOf(prev) == plain || prev != 0 && keycap(prev, string(next))
	case 0xfe00, 0xfe01, 0xfe02:
		ok = unicode.Is(unicode.Han, prev) || unicode.Is(unicode.Sm, prev)
	case 0xfeff, 0x200b:
		ok = i == 0 && classOf(next) == plain // a byte order mark, or left over from pasting
	case 0x200e, 0x200f, 0x61c:
		ok = rightToLeft(prev) || rightToLeft(next)
	case 0xad:
		ok = unicode.IsLetter(prev) && unicode.IsLetter(next) // a soft hyphen inside a word
	}
	if ok {
		return 1
	}
	if unicode.Is(unicode.Han, prev) && r >= 0xe0100 && r <= 0xe01ef {
		return 1 // an ideographic variation: one glyph of one character
	}
	if prev == 0x1f3f4 && classOf(r) == tag {
		return flag(runes[i:])
	}
	return 0
}

// flag returns the length of a tag sequence that is one of the emoji flags encoded that
// way, or 0.
func flag(runes []rune) int {
	for _, f := range printable.Flags {
		if tags := []rune(f)[1:]; len(runes) >= len(tags) && slices.Equal(runes[:len(tags)], tags) {
			return len(tags)
		}
	}
	return 0
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko)
}
