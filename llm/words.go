package llm

import (
	"iter"
	"strings"
	"unicode"
)

// SplitWords yields the pieces of a text, each a word with the space after it, for models
// that have their whole text at once.
func SplitWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexFunc(text, unicode.IsSpace)
			if end < 0 {
				end = len(text)
			}
			for end < len(text) && strings.ContainsRune(" \n\t", rune(text[end])) {
				end++
			}
			if end == 0 { // other whitespace at the start
				end = 1
				for end < len(text) && text[end]&0xC0 == 0x80 {
					end++
				}
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}
