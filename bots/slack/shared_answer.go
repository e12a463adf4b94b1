package slack

import (
	"context"
	"fmt"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// pressShare shares an answer; the store checks that it belongs to the caller.
func (c *cardPresses) pressShare(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	thread, n, ok := view.ReadShare(a.Value)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	told, err := c.Share(ctx, p.Caller(), thread, n, p.Words())
	if told != "" {
		return c.posts.Tell(ctx, p, i.Channel.ID, i.Message.ThreadTimestamp, told)
	}
	return err
}
