// Package web is the chat page in the browser: its files, and a [bots.Platform] that updates the
// open tabs.
//
// assets.go serves the files; README.md lists them. The platform keeps only unfinished
// texts and the state of each working conversation: everything else is in the store. A tab
// that connects, was away or was too slow gets the whole state ([Snapshot], [History]);
// after that it gets changes ([Follower]). Requests come in over HTTP; daemon/browser has
// the operations that a page may call.
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

// Platform sends messages to followers.
type Platform struct {
	feed store.Feed

	mu        sync.Mutex                        // guards the fields below
	followers map[string]map[*Follower]struct{} // keyed by thread, "" for none
	live      map[string]*live                  // keyed by thread, while it is not idle
}

// live is the part of a conversation that the store doesn't have.
type live struct {
	state    outbox.State
	messages []store.Message // unfinished texts and running tools, in order
}

var (
	_ bots.Platform      = (*Platform)(nil)
	_ outbox.Presence    = (*Platform)(nil)
	_ outbox.ImagePoster = (*Platform)(nil)
	_ bots.Rewriter      = (*Platform)(nil)
)

// New returns a platform without followers. The feed reports changes made elsewhere:
// pending calls, titles, conversations of other surfaces.
func New(feed store.Feed) *Platform {
	return &Platform{feed: feed, followers: map[string]map[*Follower]struct{}{}, live: map[string]*live{}}
}

// Surface implements [bots.Platform].
func (p *Platform) Surface() store.Surface { return store.OnWeb }

// PostsImages implements [outbox.ImagePoster].
func (p *Platform) PostsImages() bool { return true }

// Run implements [bots.Platform]: it follows the feed. Unfinished texts are dropped when it
// ends rather than when it starts, because conversations may start before the next Run.
func (p *Platform) Run(ctx context.Context, _ bots.Handler) error {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.live = map[string]*live{}
	}()
	for after := p.feed.Last(); ; after = p.feed.Last() {
		p.each(func(f *Follower) { f.Resync() }) // from here on, no change is missed
		err := p.watch(ctx, after)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, store.ErrNotFound): // ErrNotFound: it fell too far behind
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
			// Most calls need no approval. If each call were reported, every tab would
			// reload the pending calls whenever a tool is called.
			if change.Waited {
				p.each(func(f *Follower) { f.queue.Add(Event{Kind: Calls}) })
			}
		case "token", "user":
			p.each(func(f *Follower) {
				if change.ID == f.Session || change.ID == f.User {
					f.queue.Add(Event{Kind: Rights})
				}
				if change.ID == f.User {
					f.queue.Add(Event{Kind: Calls}) // another role may approve other calls
				}
			})
		case "group", "member", "channel":
			p.each(func(f *Follower) { f.queue.Add(Event{Kind: Calls}) })
		case "thread":
			p.of(change.Thread, func(f *Follower) { f.queue.Add(Event{Kind: Title}) })
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

// Post implements [bots.Platform]. It works without followers: the conversation is stored,
// and a tab that connects later reads it from the store.
func (p *Platform) Post(_ context.Context, to store.Address, m store.Message) (store.Address, error) {
	p.show(to.Thread, m)
	return to, nil // without a message, because tabs read the stored conversation
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
	p.of(to.Thread, func(f *Follower) { f.queue.Add(Event{Kind: State, State: state}) })
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

// show keeps a message while it may change, and sends it to the followers.
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
			f.queue.Add(Event{Kind: Shown, Message: Message{Message: m}})
		}
	})
}

// Rewritten implements [bots.Rewriter].
func (p *Platform) Rewritten(thread string) { p.of(thread, (*Follower).Resync) }

// Gone reports that another message replaces the one that a person wrote under a key. After
// the work for the old one has stopped, [Platform.Rewritten] removes what it produced.
func (p *Platform) Gone(thread, key string) {
	gone := said(store.Inbound{Key: key}, "", time.Time{})
	p.of(thread, func(f *Follower) { f.queue.Add(Event{Kind: Gone, Message: gone}) })
}

// Said sends a person's stored message to the followers.
func (p *Platform) Said(thread string, m Message) {
	p.of(thread, func(f *Follower) { f.queue.Add(Event{Kind: Shown, Message: m}) })
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
