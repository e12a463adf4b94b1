package posting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/discord/incoming"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// showCard posts a card, preceded by the file of long arguments, or edits it.
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
		r.Link = "<#" + channelOf(from) + ">" // Discord doesn't show the name to readers who can't see that channel
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

// attach posts the arguments as a file beside the card, once per call and place.
func (po *Poster) attach(ctx context.Context, at store.Address, card store.Card) error {
	owner, name := card.Call, "file/"+at.Channel // a copy belongs to no conversation
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
	id := outbox.FileID(card.Call, file.Name)
	place.Message, err = po.sent.PostOnce(ctx, at, id, store.IDTime(card.Call), func(ctx context.Context) (string, error) {
		return po.post(ctx, at, id, view.Notice(file.Name), file)
	}, wire.Unsure)
	if err != nil {
		return fmt.Errorf("attaching the arguments: %w", err)
	}
	return po.o.Store.PutPlace(ctx, owner, name, place)
}

// showTool adds a tool's line to the turn's message, or changes it.
func (po *Poster) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	channel := channelOf(at)
	t := po.tools.Find(channel, at.Message)
	locale := po.Reader(ctx, at).Locale
	if at.Message != "" && len(t.Order) == 0 { // after a restart, read the other lines from the message
		var was incoming.Message
		if err := po.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "channels/" + channel + "/messages/" + at.Message, Into: &was}); err != nil {
			return at.Message, err
		}
		t.Before = view.ToolsIn(was.Content, buttonsOf(was), *m.Tool, m.ID, locale)
	}
	t.Set(ctx, po.o.Calls, m.ID, *m.Tool)
	at.Message = t.ID
	id, err := po.Put(ctx, at, t.Order[0], view.Tools(t, locale))
	if err == nil {
		po.tools.Posted(channel, id, t)
	}
	return id, err
}

// showImages posts the images of a call. If they are posted already, it leaves them.
func (po *Poster) showImages(ctx context.Context, at store.Address, m store.Message) (string, error) {
	if at.Message != "" {
		return at.Message, nil
	}
	found, err := bots.ReadImages(ctx, po.o.Calls, m)
	if err != nil {
		return "", err
	}
	w := phrases.For(po.Reader(ctx, at).Locale)
	var rows []discordgo.MessageComponent
	if found.Link != "" {
		rows = view.Rows(view.Link(w.Say(phrases.OpenView), found.Link))
	}
	shown := view.Notice(found.Text(w), rows...)
	if found.View != nil {
		shown = view.Result(*found.View, found.From, found.Call, w)
		if left := found.OnlyLeft(); !left.Empty() {
			shown.Content = view.Notice(left.Text(w)).Content
		}
	}
	if found.Link != "" && len(found.List) == 0 { // it is found by its mark
		shown = view.Linked(found, w)
		shown.Components = rows
	}
	id, err := po.Put(ctx, at, m.ID, shown, Files(found)...)
	if len(found.List)+len(found.Files) > 0 && wire.Refused(err) && !errors.Is(err, store.ErrNotFound) { // it may still accept text
		po.o.Log.Warn("Discord does not take the images of a call", "message", m.ID, "err", err)
		return po.Put(ctx, at, m.ID, view.Notice(found.Text(w)+"\n"+w.Say(phrases.CardNoFile), rows...))
	}
	return id, err
}

// Files returns images and other files as attachments.
func Files(images bots.Images) (files []wire.File) {
	for _, f := range slices.Concat(images.List, images.Files) {
		files = append(files, wire.File{Name: f.Name, Data: f.Data})
	}
	return files
}

// isImagesOf reports whether a message shows a call's images.
func isImagesOf(m incoming.Message, call string) bool {
	return len(m.Attachments) > 0 && strings.HasPrefix(m.Attachments[0].Filename, bots.ImageName(call)) ||
		len(m.Embeds) > 0 && strings.HasSuffix(m.Embeds[0].Footer.Text, " · "+call) ||
		view.IsNotice(m.Content) && len(buttonsOf(m)) == 0 && strings.Contains(m.Content, call)
}

// Shared reports whether more than one person may read messages there.
func Shared(at store.Address) bool { return !at.Direct }
