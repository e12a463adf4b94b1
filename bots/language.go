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
// theirs. A channel that can't be read, or a nil channels, has none.
func Spoken(ctx context.Context, channels Channels, th store.Thread) (string, error) {
	if channels == nil || !th.Address.Shared() {
		return th.Locale, nil
	}
	channel, err := channels.GetChannel(ctx, th.Address.Place())
	if err != nil {
		return th.Locale, err
	}
	return channel.LocaleFor(th), nil
}

// spoken is [UserText] in a conversation's channels.
func (c *Conversation) spoken(ctx context.Context, th store.Thread) string {
	locale, err := Spoken(ctx, c.o.Channels, th)
	if err != nil {
		c.logUnlessEnded(ctx, "reading how a channel is set up", err)
	}
	return locale
}
