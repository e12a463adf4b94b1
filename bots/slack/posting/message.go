package posting

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/outbox"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// messages handles all messages except streamed texts. It posts them once, even if a
// response was lost, and edits, finds and deletes them.
type messages struct {
	wire   *wire.Client
	people *people.Directory
	store  Store
	status *statusLines // of threads; a post removes them
	now    func() time.Time
	log    *slog.Logger
	team   string // the workspace
	self   string // nize's own user id
	sent   *outbox.Sent
}

// fixed are Slack's error codes for a message that can never be edited: its blocks can't be
// replaced, or the workspace forbids edits.
var fixed = map[string]bool{"block_mismatch": true, "cant_update_message": true, "edit_window_closed": true}

// deleteUneditable deletes the message whose edit failed with err, if Slack never allows
// its edit, so that a new one can replace it.
func (ms *messages) deleteUneditable(ctx context.Context, at store.Address, err error) error {
	if !fixed[wire.Code(err)] {
		return err
	}
	ms.log.Info("a message can't be edited; another takes its place", "channel", at.Channel, "message", at.Message, "err", err)
	if undone := ms.deleteMessage(ctx, at, at.Message); undone != nil {
		return undone
	}
	return fmt.Errorf("%w: %w", store.ErrNotFound, err)
}

// Put posts a message, or edits the one at at.Message.
func (ms *messages) Put(ctx context.Context, at store.Address, id string, c view.Content) (string, error) {
	if at.Message != "" {
		return at.Message, ms.deleteUneditable(ctx, at, ms.edit(ctx, at.Channel, at.Message, c.Edit...))
	}
	options := append([]slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, c.Post...)
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	ts, found, err := ms.sent.Post(ctx, at, id, func(ctx context.Context) (string, error) {
		return ms.wire.Post(ctx, at.Channel, options...)
	}, wire.Unsure)
	if err == nil {
		ms.status.posted(at, ms.now())
	}
	if err == nil && found { // it may show an older state
		if err = ms.edit(ctx, at.Channel, ts, c.Edit...); err == nil {
			ms.sent.Settle(at, id, ts)
		}
	}
	return ts, err
}

// edit replaces a message after any other edit of it.
func (ms *messages) edit(ctx context.Context, channel, ts string, options ...slackgo.MsgOption) error {
	return ms.sent.Edit(ctx, store.Address{Channel: channel, Message: ts}, func(ctx context.Context) error {
		return ms.wire.Edit(ctx, channel, ts, options...)
	}, wire.Unsure)
}

// maxPages limits how far back a thread is read.
const maxPages = 10

// List returns the newest messages of a thread, or of a channel outside threads.
func (ms *messages) List(ctx context.Context, at store.Address, oldest string) (list []slackgo.Message, err error) {
	cursor := ""
	for range maxPages {
		more := false
		err := ms.wire.Call(ctx, func(ctx context.Context) error {
			if at.Thread == "" {
				h, err := ms.wire.API.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: at.Channel, Oldest: oldest, Limit: 200, Cursor: cursor})
				if err == nil {
					list, more, cursor = append(list, h.Messages...), h.HasMore, h.ResponseMetaData.NextCursor
				}
				return err
			}
			page, again, next, err := ms.wire.API.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: at.Channel, Timestamp: at.Thread, Oldest: oldest, Limit: 200, Cursor: cursor})
			list, more, cursor = append(list, page...), again, next
			return err
		})
		if err != nil || !more || cursor == "" {
			return list, err
		}
	}
	return list, nil
}
