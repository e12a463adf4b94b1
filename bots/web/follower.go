package web

import (
	"context"
	"errors"
	"strings"
	"sync"

	"nize/bots/outbox"
	"nize/store"
	"nize/store/follow"
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

	queue *follow.Queue[Event]

	mu   sync.Mutex        // guards sent; locked after Platform.mu and the queue's
	sent map[string]string // unfinished texts, as the tab has them
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
	f := &Follower{platform: p, Tab: tab}
	f.queue = follow.NewQueue(follow.Options[Event]{Replaces: replaces, Size: f.size, MostEvents: maxEvents, MostSize: maxBytes})
	f.Resync()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.followers[tab.Thread] == nil {
		p.followers[tab.Thread] = map[*Follower]struct{}{}
	}
	p.followers[tab.Thread][f] = struct{}{}
	return f
}

// replaces lets the newest state of each thing wait. A message keeps its position among the
// others.
func replaces(older, newer Event) (replaces, inPlace bool) {
	return older.Kind == newer.Kind && older.Message.ID == newer.Message.ID, newer.Kind == Shown
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
func (f *Follower) Resync() { f.queue.Drop() }

// size estimates the size of an event on the wire.
func (f *Follower) size(e Event) int {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	e, err := f.queue.Next(ctx)
	if errors.Is(err, follow.ErrBehind) {
		return Event{Kind: Whole}, nil
	}
	if m := e.Message; err == nil && e.Kind == Shown && m.Kind == store.TextMessage {
		f.mu.Lock()
		defer f.mu.Unlock()
		before, known := f.sent[m.ID]
		e.Appended, e.Had = known && !m.Final && strings.HasPrefix(m.Text, before), len(before)
		if delete(f.sent, m.ID); !m.Final {
			f.sent[m.ID] = m.Text
		}
	}
	return e, err
}

// Snapshot returns the content for [Whole] that the store doesn't have. It goes after what
// the store has, which the caller reads afterwards. A text may be in both until its last
// event says which turn it is.
func (f *Follower) Snapshot() (outbox.State, []store.Message) {
	p := f.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	f.queue.Reset()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = map[string]string{}
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
