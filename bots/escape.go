package bots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text from models, servers and chats can carry characters that move the
// cursor, reorder what stands around them or can't be seen at all. Two
// functions make it harmless: Escape for what a decision rests on, Plain for
// prose.

// Escape shows every character that can't be seen, or doesn't stand for
// itself, as a \uXXXX escape of JSON: control, zero-width, bidi, tag,
// private-use and unassigned ones, variation selectors, fillers, and all
// blanks but the ordinary one. Line breaks too.
func Escape(s string) string {
	if clean(s, hidden) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && s[i] != "\uFFFD"[0] {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		if hidden(r) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Plain is for prose: it keeps line breaks, tabs and what emoji and scripts
// need (joiners, variation selectors), and escapes control and bidi
// characters, so that text can't steer a terminal or run backwards.
func Plain(s string) string {
	if clean(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // broken UTF-8 becomes U+FFFD
		if steers(r) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrettyJSON indents a JSON document and escapes as [Escape] does inside its
// strings: it is still the same document. What is no JSON comes back quoted,
// with ok false.
func PrettyJSON(raw json.RawMessage) (text string, ok bool) {
	var out bytes.Buffer
	if !utf8.Valid(raw) || json.Indent(&out, raw, "", "  ") != nil {
		return strconv.QuoteToASCII(string(raw)), false
	}
	var b strings.Builder
	for _, r := range out.String() {
		// Outside strings JSON is printable ASCII, blanks and line breaks, and
		// a line break can't stand inside one: this one is the indentation's.
		if r != '\n' && hidden(r) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String(), true
}

func clean(s string, bad func(rune) bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if bad(r) {
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

// blanks are letters, marks and symbols that show as nothing.
var blanks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x034F, 0x034F, 1}, {0x115F, 0x1160, 1}, {0x17B4, 0x17B5, 1}, {0x180B, 0x180F, 1},
		{0x2800, 0x2800, 1}, {0x3164, 0x3164, 1}, {0xFE00, 0xFE0F, 1}, {0xFFA0, 0xFFA0, 1},
		{0xFFFC, 0xFFFC, 1},
	},
	R32: []unicode.Range32{{0xE0100, 0xE01EF, 1}},
}

func hidden(r rune) bool {
	if r >= 0x20 && r < 0x7F {
		return false
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) || unicode.Is(blanks, r)
}

// steers says whether r can steer a terminal or reorder text. U+200C and
// U+200D join and part letters of several scripts and of emoji.
func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || (r >= 0x20 && r < 0x7F):
		return false
	case r == 0x200C || r == 0x200D:
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) ||
		unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Co, r)
}
