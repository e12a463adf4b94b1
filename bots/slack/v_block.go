package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/store"
)

// choice is an option of a select: what it stands for, and what it says.
type choice struct{ value, label string }

// selectOne is an input whose first choice stands in it.
func selectOne(id, label string, choices []choice) slackgo.Block {
	var options []*slackgo.OptionBlockObject
	for _, c := range choices {
		options = append(options, slackgo.NewOptionBlockObject(c.value, plainText(clip(c.label, maxOption)), nil))
	}
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
	s.InitialOption = options[0]
	return slackgo.NewInputBlock(id, plainText(label), nil, s)
}

func mrkdwn(text string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, text, false, false)
}

func sum(raw []byte) string {
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}

func button(id, text, value string) *slackgo.ButtonBlockElement {
	return slackgo.NewButtonBlockElement(id, value, plainText(clip(text, maxButton)))
}

// preformatted shows text as it is, in a face where every character counts.
func preformatted(text string) slackgo.Block {
	return slackgo.NewRichTextBlock("", &slackgo.RichTextPreformatted{
		Type:     slackgo.RTEPreformatted,
		Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(text, nil)},
	})
}

// fallback is text for the field that Slack reads as mrkdwn, as much of it as
// goes there.
func fallback(text string, limit int) string {
	out := escape(text)
	for n := limit; len(out) > limit; n = n * 9 / 10 {
		out = escape(cut(text, n)) + "…"
	}
	return out
}

// zone is a person's time zone; nil is UTC.
func zone(name string) *time.Location {
	if name == "" {
		return nil
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return z
}

func modal(title, closing string, blocks ...slackgo.Block) slackgo.ModalViewRequest {
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, Title: plainText(clip(title, maxTitle)), Close: plainText(clip(closing, maxTitle)), Blocks: slackgo.Blocks{BlockSet: blocks},
	}
}

// imageBlock shows a file; its text form stands for it to who doesn't see it.
func imageBlock(block, file, alt string) slackgo.Block {
	return slackgo.NewImageBlockSlackFile(&slackgo.SlackFileObject{ID: file}, clip(alt, maxAlt), block, nil)
}

func plainText(text string) *slackgo.TextBlockObject {
	emoji := false
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: text, Emoji: &emoji}
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

func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return text[:offset(text, limit-1)] + "…"
}

// errorText is an error without the sentinel's chain around it.
func errorText(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+store.ErrRefused.Error())
}
