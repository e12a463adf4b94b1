// Package terminal is the daemon's half of the terminal chat: a [bots.Platform] with followers
// of threads. Input comes in over the control socket; cmd/nizectl/chat renders the events. HTTP
// chat clients follow their conversations in the same way.
package terminal

import (
	"cmp"
	"context"
	"sync"

	"nize/bots"
	"nize/bots/outbox"
	"nize/store"
	"nize/store/follow"
)

// Event is a message that is new or has changed, or a change of state.
type Event struct {
	Message *store.Message
	State   outbox.State
}

// Platform sends messages to followers. It keeps none: all of them are in the store.
type Platform struct {
	mu        sync.Mutex                        // guards the fields below
	followers map[string]map[*Follower]struct{} // keyed by thread
	states    map[string]outbox.State           // keyed by thread, while it is not idle
}

var (
	_ bots.Platform   = (*Platform)(nil)
	_ outbox.Presence = (*Platform)(nil)
)

// New returns a platform without followers.
func New() *Platform {
	return &Platform{followers: map[string]map[*Follower]struct{}{}, states: map[string]outbox.State{}}
}

// Surface implements [bots.Platform].
func (p *Platform) Surface() store.Surface { return store.OnTerminal }

// On returns the platform as another surface, whose clients follow in the same way.
func (p *Platform) On(at store.Surface) bots.Platform { return elsewhere{p, at} }

type elsewhere struct {
	*Platform
	at store.Surface
}

// Surface implements [bots.Platform].
func (e elsewhere) Surface() store.Surface { return e.at }

// Run implements [bots.Platform]. It only waits: messages and presses come in over the
// control socket.
func (p *Platform) Run(ctx context.Context, _ bots.Handler) error {
	<-ctx.Done()
	return nil
}

// Post implements [bots.Platform]. It works without followers: the thread is stored, and a
// client that connects later reads it from the store.
func (p *Platform) Post(_ context.Context, to store.Address, m store.Message) (store.Address, error) {
	p.tell(to.Thread, Event{Message: &m})
	return to, nil // without a message, because clients read the stored thread
}

// Update implements [bots.Platform].
func (p *Platform) Update(_ context.Context, at store.Address, m store.Message) error {
	p.tell(at.Thread, Event{Message: &m})
	return nil
}

// Present implements [outbox.Presence].
func (p *Platform) Present(_ context.Context, to store.Address, state outbox.State) error {
	p.mu.Lock()
	if state == outbox.Idle {
		delete(p.states, to.Thread)
	} else {
		p.states[to.Thread] = state
	}
	p.mu.Unlock()
	p.tell(to.Thread, Event{State: state})
	return nil
}

func (p *Platform) tell(thread string, e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers[thread] {
		f.Add(e)
	}
}

// maxEvents is how many events wait for a client: a few seconds of a fast answer. A slower
// client is disconnected and reconnects.
const maxEvents = 256

// Follower is a client that follows a thread.
type Follower struct {
	platform *Platform
	thread   string
	*follow.Queue[Event]
}

// Follow follows a thread; its first event is the current state. The caller must close the
// follower.
func (p *Platform) Follow(thread string) *Follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := cmp.Or(p.states[thread], outbox.Idle)
	f := &Follower{p, thread, follow.NewQueue(follow.Options[Event]{MostEvents: maxEvents}, Event{State: state})}
	if p.followers[thread] == nil {
		p.followers[thread] = map[*Follower]struct{}{}
	}
	p.followers[thread][f] = struct{}{}
	return f
}

// Close ends it.
func (f *Follower) Close() {
	p := f.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.followers[f.thread], f)
	if len(p.followers[f.thread]) == 0 {
		delete(p.followers, f.thread)
	}
}
