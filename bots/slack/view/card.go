package view

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/arguments"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

// CardContent is a card as a Slack message.
type CardContent struct {
	text   string // the plain form, for notifications and screen readers
	Edited string // the same, short enough for an edit
	Blocks []slackgo.Block
}

// ArgsFile is the file with long arguments.
type ArgsFile struct {
	Name   string
	Failed bool // Slack rejected it
}

// Long reports whether the arguments don't fit into a card.
func Long(card store.Card) bool {
	return card.Question == nil && utf8.RuneCountInString(bots.ArgText(card)) > maxShownArgs
}

func FileName(card store.Card) string { return "arguments-" + card.Call + ".json" }

// capacity is how much of a card its message shows, in characters.
type capacity struct{ Args, claim, facts int }

// wide is within Slack's documented limits. Slack counts differently than documented, maybe
// in bytes: if it refuses a wide card with msg_blocks_too_long, the narrow one is used; its
// dialog and file are complete as always.
var (
	wide   = capacity{Args: maxShownArgs, claim: maxClaim, facts: MaxSection / 2}
	Narrow = capacity{Args: 1_000, claim: 250, facts: 500}
)

// RenderCard lays out a card.
func RenderCard(card store.Card, r bots.Reader, file ArgsFile) CardContent {
	return RenderCardIn(card, r, file, wide)
}

// RenderCardIn lays out the parts of [bots.CardParts]. The dialog behind Details has the
// folded parts.
func RenderCardIn(card store.Card, r bots.Reader, file ArgsFile, in capacity) CardContent {
	words := phrases.For(r.Locale)
	p := bots.PartsOf(card, r)
	if p.Settled != nil {
		return settledCard(card, p, r, words)
	}
	c := CardContent{}
	more := false // only the dialog shows something that a decision is based on
	clipped := func(limit int, lines ...string) string {
		text := strings.Join(lines, "\n")
		if n := utf8.RuneCountInString(text); n > limit {
			more = true
			text = text[:offset(text, limit)] + "…\n" + words.Say(phrases.CardClipped, strconv.Itoa(n), strconv.Itoa(limit))
		}
		return text
	}
	section := func(limit int, lines ...string) {
		if text := clipped(limit, lines...); text != "" {
			c.Blocks = append(c.Blocks, slackgo.NewSectionBlock(PlainText(text), nil, nil))
		}
	}
	head, name := p.Headline, p.Name
	if utf8.RuneCountInString(head) > maxHeader {
		head, name = words.Say(phrases.CardHead), strings.TrimSpace(p.Headline+"\n"+p.Name)
	}
	c.Blocks = append(c.Blocks, slackgo.NewHeaderBlock(PlainText(head)))
	c.Blocks = append(c.Blocks, slackgo.NewContextBlock("", PlainText(clipped(in.facts, bots.Join(p.Badge, name)))))
	section(min(in.facts, maxClaim), p.Warnings...)
	if p.ArgsHead != "" {
		section(maxClaim, p.ArgsHead)
	}
	if all := strings.Join(p.ArgLines(), "\n"); all != "" {
		switch shown := all[:offset(all, in.Args)]; {
		case shown != all:
			more = true
			c.Blocks = append(c.Blocks, preformatted(shown))
			section(maxClaim, continues(card, in.Args, all, file, words)...)
		case p.Rows != nil:
			c.Blocks = append(c.Blocks, rowsBlock(p.Rows))
		default:
			c.Blocks = append(c.Blocks, preformatted(shown))
		}
	}
	c.Blocks = append(c.Blocks, quietLine(card, p, r, in.facts, words))
	if len(p.Rules) > 0 {
		c.Blocks = append(c.Blocks, slackgo.NewContextBlock("", PlainText(clipped(min(in.facts, maxContext), bots.Join(p.Rules...)))))
	}
	if more {
		section(maxClaim, words.Say(phrases.CardMore))
	}
	c.Blocks = append(c.Blocks, slackgo.NewActionBlock("", cardButtons(card, words)...))
	c.text, c.Edited = plainForm(card, p, file, words, MaxFallback), plainForm(card, p, file, words, maxEdited)
	if in == Narrow {
		c.text = c.Edited
	}
	return c
}

// quietLine returns one line of rich text, in which outside text has no effect: the origin
// with a link, and the expiry as a date token, which Slack shows in each reader's zone.
func quietLine(card store.Card, p bots.CardParts, r bots.Reader, limit int, words phrases.Catalogue) slackgo.Block {
	var line []slackgo.RichTextSectionElement
	add := func(text string) { line = append(line, slackgo.NewRichTextSectionTextElement(text, nil)) }
	origin, last := p.Origin, ""
	if p.Link != "" {
		origin, last = origin[:len(origin)-1], origin[len(origin)-1]
	}
	add(Clip(bots.Join(origin...), limit))
	if last != "" {
		add(bots.Between)
		line = append(line, slackgo.NewRichTextSectionLinkElement(p.Link, last, nil))
	}
	if p.Until != "" {
		add(bots.Between)
		key := phrases.CardExpiresAt
		if !card.Expires.After(r.Now) {
			key = phrases.CardExpired
		}
		const token = "\x00"
		before, after, _ := strings.Cut(words.Say(key, token), token)
		if before != "" {
			add(before)
		}
		line = append(line, date(card.Expires, r))
		if after != "" {
			add(after)
		}
	}
	return slackgo.NewRichTextBlock("", slackgo.NewRichTextSection(line...))
}

// date returns a time that Slack shows in each reader's zone, with a text for clients that
// don't know date tokens.
func date(at time.Time, r bots.Reader) slackgo.RichTextSectionElement {
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	text := at.In(zone).Format("2006-01-02 15:04 MST")
	return slackgo.NewRichTextSectionDateElement(at.Unix(), "{date_short_pretty} {time}", nil, &text)
}

// settledCard returns the line that remains of a card, with Details and the button to
// repeat. It is rich text like the card that it replaces: see richBlock.
func settledCard(card store.Card, p bots.CardParts, r bots.Reader, words phrases.Catalogue) CardContent {
	line := Clip(p.Settled.Line(), maxClaim)
	c := CardContent{Blocks: []slackgo.Block{
		slackgo.NewRichTextBlock("", slackgo.NewRichTextSection(slackgo.NewRichTextSectionTextElement(line, nil))),
		slackgo.NewActionBlock("", cardButtons(card, words)...),
	}}
	c.text = Fallback(strings.Join(append([]string{line, words.Say(phrases.CardCall, bots.Escape(card.Call))}, p.State[0]), "\n"), maxEdited)
	c.Edited = c.text
	return c
}

// rowsBlock shows arguments as labelled rows of rich text, in which outside text has no
// effect.
func rowsBlock(rows []arguments.Row) slackgo.Block {
	var parts []slackgo.RichTextElement
	var line []slackgo.RichTextSectionElement // short values share a line
	add := func(text string, style *slackgo.RichTextSectionTextStyle) {
		line = append(line, slackgo.NewRichTextSectionTextElement(text, style))
	}
	flush := func() {
		if line != nil {
			parts = append(parts, slackgo.NewRichTextSection(line...))
		}
		line = nil
	}
	for _, row := range rows {
		if line != nil {
			add("\n", nil)
		}
		add(bots.Plain(row.Label)+":", &slackgo.RichTextSectionTextStyle{Bold: true})
		if row.Kind == arguments.Value {
			add(" "+bots.Plain(row.Text), nil)
			continue
		}
		flush()
		parts = append(parts, &slackgo.RichTextPreformatted{
			Type:     slackgo.RTEPreformatted,
			Elements: []slackgo.RichTextSectionElement{slackgo.NewRichTextSectionTextElement(seen(bots.Plain(row.Body())), nil)},
		})
	}
	flush()
	return slackgo.NewRichTextBlock("", parts...)
}

// plainForm returns the card as the message's text. If it is too long for Slack, the
// arguments are cut, with a note where the rest is: who may answer, the call and its state
// follow them and must remain.
func plainForm(card store.Card, p bots.CardParts, file ArgsFile, words phrases.Catalogue, limit int) string {
	whole := p
	text := func() string { // a phone shows the beginning
		lines := p.Lines()
		if p.Notice != "" {
			lines = append([]string{p.Notice}, lines...)
		}
		return strings.Join(lines, "\n")
	}
	for n := limit; n > 0; n = n * 3 / 4 {
		text := text()
		if out := incoming.Escape(text); len(out) <= limit {
			return out
		}
		p = whole
		if all := strings.Join(whole.ArgLines(), "\n"); all != "" {
			shown := min(n, utf8.RuneCountInString(all))
			p.Rows, p.Args = nil, all[:offset(all, shown)]+"…"
			p.Rules = append(continues(card, shown, all, file, words), whole.Rules...)
		}
		for _, claim := range []*[]string{&p.Warnings, &p.Origin, &p.State} {
			if len(*claim) > 0 {
				*claim = []string{Clip(strings.Join(*claim, "\n"), maxClaim)}
			}
		}
		p.More = nil
		for _, line := range whole.More { // the digest and the call are last
			p.More = append(p.More, Clip(line, maxClaim/4))
		}
		if most := 10; len(p.More) > most {
			p.More = append(p.More[:most-2:most-2], p.More[len(p.More)-2:]...)
		}
	}
	return Fallback(text(), limit)
}

// continues returns lines that say where the rest of long arguments is.
func continues(card store.Card, shown int, pretty string, file ArgsFile, words phrases.Catalogue) []string {
	if card.Question != nil { // these are no arguments
		return nil
	}
	lines := []string{words.Say(phrases.CardContinues, strconv.Itoa(shown), strconv.Itoa(utf8.RuneCountInString(pretty)), strconv.Itoa(len(card.Args)), Digest(card.Args))}
	switch {
	case file.Failed:
		lines = append(lines, words.Say(phrases.CardNoFile))
	case file.Name != "":
		lines = append(lines, words.Say(phrases.CardFile, file.Name))
	}
	return lines
}

// cardButtons returns the possible actions for the call in its current state. An overflow
// menu has at most five entries, so actions that another entry's dialog offers have none of
// their own.
func cardButtons(card store.Card, words phrases.Catalogue) []slackgo.BlockElement {
	var buttons []slackgo.BlockElement
	var menu []*slackgo.OptionBlockObject
	for _, b := range bots.CardButtons(card, words) {
		value := bots.PressOf(b.Verb, card).String()
		switch {
		case b.Preset:
		case b.Menu:
			menu = append(menu, slackgo.NewOptionBlockObject(value, PlainText(Clip(b.Label, maxButton)), nil))
		default:
			e := button(CallAction+"-"+b.Verb, b.Label, value)
			if e.Style = slackgo.StyleDefault; b.Strong {
				e.Style = slackgo.StylePrimary
			}
			e.URL = b.URL // its press arrives as well
			buttons = append(buttons, e)
		}
	}
	if menu != nil {
		buttons = append(buttons, slackgo.NewOverflowBlockElement(MenuAction, menu...))
	}
	return buttons
}

// Actions of a card's buttons, and of those that show results.
const (
	CallAction   = "call"
	MenuAction   = "call-menu"
	ResultAction = "result"
	LinkAction   = "view-link" // opens a URL, so no handler does anything
)

func (c CardContent) Content() Content {
	blocks := slackgo.MsgOptionBlocks(c.Blocks...)
	return Content{
		Post: []slackgo.MsgOption{slackgo.MsgOptionText(c.text, false), blocks},
		Edit: []slackgo.MsgOption{slackgo.MsgOptionText(c.Edited, false), blocks},
	}
}
