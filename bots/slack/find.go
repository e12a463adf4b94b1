package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

// Find implements [bots.Finder].
func (b *Bot) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	l, err := b.at(ctx, in)
	if err != nil {
		return in, err
	}
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
		places, err := l.placesOf(ctx, in, m.ID)
		if err != nil {
			return in, err
		}
		known := namedBy(places)
		// By any clock that is right to a minute.
		oldest, is = view.Stamp(m.For.At.Add(-time.Minute)), func(posted slackgo.Message) bool { return view.IsText(posted) && !known[posted.Timestamp] }
	}
	list, err := l.list(ctx, in, oldest)
	if err != nil {
		return in, err
	}
	for _, posted := range list {
		if posted.User == l.account.User && posted.Timestamp != in.Thread && posted.Timestamp >= oldest && is(posted) {
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
func (l *live) ownerOf(ctx context.Context, at store.Address, text string) (string, error) {
	th, err := l.b.o.Store.FindThread(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		id, _, _ := strings.Cut(text, "/")
		th, err = l.b.o.Store.GetThread(ctx, id)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("finding a conversation: %w", err)
	}
	return th.ID, nil
}

// placesOf are the places that are noted with the text's conversation, none
// where it belongs to none.
func (l *live) placesOf(ctx context.Context, at store.Address, text string) (map[string]store.Address, error) {
	owner, err := l.ownerOf(ctx, at, text)
	if err != nil || owner == "" {
		return nil, err
	}
	places, err := l.b.o.Store.ListPlaces(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("reading where messages stand: %w", err)
	}
	return places, nil
}

// partName is the name under which a further message of a text is noted, by
// the place of its first one.
func partName(first string, n int) string { return "part/" + first + "/" + strconv.Itoa(n) }

// notePart notes where the next message of a text stands, before it is posted
// and after. The first one is noted by who shows the text.
func (l *live) notePart(ctx context.Context, at store.Address, t *writing, ts string) {
	n := len(t.parts)
	if n == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTime)
	defer cancel()
	owner, err := l.ownerOf(ctx, at, t.id)
	if err == nil && owner != "" {
		at.Message = ts
		err = l.b.o.Store.PutPlace(ctx, owner, partName(t.parts[0].ts, n), at)
	}
	if err != nil {
		l.log.Error("noting where a part of an answer stands", "err", err)
	}
}

// partsAt are the messages of a text that an earlier run wrote, the first one
// at at.Message. What they say is not known.
func (l *live) partsAt(ctx context.Context, at store.Address, text string) ([]part, error) {
	parts := []part{{ts: at.Message}}
	places, err := l.placesOf(ctx, at, text)
	if err != nil {
		return nil, err
	}
	for {
		p, ok := places[partName(at.Message, len(parts))]
		if !ok {
			return parts, nil
		}
		if p.Message == "" { // it was about to be posted
			if p.Message, err = l.unknownText(ctx, at, places); err != nil {
				return nil, err
			}
			if p.Message == "" {
				return parts, nil
			}
			l.notePart(ctx, at, &writing{id: text, parts: parts}, p.Message)
			places[partName(at.Message, len(parts))] = p
		}
		parts = append(parts, part{ts: p.Message})
	}
}

// unknownText is a text in a thread, newer than at.Message, that no place is
// noted of.
func (l *live) unknownText(ctx context.Context, at store.Address, places map[string]store.Address) (string, error) {
	list, err := l.list(ctx, at, at.Message)
	if err != nil {
		return "", err
	}
	known := namedBy(places)
	for _, m := range list {
		if m.User == l.account.User && m.Timestamp > at.Message && view.IsText(m) && !known[m.Timestamp] {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// Remove implements [bots.Remover].
func (b *Bot) Remove(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.at(ctx, at)
	if err != nil {
		return err
	}
	parts, err := l.partsAt(ctx, at, m.ID)
	if err != nil {
		return err
	}
	t := &writing{parts: parts, open: true}
	if err := l.closeStream(ctx, at, t, false); err != nil && !t.dirty {
		return err
	}
	t.id = m.ID
	return l.unpostFrom(ctx, at, t, 0)
}

// unpostFrom deletes the messages of a text from the nth on, the last first.
func (l *live) unpostFrom(ctx context.Context, at store.Address, t *writing, n int) error {
	for len(t.parts) > n {
		last := len(t.parts) - 1
		if err := l.unpost(ctx, at, t.parts[last].ts); err != nil {
			return err
		}
		if last > 0 {
			owner, err := l.ownerOf(ctx, at, t.id)
			if err == nil && owner != "" {
				err = l.b.o.Store.MovePlace(ctx, owner, partName(t.parts[0].ts, last), "", at)
			}
			if err != nil {
				return fmt.Errorf("forgetting a part of an answer: %w", err)
			}
		}
		t.parts = t.parts[:last]
	}
	return nil
}

// kept are Slack's answers where a message stays whatever nize does: it is of
// another installation of the app, or the workspace keeps everything.
var kept = map[string]bool{"cant_delete_message": true, "compliance_exports_prevent_deletion": true}

// unpost deletes a message; one that is gone is fine, and one that stays for
// good is no reason to try for ever.
func (l *live) unpost(ctx context.Context, at store.Address, ts string) error {
	err := l.wire.Call(ctx, func(ctx context.Context) error {
		_, _, err := l.wire.API.DeleteMessageContext(ctx, at.Channel, ts)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case kept[wire.Code(err)]:
		l.log.Warn("a message can't be deleted", "channel", at.Channel, "message", ts, "err", err)
		return nil
	}
	return err
}
