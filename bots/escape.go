package bots

import (
	"encoding/json"
	"strings"

	"nize/store/printable"
)

// Escape is [printable.Escape], for names and everything a decision is based on.
func Escape(s string) string { return printable.Escape(s) }

// Plain is [printable.Prose], for answers, results and other running text.
func Plain(s string) string { return printable.Prose(s) }

// PrettyJSON is [printable.PrettyJSON].
func PrettyJSON(raw json.RawMessage) (text string, ok bool) { return printable.PrettyJSON(raw) }

// Brief returns outside text as one harmless line of at most limit characters.
func Brief(text string, limit int) string {
	line := []rune(Escape(strings.Join(strings.Fields(text), " ")))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}
