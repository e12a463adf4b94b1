package slack

import (
	"context"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// After a restart nobody remembers the other lines of a message about tools:
// they are read from the message, so that a change of one takes none away.

// toolsBefore is what a message about tools says that an earlier run wrote.
type toolsBefore struct {
	lines   []string
	buttons []slackgo.BlockElement
}

// readTools reads the message about tools at at.Message.
func (l *live) readTools(ctx context.Context, at store.Address) (toolsBefore, error) {
	second, _, _ := strings.Cut(at.Message, ".")
	list, err := l.list(ctx, at, second+".000000")
	if err != nil {
		return toolsBefore{}, err
	}
	n := slices.IndexFunc(list, func(m slackgo.Message) bool { return m.Timestamp == at.Message })
	if n < 0 {
		return toolsBefore{}, nil
	}
	return toolsIn(list[n]), nil
}

// toolsIn is what a message about tools says.
func toolsIn(m slackgo.Message) (before toolsBefore) {
	for _, b := range m.Blocks.BlockSet {
		switch b := b.(type) {
		case *slackgo.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if text, ok := e.(*slackgo.TextBlockObject); ok && text.Text != "" {
					before.lines = append(before.lines, strings.Split(text.Text, "\n")...)
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

// told takes away what a line that is told anew said before.
func (t *toolsBefore) told(id string, line store.ToolLine, words phrases.Catalogue) {
	head, lookup := bots.Lookup(line.Name, words)
	if !lookup {
		head = bots.Escape(clip(line.Name, 120)) + ": "
	}
	if n := slices.IndexFunc(t.lines, func(was string) bool { return strings.HasPrefix(was, head) }); n >= 0 {
		t.lines = slices.Delete(t.lines, n, n+1)
	}
	call := strings.TrimPrefix(id, "tool/")
	t.buttons = slices.DeleteFunc(t.buttons, func(e slackgo.BlockElement) bool {
		b, ok := e.(*slackgo.ButtonBlockElement)
		return !ok || b.ActionID == resultAction+":"+call
	})
}
