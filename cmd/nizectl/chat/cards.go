package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// The cards on the screen: each is printed whole, in a frame, before a key
// counts for it.

// card puts a card on the screen, or says what became of it.
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
			f.box(c)
		}
		return
	}
	f.cards = withoutCard(f.cards, c.Call)
	if first {
		f.args = nil
	}
	if c.State.Final() {
		f.s.lastCall = c
		f.printText(f.outcomePaint(c.State), outcomeLine(c, f.s.opt.Locale))
	} else {
		f.tools = append(f.tools, toolRow{c.Call, bots.Escape(c.Tool) + " " + bots.StateWords(c, f.s.opt.Locale)})
	}
	if first && len(f.cards) > 0 {
		f.box(f.cards[0])
	}
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

// box prints a card whole.
func (f *screen) box(c store.Card) {
	f.cardSince = f.s.opt.Now()
	f.output = append(f.output, boxLines(f.style, bots.CardLines(c, f.s.reader()), f.region.width)...)
}

// boxLines draws a frame around lines, which are broken, never cut. The bar
// before the words of others stands before each part of them.
func boxLines(s style, lines []string, width int) []string {
	inner := 0
	var rows []string
	for _, line := range lines {
		text := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", min(len(line)-len(text)+2, 8))
		if strings.HasPrefix(text, "| ") {
			indent = line[:min(len(line)-len(text), 6)] + "| "
		}
		rows = append(rows, s.fold(cells(line), width-5, indent)...)
	}
	for _, row := range rows {
		inner = max(inner, visible(row))
	}
	edge := strings.Repeat(s.line(), inner+2)
	out := []string{s.pick("╭", "+") + edge + s.pick("╮", "+")}
	for i, row := range rows {
		pad := strings.Repeat(" ", inner-visible(row))
		if i == 0 {
			row = s.bold(row)
		}
		out = append(out, s.bar()+" "+row+pad+" "+s.bar())
	}
	return append(out, s.pick("╰", "+")+edge+s.pick("╯", "+"))
}

// decide presses a button; the card leaves the screen when the daemon says so,
// or at once where the answer was refused because there was one.
func (f *screen) decide(ctx context.Context, c store.Card, d api.DecideCallRequest) {
	f.args = nil
	if err := f.s.decide(ctx, c, d); err != nil {
		f.printText(f.style.red, f.s.problem(err))
		if !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) && !errors.Is(err, store.ErrNotFound) {
			f.cardSince = f.s.opt.Now()
			return
		}
	}
	f.cards = withoutCard(f.cards, c.Call)
	if len(f.cards) > 0 {
		f.box(f.cards[0])
	}
}
