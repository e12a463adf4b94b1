package posting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"nize/bots/discord/incoming"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/outbox"
	"nize/store"
)

// showCard posts a card, with the file of long arguments before it, or edits it.
func (po *Poster) showCard(ctx context.Context, at store.Address, m store.Message) (string, error) {
	po.tools.end(channelOf(at))
	if view.Long(*m.Card) {
		if err := po.attach(ctx, at, *m.Card); err != nil {
			return "", err
		}
	}
	r := po.Reader(ctx, at)
	r.At = at
	from := m.Card.In
	if m.Card.State == store.Pending && from.Surface == store.OnDiscord && from.Thread != "" && channelOf(from) != channelOf(at) {
		r.Link = "<#" + channelOf(from) + ">" // who does not see that channel reads no name
	}
	c := view.Card(*m.Card, r)
	note := outbox.Digest{Store: po.o.Store, Log: po.o.Log, Call: m.Card.Call, At: at}
	if stands, err := note.Is(ctx, c); err != nil || stands {
		return at.Message, err
	}
	id, err := po.Put(ctx, at, m.ID, c)
	if err == nil {
		note.Put(ctx, id, c)
	}
	return id, err
}

// attach puts the arguments as a file where the card stands, once for a call and
// place.
func (po *Poster) attach(ctx context.Context, at store.Address, card store.Card) error {
	owner, name := card.Call, "file/"+at.Channel // a copy is in no conversation
	th, err := po.o.Store.FindThread(ctx, at)
	switch {
	case err == nil:
		owner, name = th.ID, "file/"+card.Call
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("finding the conversation of a file: %w", err)
	}
	if _, err := po.o.Store.GetPlace(ctx, owner, name); err == nil || !errors.Is(err, store.ErrNotFound) {
		return err
	}
	place := at
	file := wire.File{Name: view.FileName(card), Data: card.Args}
	place.Message, err = po.post(ctx, at, "file/"+card.Call, view.Notice(file.Name), file)
	if err != nil {
		return fmt.Errorf("attaching the arguments: %w", err)
	}
	return po.o.Store.PutPlace(ctx, owner, name, place)
}

// maxLineKeys bounds how many messages about tools are remembered.
const maxLineKeys = 8192

// toolMessages are the messages about tools: one for a turn, until something else
// is said.
type toolMessages struct {
	mu sync.Mutex // guards of
	of map[string]*view.ToolMessage
}

func newToolMessage(id string) *view.ToolMessage {
	return &view.ToolMessage{ID: id, Lines: map[string]store.ToolLine{}, None: map[string]bool{}}
}

// find is the message that a line belongs to: the one of that id, else the
// channel's newest, else a new one.
func (t *toolMessages) find(channel, id string) *view.ToolMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) > maxLineKeys {
		clear(t.of)
	}
	if id != "" {
		if have := t.of[channel+"/"+id]; have != nil {
			return have
		}
		return newToolMessage(id)
	}
	if have := t.of[channel]; have != nil && len(have.Order) < view.MaxToolLines {
		return have
	}
	t.of[channel] = newToolMessage("")
	return t.of[channel]
}

func (t *toolMessages) posted(channel string, m *view.ToolMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[channel+"/"+m.ID] = m
}

// end ends the channel's message: the next tool begins a new one.
func (t *toolMessages) end(channel string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, channel)
}

// showTool adds a tool's line to the turn's message, or changes it there.
func (po *Poster) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	channel := channelOf(at)
	t := po.tools.find(channel, at.Message)
	locale := po.Reader(ctx, at).Locale
	if at.Message != "" && len(t.Order) == 0 { // after a restart nobody remembers the other lines
		var was incoming.Message
		if err := po.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "channels/" + channel + "/messages/" + at.Message, Into: &was}); err != nil {
			return at.Message, err
		}
		t.SetBefore(was.Text, buttonsOf(was), *m.Tool, m.ID, locale)
	}
	if _, ok := t.Lines[m.ID]; !ok {
		t.Order = append(t.Order, m.ID)
	}
	t.Lines[m.ID] = *m.Tool
	if call, ok := strings.CutPrefix(m.ID, "tool/"); ok && m.Tool.State == store.Failed {
		_, err := po.o.Calls.GetCall(ctx, call)
		t.None[m.ID] = errors.Is(err, store.ErrNotFound) // what the model asked for could not even be tried
	}
	at.Message = t.ID
	id, err := po.Put(ctx, at, t.Order[0], view.Tools(t, locale))
	if err == nil {
		t.ID = id
		po.tools.posted(channel, t)
	}
	return id, err
}

// Shared says whether more than one person may read what is shown there.
func Shared(at store.Address) bool { return !at.Direct }
