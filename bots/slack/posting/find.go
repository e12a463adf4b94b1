package posting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Finding nize's own messages again, whose post got no answer before the
// process ended. A card says which call it is about; nize's own words and the
// lines about tools carry their id in a block. A text can carry nothing while
// it streams: it is the message that nothing else accounts for.

// Find returns where m stands in a thread, see [bots.Finder].
func (b *messages) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	oldest, is := "0", func(posted slackgo.Message) bool { return view.Marked(posted, view.BlockOf(m.ID)) }
	switch {
	case m.Card != nil:
		is = func(posted slackgo.Message) bool {
			return strings.Contains(posted.Text, "\n") && strings.Contains(posted.Text, m.Card.Call)
		}
	case m.Kind == store.TextMessage:
		if m.For == nil || m.For.At.IsZero() {
			return in, store.ErrNotFound
		}
		places, err := b.placesOf(ctx, in, m.ID)
		if err != nil {
			return in, err
		}
		known := namedBy(places)
		// By any clock that is right to a minute.
		oldest, is = view.Stamp(m.For.At.Add(-time.Minute)), func(posted slackgo.Message) bool { return view.IsText(posted) && !known[posted.Timestamp] }
	}
	list, err := b.List(ctx, in, oldest)
	if err != nil {
		return in, err
	}
	for _, posted := range list {
		if posted.User == b.self && posted.Timestamp != in.Thread && posted.Timestamp >= oldest && is(posted) {
			in.Message = posted.Timestamp
			return in, nil
		}
	}
	return in, store.ErrNotFound
}

// namedBy are the messages that places name.
func namedBy(places map[string]store.Address) map[string]bool {
	known := map[string]bool{}
	for _, p := range places {
		known[p.Message] = true
	}
	return known
}

// ownerOf is the conversation that a text belongs to: the one at at, or where a
// person reads alone, that of the turn which the text is.
func (b *messages) ownerOf(ctx context.Context, at store.Address, text string) (string, error) {
	th, err := b.store.FindThread(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		id, _, _ := strings.Cut(text, "/")
		th, err = b.store.GetThread(ctx, id)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("finding a conversation: %w", err)
	}
	return th.ID, nil
}

// placesOf are the places that are noted with the text's conversation, none
// where it belongs to none.
func (b *messages) placesOf(ctx context.Context, at store.Address, text string) (map[string]store.Address, error) {
	owner, err := b.ownerOf(ctx, at, text)
	if err != nil || owner == "" {
		return nil, err
	}
	places, err := b.store.ListPlaces(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("reading where messages stand: %w", err)
	}
	return places, nil
}

// kept are Slack's answers where a message stays whatever nize does: it is of
// another installation of the app, or the workspace keeps everything.
var kept = map[string]bool{"cant_delete_message": true, "compliance_exports_prevent_deletion": true}

// unpost deletes a message; one that is gone is fine, and one that stays for
// good is no reason to try for ever.
func (b *messages) unpost(ctx context.Context, at store.Address, ts string) error {
	err := b.wire.Call(ctx, func(ctx context.Context) error {
		_, _, err := b.wire.API.DeleteMessageContext(ctx, at.Channel, ts)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case kept[wire.Code(err)]:
		b.log.Warn("a message can't be deleted", "channel", at.Channel, "message", ts, "err", err)
		return nil
	}
	return err
}
