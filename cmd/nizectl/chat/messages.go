package chat

import (
	"context"
	"slices"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// What the screen shows of a conversation, besides its cards (cards.go).

// event takes what the session reports.
func (f *screen) event(ctx context.Context, e event) {
	if e.thread == f.s.thread.ID {
		switch {
		case e.lost != nil:
			f.away = bots.Escape(e.lost.Error())
		case e.back != nil:
			f.away = ""
			f.note(f.style.dim, f.s.words().Say(phrases.TermBack))
			f.tools = nil
		}
	}
	show, ended, err := f.s.take(ctx, e)
	for _, m := range show {
		f.show(m)
	}
	if err != nil {
		f.note(f.style.red, f.s.problem(err))
	}
	if ended {
		f.endText()
		f.tools = nil
	}
}

// show takes a message that is new or has changed.
func (f *screen) show(m store.Message) {
	if m.Kind == store.TextMessage {
		f.text(m)
		return
	}
	if !f.s.script.changed(m) {
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
		f.note(f.style.red, m.Text)
	default:
		f.endText()
		f.note(f.style.dim, m.Text)
	}
}

// text streams the assistant's words.
func (f *screen) text(m store.Message) {
	more, again, changed := f.s.script.fresh(m)
	if !changed {
		return
	}
	if f.textID != m.ID || again {
		f.endText()
	}
	if again {
		f.say(f.style.dim(f.s.words().Say(phrases.TermAgain)))
	}
	if f.md == nil && more != "" {
		f.md, f.textID = newMarkdown(f.style, f.live.width), m.ID
	}
	if f.md != nil {
		f.settled = append(f.settled, f.md.write(more)...)
		if m.Final {
			f.endText()
		}
	}
}

func (f *screen) endText() {
	if f.md != nil {
		f.settled = append(f.settled, f.md.close()...)
		f.md, f.textID = nil, ""
	}
}

// tool shows the activity of a tool: in place while it works, settled after.
// What has a card is told by the card.
func (f *screen) tool(m store.Message) {
	i := slices.IndexFunc(f.tools, func(t toolRow) bool { return t.id == m.ID })
	carded := f.s.script.carded(m)
	switch line := toolLine(*m.Tool, f.s.words()); {
	case m.Tool.State.Final() || carded:
		if i >= 0 {
			f.tools = slices.Delete(f.tools, i, i+1)
		}
		if !carded {
			f.endText()
			f.settleTool(line, m.Tool.State)
		}
	case i >= 0:
		f.tools[i].line = line
	default:
		f.tools = append(f.tools, toolRow{m.ID, line})
	}
}

func (f *screen) settleTool(line string, state store.State) {
	paint := f.style.dim
	if state == store.Failed || state == store.Refused || state == store.Lost {
		paint = f.style.red
	}
	f.say(paint(clip(line, f.live.width-1)))
}
