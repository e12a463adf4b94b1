package slack

import (
	"context"
	"errors"
	"fmt"

	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// pressShare shares an answer; whose it is the store knows.
func (t *talk) pressShare(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error {
	thread, n, ok := view.ReadShare(a.Value)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	err := t.handler.Share(ctx, p.Caller(), thread, n)
	switch {
	case errors.Is(err, store.ErrDecided):
		return nil // it says so where the button was
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound):
		return t.posts.Tell(ctx, p, i.Channel.ID, i.Message.Thread, p.Words().Say(phrases.ShareNotYours))
	}
	return err
}
