package slack

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// cardContent is a card as a message of Slack's.
type cardContent struct {
	text   string // the plain form, for notifications and screen readers
	edited string // the same, short enough for an edit
	blocks []slackgo.Block
}

// argsFile is the file that holds long arguments.
type argsFile struct {
	name   string
	failed bool // Slack did not take it
}

// long says whether the arguments need more room than a card has.
func long(card store.Card) bool {
	text, _ := bots.PrettyJSON(card.Args)
	return utf8.RuneCountInString(text) > maxShownArgs
}

func fileName(card store.Card) string { return "arguments-" + card.Call + ".json" }

// room is how much of a card stands in its message, in characters.
type room struct{ args, claim, facts int }

// wide is what Slack takes by its reference. It counts otherwise than it says,
// maybe in bytes: where it refuses that much, as msg_blocks_too_long, the card
// is narrow, and the whole of it in its dialog and file as ever.
var (
	wide   = room{args: maxShownArgs, claim: maxClaim, facts: maxSection / 2}
	narrow = room{args: 1_000, claim: 250, facts: 500}
)

// renderCard lays a card out.
func renderCard(card store.Card, r bots.Reader, file argsFile) cardContent {
	return renderCardIn(card, r, file, wide)
}

func renderCardIn(card store.Card, r bots.Reader, file argsFile, in room) cardContent {
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
	c := cardContent{blocks: []slackgo.Block{slackgo.NewHeaderBlock(plainText(head))}}
	more := false // something stands in the dialog only
	section := func(limit int, lines ...string) {
		text := strings.Join(lines, "\n")
		if n := utf8.RuneCountInString(text); n > limit {
			more = true
			text = text[:offset(text, limit)] + "…\n" + words.Say(phrases.CardClipped, strconv.Itoa(n), strconv.Itoa(limit))
		}
		if text != "" {
			c.blocks = append(c.blocks, slackgo.NewSectionBlock(plainText(text), nil, nil))
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
		shown := p.Args[:offset(p.Args, in.args)]
		c.blocks = append(c.blocks, preformatted(shown))
		if shown != p.Args {
			more = true
			section(maxClaim, continues(card, in.args, p.Args, file, words)...)
		}
	}
	section(in.claim, p.Rules...)
	if p.Until != "" {
		c.blocks = append(c.blocks, until(card.Expires, r, words))
	}
	if p.Args == "" && p.Until == "" { // it did say until when: see richBlock
		c.blocks = append(c.blocks, richBlock("", strings.Join(p.Bound, "\n")))
	} else {
		section(maxClaim, p.Bound...)
	}
	section(in.claim, p.State...)
	if more {
		section(maxClaim, words.Say(phrases.CardMore))
	}
	if buttons := cardButtons(card, open, more, words); len(buttons) > 0 {
		c.blocks = append(c.blocks, slackgo.NewActionBlock("", buttons...))
	}
	c.text, c.edited = plainForm(card, p, file, words, maxFallback), plainForm(card, p, file, words, maxEdited)
	if in == narrow {
		c.text = c.edited
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
func plainForm(card store.Card, p bots.CardParts, file argsFile, words phrases.Catalogue, limit int) string {
	whole := p
	for n := limit; n > 0; n = n * 3 / 4 {
		text := strings.Join(p.Lines(), "\n")
		if out := escape(text); len(out) <= limit {
			return out
		}
		p = whole
		if shown := min(n, utf8.RuneCountInString(whole.Args)); whole.Args != "" {
			p.Args = whole.Args[:offset(whole.Args, shown)] + "…"
			p.Rules = append(continues(card, shown, whole.Args, file, words), whole.Rules...)
		}
		for _, claim := range []*[]string{&p.Facts, &p.Warnings, &p.Description, &p.Why, &p.State} {
			if len(*claim) > 0 {
				*claim = []string{clip(strings.Join(*claim, "\n"), maxClaim)}
			}
		}
	}
	return fallback(strings.Join(p.Lines(), "\n"), limit)
}

// continues says where the rest of long arguments is.
func continues(card store.Card, shown int, pretty string, file argsFile, words phrases.Catalogue) []string {
	lines := []string{words.Say(phrases.CardContinues, strconv.Itoa(shown), strconv.Itoa(utf8.RuneCountInString(pretty)), strconv.Itoa(len(card.Args)), sum(card.Args))}
	switch {
	case file.failed:
		lines = append(lines, words.Say(phrases.CardNoFile))
	case file.name != "":
		lines = append(lines, words.Say(phrases.CardFile, file.name))
	}
	return lines
}

// cardButtons are what can be done about the call as it stands.
func cardButtons(card store.Card, open, more bool, words phrases.Catalogue) []slackgo.BlockElement {
	var buttons []slackgo.BlockElement
	add := func(verb string, key phrases.Key, style slackgo.Style, args ...any) {
		b := button(callAction+"-"+verb, words.Say(key, args...), pressValue(verb, card))
		b.Style = style
		buttons = append(buttons, b)
	}
	if open {
		add(verbRun, phrases.ButtonRun, slackgo.StylePrimary)
		if card.Together > 0 {
			add(verbRunAll, phrases.ButtonRunAll, slackgo.StyleDefault, strconv.Itoa(card.Together+1))
		}
		add(verbCancel, phrases.ButtonCancel, slackgo.StyleDefault)
		add(verbEdit, phrases.ButtonEdit, slackgo.StyleDefault)
		if card.Always {
			add(verbAlways, phrases.ButtonAlways, slackgo.StyleDefault)
		}
		add(verbNever, phrases.ButtonNever, slackgo.StyleDanger)
	}
	switch card.RepeatVerb {
	case store.Retry:
		add(verbRetry, phrases.ButtonRetry, slackgo.StyleDefault)
	case store.Again:
		add(verbAgain, phrases.ButtonAgain, slackgo.StyleDefault)
	}
	if more {
		add(verbShow, phrases.ButtonShowAll, slackgo.StyleDefault)
	}
	return buttons
}

// Verbs of the card's buttons.
const (
	callAction   = "call"
	resultAction = "result"

	verbRun    = "run"
	verbCancel = "cancel"
	verbEdit   = "edit"
	verbAlways = "always"
	verbNever  = "never"
	verbShow   = "show"
	verbRunAll = "runall"
	verbRetry  = "retry"
	verbAgain  = "again"
)

// digestChars is how much of the digest a button carries: the press is refused
// where it is not the call's any more.
const digestChars = 16

// pressValue is what a button carries: a verb, the call's id, the head of the
// digest that the card shows. Nothing of it is ever executed.
func pressValue(verb string, card store.Card) string {
	return verb + " " + card.Call + " " + card.Digest[:min(len(card.Digest), digestChars)]
}

// readPress takes a button's value apart.
func readPress(value string) (verb, call, digest string, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > maxValue || len(parts) != 3 || !store.ValidID(parts[1]) {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

func (c cardContent) content() content {
	blocks := slackgo.MsgOptionBlocks(c.blocks...)
	return content{
		post: []slackgo.MsgOption{slackgo.MsgOptionText(c.text, false), blocks},
		edit: []slackgo.MsgOption{slackgo.MsgOptionText(c.edited, false), blocks},
	}
}
