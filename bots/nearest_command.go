package bots

import (
	"strings"

	"nize/store"
)

// nearCommand is the command that a word comes close to, "" if it is rather a
// word of somebody's own. It is stricter than [store.Nearest], which serves who
// certainly meant a name: "hey", "tell" or a word of another script are the
// beginning of a conversation, and no misspelt help.
func nearCommand(word string, names []string) string {
	word = strings.ToLower(word)
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	near := store.Nearest(word, names)
	switch {
	case near == "" || word[0] != near[0] && !strings.Contains(near, word):
		return "" // people rarely miss the first letter
	case len(word) < 6 && !strings.Contains(near, word) && !oneOff(word, near):
		return ""
	}
	return near
}

// oneOff says whether one letter too much, too little or another, or two
// neighbours swapped, make a of b.
func oneOff(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
