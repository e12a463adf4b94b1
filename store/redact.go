package store

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"nize/store/secrettext"
)

// What looks like a secret, by its form or its name, is told in store/secrettext.

// SecretName says whether a field of that name holds a secret by its name.
func SecretName(name string) bool { return secrettext.Name(name) }

// SecretValue says whether name=value holds a key, by its form or by its name.
func SecretValue(name, value string) bool { return secrettext.Value(name, value) }

// RedactText replaces what looks like a key by dots.
func RedactText(s string) string { return secrettext.Redact(s) }

// LooksSecret says whether s is, or holds, what looks like a key.
func LooksSecret(s string) bool { return secrettext.Looks(s) }

// AddsSecret says whether s holds what looks like a key and known does not.
func AddsSecret(s, known string) bool { return secrettext.Adds(s, known) }

// Redact returns the JSON document without what looks like a secret, by name
// or by form, cut to at most limit bytes (then it is a JSON string).
func Redact(raw json.RawMessage, limit int) json.RawMessage { return secrettext.RedactJSON(raw, limit) }

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

// maxBrief bounds [Brief], and maxSentence what [BriefText] leaves of a sentence, in
// runes.
const (
	maxBrief    = 120
	maxSentence = 400
)

// Brief is a text as one short line, without what looks like a secret.
func Brief(s string) string {
	return oneLine(s, maxBrief)
}

func oneLine(s string, limit int) string {
	s = RedactText(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// BriefText is what nize says as one line, without the advice that is for models. It
// is longer than [Brief], since why something failed is worth nothing cut in half.
func BriefText(t Text) Text {
	if format, args := t.Parts(); len(args) == 1 && format == "%s; search with discover_tools" {
		t, _ = args[0].(Text)
	}
	if short := oneLine(t.String(), maxSentence); short != t.String() {
		return Plain(short)
	}
	return t
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
