package store

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"nize/store/secrettext"
)

// store/secrettext detects secrets by their form or their name.

// SecretName reports whether the name of a field indicates a secret.
func SecretName(name string) bool { return secrettext.Name(name) }

// SecretValue reports whether name=value contains a key, by its form or its name.
func SecretValue(name, value string) bool { return secrettext.Value(name, value) }

// RedactText replaces text that looks like a key by dots.
func RedactText(s string) string { return secrettext.Redact(s) }

// LooksSecret reports whether s contains text that looks like a key.
func LooksSecret(s string) bool { return secrettext.Looks(s) }

// AddsSecret reports whether s contains text that looks like a key and known does not.
func AddsSecret(s, known string) bool { return secrettext.Adds(s, known) }

// Redact returns the JSON document with masked secrets, detected by name or by form, cut to
// at most limit bytes (it is then a JSON string).
func Redact(raw json.RawMessage, limit int) json.RawMessage { return secrettext.RedactJSON(raw, limit) }

// Head returns the first n bytes of s, or a few less so that no character is cut.
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

// Clip is [Head] with … after cut text: at most n+3 bytes. It limits how much of a text
// from outside is repeated.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + "…"
}

// maxBrief limits [Brief], and maxSentence limits the sentence returned by [BriefText], in
// runes.
const (
	maxBrief    = 120
	maxSentence = 400
)

// Brief returns s as one short line with masked secrets.
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

// BriefText returns one of nize's own texts as one line, without advice for models. It may
// be longer than [Brief], because a reason cut in half is useless.
func BriefText(t Text) Text {
	if format, args := t.Parts(); len(args) == 1 && format == "%s; search with discover_tools" {
		t, _ = args[0].(Text)
	}
	if short := oneLine(t.String(), maxSentence); short != t.String() {
		return Plain(short)
	}
	return t
}

// maxLine limits [Line], in runes.
const maxLine = 500

// Line returns a text from outside as one line of at most 500 runes.
func Line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxLine {
		return string(r[:maxLine-1]) + "…"
	}
	return s
}

// ErrText returns an error that may contain text from outside as one redacted [Line]; "" if
// err is nil.
func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return Line(RedactText(err.Error()))
}
