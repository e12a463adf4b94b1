package chat

import (
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// mark returns the sign before the line of a call that ended; the state follows as a word.
func mark(state store.State) string {
	switch state {
	case store.Done:
		return "✓"
	case store.Failed, store.Refused, store.Lost:
		return "✗"
	case store.Expired, store.Cancelled:
		return "–"
	}
	return "…"
}

// toolLine returns the activity of a tool as one line.
func toolLine(t store.ToolLine, words phrases.Catalogue) string {
	name, brief := bots.Escape(t.Name), bots.Escape(words.Text(t.Brief))
	var line string
	if title, ok := bots.Lookup(t.Name, words); ok {
		return mark(t.State) + " " + bots.LookupWords(t, title, words)
	}
	switch {
	case t.State == store.Done:
		line = mark(t.State) + " " + name
	case t.State.Final():
		line = mark(t.State) + " " + name + " " + words.Text(t.State.Word())
	case t.State == store.Pending:
		line = words.Say(phrases.TermPending, name)
	case t.State == store.Running:
		line = words.Say(phrases.TermCalling, name)
	default:
		line = mark(t.State) + " " + name + " " + words.Text(t.State.Word())
	}
	if t.State != store.Done { // a tool's result is not translated
		brief = strings.TrimPrefix(strings.TrimPrefix(brief, name+" "), name+": ") // the line already contains the name
	}
	if brief != "" {
		line += ": " + brief
	}
	return line
}

// outcomeLine returns the line that replaces a card.
func outcomeLine(c store.Card, r bots.Reader) string {
	line := mark(c.State) + " "
	if s := bots.PartsOf(c, r).Settled; s != nil {
		line += s.Line()
	}
	if c.RepeatVerb != "" {
		line = phrases.For(r.Locale).Say(phrases.TermRedo, line)
	}
	return line
}

// ranLine is outcomeLine with the shortened arguments, for a call without a card.
func ranLine(c store.Card, r bots.Reader) string {
	p := bots.PartsOf(c, r)
	if p.Settled == nil {
		return outcomeLine(c, r)
	}
	if p.Args != "" {
		p.Settled.What += " " + strings.ReplaceAll(bots.Brief(string(c.Args), 60), "·", `\u00b7`)
	}
	return mark(c.State) + " " + p.Settled.Line()
}

// plainSigns replaces our signs by ASCII if the terminal has no others.
func (s style) plainSigns(line string) string {
	if !s.ascii {
		return line
	}
	return strings.NewReplacer("✓", "ok", "✗", "!!", "–", "--", "…", "...", "•", "-", "·", "-").Replace(line)
}

// cardKeys returns the names of a card's keys, without those that have no effect.
func cardKeys(card store.Card, words phrases.Catalogue) string {
	if card.Question != nil {
		return questionKeys(card, words)
	}
	keys := words.Say(phrases.TermKeys)
	if card.Together > 0 {
		keys += words.Say(phrases.TermKeyAll, strconv.Itoa(card.Together+1))
	}
	keys += words.Say(phrases.TermKeysEdit)
	if card.Always {
		keys += words.Say(phrases.TermKeyAlways)
	}
	return keys + words.Say(phrases.TermKeysRest)
}

func withoutCard(cards []store.Card, call string) []store.Card {
	var out []store.Card
	for _, c := range cards {
		if c.Call != call {
			out = append(out, c)
		}
	}
	return out
}

// waits reports whether a card needs an answer.
func waits(c *store.Card) bool { return c != nil && c.State == store.Pending && !c.Approved }
