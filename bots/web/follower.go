package web

import (
	"context"
	"slices"
	"strings"
	"sync"

	"nize/bots/outbox"
	"nize/store"
)

// Bounds on what waits for a tab that reads slowly; beyond them it gets the whole
// state again instead.
const (
	maxEvents = 256
	maxBytes  = 1 << 20
)

// What an [Event] tells.
const (
	Whole  = "whole"  // read all of it again: at the start, after a gap, and where too much waited
	Shown  = "shown"  // Message is new or has changed
	Gone   = "gone"   // the message of Message.ID has given way to another one
	State  = "state"  // State is what the conversation does now
	Title  = "title"  // the conversation's record has changed
	Calls  = "calls"  // the calls that wait for people have changed, or who may approve them
	Rights = "rights" // the tab's session or person has changed: check whether it may go on
)

// Event is what a tab is told of.
type Event struct {
	Kind    string
	Message Message
	State   outbox.State
	// Appended says that Message.Text begins with what this tab has of it, which is
	// so long in bytes.
	Appended bool
	Had      int
}

// Follower is one tab. What changes several times before the tab reads it is told
// once, as it is then.
type Follower struct {
	platform *Platform
	Tab

	mu    sync.Mutex // guards what follows; taken after Platform.mu
	whole bool
	queue []Event
	bytes int
	sent  map[string]string // texts that are being written, as the tab has them
	poke  chan struct{}     // holds 1: something was told
}

// Tab says what a [Follower] follows, and for whom.
type Tab struct {
	Thread  string // the conversation, or "" for none
	User    string
	Session string // id of the token by which the person is signed in
	// Elsewhere is set if the conversation is held on another surface. Each change of
	// such a conversation is reported as [Whole].
	Elsewhere bool
}

// Follow follows a conversation for a person; the first event is [Whole]. The caller
// closes it.
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

// tell queues an event, in the place of what it makes void.
func (f *Follower) tell(e Event) {
	f.mu.Lock()
	defer f.wake()
	defer f.mu.Unlock()
	same := func(o Event) bool { return o.Kind == e.Kind && o.Message.ID == e.Message.ID }
	if i := slices.IndexFunc(f.queue, same); i >= 0 {
		f.bytes -= f.size(f.queue[i])
		if e.Kind == Shown { // where it stands among the others, it stays
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

// size is about what an event takes on the wire.
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

// Next waits for the next event; an error is ctx's.
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

// Snapshot answers [Whole]: what the conversation shows now that the store does not
// have, to be put behind what the store has, which the caller reads afterwards. A
// text may be in both, until its last event says which turn it is.
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
