package record

import (
	"strings"

	"nize/store"
)

// maxTitle limits a title, in runes.
const maxTitle = 60

// TitleOf returns the title of a conversation that begins with a message: its first words,
// as one line.
func TitleOf(text string) string {
	title := strings.Join(strings.Fields(store.RedactText(text)), " ")
	r := []rune(title)
	if len(r) <= maxTitle {
		return title
	}
	title = string(r[:maxTitle-1])
	if at := strings.LastIndexByte(title, ' '); at > len(title)/2 {
		title = title[:at]
	}
	return title + "…"
}
