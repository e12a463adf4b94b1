package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/store"
	"time"
)

// What was missed while there was no session is fetched: from the threads and
// channels where nize was addressed lately, and from people's own channels with
// it. What was taken before is known by its id.
const (
	missedSpan  = 24 * time.Hour
	activeSpan  = 7 * 24 * time.Hour
	maxMissed   = 100
	maxThreads  = 1000 // conversations that are looked at for where that is
	catchUpWait = 5 * time.Second
)

// keepCatchingUp fetches what was missed, whenever a session began anew.
func (l *live) keepCatchingUp(ctx context.Context) {
	for {
		select {
		case <-l.caughtUp:
		case <-ctx.Done():
			return
		}
		if err := l.catchUp(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("fetching what was missed; it is tried again", "err", err)
			if l.wire.Wait(ctx, catchUpWait) != nil {
				return
			}
			select {
			case l.caughtUp <- struct{}{}:
			default:
			}
		}
	}
}

// catchUp fetches it once.
func (l *live) catchUp(ctx context.Context) error {
	now := l.b.o.Now()
	since := now.Add(-missedSpan)
	if l.account.Connected.After(since) {
		since = l.account.Connected
	}
	list, err := l.b.o.Store.Threads.ListThreads(ctx, "", maxThreads)
	if err != nil {
		return fmt.Errorf("listing conversations: %w", err)
	}
	after := map[string]string{} // by channel, behind which message
	look := func(channel, last string) {
		from := incoming.IDAt(since)
		if incoming.Later(last, from) {
			from = last
		}
		if have, ok := after[channel]; channel != "" && (!ok || incoming.Later(have, from)) {
			after[channel] = from
		}
	}
	for _, th := range list {
		at := th.Address
		if at.Surface != store.OnDiscord || at.Team != l.guild || now.Sub(th.Updated) > activeSpan {
			continue
		}
		look(at.Channel, "")
		if !at.Direct {
			look(at.Thread, th.LastMessage)
		}
	}
	for channel, from := range after {
		missed, err := l.posts.List(ctx, channel, from, maxMissed)
		if wire.Refused(err) || errors.Is(err, store.ErrNotFound) {
			continue // nize does not see it any more
		}
		if err != nil {
			return err
		}
		c, err := l.people.Channel(ctx, channel)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, m := range missed {
			if !c.Direct() {
				m.Guild = l.guild // which lists don't tell
			}
			raw, err := json.Marshal(m)
			if err != nil {
				return fmt.Errorf("encoding a message: %w", err)
			}
			stored := make(chan bool, 1) // so that a late one leaves
			l.dispatch(ctx, "MESSAGE_CREATE", raw, func(ok bool) {
				select {
				case stored <- ok:
				default:
				}
			})
			select {
			case ok := <-stored:
				if !ok {
					return fmt.Errorf("storing a message that was missed: %w", store.ErrConflict)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
