package bots

import (
	"context"
	"log/slog"
	"time"

	"nize/store"
)

// Channels reads channel settings; [store.Channels] implements it.
type Channels interface {
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// Spoken returns the locale of a thread: the channel's if it has one, otherwise that of the
// thread's owner. Private messages use the reader's own locale instead. If channels is nil
// or the channel can't be read, the owner's locale is used.
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

// Readers is what [ReaderAt] needs to determine a thread's reader.
type Readers struct {
	Threads interface {
		Channels
		FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	}
	Now func() time.Time
	Log *slog.Logger
	// Alone returns the language and time zone of a thread's only reader, "" if unknown.
	Alone func() (locale, zone string, err error)
}

// ReaderAt returns the reader of a thread, English if unknown.
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

// Zone returns a time zone by name; nil is UTC.
func Zone(name string) *time.Location {
	if z, err := time.LoadLocation(name); err == nil && name != "" {
		return z
	}
	return nil
}

// spoken returns the [Spoken] locale with the conversation's channels.
func (c *Conversation) spoken(ctx context.Context, th store.Thread) string {
	locale, err := Spoken(ctx, c.o.Channels, th)
	if err != nil {
		c.logUnlessEnded(ctx, "reading how a channel is set up", err)
	}
	return locale
}
