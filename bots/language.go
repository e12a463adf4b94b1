package bots

import (
	"context"
	"log/slog"
	"time"

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

// Readers is what is needed to find out for whom a thread is written.
type Readers struct {
	Threads interface {
		Channels
		FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	}
	Now func() time.Time
	Log *slog.Logger
	// Alone is the language and the time zone of who reads somewhere alone, "" for
	// what is not known.
	Alone func() (locale, zone string, err error)
}

// ReaderAt is for whom a thread is written. Where that can't be found out it is
// written in English.
func ReaderAt(ctx context.Context, o Readers, at store.Address) Reader {
	r := Reader{Now: o.Now()}
	zone := ""
	th, err := o.Threads.FindThread(ctx, at)
	if err == nil {
		zone = th.Zone
		r.Locale, err = Spoken(ctx, o.Threads, th)
	} else {
		r.Locale, zone, err = o.Alone()
	}
	if err != nil {
		o.Log.Warn("finding out who reads a conversation", "channel", at.Channel, "err", err)
	}
	r.Zone = Zone(zone)
	return r
}

// Zone is a time zone by its name; nil is UTC.
func Zone(name string) *time.Location {
	if z, err := time.LoadLocation(name); err == nil && name != "" {
		return z
	}
	return nil
}

// spoken is [UserText] in a conversation's channels.
func (c *Conversation) spoken(ctx context.Context, th store.Thread) string {
	locale, err := Spoken(ctx, c.o.Channels, th)
	if err != nil {
		c.logUnlessEnded(ctx, "reading how a channel is set up", err)
	}
	return locale
}
