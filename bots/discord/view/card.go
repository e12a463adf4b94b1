package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/arguments"
	"nize/bots/phrases"
	"nize/store"
)

// maxShownArgs is the maximum length of the arguments on a card, in characters.
const maxShownArgs = 900

// Long reports whether the arguments don't fit into a card.
func Long(card store.Card) bool {
	return card.Question == nil && runes(bots.ArgText(card)) > maxShownArgs
}

// FileName returns the name of the file with long arguments.
func FileName(card store.Card) string { return "arguments-" + card.Call + ".json" }

// capacity is how much of a card its message shows, in characters.
type capacity struct{ args, claim int }

// capacities are tried in order until the card fits.
var capacities = []capacity{{maxShownArgs, 300}, {maxShownArgs, 120}, {500, 100}, {250, 60}, {100, 40}, {0, 20}}

// Card lays out a card: see the package comment. Details shows the parts that
// [bots.CardParts] folds.
func Card(card store.Card, r bots.Reader) Message {
	words := phrases.For(r.Locale)
	p := bots.PartsOf(card, r)
	buttons := cardButtons(card, words)
	if p.Settled != nil {
		return Text(quiet+Escape(Clip(p.Settled.Line(), 1000)), buttons...)
	}
	capacities := capacities
	if card.Question != nil {
		capacities = append([]capacity{{MaxText, 300}}, capacities...)
	}
	for i, c := range capacities {
		if text := cardText(card, p, r, c); size(text) <= MaxText || i == len(capacities)-1 {
			return Text(text, buttons...)
		}
	}
	return Message{}
}

// MenuVerb is in the id of a card's menu, whose values are the verbs of its entries.
const MenuVerb = "menu"

func cardButtons(card store.Card, words phrases.Catalogue) []discordgo.MessageComponent {
	var buttons []discordgo.MessageComponent
	menu := discordgo.SelectMenu{CustomID: CallID + ":" + bots.PressOf(MenuVerb, card).String(), Placeholder: Clip(words.Say(phrases.ButtonMore), maxOption)}
	for _, b := range bots.CardButtons(card, words) {
		if b.Menu {
			menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: Clip(b.Label, maxOption), Value: b.Verb})
			continue
		}
		if b.URL != "" { // the press of a button that opens an address isn't reported
			if len(b.URL) <= maxLink {
				buttons = append(buttons, Link(b.Label, b.URL))
			}
			b.Label = words.Say(phrases.ButtonOpened)
		}
		button := Button(b.Label, CallID+":"+bots.PressOf(b.Verb, card).String())
		if b.Strong {
			button.Style = discordgo.PrimaryButton
		}
		buttons = append(buttons, button)
	}
	rows := Rows(buttons...)
	if menu.Options != nil {
		rows = append(rows, discordgo.ActionsRow{Components: []discordgo.MessageComponent{menu}})
	}
	return rows
}

// cardText returns a waiting card as text. Everything that a decision is based on is
// complete, or the text says that it is not and where the rest is.
func cardText(card store.Card, p bots.CardParts, r bots.Reader, c capacity) string {
	words := phrases.For(r.Locale)
	var lines []string
	more := false
	add := func(head, text string, limit int) {
		if text == "" {
			return
		}
		n := runes(text)
		if n > limit {
			more = true
			text = firstRunes(text, limit) + "… " + words.Say(phrases.CardClipped, strconv.Itoa(n), strconv.Itoa(limit))
		}
		lines = append(lines, head+Escape(text))
	}
	add(quiet, p.Notice, 300) // a phone shows the beginning of a message
	add("### ", p.Headline, 200)
	add(quiet, bots.Join(p.Badge, p.Name), 200)
	for _, warning := range p.Warnings {
		add("**⚠** ", warning, c.claim)
	}
	add("", p.ArgsHead, c.claim)
	if all := strings.Join(p.ArgLines(), "\n"); all != "" {
		shown := firstRunes(all, c.args)
		switch {
		case shown == all && p.Rows != nil:
			lines = append(lines, rowLines(p.Rows)...)
		case shown != "":
			lines = append(lines, code("", shown))
		}
		if more = more || shown != all; shown != all && card.Question == nil {
			lines = append(lines, Escape(words.Say(phrases.CardContinues, strconv.Itoa(runes(shown)), strconv.Itoa(runes(all)), strconv.Itoa(len(card.Args)), digest(card.Args))))
			if Long(card) {
				lines = append(lines, Escape(words.Say(phrases.CardFile, FileName(card))))
			}
		}
	}
	origin := Escape(Clip(bots.Join(p.Origin...), c.claim*2))
	if p.Link != "" {
		last := len(p.Origin) - 1
		origin = Escape(Clip(bots.Join(p.Origin[:last]...), c.claim*2)) + bots.Between + p.Link
	}
	if p.Until != "" {
		key := phrases.CardExpiresAt
		if !card.Expires.After(r.Now) {
			key = phrases.CardExpired
		}
		until := strings.Replace(words.Say(key, "\x00"), "\x00", fmt.Sprintf("<t:%d:f> (<t:%[1]d:R>)", card.Expires.Unix()), 1)
		origin += bots.Between + until
	}
	lines = append(lines, quiet+origin)
	add(quiet, bots.Join(p.Rules...), c.claim*3)
	if more {
		lines = append(lines, Escape(words.Say(phrases.CardMore)))
	}
	return strings.Join(lines, "\n")
}

// rowLines returns arguments as labelled rows.
func rowLines(rows []arguments.Row) (lines []string) {
	for _, row := range rows {
		label := "**" + Escape(row.Label) + ":**"
		switch row.Kind {
		case arguments.Value:
			lines = append(lines, label+" "+Escape(row.Text))
		case arguments.Diff:
			lines = append(lines, label, code("diff", row.Body()))
		case arguments.JSON:
			lines = append(lines, label, code("json", row.Body()))
		default:
			lines = append(lines, label, code("", row.Body()))
		}
	}
	return lines
}

// code returns a code block. A backtick that could end the block is escaped.
func code(language, text string) string {
	return "```" + language + "\n" + strings.ReplaceAll(bots.Plain(text), "``", `\u0060\u0060`) + "\n```"
}

// ReadResult parses the id of a button that shows a result.
func ReadResult(rest string) (call string, ok bool) { return rest, store.ValidID(rest) }

// Share returns the message that offers to share an answer, or that says that it was
// shared.
func Share(m store.Message, w phrases.Catalogue) Message {
	s := *m.Share
	if s.Done {
		return Notice(w.Say(phrases.ShareDone))
	}
	return Notice(strings.Replace(w.Say(phrases.ShareOfferIn, "CHANNEL"), "CHANNEL", "<#"+s.In.Channel+">", 1),
		Rows(Button(w.Say(phrases.ButtonShare), fmt.Sprintf("%s:%s %d", ShareID, s.Thread, s.N)))...)
}

// ReadShare parses the id of that button.
func ReadShare(rest string) (thread string, n int, ok bool) {
	thread, number, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	return thread, n, err == nil && n >= 0 && store.ValidID(thread)
}
