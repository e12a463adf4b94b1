package posting

import (
	"context"

	"nize/bots"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Announce posts a message outside conversations, see [bots.Announcer].
func (ms *messages) Announce(ctx context.Context, at store.Address, a bots.Announcement) (string, error) {
	m := store.Message{ID: "tell/" + a.Channel + "/" + a.ID, Kind: store.NoticeMessage, Text: a.Text}
	if at.Message == "" && !a.Since.IsZero() {
		found, err := ms.sent.FindSince(ctx, at, m, a.Since)
		if err != nil && wire.Code(err) == "" {
			return "", err
		}
		at.Message = found // if nize may write but not read there, a duplicate is better than no message
	}
	if at.Message != "" {
		ms.sent.Know(at.Message)
	}
	return ms.Put(ctx, at, m.ID, view.Notice(m))
}
