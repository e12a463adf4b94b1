package store

import "unicode/utf8"

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
