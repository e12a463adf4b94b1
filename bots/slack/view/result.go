package view

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store/display"
)

// ResultBlocks returns a rendered result; the first block has the given id. It uses rich
// text and plain_text fields, in which its content formats, links and mentions nothing. The
// only exception is the title, which links to a URL from the result itself.
func ResultBlocks(id string, v display.View, w phrases.Catalogue) (blocks []slackgo.Block) {
	next := func() (of string) {
		of, id = id, ""
		return of
	}
	bold := &slackgo.RichTextSectionTextStyle{Bold: true}
	var parts []slackgo.RichTextElement
	if v.Title != "" {
		title := slackgo.RichTextSectionElement(slackgo.NewRichTextSectionTextElement(bots.Escape(v.Title), bold))
		if v.Link != "" {
			title = slackgo.NewRichTextSectionLinkElement(v.Link, bots.Escape(v.Title), bold)
		}
		parts = append(parts, slackgo.NewRichTextSection(title))
	}
	if v.Text != "" {
		parts = append(parts, slackgo.NewRichTextSection(slackgo.NewRichTextSectionTextElement(bots.Plain(v.Text), nil)))
	}
	if len(parts) > 0 {
		blocks = append(blocks, slackgo.NewRichTextBlock(next(), parts...))
	}
	if len(v.Fields) > 0 {
		var fields []*slackgo.TextBlockObject
		for _, f := range v.Fields {
			fields = append(fields, PlainText(bots.Escape(f.Name)+"\n"+f.Value))
		}
		section := slackgo.NewSectionBlock(nil, fields, nil)
		section.BlockID = next()
		blocks = append(blocks, section)
	}
	if v.Table != nil {
		lines := bots.TableLines(*v.Table)
		block := slackgo.NewRichTextBlock(next(), &slackgo.RichTextPreformatted{
			Type: slackgo.RTEPreformatted, Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(strings.Join(lines, "\n"), nil)},
		})
		if left := bots.RowsLeft(*v.Table, w); left != "" {
			block.Elements = append(block.Elements, slackgo.NewRichTextSection(slackgo.NewRichTextSectionTextElement(left, nil)))
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// LinkBlock links to a result's view in a browser; the block has the given id.
func LinkBlock(id string, of bots.Images, w phrases.Catalogue) slackgo.Block {
	open := button(LinkAction, w.Say(phrases.OpenView), of.Call)
	open.URL = of.Link
	block := slackgo.NewSectionBlock(PlainText(Clip(w.Say(phrases.ViewOf, bots.Escape(of.From)), MaxSection)), nil, slackgo.NewAccessory(open))
	block.BlockID = id
	return block
}
