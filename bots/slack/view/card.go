package view

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

// CardContent is a card as a message of Slack's.
type CardContent struct {
	text   string // the plain form, for notifications and screen readers
	Edited string // the same, short enough for an edit
	Blocks []slackgo.Block
}

// ArgsFile is the file that holds long arguments.
type ArgsFile struct {
	Name   string
	Failed bool // Slack did not take it
}

// Long says whether the arguments need more room than a card has.
func Long(card store.Card) bool {
	text, _ := bots.PrettyJSON(card.Args)
	return utf8.RuneCountInString(text) > maxShownArgs
}

func FileName(card store.Card) string { return "arguments-" + card.Call + ".json" }

// capacity is how much of a card stands in its message, in characters.
type capacity struct{ Args, claim, facts int }

// wide is what Slack takes by its reference. It counts otherwise than it says,
// maybe in bytes: where it refuses that much, as msg_blocks_too_long, the card
// is narrow, and the whole of it in its dialog and file as ever.
var (
	wide   = capacity{Args: maxShownArgs, claim: maxClaim, facts: MaxSection / 2}
	Narrow = capacity{Args: 1_000, claim: 250, facts: 500}
)

// RenderCard lays a card out.
func RenderCard(card store.Card, r bots.Reader, file ArgsFile) CardContent {
	return RenderCardIn(card, r, file, wide)
}

func RenderCardIn(card store.Card, r bots.Reader, file ArgsFile, in capacity) CardContent {
	words := phrases.For(r.Locale)
	p := bots.PartsOf(card, r)
	open := card.State == store.Pending && !card.Approved
	head := p.Title
	if utf8.RuneCountInString(head) > maxHeader {
		head = words.Say(phrases.CardHeadDone)
		if open {
			head = words.Say(phrases.CardHead)
		}
	}
	c := CardContent{Blocks: []slackgo.Block{slackgo.NewHeaderBlock(PlainText(head))}}
	more := false // something stands in the dialog only
	section := func(limit int, lines ...string) {
		text := strings.Join(lines, "\n")
		if n := utf8.RuneCountInString(text); n > limit {
			more = true
			text = text[:offset(text, limit)] + "…\n" + words.Say(phrases.CardClipped, strconv.Itoa(n), strconv.Itoa(limit))
		}
		if text != "" {
			c.Blocks = append(c.Blocks, slackgo.NewSectionBlock(PlainText(text), nil, nil))
		}
	}
	facts := p.Facts
	if head != p.Title {
		facts = append([]string{p.Title}, facts...)
	}
	section(in.facts, facts...)
	section(min(in.facts, maxClaim), p.Warnings...)
	section(in.claim, p.Description...)
	section(in.claim, p.Why...)
	section(maxClaim, p.ArgsHead)
	if p.Args != "" {
		shown := p.Args[:offset(p.Args, in.Args)]
		c.Blocks = append(c.Blocks, preformatted(shown))
		if shown != p.Args {
			more = true
			section(maxClaim, continues(card, in.Args, p.Args, file, words)...)
		}
	}
	section(in.claim, p.Rules...)
	if p.Until != "" {
		c.Blocks = append(c.Blocks, until(card.Expires, r, words))
	}
	if p.Args == "" && p.Until == "" { // it did say until when: see richBlock
		c.Blocks = append(c.Blocks, richBlock("", strings.Join(p.Bound, "\n")))
	} else {
		section(maxClaim, p.Bound...)
	}
	section(in.claim, p.State...)
	if more {
		section(maxClaim, words.Say(phrases.CardMore))
	}
	if buttons := cardButtons(card, open, more, words); len(buttons) > 0 {
		c.Blocks = append(c.Blocks, slackgo.NewActionBlock("", buttons...))
	}
	c.text, c.Edited = plainForm(card, p, file, words, MaxFallback), plainForm(card, p, file, words, maxEdited)
	if in == Narrow {
		c.text = c.Edited
	}
	return c
}

// until says in a token of Slack's, which each reader sees in their own zone,
// when a card expires; where tokens are not known it is text. All other words of
// the line are nize's own.
func until(at time.Time, r bots.Reader, words phrases.Catalogue) slackgo.Block {
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	text := at.In(zone).Format("2006-01-02 15:04 MST")
	key := phrases.CardExpiresAt
	if !at.After(r.Now) {
		key = phrases.CardExpired
	}
	const token = "\x00"
	before, after, _ := strings.Cut(words.Say(key, token), token)
	var line []slackgo.RichTextSectionElement
	if before != "" {
		line = append(line, slackgo.NewRichTextSectionTextElement(before, nil))
	}
	line = append(line, slackgo.NewRichTextSectionDateElement(at.Unix(), "{date_short_pretty} {time}", nil, &text))
	if after != "" {
		line = append(line, slackgo.NewRichTextSectionTextElement(after, nil))
	}
	return slackgo.NewRichTextBlock("", slackgo.NewRichTextSection(line...))
}

// plainForm is the card as the message's text. Where it is longer than Slack
// takes, the arguments are cut, and it says so and where the rest is: who may
// answer, the call and its state stand below them and must stay.
func plainForm(card store.Card, p bots.CardParts, file ArgsFile, words phrases.Catalogue, limit int) string {
	whole := p
	for n := limit; n > 0; n = n * 3 / 4 {
		text := strings.Join(p.Lines(), "\n")
		if out := incoming.Escape(text); len(out) <= limit {
			return out
		}
		p = whole
		if shown := min(n, utf8.RuneCountInString(whole.Args)); whole.Args != "" {
			p.Args = whole.Args[:offset(whole.Args, shown)] + "…"
			p.Rules = append(continues(card, shown, whole.Args, file, words), whole.Rules...)
		}
		for _, claim := range []*[]string{&p.Facts, &p.Warnings, &p.Description, &p.Why, &p.State} {
			if len(*claim) > 0 {
				*claim = []string{Clip(strings.Join(*claim, "\n"), maxClaim)}
			}
		}
	}
	return Fallback(strings.Join(p.Lines(), "\n"), limit)
}

// continues says where the rest of long arguments is.
func continues(card store.Card, shown int, pretty string, file ArgsFile, words phrases.Catalogue) []string {
	lines := []string{words.Say(phrases.CardContinues, strconv.Itoa(shown), strconv.Itoa(utf8.RuneCountInString(pretty)), strconv.Itoa(len(card.Args)), Digest(card.Args))}
	switch {
	case file.Failed:
		lines = append(lines, words.Say(phrases.CardNoFile))
	case file.Name != "":
		lines = append(lines, words.Say(phrases.CardFile, file.Name))
	}
	return lines
}

// cardButtons are what can be done about the call as it stands.
func cardButtons(card store.Card, open, more bool, words phrases.Catalogue) []slackgo.BlockElement {
	var buttons []slackgo.BlockElement
	add := func(verb string, key phrases.Key, style slackgo.Style, args ...any) {
		b := button(CallAction+"-"+verb, words.Say(key, args...), pressValue(verb, card))
		b.Style = style
		buttons = append(buttons, b)
	}
	if open {
		add(VerbRun, phrases.ButtonRun, slackgo.StylePrimary)
		if card.Together > 0 {
			add(VerbRunAll, phrases.ButtonRunAll, slackgo.StyleDefault, strconv.Itoa(card.Together+1))
		}
		add(VerbCancel, phrases.ButtonCancel, slackgo.StyleDefault)
		add(VerbEdit, phrases.ButtonEdit, slackgo.StyleDefault)
		if card.Always {
			add(VerbAlways, phrases.ButtonAlways, slackgo.StyleDefault)
		}
		add(VerbNever, phrases.ButtonNever, slackgo.StyleDanger)
	}
	switch card.RepeatVerb {
	case store.Retry:
		add(VerbRetry, phrases.ButtonRetry, slackgo.StyleDefault)
	case store.Again:
		add(VerbAgain, phrases.ButtonAgain, slackgo.StyleDefault)
	}
	if more {
		add(VerbShow, phrases.ButtonShowAll, slackgo.StyleDefault)
	}
	return buttons
}

// Verbs of the card's buttons.
const (
	CallAction   = "call"
	ResultAction = "result"

	VerbRun    = "run"
	VerbCancel = "cancel"
	VerbEdit   = "edit"
	VerbAlways = "always"
	VerbNever  = "never"
	VerbShow   = "show"
	VerbRunAll = "runall"
	VerbRetry  = "retry"
	VerbAgain  = "again"
)

// DigestChars is how much of the digest a button carries: the press is refused
// where it is not the call's any more.
const DigestChars = 16

// pressValue is what a button carries: a verb, the call's id, the head of the
// digest that the card shows. Nothing of it is ever executed.
func pressValue(verb string, card store.Card) string {
	return verb + " " + card.Call + " " + card.Digest[:min(len(card.Digest), DigestChars)]
}

// ReadPress takes a button's value apart.
func ReadPress(value string) (verb, call, digest string, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > MaxValue || len(parts) != 3 || !store.ValidID(parts[1]) {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

func (c CardContent) Content() Content {
	blocks := slackgo.MsgOptionBlocks(c.Blocks...)
	return Content{
		Post: []slackgo.MsgOption{slackgo.MsgOptionText(c.text, false), blocks},
		Edit: []slackgo.MsgOption{slackgo.MsgOptionText(c.Edited, false), blocks},
	}
}
