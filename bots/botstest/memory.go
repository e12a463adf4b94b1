package botstest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"nize/bots"
	"nize/bots/outbox"
	"nize/store"
)

// Memory is a platform in memory: a bots.Platform and its [User].
type Memory struct {
	at store.Surface

	mu      sync.Mutex // guards the fields below
	handler bots.Handler
	shown   []store.Message
	states  []outbox.State
	change  chan struct{} // closed and replaced at every change
	broken  int           // number of posts and updates to fail
	posts   int
}

var (
	_ bots.Platform      = (*Memory)(nil)
	_ outbox.Presence    = (*Memory)(nil)
	_ outbox.Finder      = (*Memory)(nil)
	_ outbox.Remover     = (*Memory)(nil)
	_ outbox.ImagePoster = (*Memory)(nil)
	_ User               = (*Memory)(nil)
)

// NewMemory returns an empty platform for a surface.
func NewMemory(at store.Surface) *Memory {
	return &Memory{at: at, change: make(chan struct{})}
}

// Break makes the next n posts and updates fail.
func (m *Memory) Break(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = n
}

// Posts returns the number of successful posts.
func (m *Memory) Posts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.posts
}

// States returns every state that was shown, in order.
func (m *Memory) States() []outbox.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.states)
}

// Surface implements bots.Platform.
func (m *Memory) Surface() store.Surface { return m.at }

// Run implements bots.Platform.
func (m *Memory) Run(ctx context.Context, h bots.Handler) error {
	m.mu.Lock()
	m.handler = h
	m.changedLocked()
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = nil
	return nil
}

func (m *Memory) changedLocked() {
	close(m.change)
	m.change = make(chan struct{})
}

// Post implements bots.Platform.
func (m *Memory) Post(_ context.Context, to store.Address, msg store.Message) (store.Address, error) {
	to.Message = msg.ID
	return to, m.putAt(msg.ID, msg, 1)
}

// Update implements bots.Platform.
func (m *Memory) Update(_ context.Context, at store.Address, msg store.Message) error {
	return m.putAt(at.Message, msg, 0)
}

// putAt replaces the message with that id by msg, and adds posts to the count in the same
// step; a text may continue one with another id.
func (m *Memory) putAt(id string, msg store.Message, posts int) error {
	if id != msg.ID && msg.Kind != store.TextMessage {
		return fmt.Errorf("message %s can't stand at %s", msg.ID, id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken > 0 {
		m.broken--
		return fmt.Errorf("the platform is away")
	}
	m.posts += posts
	i := slices.IndexFunc(m.shown, func(o store.Message) bool { return o.ID == id })
	if i < 0 {
		m.shown = append(m.shown, msg)
	} else {
		msg.ID = id
		m.shown[i] = msg
	}
	m.changedLocked()
	return nil
}

// Find implements outbox.Finder. A text may have another id by now.
func (m *Memory) Find(_ context.Context, in store.Address, msg store.Message) (store.Address, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range slices.Backward(m.shown) {
		if o.ID == msg.ID || o.Kind == msg.Kind && o.Kind == store.TextMessage && !o.Final {
			in.Message = o.ID
			return in, nil
		}
	}
	return in, store.ErrNotFound
}

// Remove implements outbox.Remover.
func (m *Memory) Remove(_ context.Context, at store.Address, _ store.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.shown)
	m.shown = slices.DeleteFunc(m.shown, func(o store.Message) bool { return o.ID == at.Message })
	if len(m.shown) == n {
		return store.ErrNotFound
	}
	m.changedLocked()
	return nil
}

// PostsImages implements outbox.ImagePoster.
func (m *Memory) PostsImages() bool { return true }

// Present implements outbox.Presence.
func (m *Memory) Present(_ context.Context, _ store.Address, s outbox.State) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = append(m.states, s)
	m.changedLocked()
	return nil
}

// See implements User.
func (m *Memory) See(ctx context.Context, ok func([]store.Message) bool) ([]store.Message, error) {
	for {
		m.mu.Lock()
		shown, change := slices.Clone(m.shown), m.change
		m.mu.Unlock()
		if ok(shown) {
			return shown, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return shown, context.Cause(ctx)
		}
	}
}

// running waits until Run has a handler.
func (m *Memory) running(ctx context.Context) (bots.Handler, error) {
	for {
		m.mu.Lock()
		h, change := m.handler, m.change
		m.mu.Unlock()
		if h != nil {
			return h, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (m *Memory) by() store.Caller {
	return store.Caller{User: Requester, Name: "ann", Role: store.Member, Surface: m.at}
}

// Say implements User.
func (m *Memory) Say(ctx context.Context, thread, key, text string) error {
	h, err := m.running(ctx)
	if err != nil {
		return err
	}
	_, err = h.Message(ctx, store.Inbound{Key: key, Thread: thread, By: m.by(), Text: text})
	return err
}

// Press implements User.
func (m *Memory) Press(ctx context.Context, call string, d store.Decision) error {
	h, err := m.running(ctx)
	if err != nil {
		return err
	}
	_, err = h.Press(ctx, m.by(), call, d)
	return err
}

// Stop implements User.
func (m *Memory) Stop(ctx context.Context, thread string) error {
	h, err := m.running(ctx)
	if err != nil {
		return err
	}
	return h.Stop(ctx, m.by(), thread)
}
