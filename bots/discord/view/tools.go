package view

import (
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const (
	// MaxToolLines bounds how many tools one message tells about.
	MaxToolLines = 12
	// maxResultButtons is how many of them have a button.
	maxResultButtons = 5
)

// ToolMessage are the lines of one message.
type ToolMessage struct {
	ID    string   // of the message
	Order []string // ids of messages, tool/CALL
	Lines map[string]store.ToolLine
	None  map[string]bool // those of calls that were never made: there is no result
	// Before and Buttons are what stands there of an earlier run.
	Before  []string
	Buttons []Component
}

// Tools is the message about a turn's tools: a line each, and buttons that show
// results.
func Tools(t *ToolMessage, locale string) Message {
	words := phrases.For(locale)
	lines, buttons := slices.Clone(t.Before), slices.Clone(t.Buttons)
	for i, id := range t.Order {
		line := t.Lines[id]
		if title, lookup := bots.Lookup(line.Name, words); lookup {
			if i == len(t.Order)-1 { // what it led to follows, and says more
				lines = append(lines, quiet+Escape(Clip(bots.LookupWords(line, title, words), 150)))
			}
			continue
		}
		lines = append(lines, quiet+toolLine(line, locale))
		call, ok := strings.CutPrefix(id, "tool/")
		ended := line.State == store.Done || line.State == store.Failed && !t.None[id]
		if ok && ended && store.ValidID(call) && strings.Contains(line.Name, ":") && len(buttons) < maxResultButtons {
			buttons = append(buttons, Button(words.Say(phrases.ButtonShowResult)+" · "+bots.Escape(line.Name), ResultID+":"+call))
		}
	}
	return Text(strings.Join(lines, "\n"), Rows(buttons...)...)
}

// toolLine is one tool in one line: what, how it stands, and in brief.
func toolLine(line store.ToolLine, locale string) string {
	words := phrases.For(locale)
	if title, lookup := bots.Lookup(line.Name, words); lookup {
		return Escape(Clip(bots.LookupWords(line, title, words), 150))
	}
	text := bots.Escape(Clip(line.Name, 80)) + ": " + words.Text(bots.LineState(line.State))
	if line.Brief != (store.Text{}) {
		text += " – " + bots.Escape(Clip(words.Text(line.Brief), 100))
	}
	return Escape(text)
}

// SetBefore takes what a message says that an earlier run wrote, but for the
// line that is told again.
func (t *ToolMessage) SetBefore(content string, buttons []string, again store.ToolLine, id, locale string) {
	head, _, _ := strings.Cut(toolLine(again, locale), ": ")
	for line := range strings.SplitSeq(content, "\n") {
		if strings.HasPrefix(line, quiet) && !strings.HasPrefix(line, quiet+head) {
			t.Before = append(t.Before, line)
		}
	}
	for _, custom := range buttons {
		if head, call := HeadOf(custom); head == ResultID && "tool/"+call != id && store.ValidID(call) {
			t.Buttons = append(t.Buttons, Button(phrases.For(locale).Say(phrases.ButtonShowResult), custom))
		}
	}
}
