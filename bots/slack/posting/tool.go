package posting

import (
	"context"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/view"
	"nize/store"
)

// tools posts the messages about tools.
type tools struct {
	messages *messages
	calls    bots.Calls
	lines    *toolLines
}

type toolLines = bots.ToolMessages[view.ToolsBefore]

// showTool adds a tool's line to the turn's message, or changes it.
func (tl *tools) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	key := at.Channel + "/" + at.Thread
	t := tl.lines.Find(key, at.Message)
	locale := tl.messages.Reader(ctx, at).Locale
	if at.Message != "" && len(t.Order) == 0 {
		var err error
		if t.Before, err = tl.readTools(ctx, at); err != nil {
			return at.Message, err
		}
	}
	if _, ok := t.Lines[m.ID]; !ok {
		t.Before.Retell(m.ID, *m.Tool, phrases.For(locale))
	}
	t.Set(ctx, tl.calls, m.ID, *m.Tool)
	place := at
	place.Message = t.ID
	ts, err := tl.messages.Put(ctx, place, t.Order[0], view.Same(view.ToolContent(t, locale)...))
	if err == nil {
		tl.lines.Posted(key, ts, t)
	}
	return ts, err
}

// Reader returns the reader of a thread.
func (ms *messages) Reader(ctx context.Context, at store.Address) bots.Reader {
	return bots.ReaderAt(ctx, bots.Readers{Threads: ms.store, Now: ms.now, Log: ms.log, Alone: func() (locale, zone string, err error) {
		id, err := ms.people.ReaderOf(ctx, at.Channel)
		if err != nil || id == "" {
			return "", "", err
		}
		p, err := ms.people.Who(ctx, id, time.Hour) // including their settings
		return p.Locale, p.Zone, err
	}}, at)
}
