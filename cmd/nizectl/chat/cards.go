package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// Cards on the screen: a card is shown whole, in a frame, before a key counts as its
// answer. The frame is part of the live region, so that one line replaces it when the call
// is decided. A card that is higher than the terminal is printed above the region, where
// the user can scroll to it.

// card shows a card on the screen, or its outcome.
func (f *screen) card(c store.Card) {
	first := len(f.cards) > 0 && f.cards[0].Call == c.Call
	if i := slices.IndexFunc(f.tools, func(t toolRow) bool { return t.id == "tool/"+c.Call || t.id == c.Call }); i >= 0 {
		f.tools = slices.Delete(f.tools, i, i+1)
	}
	if waits(&c) {
		if i := slices.IndexFunc(f.cards, func(o store.Card) bool { return o.Call == c.Call }); i >= 0 {
			f.cards[i] = c
			return
		}
		if f.cards = append(f.cards, c); len(f.cards) == 1 {
			f.showFirst()
		}
		return
	}
	f.cards = withoutCard(f.cards, c.Call)
	if first {
		f.args, f.answers = nil, nil
	}
	if c.State.Final() {
		f.s.lastCall = c
		f.printText(f.outcomePaint(c.State), outcomeLine(c, f.s.reader()))
	} else {
		f.tools = append(f.tools, toolRow{c.Call, bots.Escape(c.Tool) + " " + bots.StateWords(c, f.s.opt.Locale)})
	}
	if first {
		f.showFirst()
	}
}

// showFirst starts the time in which the first card can be read.
func (f *screen) showFirst() {
	f.cardSince, f.printed, f.standing = f.s.opt.Now(), "", nil
}

func (f *screen) outcomePaint(state store.State) func(string) string {
	switch state {
	case store.Done:
		return f.style.green
	case store.Failed, store.Refused, store.Lost:
		return f.style.red
	}
	return f.style.yellow
}

// boxRows returns the live rows of the current card, leaving space for others rows. It
// returns nil if the terminal is too low: then the card was printed.
func (f *screen) boxRows(others int) []string {
	c := f.cards[0]
	rows := boxLines(f.style, frontLines(bots.PartsOf(c, f.s.reader())), f.region.width)
	if len(rows)+others < f.region.height {
		return rows
	}
	if f.printed != c.Call {
		f.printed = c.Call
		f.output = append(f.output, rows...)
	}
	return nil
}

// boxLine is a line of a card with its look.
type boxLine struct {
	text string
	look look
}

// frontLines returns what a person decides on: the headline is emphasized, and the origin
// and the rules are dimmed.
func frontLines(p bots.CardParts) []boxLine {
	front := p.Front()
	lines := make([]boxLine, len(front))
	quiet := len(front) - 1 // the first dimmed line
	if len(p.Rules) > 0 {
		quiet--
	}
	for i, text := range front {
		lines[i].text = text
		switch {
		case i == 0:
			lines[i].look = lookBold
		case i >= quiet, i == 1 && p.Name != "":
			lines[i].look = lookDim
		case slices.Contains(p.Warnings, text):
			lines[i].look = lookYellow
		}
	}
	return lines
}

// boxLines draws a frame around lines, which are wrapped, never cut. The bar before quoted
// text is repeated on each wrapped part.
func boxLines(s style, lines []boxLine, width int) []string {
	inner := 0
	var rows []string
	for _, line := range lines {
		text := strings.TrimLeft(line.text, " ")
		indent := strings.Repeat(" ", min(len(line.text)-len(text)+2, 8))
		if strings.HasPrefix(text, "| ") {
			indent = line.text[:min(len(line.text)-len(text), 6)] + "| "
		}
		rows = append(rows, s.fold(paint(cells(line.text), line.look), width-5, indent)...)
	}
	for _, row := range rows {
		inner = max(inner, visible(row))
	}
	edge := strings.Repeat(s.line(), inner+2)
	out := []string{s.pick("╭", "+") + edge + s.pick("╮", "+")}
	for _, row := range rows {
		pad := strings.Repeat(" ", inner-visible(row))
		out = append(out, s.bar()+" "+row+pad+" "+s.bar())
	}
	return append(out, s.pick("╰", "+")+edge+s.pick("╯", "+"))
}

// details prints the folded parts of a card, with the whole digest.
func (f *screen) details(c store.Card) {
	words := f.s.words()
	for _, line := range bots.PartsOf(c, f.s.reader()).More {
		if line == bots.DigestLine(c, words) {
			line = words.Say(phrases.TermDigest, bots.Escape(c.Digest))
		}
		f.printLines(f.style.each(f.style.dim, f.style.fold(cells(line), f.region.width-1, "    "))...)
	}
	f.printText(f.style.dim, words.Say(phrases.TermStopKey, cardKeys(c, words)))
}

// decide sends a decision. The card disappears when the daemon confirms it, or at once if
// the answer was refused because there was an earlier one.
func (f *screen) decide(ctx context.Context, c store.Card, d api.DecideCallRequest) {
	f.args, f.answers = nil, nil
	if err := f.s.decide(ctx, c, d); err != nil {
		f.printText(f.style.red, f.s.problem(err))
		if !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) && !errors.Is(err, store.ErrNotFound) {
			f.cardSince = f.s.opt.Now()
			return
		}
	} else if d.Always {
		f.printText(f.style.dim, f.s.kept(ctx, c, d))
	}
	f.cards = withoutCard(f.cards, c.Call)
	f.showFirst()
}
