package bots

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"nize/store"
)

// Text from models, servers and chats can carry characters that move the
// cursor, reorder what stands around them or can't be seen at all. Two
// functions make it harmless: Escape for what a decision rests on, Plain for
// prose.

// Escape is [store.Escape].
func Escape(s string) string { return store.Escape(s) }

// Brief is outside text in one harmless line of at most so many characters.
func Brief(text string, limit int) string {
	line := []rune(Escape(strings.Join(strings.Fields(text), " ")))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
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
			b.WriteString(store.Escape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrettyJSON is [store.PrettyJSON].
func PrettyJSON(raw json.RawMessage) (text string, ok bool) { return store.PrettyJSON(raw) }

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
