package store

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

// What a decision rests on is shown in one way, wherever it is shown: a chat, a
// terminal, or the client of somebody else.

// Escape shows every character that can't be seen, or doesn't stand for
// itself, as a \uXXXX escape of JSON: control, zero-width, bidi, tag,
// private-use and unassigned ones, variation selectors, fillers, and all
// blanks but the ordinary one. Line breaks too.
func Escape(s string) string {
	if seen(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && s[i] != "\uFFFD"[0] {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		if Unseen(r) {
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
		if r != '\n' && Unseen(r) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String(), true
}

func seen(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, Unseen)
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

// Unseen says whether a character can't be seen, or doesn't stand for itself.
func Unseen(r rune) bool {
	if r >= 0x20 && r < 0x7F {
		return false
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) || unicode.Is(blanks, r)
}

// Head returns s, or its first n bytes or a few less where a character would be
// cut.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Clip is [Head] with … behind what was cut: at most n+3 bytes. It bounds what is
// repeated of words from outside.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + "…"
}

// maxLine bounds [Line], in runes.
const maxLine = 500

// Line is a text from outside as one line of at most 500 runes.
func Line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxLine {
		return string(r[:maxLine-1]) + "…"
	}
	return s
}

// ErrText is an error that may hold what a stranger wrote, as one redacted
// [Line]; "" for none.
func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return Line(RedactText(err.Error()))
}

// ShellWord makes a word fit for a shell: in a command that a person is shown to
// run, a path or the name of a tool may hold anything.
func ShellWord(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r))
	}) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
