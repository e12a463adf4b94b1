package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/store"
)

// Which messages that don't address nize it answers.

// channelMode is what a channel says about that. What can't be read keeps quiet.
func (t *talk) channelMode(ctx context.Context, channel string) string {
	c, err := t.store.GetChannel(ctx, place(t.team, channel, "").Place())
	if err != nil {
		t.log.Error("reading how a channel is set up", "channel", channel, "err", err)
		return store.ModeMention
	}
	return c.EffectiveMode()
}

// answersUnaddressed says whether a message that does not address nize is for it all the
// same: in follow mode, if its author was the last to address nize, mentions
// nobody else, and nobody else has written since. Who writes ends following
// whatever the mode is, and also in a muted thread.
func (t *talk) answersUnaddressed(ctx context.Context, e *incoming.Event, th store.Thread, known bool) (bool, error) {
	if th.Follows != e.User {
		if err := t.setFollowed(ctx, th, ""); err != nil {
			return false, err
		}
	}
	if incoming.Broadcasts(&e.Message) || th.Muted {
		return false, nil
	}
	switch t.channelMode(ctx, e.Channel) {
	case store.ModeAll:
		return true, nil
	case store.ModeMention:
		return false, nil
	}
	return known && th.Follows == e.User && !incoming.Others(&e.Message, t.self), nil
}

// setFollowed lets nize follow another in a thread, "" for nobody.
func (t *talk) setFollowed(ctx context.Context, th store.Thread, user string) error {
	if th.ID == "" || th.Follows == user {
		return nil
	}
	_, err := t.store.EditThread(ctx, store.System, th.ID, func(th *store.Thread) { th.Follows = user })
	return err
}
