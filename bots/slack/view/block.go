// Package view lays out what nize shows on Slack and reads back what a dialog
// sends in: messages, cards, dialogs and the App Home. Every function is pure:
// what is to be shown, and for whom, goes in, and blocks within Slack's limits
// come out.
//
// Text from outside stands in plain_text objects and in preformatted rich text,
// where Slack formats nothing, links nothing and mentions nobody; the one field
// that is mrkdwn, a message's text, is escaped. All of it is made harmless by
// [bots.Plain] where it becomes a part of a block, or before, by [bots.Escape].
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

// choice is an option of a select: what it stands for, and what it says.
type choice struct{ value, label, note string }

// selectOne is an input whose first choice stands in it.
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

// preformatted shows text as it is, in a face where every character counts.
func preformatted(text string) slackgo.Block {
	return slackgo.NewRichTextBlock("", &slackgo.RichTextPreformatted{
		Type:     slackgo.RTEPreformatted,
		Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(bots.Plain(text), nil)},
	})
}

// Fallback is text for the field that Slack reads as mrkdwn, as much of it as
// goes there.
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

// ImageBlock shows a file; its text form stands for it to who doesn't see it.
func ImageBlock(block, file, alt string) slackgo.Block {
	return slackgo.NewImageBlockSlackFile(&slackgo.SlackFileObject{ID: file}, Clip(bots.Plain(alt), maxAlt), block, nil)
}

func PlainText(text string) *slackgo.TextBlockObject {
	emoji := false
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: seen(bots.Plain(text)), Emoji: &emoji}
}

// seen is a text of which something is left: Slack refuses a block without any.
func seen(text string) string {
	if text == "" {
		return "…"
	}
	return text
}

// pieces cuts text into parts of at most limit characters, at line ends where
// there are some; together they are the text.
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

// offset is where the first n characters of text end.
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
