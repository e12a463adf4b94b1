package view

import (
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const (
	// MaxToolLines limits how many tools one message lists.
	MaxToolLines = 12
	// maxResultButtons is how many of them have a button.
	maxResultButtons = 5
)

// ToolMessage has the lines of one message.
type ToolMessage = bots.ToolMessage[ToolsBefore]

// ToolsBefore is the content of a message about tools that an earlier run wrote.
type ToolsBefore struct {
	lines   []string
	buttons []discordgo.MessageComponent
}

// Tools returns the message about a turn's tools: one line each, and buttons that show
// results.
func Tools(t *ToolMessage, locale string) Message {
	words := phrases.For(locale)
	lines, buttons := slices.Clone(t.Before.lines), slices.Clone(t.Before.buttons)
	for i, id := range t.Order {
		line := t.Lines[id]
		if title, lookup := bots.Lookup(line.Name, words); lookup {
			if i == len(t.Order)-1 { // later lines say what it led to
				lines = append(lines, quiet+Escape(Clip(bots.LookupWords(line, title, words), 150)))
			}
			continue
		}
		lines = append(lines, quiet+toolLine(line, locale))
		if call, ok := t.Result(id); ok && len(buttons) < maxResultButtons {
			buttons = append(buttons, Button(words.Say(phrases.ButtonShowResult)+" · "+bots.Escape(line.Name), ResultID+":"+call))
		}
	}
	return Text(strings.Join(lines, "\n"), Rows(buttons...)...)
}

// toolLine returns one line about a tool: its name, state and summary.
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

// ToolsIn returns the content of a message that an earlier run wrote, without the line that
// is shown again and without lookups.
func ToolsIn(content string, buttons []string, again store.ToolLine, id, locale string) (t ToolsBefore) {
	head, _, _ := strings.Cut(toolLine(again, locale), ": ")
	for line := range strings.SplitSeq(content, "\n") {
		if strings.HasPrefix(line, quiet) && !strings.HasPrefix(line, quiet+head) && !bots.IsLookupLine(strings.TrimPrefix(line, quiet)) {
			t.lines = append(t.lines, line)
		}
	}
	for _, custom := range buttons {
		if head, call := HeadOf(custom); head == ResultID && "tool/"+call != id && store.ValidID(call) {
			t.buttons = append(t.buttons, Button(phrases.For(locale).Say(phrases.ButtonShowResult), custom))
		}
	}
	return t
}
