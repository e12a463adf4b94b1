package posting

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/view"
	"nize/store"
)

// maxLineKeys bounds how many messages about tools are remembered.
const maxLineKeys = 8192

// toolLines are the messages about tools: one for a turn, until something else
// is said.
type toolLines struct {
	mu sync.Mutex // guards of
	of map[string]*view.ToolMessage
}

// tools are the messages that tell about tools.
type tools struct {
	messages *messages
	calls    bots.Calls
	lines    *toolLines
}

// messageFor is the message that a line belongs to: the one at ts, else the thread's
// newest, else a new one.
func (t *toolLines) messageFor(key, ts string) *view.ToolMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) > maxLineKeys {
		t.of = map[string]*view.ToolMessage{}
	}
	if ts != "" {
		if have := t.of[key+"/"+ts]; have != nil {
			return have
		}
		return &view.ToolMessage{Ts: ts, Lines: map[string]store.ToolLine{}, None: map[string]bool{}}
	}
	if have := t.of[key]; have != nil && len(have.Order) < view.MaxToolLines {
		return have
	}
	t.of[key] = &view.ToolMessage{Lines: map[string]store.ToolLine{}, None: map[string]bool{}}
	return t.of[key]
}

// setPosted remembers where the message was posted.
func (t *toolLines) setPosted(key string, lines *view.ToolMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[key+"/"+lines.Ts] = lines
}

// endMessage ends the thread's message: the next tool begins a new one.
func (t *toolLines) endMessage(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

// showTool adds a tool's line to the turn's message, or changes it there.
func (tl *tools) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	key := at.Channel + "/" + at.Thread
	t := tl.lines.messageFor(key, at.Message)
	locale := tl.messages.Reader(ctx, at).Locale
	if at.Message != "" && len(t.Order) == 0 {
		var err error
		if t.Before, err = tl.readTools(ctx, at); err != nil {
			return at.Message, err
		}
	}
	if _, ok := t.Lines[m.ID]; !ok {
		t.Before.Retell(m.ID, *m.Tool, phrases.For(locale))
		t.Order = append(t.Order, m.ID)
	}
	t.Lines[m.ID] = *m.Tool
	if call, ok := strings.CutPrefix(m.ID, "tool/"); ok && m.Tool.State == store.Failed {
		_, err := tl.calls.GetCall(ctx, call)
		t.None[m.ID] = errors.Is(err, store.ErrNotFound) // what the model asked for could not even be tried
	}
	place := at
	place.Message = t.Ts
	ts, err := tl.messages.Put(ctx, place, t.Order[0], view.Same(view.ToolContent(t, locale)...))
	if err == nil {
		t.Ts = ts
		tl.lines.setPosted(key, t)
	}
	return ts, err
}

// Reader is for whom a thread is written.
func (ms *messages) Reader(ctx context.Context, at store.Address) bots.Reader {
	r := bots.Reader{Now: ms.now()}
	if th, err := ms.store.FindThread(ctx, at); err == nil {
		r.Zone = view.Zone(th.Zone)
		if r.Locale, err = bots.Spoken(ctx, ms.store, th); err != nil {
			ms.log.Warn("reading the language of a channel", "channel", at.Channel, "err", err)
		}
		return r
	}
	id, err := ms.people.ReaderOf(ctx, at.Channel)
	if err != nil {
		ms.log.Warn("finding out who reads a conversation; it is written to in English", "channel", at.Channel, "err", err)
	}
	if id == "" {
		return r
	}
	if p, err := ms.people.Who(ctx, id, time.Hour); err == nil { // with what they set
		r.Locale, r.Zone = p.Locale, view.Zone(p.Zone)
	}
	return r
}
