package chat

import (
	"context"
	"slices"

	"nize/bots"
	"nize/bots/phrases"
	"nize/cmd/nizectl/display"
	"nize/store"
)

// Rendering of a conversation on the screen, except its cards (cards.go).

// event handles an event of the session.
func (f *screen) event(ctx context.Context, e event) {
	if e.thread == f.s.thread.ID {
		switch {
		case e.disconnected != nil:
			f.lost = bots.Escape(e.disconnected.Error())
		case e.reconnected != nil:
			f.lost = ""
			f.printText(f.style.dim, f.s.words().Say(phrases.TermBack))
			f.tools = nil
		}
	}
	show, ended, err := f.s.handleEvent(ctx, e)
	for _, m := range show {
		f.show(m)
	}
	if err != nil {
		f.printText(f.style.red, f.s.problem(err))
	}
	if ended {
		f.endText()
		f.tools = nil
	}
}

// show handles a new or changed message.
func (f *screen) show(m store.Message) {
	if m.Kind == store.TextMessage {
		f.text(m)
		return
	}
	if !f.s.transcript.changed(m) {
		return
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		f.tool(m)
	case m.Kind == store.CardMessage && m.Card != nil:
		f.endText()
		f.card(*m.Card)
	case m.Kind == store.ErrorMessage:
		f.endText()
		f.printText(f.style.red, m.Text)
	default:
		f.endText()
		f.printText(f.style.dim, m.Text)
	}
}

// text streams the assistant's text.
func (f *screen) text(m store.Message) {
	more, again, changed := f.s.transcript.fresh(m)
	if !changed {
		return
	}
	if f.textID != m.ID || again {
		f.endText()
	}
	if again {
		f.printLines(f.style.dim(f.s.words().Say(phrases.TermAgain)))
	}
	if f.md == nil && more != "" {
		f.md, f.textID = newMarkdown(f.style, f.region.width), m.ID
	}
	if f.md != nil {
		f.output = append(f.output, f.md.write(more)...)
		if m.Final {
			f.endText()
		}
	}
}

func (f *screen) endText() {
	if f.md != nil {
		f.output = append(f.output, f.md.close()...)
		f.md, f.textID = nil, ""
	}
}

// tool shows the activity of a tool: in place while it works, printed once it has ended. If
// the call has a card, the card shows it instead.
func (f *screen) tool(m store.Message) {
	i := slices.IndexFunc(f.tools, func(t toolRow) bool { return t.id == m.ID || "tool/"+t.id == m.ID }) // its own, or its card's
	carded := f.s.transcript.carded(m)
	switch line := toolLine(*m.Tool, f.s.words()); {
	case m.Tool.State.Final() || carded:
		if i >= 0 {
			f.tools = slices.Delete(f.tools, i, i+1)
		}
		if !carded {
			f.endText()
			f.printToolEnd(line, m.Tool.State)
		}
	case i >= 0:
		f.tools[i].line = line
	default:
		f.tools = append(f.tools, toolRow{m.ID, line})
	}
}

func (f *screen) printToolEnd(line string, state store.State) {
	paint := f.style.dim
	if state == store.Failed || state == store.Refused || state == store.Lost {
		paint = f.style.red
	}
	f.printLines(paint(display.Shorten(line, f.region.width-1, "…")))
}

// resume shows a stored conversation and continues it.
func (f *screen) resume(ctx context.Context, id string) error {
	view, err := f.s.resume(ctx, id)
	if err != nil {
		return err
	}
	f.reset()
	for _, turn := range view.Turns {
		m, ok := turnMessage(turn, f.s.words())
		switch {
		case !ok:
		case turn.Role == store.FromUser:
			f.printText(f.style.bold, "> "+turn.Text)
		default:
			f.show(m)
		}
	}
	for _, card := range view.Cards {
		f.show(store.Message{ID: card.Call, Kind: store.CardMessage, Card: &card})
	}
	return nil
}

// reset clears the state of the conversation that was left.
func (f *screen) reset() {
	f.endText()
	f.tools, f.cards, f.args, f.answers, f.lost = nil, nil, nil, nil, ""
}

func (f *screen) greet(histErr error) {
	f.printText(f.style.dim, f.s.words().Say(phrases.TermGreet))
	if line := f.s.offline(); line != "" {
		f.printText(f.style.yellow, line)
	}
	if histErr != nil {
		f.printText(f.style.yellow, bots.Escape(histErr.Error()))
	}
}
