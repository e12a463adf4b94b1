package slack

import (
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const (
	// maxToolLines bounds how many tools one message tells about.
	maxToolLines = 20
	// maxResultButtons is how many of them have a button; a row takes 25.
	maxResultButtons = 5
)

// turnLines are the lines of one message.
type turnLines struct {
	ts    string
	order []string // ids of messages, tool/CALL
	lines map[string]store.ToolLine
	none  map[string]bool // those of calls that were never made: there is no result
	// before is what stands there of an earlier run.
	before toolsBefore
}

// toolContent is the message about a turn's tools: a line each, and buttons
// that show results.
func toolContent(t *turnLines, locale string) []slackgo.MsgOption {
	catalogue := phrases.For(locale)
	lines, buttons := slices.Clone(t.before.lines), slices.Clone(t.before.buttons)
	several := len(lines) // tools, not lookups
	for _, id := range t.order {
		if _, lookup := bots.Lookup(t.lines[id].Name, catalogue); !lookup {
			several++
		}
	}
	for i, id := range t.order {
		line := t.lines[id]
		if title, lookup := bots.Lookup(line.Name, catalogue); lookup {
			if i == len(t.order)-1 { // what it led to follows, and says more
				lines = append(lines, clip(bots.LookupWords(line, title, catalogue), 300))
			}
			continue
		}
		lines = append(lines, toolLine(line, locale))
		call, ok := strings.CutPrefix(id, "tool/")
		ended := line.State == store.Done || line.State == store.Failed
		if ok && ended && (line.State == store.Done || !t.none[id]) && store.ValidID(call) && strings.Contains(line.Name, ":") && len(buttons) < maxResultButtons {
			text := catalogue.Say(phrases.ButtonShowResult)
			if several > 1 {
				text += " · " + bots.Escape(line.Name)
			}
			buttons = append(buttons, button(resultAction+":"+call, clip(text, maxButton), "result "+call))
		}
	}
	text := strings.Join(lines, "\n")
	blocks := []slackgo.Block{slackgo.NewContextBlock(blockOf(t.order[0]), plainText(clip(text, maxContext)))}
	if len(buttons) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("", buttons...))
	}
	return []slackgo.MsgOption{slackgo.MsgOptionText(fallback(text, maxEdited), false), slackgo.MsgOptionBlocks(blocks...)}
}

// toolLine is one tool in one line: what, how it stands, and in brief.
func toolLine(line store.ToolLine, locale string) string {
	words := phrases.For(locale)
	key, ok := map[store.State]phrases.Key{
		store.Planned: phrases.ToolCalling, store.Running: phrases.ToolCalling, store.Pending: phrases.StatePending,
		store.Done: phrases.StateDone, store.Failed: phrases.StateFailed, store.Refused: phrases.StateRefused,
		store.Expired: phrases.StateExpired, store.Cancelled: phrases.StateCancelled,
	}[line.State]
	if !ok {
		key = phrases.StateLost
	}
	text := bots.Escape(clip(line.Name, 120)) + ": " + words.Say(key)
	if line.Brief != "" {
		text += " – " + bots.Escape(clip(words.Translate(line.Brief), 160))
	}
	return text
}

// toolsBefore is what a message about tools says that an earlier run wrote.
type toolsBefore struct {
	lines   []string
	buttons []slackgo.BlockElement
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
