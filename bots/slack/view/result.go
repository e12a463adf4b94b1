package view

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store/display"
)

// ResultBlocks are a result as its renderer shows it; the first block has that id.
// It stands in rich text and in plain_text fields, where nothing that it says
// formats, links or mentions: but for the title, which leads to an address that the
// result itself holds.
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

// LinkBlock leads to a result's view in a browser; the block has that id.
func LinkBlock(id string, of bots.Images, w phrases.Catalogue) slackgo.Block {
	open := button(LinkAction, w.Say(phrases.OpenView), of.Call)
	open.URL = of.Link
	block := slackgo.NewSectionBlock(PlainText(Clip(w.Say(phrases.ViewOf, bots.Escape(of.From)), MaxSection)), nil, slackgo.NewAccessory(open))
	block.BlockID = id
	return block
}
