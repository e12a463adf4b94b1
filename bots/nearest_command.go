package bots

import (
	"strings"

	"nize/store"
)

// nearCommand returns the command that a word is probably a misspelling of, "" if there is
// none. It is stricter than [store.Nearest], which is for input that is meant as a name:
// "hey", "tell" or a word in another script begins a conversation and is not a misspelt
// "help".
func nearCommand(word string, names []string) string {
	word = strings.ToLower(word)
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	near := store.Nearest(word, names)
	switch {
	case near == "" || word[0] != near[0] && !strings.Contains(near, word):
		return "" // people rarely mistype the first letter
	case len(word) < 6 && !strings.Contains(near, word) && !oneOff(word, near):
		return ""
	}
	return near
}

// oneOff reports whether a and b differ by one inserted, missing or replaced letter, or by
// two swapped neighbours.
func oneOff(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
