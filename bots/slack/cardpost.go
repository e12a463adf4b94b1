package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// noFile marks, as a place, a file that Slack did not take.
const noFile = "none"

// showCard posts a card, with the file of long arguments before it, or edits it.
func (l *live) showCard(ctx context.Context, at store.Address, m store.Message) (string, error) {
	l.lines.close(at.Channel + "/" + at.Thread)
	var file view.ArgsFile
	if view.Long(*m.Card) {
		var err error
		if file, err = l.attach(ctx, at, *m.Card); err != nil {
			return "", err
		}
	}
	c := view.RenderCard(*m.Card, l.reader(ctx, at), file)
	note := l.noteOf(m.Card.Call, at)
	if stands, err := note.is(ctx, c); err != nil || stands {
		return at.Message, err
	}
	ts, err := l.put(ctx, at, m.ID, c.Content())
	if tooMuch[wire.Code(err)] {
		ts, err = l.showNarrow(ctx, at, m, file)
	}
	if err == nil {
		note.put(ctx, ts, c)
	}
	return ts, err
}

// tooMuch are Slack's answers where a message is longer than it takes.
var tooMuch = map[string]bool{"msg_blocks_too_long": true, "msg_too_long": true, "invalid_blocks": true}

// showNarrow is showCard where Slack refused what it takes by its reference.
func (l *live) showNarrow(ctx context.Context, at store.Address, m store.Message, file view.ArgsFile) (string, error) {
	l.log.Info("a card is too much for Slack; it is made shorter", "call", m.Card.Call)
	if file.Name == "" && len(m.Card.Args) > view.Narrow.Args {
		var err error
		if file, err = l.attach(ctx, at, *m.Card); err != nil {
			return "", err
		}
	}
	return l.put(ctx, at, m.ID, view.RenderCardIn(*m.Card, l.reader(ctx, at), file, view.Narrow).Content())
}

// attach puts the arguments as a file where the card stands, once for a call
// and place.
func (l *live) attach(ctx context.Context, at store.Address, card store.Card) (view.ArgsFile, error) {
	file := view.ArgsFile{Name: view.FileName(card)}
	owner, id := card.Call, "file/"+at.Channel // a copy is in no conversation
	if at.Thread != "" {
		th, err := l.b.o.Store.FindThread(ctx, at)
		if err != nil {
			return file, fmt.Errorf("finding the conversation of a file: %w", err)
		}
		owner, id = th.ID, "file/"+card.Call
	}
	place, err := l.b.o.Store.GetPlace(ctx, owner, id)
	if err == nil {
		file.Failed = place.Message == noFile
		return file, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return file, err
	}
	place = at
	place.Message, err = l.upload(ctx, at, file.Name, string(card.Args))
	if err != nil {
		if wire.Code(err) == "" { // it may pass by itself; the card waits for it
			return file, fmt.Errorf("attaching the arguments: %w", err)
		}
		l.log.Warn("Slack does not take the file of a call's arguments", "call", card.Call, "err", err)
		place.Message, file.Failed = noFile, true
	}
	return file, l.b.o.Store.PutPlace(ctx, owner, id, place)
}

// upload puts a file into a thread, or a channel, and returns its id.
func (l *live) upload(ctx context.Context, at store.Address, name, content string) (id string, err error) {
	err = l.wire.Call(ctx, func(ctx context.Context) error {
		f, err := l.wire.API.UploadFileContext(ctx, slackgo.UploadFileParameters{
			Filename: name, Title: name, FileSize: len(content), Reader: strings.NewReader(content), Channel: at.Channel, ThreadTimestamp: at.Thread,
		})
		if err == nil {
			id = f.ID
		}
		return err
	})
	return id, err
}
