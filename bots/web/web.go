// Package web is the chat page in the browser: a [bots.Platform] that hands what
// a conversation shows to the tabs that follow it, and the page itself, whose
// files it serves (assets.go; README.md has the map of those).
//
// The platform keeps what is being written and the state of each conversation
// that works, and nothing else: all that was said is in the store. A tab that
// connects, was away or was too slow gets the whole ([Snapshot], [History]); from
// there on it gets what changes ([Follower]). What people do comes in over HTTP,
// where daemon/browser has the operations that a page may call.
package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/store"
)

// Platform hands messages to followers.
type Platform struct {
	feed store.Feed

	mu        sync.Mutex                        // guards what follows
	followers map[string]map[*Follower]struct{} // by thread, "" for none
	live      map[string]*live                  // by thread, while it is not idle
}

// live is what a conversation shows that the store does not have.
type live struct {
	state    outbox.State
	messages []store.Message // texts that are being written and tools that run, in order
}

var (
	_ bots.Platform      = (*Platform)(nil)
	_ outbox.Presence    = (*Platform)(nil)
	_ outbox.ImagePoster = (*Platform)(nil)
	_ bots.Rewriter      = (*Platform)(nil)
)

// New returns a platform that nobody follows. The feed tells it of what happens
// elsewhere: calls that wait, titles, conversations of other surfaces.
func New(feed store.Feed) *Platform {
	return &Platform{feed: feed, followers: map[string]map[*Follower]struct{}{}, live: map[string]*live{}}
}

// Surface implements [bots.Platform].
func (p *Platform) Surface() store.Surface { return store.OnWeb }

// PostsImages implements [outbox.ImagePoster].
func (p *Platform) PostsImages() bool { return true }

// Run implements [bots.Platform]: it follows the feed. What was being written ends
// with it, and not as the next run begins: the conversations may have begun before.
func (p *Platform) Run(ctx context.Context, _ bots.Handler) error {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.live = map[string]*live{}
	}()
	for after := p.feed.Last(); ; after = p.feed.Last() {
		p.each(func(f *Follower) { f.Resync() }) // from here on nothing is missed
		err := p.watch(ctx, after)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, store.ErrNotFound): // the latter: it lagged behind too far
			return fmt.Errorf("following the feed: %w", err)
		}
	}
}

func (p *Platform) watch(ctx context.Context, after store.Seq) error {
	for change, err := range p.feed.Watch(ctx, after) {
		if err != nil {
			return err
		}
		switch change.Kind {
		case "call":
			// Most calls wait for nobody. Telling every tab of each would have every tab
			// look through what waits as often as anybody calls a tool.
			if change.Waited {
				p.each(func(f *Follower) { f.tell(Event{Kind: Calls}) })
			}
		case "token", "user":
			p.each(func(f *Follower) {
				if change.ID == f.Session || change.ID == f.User {
					f.tell(Event{Kind: Rights})
				}
				if change.ID == f.User {
					f.tell(Event{Kind: Calls}) // another role approves other calls
				}
			})
		case "group", "member", "channel":
			p.each(func(f *Follower) { f.tell(Event{Kind: Calls}) })
		case "thread":
			p.of(change.Thread, func(f *Follower) { f.tell(Event{Kind: Title}) })
		}
		if change.Thread != "" {
			p.of(change.Thread, func(f *Follower) {
				if f.Elsewhere {
					f.Resync()
				}
			})
		}
	}
	return errors.New("the feed ended")
}

// Post implements [bots.Platform]. Nobody needs to be there: what was said is in
// the conversation, and a tab that comes later reads it there.
func (p *Platform) Post(_ context.Context, to store.Address, m store.Message) (store.Address, error) {
	p.show(to.Thread, m)
	return to, nil // without a message: a tab finds all of it in the conversation
}

// Update implements [bots.Platform].
func (p *Platform) Update(_ context.Context, at store.Address, m store.Message) error {
	p.show(at.Thread, m)
	return nil
}

// Present implements [outbox.Presence].
func (p *Platform) Present(_ context.Context, to store.Address, state outbox.State) error {
	p.mu.Lock()
	if state == outbox.Idle {
		delete(p.live, to.Thread)
	} else {
		p.liveLocked(to.Thread).state = state
	}
	p.mu.Unlock()
	p.of(to.Thread, func(f *Follower) { f.tell(Event{Kind: State, State: state}) })
	return nil
}

func (p *Platform) liveLocked(thread string) *live {
	l := p.live[thread]
	if l == nil {
		l = &live{state: outbox.Idle}
		p.live[thread] = l
	}
	return l
}

// show keeps a message while it may change and hands it to who follows.
func (p *Platform) show(thread string, m store.Message) {
	p.mu.Lock()
	if m.Kind == store.TextMessage || m.Kind == store.ToolMessage {
		l := p.liveLocked(thread)
		kept := l.messages[:0:0]
		found := false
		for _, o := range l.messages {
			if o.ID != m.ID {
				kept = append(kept, o)
			} else if found = true; !m.Final {
				kept = append(kept, m)
			}
		}
		if !found && !m.Final {
			kept = append(kept, m)
		}
		l.messages = kept
	}
	p.mu.Unlock()
	p.of(thread, func(f *Follower) {
		if m.Only == "" || m.Only == f.User {
			f.tell(Event{Kind: Shown, Message: Message{Message: m}})
		}
	})
}

// Rewritten implements [bots.Rewriter].
func (p *Platform) Rewritten(thread string) { p.of(thread, (*Follower).Resync) }

// Gone says that what a person wrote under a key gives way to another message. What had
// come of it is told by [Platform.Rewritten], once that has stopped.
func (p *Platform) Gone(thread, key string) {
	gone := said(store.Inbound{Key: key}, "", time.Time{})
	p.of(thread, func(f *Follower) { f.tell(Event{Kind: Gone, Message: gone}) })
}

// Said hands on what a person wrote, which is stored.
func (p *Platform) Said(thread string, m Message) {
	p.of(thread, func(f *Follower) { f.tell(Event{Kind: Shown, Message: m}) })
}

func (p *Platform) of(thread string, do func(*Follower)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers[thread] {
		do(f)
	}
}

func (p *Platform) each(do func(*Follower)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.followers {
		for f := range list {
			do(f)
		}
	}
}
