package view

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
)

// nize's own texts name commands, and things to copy, between backquotes. Neither of
// Slack's text objects fits: plain text shows the backquotes, and mrkdwn would also format,
// link and mention outside text. In rich text a span is code, and nothing else has an
// effect.

// maxWords limits them; the text of all blocks must stay below 13,200.
const maxWords = 12_000

// WordsBlocks returns nize's text as blocks.
func WordsBlocks(text string) []slackgo.Block { return wordsBlocks("", text) }

// MarkedBlocks returns WordsBlocks that identify the message with that id.
func MarkedBlocks(id, text string) []slackgo.Block { return wordsBlocks(BlockOf(id), text) }

func wordsBlocks(first, text string) (blocks []slackgo.Block) {
	for _, piece := range pieces(Clip(text, maxWords), MaxSection) {
		blocks = append(blocks, WordsBlock(first, piece))
		first = ""
	}
	return blocks
}

// WordsBlock returns a piece of nize's text with a block id, "" for none.
func WordsBlock(id, text string) slackgo.Block {
	if !strings.Contains(text, "`") {
		if id == "" {
			return slackgo.NewSectionBlock(PlainText(text), nil, nil)
		}
		return slackgo.NewSectionBlock(PlainText(text), nil, nil, slackgo.SectionBlockOptionBlockID(id))
	}
	return richBlock(id, text)
}

// richBlock is WordsBlock that always returns rich text. Slack replaces rich text in a
// message only by rich text, so an edit uses it for any text.
func richBlock(id, text string) slackgo.Block {
	text = bots.Plain(text)
	var parts []slackgo.RichTextElement
	for i, part := range strings.Split(text, "```") {
		code := i%2 == 1 && strings.Count(text, "```") > i // an unclosed fence is not one
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

// spans returns the text of a section, with backquoted words as code.
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
			if opened && closed && code != "" { // the backquote of another line
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
