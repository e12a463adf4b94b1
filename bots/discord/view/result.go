package view

import (
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store/display"
)

// Discord's limits for an embed.
const (
	maxEmbed       = 6000 // characters in total
	maxEmbedTitle  = 256
	maxDescription = 4096
	maxFieldName   = 256
	maxFieldValue  = 1024
)

// ResultMark returns the footer by which a message is found as the result of a call.
func ResultMark(tool, call string) string { return Clip(bots.Escape(tool), 100) + " · " + call }

// Result returns a rendered result. All of it is escaped, except for the title, which links
// to a URL from the result itself. What doesn't fit into an embed is omitted: rows of the
// table first, then fields.
func Result(v display.View, tool, call string, w phrases.Catalogue) Message {
	e := &discordgo.MessageEmbed{Title: Clip(Escape(v.Title), maxEmbedTitle), URL: v.Link, Description: Clip(Escape(v.Text), maxDescription/2), Footer: &discordgo.MessageEmbedFooter{Text: ResultMark(tool, call)}}
	left := maxEmbed - size(e.Title) - size(e.Description) - size(e.Footer.Text)
	for _, f := range v.Fields {
		field := &discordgo.MessageEmbedField{Name: Clip(Escape(f.Name), maxFieldName), Value: Clip(Escape(f.Value), maxFieldValue), Inline: true}
		if left -= size(field.Name) + size(field.Value); left < 0 {
			break
		}
		e.Fields = append(e.Fields, field)
	}
	if v.Table != nil {
		t := *v.Table
		most := min(left, maxDescription-size(e.Description)) - 100 // the fence, and the number of omitted rows
		lines := bots.TableLines(t)
		for len(lines) > 1 && size(strings.Join(lines, "\n")) > most {
			lines = lines[:len(lines)-1]
			t.Left++
		}
		if len(lines) > 1 {
			e.Description = strings.TrimPrefix(e.Description+"\n```\n"+strings.Join(lines, "\n")+"\n```", "\n")
		}
		if rest := bots.RowsLeft(t, w); rest != "" {
			e.Description += "\n" + rest
		}
	}
	m := Text("")
	m.Flags &^= discordgo.MessageFlagsSuppressEmbeds
	m.Embeds = []*discordgo.MessageEmbed{e}
	return m
}

// Linked returns a message with a button that links to the result's view.
func Linked(of bots.Images, w phrases.Catalogue) Message {
	return Result(display.View{Title: w.Say(phrases.ViewOf, of.From), Text: of.OnlyLeft().Text(w)}, of.From, of.Call, w)
}
