// Package view lays out Slack messages, cards, dialogs and the App Home, and reads
// submitted dialogs. Every function is pure: it takes the content and its reader, and
// returns blocks within Slack's limits.
//
// Text from outside is in plain_text objects and preformatted rich text, where Slack
// formats, links and mentions nothing; the only mrkdwn field, a message's text, is escaped.
// All of it is made harmless by [bots.Plain] when it becomes a part of a block, or before,
// by [bots.Escape].
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/slack/incoming"
)

// choice is an option of a select: its value and its label.
type choice struct{ value, label, note string }

// selectOne returns an input whose first choice is preselected.
func selectOne(id, label string, choices []choice) slackgo.Block {
	var options []*slackgo.OptionBlockObject
	for _, c := range choices {
		o := slackgo.NewOptionBlockObject(c.value, PlainText(Clip(c.label, maxOption)), nil)
		if c.note != "" {
			o.Description = PlainText(Clip(c.note, maxOption))
		}
		options = append(options, o)
	}
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
	s.InitialOption = options[0]
	return slackgo.NewInputBlock(id, PlainText(label), nil, s)
}

func Mrkdwn(text string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, text, false, false)
}

func Digest(raw []byte) string {
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}

func button(id, text, value string) *slackgo.ButtonBlockElement {
	return slackgo.NewButtonBlockElement(id, value, PlainText(Clip(text, maxButton)))
}

// preformatted shows text unchanged in a monospaced font.
func preformatted(text string) slackgo.Block {
	return slackgo.NewRichTextBlock("", &slackgo.RichTextPreformatted{
		Type:     slackgo.RTEPreformatted,
		Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(bots.Plain(text), nil)},
	})
}

// Fallback returns text for the mrkdwn field, up to its limit.
func Fallback(text string, limit int) string {
	text = bots.Plain(text)
	out := incoming.Escape(text)
	for n := limit; len(out) > limit; n = n * 9 / 10 {
		out = incoming.Escape(incoming.Cut(text, n)) + "…"
	}
	return out
}

func Modal(title, closing string, blocks ...slackgo.Block) slackgo.ModalViewRequest {
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, Title: PlainText(Clip(title, MaxTitle)), Close: PlainText(Clip(closing, MaxTitle)), Blocks: slackgo.Blocks{BlockSet: blocks},
	}
}

// ImageBlock shows a file; alt is its text alternative.
func ImageBlock(block, file, alt string) slackgo.Block {
	return slackgo.NewImageBlockSlackFile(&slackgo.SlackFileObject{ID: file}, Clip(bots.Plain(alt), maxAlt), block, nil)
}

func PlainText(text string) *slackgo.TextBlockObject {
	emoji := false
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: seen(bots.Plain(text)), Emoji: &emoji}
}

// seen returns text, or a replacement if nothing of it is visible: Slack rejects an empty
// block.
func seen(text string) string {
	if text == "" {
		return "…"
	}
	return text
}

// pieces splits text into parts of at most limit characters, at line ends if possible;
// joined, they are the text.
func pieces(text string, limit int) []string {
	var out []string
	for utf8.RuneCountInString(text) > limit {
		end := offset(text, limit)
		if i := strings.LastIndexByte(text[:end], '\n'); i > end/2 {
			end = i + 1
		}
		out, text = append(out, text[:end]), text[end:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// offset returns the byte offset after the first n characters of text.
func offset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

func Clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return text[:offset(text, limit-1)] + "…"
}

// ErrorText is an error without the sentinel's chain around it.
