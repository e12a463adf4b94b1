package posting

import (
	"context"

	"nize/bots"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Announce says something of nize's own that is a part of no conversation, see
// [bots.Announcer].
func (ms *messages) Announce(ctx context.Context, at store.Address, a bots.Announcement) (string, error) {
	m := store.Message{ID: "tell/" + a.Channel + "/" + a.ID, Kind: store.NoticeMessage, Text: a.Text}
	if at.Message == "" && !a.Since.IsZero() {
		list, err := ms.Sent(ctx, at, a.Since, "")
		if err != nil && wire.Code(err) == "" {
			return "", err
		}
		// Where nize may write and not read, it is said once more rather than not.
		for _, sent := range list {
			if sent.Is(m) {
				at.Message = sent.ID
			}
		}
	}
	return ms.Put(ctx, at, m.ID, view.Notice(m))
}
