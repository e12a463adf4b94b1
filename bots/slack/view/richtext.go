package view

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
)

// nize's own words name commands and show what to copy between backquotes.
// Neither of Slack's text objects does: plain text shows the marks, and mrkdwn
// would also format, link and mention what comes from elsewhere. In rich text a
// span is code, and nothing else happens to any of it.

// maxWords bounds them; all text of all blocks must stay below 13,200.
const maxWords = 12_000

// WordsBlocks are nize's words as blocks.
func WordsBlocks(text string) []slackgo.Block { return wordsBlocks("", text) }

// MarkedBlocks are WordsBlocks that are found again as the message of that id.
func MarkedBlocks(id, text string) []slackgo.Block { return wordsBlocks(BlockOf(id), text) }

func wordsBlocks(first, text string) (blocks []slackgo.Block) {
	for _, piece := range pieces(Clip(text, maxWords), MaxSection) {
		blocks = append(blocks, WordsBlock(first, piece))
		first = ""
	}
	return blocks
}

// WordsBlock is a piece of nize's words with the id of its block, "" for none.
func WordsBlock(id, text string) slackgo.Block {
	if !strings.Contains(text, "`") {
		if id == "" {
			return slackgo.NewSectionBlock(PlainText(text), nil, nil)
		}
		return slackgo.NewSectionBlock(PlainText(text), nil, nil, slackgo.SectionBlockOptionBlockID(id))
	}
	return richBlock(id, text)
}

// richBlock is wordsBlock as rich text always. Slack replaces rich text in a
// message by rich text only, so an edit is made of it whatever it says.
func richBlock(id, text string) slackgo.Block {
	text = bots.Plain(text)
	var parts []slackgo.RichTextElement
	for i, part := range strings.Split(text, "```") {
		code := i%2 == 1 && strings.Count(text, "```") > i // one that is not closed is none
		if i%2 == 1 && !code {
			part = "```" + part
		}
		if part = strings.Trim(part, "\n"); part == "" {
			continue
		}
		if code {
			parts = append(parts, &slackgo.RichTextPreformatted{Type: slackgo.RTEPreformatted, Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(part, nil)}})
			continue
		}
		parts = append(parts, slackgo.NewRichTextSection(spans(part)...))
	}
	if len(parts) == 0 {
		parts = append(parts, slackgo.NewRichTextSection(spans(seen(""))...))
	}
	return slackgo.NewRichTextBlock(id, parts...)
}

// spans are the words of a section, those between backquotes as code.
func spans(text string) []slackgo.RichTextSectionElement {
	var out []slackgo.RichTextSectionElement
	add := func(text string, style *slackgo.RichTextSectionTextStyle) {
		if text != "" {
			out = append(out, slackgo.NewRichTextSectionTextElement(text, style))
		}
	}
	for text != "" {
		before, rest, opened := strings.Cut(text, "`")
		code, after, closed := strings.Cut(rest, "`")
		if !opened || !closed || code == "" || strings.Contains(code, "\n") {
			if opened && closed && code != "" { // the mark of another line
				add(before+"`", nil)
				text = rest
				continue
			}
			add(text, nil)
			return out
		}
		add(before, nil)
		add(code, &slackgo.RichTextSectionTextStyle{Code: true})
		text = after
	}
	return out
}
