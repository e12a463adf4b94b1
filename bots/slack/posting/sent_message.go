package posting

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/outbox"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Finding nize's own messages whose post got no response before the process ended. A card
// contains its call's id; nize's own texts and the lines about tools carry their id in a
// block. A streaming text can't carry a mark: it is the message that no record accounts
// for.

// Find returns the place of m in a thread, see [outbox.Finder].
func (ms *messages) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	return ms.sent.Find(ctx, in, m)
}

// Sent implements [outbox.Lister].
func (ms *messages) Sent(ctx context.Context, in store.Address, since time.Time, after string) ([]outbox.SentMessage, error) {
	oldest := "0"
	if !since.IsZero() {
		oldest = view.Stamp(since)
	}
	list, err := ms.List(ctx, in, max(oldest, after))
	if err != nil {
		return nil, err
	}
	var out []outbox.SentMessage
	for _, m := range list {
		if m.User == ms.self && m.Timestamp != in.Thread && m.Timestamp >= oldest && m.Timestamp > after {
			out = append(out, outbox.SentMessage{ID: m.Timestamp, Text: view.IsText(m), Is: func(want store.Message) bool { return isPostOf(m, want) }})
		}
	}
	return out, nil
}

// isPostOf reports whether a message is the post of a card, a notice or a line about tools.
func isPostOf(m slackgo.Message, want store.Message) bool {
	if want.Card != nil && want.Kind == store.CardMessage {
		return strings.Contains(m.Text, "\n") && strings.Contains(m.Text, want.Card.Call) && !view.IsMarked(m)
	}
	if name, ok := outbox.FileName(want.ID); ok {
		return slices.ContainsFunc(m.Files, func(f slackgo.File) bool { return f.Name == name })
	}
	return view.Marked(m, view.BlockOf(want.ID))
}

// Withdraw implements [outbox.Withdrawer].
func (ms *messages) Withdraw(ctx context.Context, in store.Address, message string) error {
	return ms.deleteMessage(ctx, in, message)
}

// RepeatEdits repeats edits of messages that an earlier edit may still change, until ctx
// ends.
func (ms *messages) RepeatEdits(ctx context.Context) { ms.sent.RepeatEdits(ctx) }

// RemoveDoubles removes messages that were posted twice, until ctx ends.
func (ms *messages) RemoveDoubles(ctx context.Context) { ms.sent.RemoveDoubles(ctx) }

// kept are Slack's error codes for a message that nize can never delete: it belongs to
// another installation of the app, or the workspace keeps all messages.
var kept = map[string]bool{"cant_delete_message": true, "compliance_exports_prevent_deletion": true}

// deleteMessage deletes a message. It succeeds if the message no longer exists, and also if
// it can never be deleted, because retrying would be useless.
func (ms *messages) deleteMessage(ctx context.Context, at store.Address, ts string) error {
	err := ms.wire.Call(ctx, func(ctx context.Context) error {
		_, _, err := ms.wire.API.DeleteMessageContext(ctx, at.Channel, ts)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case kept[wire.Code(err)]:
		ms.log.Warn("a message can't be deleted", "channel", at.Channel, "message", ts, "err", err)
		return nil
	}
	return err
}
