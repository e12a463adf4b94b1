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

// After an interruption, nize fetches missed messages: from the threads and channels in
// which it was addressed recently, and from direct conversations. Messages that were
// accepted before are recognized by their ids.
//
// A new session also delivers new messages at once. So that older messages of a
// conversation are processed first, its lane is held from the session's start until its
// channel was searched, and messages are placed in the lane by their ids.
const (
	missedSpan  = 24 * time.Hour
	activeSpan  = 7 * 24 * time.Hour
	maxMissed   = 100
	maxThreads  = 1000 // conversations that are considered
	catchUpWait = 5 * time.Second
)

// missed fetches missed messages.
type missed struct {
	*live
	wanted chan struct{} // capacity 1: requests a search

	mu   sync.Mutex // guards held
	held heldLanes  // lanes held since the last fetch began
}

// heldLanes has the functions that release lanes, keyed by channel.
type heldLanes map[string][]func()

func (h heldLanes) release(channel string) {
	for _, f := range h[channel] {
		f()
	}
}

// search is a channel that may have missed messages.
type search struct {
	channel string
	after   string // id of the last known message
	talk    bool   // the channel is a single conversation, so it has a lane
}

// begin records that a new session began, and holds the lanes that may lag behind. The
// session's events wait for it.
func (m *missed) begin(ctx context.Context) {
	searches, err := m.searches(ctx)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("looking where something may have been missed", "err", err) // fetch will try again
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

// keepFetching fetches missed messages whenever a new session began.
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

// searches returns the channels to search, most recently active first.
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

// fetch fetches once. If it fails, it releases the lanes, because holding them longer would
// not help.
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

// fetchFrom accepts the missed messages of one channel.
func (m *missed) fetchFrom(ctx context.Context, s *search) error {
	list, err := m.posts.List(ctx, s.channel, s.after, maxMissed)
	if wire.Refused(err) || errors.Is(err, store.ErrNotFound) {
		return nil // nize can no longer see it
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
		if !incoming.Direct(c) {
			sent.GuildID = m.guild // not included in lists
		}
		raw, err := json.Marshal(sent)
		if err != nil {
			return fmt.Errorf("encoding a message: %w", err)
		}
		stored := make(chan bool, 1) // one slot, so that a late result doesn't block its sender
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
