package posting

import (
	"context"
	"errors"
	"fmt"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// noFile is stored as the place of a file that Slack rejected.
const noFile = "none"

// cards posts and edits cards.
type cards struct {
	messages *messages
	lines    *toolLines
}

// showCard posts a card, preceded by the file of long arguments, or edits it.
func (cs *cards) showCard(ctx context.Context, at store.Address, m store.Message) (string, error) {
	cs.lines.End(at.Channel + "/" + at.Thread)
	var file view.ArgsFile
	if view.Long(*m.Card) {
		var err error
		if file, err = cs.attach(ctx, at, *m.Card); err != nil {
			return "", err
		}
	}
	r := cs.readerOf(ctx, at, *m.Card)
	c := view.RenderCard(*m.Card, r, file)
	note := outbox.Digest{Store: cs.messages.store, Log: cs.messages.log, Call: m.Card.Call, At: at}
	if stands, err := note.Is(ctx, c.Edited, c.Blocks); err != nil || stands {
		return at.Message, err
	}
	ts, err := cs.messages.Put(ctx, at, m.ID, c.Content())
	if tooMuch[wire.Code(err)] {
		ts, err = cs.showNarrow(ctx, at, m, narrow{r, file})
	}
	if err == nil {
		note.Put(ctx, ts, c.Edited, c.Blocks)
	}
	return ts, err
}

// tooMuch are Slack's error codes for a message that is too long.
var tooMuch = map[string]bool{"msg_blocks_too_long": true, "msg_too_long": true, "invalid_blocks": true}

// readerOf returns the reader of a card. A reader outside the call's conversation, such as
// an approver, gets a link to it.
func (cs *cards) readerOf(ctx context.Context, at store.Address, card store.Card) bots.Reader {
	r := cs.messages.Reader(ctx, at)
	r.At = at
	from := card.In
	if card.State == store.Pending && from.Surface == store.OnSlack && from.Thread != "" && (from.Channel != at.Channel || from.Thread != at.Thread) {
		r.Link = cs.messages.Permalink(ctx, from)
	}
	return r
}

// narrow has the further inputs for a shortened card.
type narrow struct {
	reader bots.Reader
	file   view.ArgsFile
}

// showNarrow retries showCard with a shorter card after Slack refused one within its
// documented limits.
func (cs *cards) showNarrow(ctx context.Context, at store.Address, m store.Message, n narrow) (string, error) {
	cs.messages.log.Info("a card is too much for Slack; it is made shorter", "call", m.Card.Call)
	if n.file.Name == "" && len(m.Card.Args) > view.Narrow.Args {
		var err error
		if n.file, err = cs.attach(ctx, at, *m.Card); err != nil {
			return "", err
		}
	}
	return cs.messages.Put(ctx, at, m.ID, view.RenderCardIn(*m.Card, n.reader, n.file, view.Narrow).Content())
}

// attach uploads the arguments as a file beside the card, once per call and place.
func (cs *cards) attach(ctx context.Context, at store.Address, card store.Card) (view.ArgsFile, error) {
	file := view.ArgsFile{Name: view.FileName(card)}
	owner, id := card.Call, "file/"+at.Channel // a copy belongs to no conversation
	if at.Thread != "" {
		switch th, err := cs.messages.store.FindThread(ctx, at); {
		case err == nil:
			owner, id = th.ID, "file/"+card.Call
		case !errors.Is(err, store.ErrNotFound): // for example the thread of a coding agent's session
			return file, fmt.Errorf("finding the conversation of a file: %w", err)
		}
	}
	place, err := cs.messages.store.GetPlace(ctx, owner, id)
	if err == nil {
		file.Failed = place.Message == noFile
		return file, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return file, err
	}
	place = at
	place.Message, err = cs.messages.uploadOnce(ctx, at, card.Call, upload{Name: file.Name, Data: card.Args})
	if err != nil {
		if wire.Code(err) == "" { // it may be temporary; the card waits for it
			return file, fmt.Errorf("attaching the arguments: %w", err)
		}
		cs.messages.log.Warn("Slack does not take the file of a call's arguments", "call", card.Call, "err", err)
		place.Message, file.Failed = noFile, true
	}
	return file, cs.messages.store.PutPlace(ctx, owner, id, place)
}
