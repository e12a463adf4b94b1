package daemon

import (
	"context"
	"sync"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// terminals is the daemon's half of the terminal chat: a bots.Platform that
// hands what a thread shows to whoever follows it over the control socket.
// cmd/nizectl/chat draws it.
type terminals struct {
	mu     sync.Mutex
	follow map[string]map[*follower]struct{} // by thread
	states map[string]string                 // by thread, while it is not idle
}

// follower is one client that follows a thread.
type follower struct {
	// events holds what a client has not read. 256 is some seconds of a fast
	// answer; a client that is slower is cut off and comes back.
	events chan api.ChatEvent
	cut    chan struct{}
	once   sync.Once
}

var (
	_ bots.Platform = (*terminals)(nil)
	_ bots.Presence = (*terminals)(nil)
)

func newTerminals() *terminals {
	return &terminals{follow: map[string]map[*follower]struct{}{}, states: map[string]string{}}
}

// Surface implements bots.Platform.
func (t *terminals) Surface() store.Surface { return store.OnTerminal }

// Run implements bots.Platform: messages and presses come in over the control
// socket, so there is nothing to listen to.
func (t *terminals) Run(ctx context.Context, _ bots.Handler) error {
	<-ctx.Done()
	return nil
}

// Post implements bots.Platform. Nobody needs to be there: what was said is in
// the thread, and a client that comes later reads it there.
func (t *terminals) Post(_ context.Context, to store.Address, m store.Message) (store.Address, error) {
	t.tell(to.Thread, api.ChatEvent{Message: &m})
	return to, nil // without a message: a client finds all of it in the thread
}

// Update implements bots.Platform.
func (t *terminals) Update(_ context.Context, at store.Address, m store.Message) error {
	t.tell(at.Thread, api.ChatEvent{Message: &m})
	return nil
}

// Present implements bots.Presence.
func (t *terminals) Present(_ context.Context, to store.Address, state bots.State) error {
	t.mu.Lock()
	if state == bots.Idle {
		delete(t.states, to.Thread)
	} else {
		t.states[to.Thread] = string(state)
	}
	t.mu.Unlock()
	t.tell(to.Thread, api.ChatEvent{State: string(state)})
	return nil
}

func (t *terminals) tell(thread string, e api.ChatEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.follow[thread] {
		select {
		case f.events <- e:
		default:
			f.once.Do(func() { close(f.cut) })
		}
	}
}

// open follows a thread; its first event is the present state.
func (t *terminals) open(thread string) *follower {
	f := &follower{events: make(chan api.ChatEvent, 256), cut: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.follow[thread] == nil {
		t.follow[thread] = map[*follower]struct{}{}
	}
	t.follow[thread][f] = struct{}{}
	state := t.states[thread]
	if state == "" {
		state = api.ChatIdle
	}
	f.events <- api.ChatEvent{State: state}
	return f
}

func (t *terminals) close(thread string, f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.follow[thread], f)
	if len(t.follow[thread]) == 0 {
		delete(t.follow, thread)
	}
}
