package web

import (
	"context"
	"slices"
	"strings"
	"sync"

	"nize/bots/outbox"
	"nize/store"
)

// Limits for events that wait for a slow tab; if they are exceeded, it gets the whole state
// again.
const (
	maxEvents = 256
	maxBytes  = 1 << 20
)

// Kinds of an [Event].
const (
	Whole  = "whole"  // reload everything: at the start, after a gap, and if too many events waited
	Shown  = "shown"  // Message is new or changed
	Gone   = "gone"   // another message replaced that of Message.ID
	State  = "state"  // State is the conversation's new state
	Title  = "title"  // the conversation's record changed
	Calls  = "calls"  // the pending calls changed, or who may approve them
	Rights = "rights" // the tab's session or person changed: check if it may continue
)

// Event is a change sent to a tab.
type Event struct {
	Kind    string
	Message Message
	State   outbox.State
	// Appended reports that Message.Text continues what this tab has of it, which is Had
	// bytes long.
	Appended bool
	Had      int
}

// Follower is one tab. If something changes several times before the tab reads it, it gets
// only the latest state.
type Follower struct {
	platform *Platform
	Tab

	mu    sync.Mutex // guards the fields below; locked after Platform.mu
	whole bool
	queue []Event
	bytes int
	sent  map[string]string // unfinished texts, as the tab has them
	poke  chan struct{}     // capacity 1: an event was queued
}

// Tab says what a [Follower] follows, and for whom.
type Tab struct {
	Thread  string // the conversation, or "" for none
	User    string
	Session string // id of the token with which the person is signed in
	// Elsewhere is set if the conversation is on another surface. Each change of such a
	// conversation is reported as [Whole].
	Elsewhere bool
}

// Follow follows a conversation for a person; the first event is [Whole]. The caller must
// close the follower.
func (p *Platform) Follow(tab Tab) *Follower {
	f := &Follower{platform: p, Tab: tab, poke: make(chan struct{}, 1)}
	f.Resync()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.followers[tab.Thread] == nil {
		p.followers[tab.Thread] = map[*Follower]struct{}{}
	}
	p.followers[tab.Thread][f] = struct{}{}
	return f
}

// Close ends it.
func (f *Follower) Close() {
	p := f.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.followers[f.Thread], f)
	if len(p.followers[f.Thread]) == 0 {
		delete(p.followers, f.Thread)
	}
}

// Resync makes [Whole] the next event.
func (f *Follower) Resync() {
	f.mu.Lock()
	f.whole, f.queue, f.bytes = true, nil, 0
	f.mu.Unlock()
	f.wake()
}

func (f *Follower) wake() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// tell queues an event and drops those that it replaces.
func (f *Follower) tell(e Event) {
	f.mu.Lock()
	defer f.wake()
	defer f.mu.Unlock()
	same := func(o Event) bool { return o.Kind == e.Kind && o.Message.ID == e.Message.ID }
	if i := slices.IndexFunc(f.queue, same); i >= 0 {
		f.bytes -= f.size(f.queue[i])
		if e.Kind == Shown { // keep its position among the others
			f.queue[i] = e
			f.bytes += f.size(e)
			return
		}
		f.queue = slices.Delete(f.queue, i, i+1)
	}
	f.queue = append(f.queue, e)
	if f.bytes += f.size(e); len(f.queue) > maxEvents || f.bytes > maxBytes {
		f.whole, f.queue, f.bytes = true, nil, 0
	}
}

// size estimates the size of an event on the wire.
func (f *Follower) size(e Event) int {
	n := 200
	if more, ok := strings.CutPrefix(e.Message.Text, f.sent[e.Message.ID]); ok {
		n += len(more)
	} else {
		n += len(e.Message.Text)
	}
	if c := e.Message.Card; c != nil {
		n += len(c.Args) + len(c.Description) + len(c.Why)
	}
	return n
}

// Next waits for the next event; the only error is ctx's.
func (f *Follower) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok := f.next(); ok {
			return e, nil
		}
		select {
		case <-f.poke:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

func (f *Follower) next() (e Event, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.whole {
		return Event{Kind: Whole}, true
	}
	if len(f.queue) == 0 {
		return e, false
	}
	e = f.queue[0]
	f.bytes -= f.size(e)
	f.queue = f.queue[1:]
	if m := e.Message; e.Kind == Shown && m.Kind == store.TextMessage {
		before, known := f.sent[m.ID]
		e.Appended, e.Had = known && !m.Final && strings.HasPrefix(m.Text, before), len(before)
		if delete(f.sent, m.ID); !m.Final {
			f.sent[m.ID] = m.Text
		}
	}
	return e, true
}

// Snapshot returns the content for [Whole] that the store doesn't have. It goes after what
// the store has, which the caller reads afterwards. A text may be in both until its last
// event says which turn it is.
func (f *Follower) Snapshot() (outbox.State, []store.Message) {
	p := f.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole, f.queue, f.bytes, f.sent = false, nil, 0, map[string]string{}
	l := p.live[f.Thread]
	if l == nil {
		return outbox.Idle, nil
	}
	var list []store.Message
	for _, m := range l.messages {
		if m.Only != "" && m.Only != f.User {
			continue
		}
		if list = append(list, m); m.Kind == store.TextMessage {
			f.sent[m.ID] = m.Text
		}
	}
	return l.state, list
}
