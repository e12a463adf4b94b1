package view

import (
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const (
	// MaxToolLines limits how many tools one message lists.
	MaxToolLines = 20
	// maxResultButtons is how many of them have a button; a row can have 25.
	maxResultButtons = 5
)

// ToolMessage has the lines of one message.
type ToolMessage = bots.ToolMessage[ToolsBefore]

// ToolContent returns the message about a turn's tools: one line each, and buttons that
// show results.
func ToolContent(t *ToolMessage, locale string) []slackgo.MsgOption {
	catalogue := phrases.For(locale)
	lines, buttons := slices.Clone(t.Before.lines), slices.Clone(t.Before.buttons)
	several := len(lines) // tools without lookups
	for _, id := range t.Order {
		if _, lookup := bots.Lookup(t.Lines[id].Name, catalogue); !lookup {
			several++
		}
	}
	for i, id := range t.Order {
		line := t.Lines[id]
		if title, lookup := bots.Lookup(line.Name, catalogue); lookup {
			if i == len(t.Order)-1 { // later lines say what it led to
				lines = append(lines, Clip(bots.LookupWords(line, title, catalogue), 300))
			}
			continue
		}
		lines = append(lines, toolLine(line, locale))
		if call, ok := t.Result(id); ok && len(buttons) < maxResultButtons {
			text := catalogue.Say(phrases.ButtonShowResult)
			if several > 1 {
				text += " · " + bots.Escape(line.Name)
			}
			buttons = append(buttons, button(ResultAction+":"+call, Clip(text, maxButton), "result "+call))
		}
	}
	text := strings.Join(lines, "\n")
	blocks := []slackgo.Block{slackgo.NewContextBlock(BlockOf(t.Order[0]), PlainText(Clip(text, maxContext)))}
	if len(buttons) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("", buttons...))
	}
	return []slackgo.MsgOption{slackgo.MsgOptionText(Fallback(text, maxEdited), false), slackgo.MsgOptionBlocks(blocks...)}
}

// toolLine returns one line about a tool: its name, state and summary.
func toolLine(line store.ToolLine, locale string) string {
	words := phrases.For(locale)
	text := bots.Escape(Clip(line.Name, 120)) + ": " + words.Text(bots.LineState(line.State))
	if line.Brief != (store.Text{}) {
		text += " – " + bots.Escape(Clip(words.Text(line.Brief), 160))
	}
	return text
}

// ToolsBefore is the content of a message about tools that an earlier run wrote.
type ToolsBefore struct {
	lines   []string
	buttons []slackgo.BlockElement
}

// ToolsIn returns the content of a message about tools, without lookups, which the next
// line replaces.
func ToolsIn(m slackgo.Message) (before ToolsBefore) {
	for _, b := range m.Blocks.BlockSet {
		switch b := b.(type) {
		case *slackgo.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if text, ok := e.(*slackgo.TextBlockObject); ok && text.Text != "" {
					before.lines = append(before.lines, slices.DeleteFunc(strings.Split(text.Text, "\n"), bots.IsLookupLine)...)
				}
			}
		case *slackgo.ActionBlock:
			if b.Elements != nil {
				before.buttons = append(before.buttons, b.Elements.ElementSet...)
			}
		}
	}
	return before
}

// Retell removes the earlier text of a line that is shown again.
func (t *ToolsBefore) Retell(id string, line store.ToolLine, words phrases.Catalogue) {
	head, lookup := bots.Lookup(line.Name, words)
	if !lookup {
		head = bots.Escape(Clip(line.Name, 120)) + ": "
	}
	if n := slices.IndexFunc(t.lines, func(was string) bool { return strings.HasPrefix(was, head) }); n >= 0 {
		t.lines = slices.Delete(t.lines, n, n+1)
	}
	call := strings.TrimPrefix(id, "tool/")
	t.buttons = slices.DeleteFunc(t.buttons, func(e slackgo.BlockElement) bool {
		b, ok := e.(*slackgo.ButtonBlockElement)
		return !ok || b.ActionID == ResultAction+":"+call
	})
}
