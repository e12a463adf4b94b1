package terminal

import (
	"strings"

	"nize/bots"
	"nize/store"
)

// mark is the sign before a settled line; the state stands behind it as a word.
func mark(state store.State) string {
	switch state {
	case store.Done:
		return "✓"
	case store.Failed, store.Refused, store.Lost:
		return "✗"
	case store.Expired, store.Cancelled:
		return "–"
	}
	return "…"
}

// toolLine is the activity of a tool in one line.
func toolLine(t store.ToolLine) string {
	name, brief := bots.Escape(t.Name), bots.Escape(t.Brief)
	var line string
	switch {
	case t.State == store.Done:
		line = mark(t.State) + " " + name
	case t.State.Final():
		line = mark(t.State) + " " + name + " " + t.State.Word()
	case t.State == store.Pending:
		line = name + " waits for a yes"
	default:
		line = "calling " + name + "…"
	}
	if brief != "" {
		line += ": " + brief
	}
	return line
}

// settledLine is what became of a card.
func settledLine(c store.Card, locale string) string {
	line := mark(c.State) + " " + bots.Escape(c.Tool) + " " + bots.StateWords(c, locale)
	if c.Outcome != "" {
		line += ": " + bots.Escape(c.Outcome)
	}
	if c.Redo != "" {
		line += " (/retry makes it anew)"
	}
	return line
}

// ascii puts plain signs for ours where the terminal has no others.
func (s style) ours(line string) string {
	if !s.ascii {
		return line
	}
	return strings.NewReplacer("✓", "ok", "✗", "!!", "–", "--", "…", "...", "•", "-").Replace(line)
}
