package bots

import (
	"context"

	"nize/store"
)

// Channels tells how channels are set up; [store.Channels] has it.
type Channels interface {
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// Spoken is the locale in which nize speaks in a thread: the channel's where it
// has one, else that of who began the thread. What one person reads alone is in
// theirs. A channel that can't be read, or a nil rooms, has none.
func Spoken(ctx context.Context, rooms Channels, th store.Thread) (string, error) {
	if rooms == nil || !th.Address.Shared() {
		return th.Locale, nil
	}
	room, err := rooms.GetChannel(ctx, th.Address.Place())
	if err != nil {
		return th.Locale, err
	}
	return room.LocaleFor(th), nil
}

// spoken is [UserText] in a conversation's rooms.
func (c *Conversation) spoken(ctx context.Context, th store.Thread) string {
	locale, err := Spoken(ctx, c.o.Channels, th)
	if err != nil {
		c.logUnlessEnded(ctx, "reading how a channel is set up", err)
	}
	return locale
}
