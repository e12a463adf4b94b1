package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/store"
)

// What was missed while there was no session is fetched: from the threads and
// channels where nize was addressed lately, and from people's own channels with
// it. What was taken before is known by its id.
//
// A fresh session also brings what is written from now on, at once. So that of one
// conversation the earlier is worked on first, its lane is held from the session's
// beginning until its channel was looked through, and messages have their places
// there by their ids.
const (
	missedSpan  = 24 * time.Hour
	activeSpan  = 7 * 24 * time.Hour
	maxMissed   = 100
	maxThreads  = 1000 // conversations that are looked at for where that is
	catchUpWait = 5 * time.Second
)

// missed fetches what was missed.
type missed struct {
	*live
	wanted chan struct{} // holds one: there is to be looked

	mu   sync.Mutex // guards held
	held heldLanes  // since the last fetch began
}

// heldLanes release lanes, by channel.
type heldLanes map[string][]func()

func (h heldLanes) release(channel string) {
	for _, f := range h[channel] {
		f()
	}
}

// search is a channel in which something may have been missed.
type search struct {
	channel string
	after   string // behind which message
	talk    bool   // it is one conversation, and so has a lane
}

// begin notes that a session began anew, and holds what it may be behind with. The
// session's events wait for it.
func (m *missed) begin(ctx context.Context) {
	searches, err := m.searches(ctx)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("looking where something may have been missed", "err", err) // and again when it is fetched
	}
	m.mu.Lock()
	if m.held == nil {
		m.held = heldLanes{}
	}
	for _, s := range searches {
		if s.talk {
			m.held[s.channel] = append(m.held[s.channel], m.lanes.Hold(s.channel))
		}
	}
	m.mu.Unlock()
	m.want()
}

func (m *missed) want() {
	select {
	case m.wanted <- struct{}{}:
	default:
	}
}

// keepFetching fetches what was missed, whenever a session began anew.
func (m *missed) keepFetching(ctx context.Context) {
	for {
		select {
		case <-m.wanted:
		case <-ctx.Done():
			return
		}
		if err := m.fetch(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("fetching what was missed; it is tried again", "err", err)
			if m.wire.Wait(ctx, catchUpWait) != nil {
				return
			}
			m.want()
		}
	}
}

// searches are where to look, first where something happened last.
func (m *missed) searches(ctx context.Context) (list []*search, err error) {
	now := m.b.o.Now()
	since := now.Add(-missedSpan)
	if m.account.Connected.After(since) {
		since = m.account.Connected
	}
	threads, err := m.b.o.Store.Threads.ListThreads(ctx, "", maxThreads)
	if err != nil {
		return nil, fmt.Errorf("listing conversations: %w", err)
	}
	slices.SortStableFunc(threads, func(a, b store.Thread) int { return b.Updated.Compare(a.Updated) })
	known := map[string]*search{}
	look := func(channel, last string, talk bool) {
		if from := incoming.IDAt(since); !incoming.Later(last, from) {
			last = from
		}
		s := known[channel]
		switch {
		case channel == "":
		case s == nil:
			s = &search{channel, last, talk}
			known[channel], list = s, append(list, s)
		case incoming.Later(s.after, last):
			s.after = last
		}
	}
	for _, th := range threads {
		at := th.Address
		if at.Surface != store.OnDiscord || at.Team != m.guild || now.Sub(th.Updated) > activeSpan {
			continue
		}
		look(at.Channel, "", at.Direct)
		if !at.Direct {
			look(at.Thread, th.LastMessage, true)
		}
	}
	return list, nil
}

// fetch fetches it once. What fails releases the lanes: to wait longer would help
// nobody.
func (m *missed) fetch(ctx context.Context) error {
	m.mu.Lock()
	held := m.held
	m.held = nil
	m.mu.Unlock()
	defer func() {
		for channel := range held {
			held.release(channel)
		}
	}()
	searches, err := m.searches(ctx)
	if err != nil {
		return err
	}
	for _, s := range searches {
		if err := m.fetchFrom(ctx, s); err != nil {
			return err
		}
		held.release(s.channel)
	}
	return nil
}

// fetchFrom takes what was missed in one channel.
func (m *missed) fetchFrom(ctx context.Context, s *search) error {
	list, err := m.posts.List(ctx, s.channel, s.after, maxMissed)
	if wire.Refused(err) || errors.Is(err, store.ErrNotFound) {
		return nil // nize does not see it any more
	}
	if err != nil {
		return err
	}
	c, err := m.people.Channel(ctx, s.channel)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, sent := range list {
		if !c.Direct() {
			sent.Guild = m.guild // which lists don't tell
		}
		raw, err := json.Marshal(sent)
		if err != nil {
			return fmt.Errorf("encoding a message: %w", err)
		}
		stored := make(chan bool, 1) // so that a late one leaves
		m.dispatch(ctx, "MESSAGE_CREATE", raw, func(ok bool) {
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
	return nil
}
