package posting

import (
	"context"
	"errors"
	"fmt"

	"nize/bots/discord/incoming"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/outbox"
	"nize/store"
)

// showCard posts a card, with the file of long arguments before it, or edits it.
func (po *Poster) showCard(ctx context.Context, at store.Address, m store.Message) (string, error) {
	po.tools.End(channelOf(at))
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

// showTool adds a tool's line to the turn's message, or changes it there.
func (po *Poster) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	channel := channelOf(at)
	t := po.tools.Find(channel, at.Message)
	locale := po.Reader(ctx, at).Locale
	if at.Message != "" && len(t.Order) == 0 { // after a restart nobody remembers the other lines
		var was incoming.Message
		if err := po.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "channels/" + channel + "/messages/" + at.Message, Into: &was}); err != nil {
			return at.Message, err
		}
		t.Before = view.ToolsIn(was.Text, buttonsOf(was), *m.Tool, m.ID, locale)
	}
	t.Set(ctx, po.o.Calls, m.ID, *m.Tool)
	at.Message = t.ID
	id, err := po.Put(ctx, at, t.Order[0], view.Tools(t, locale))
	if err == nil {
		po.tools.Posted(channel, id, t)
	}
	return id, err
}

// Shared says whether more than one person may read what is shown there.
func Shared(at store.Address) bool { return !at.Direct }
