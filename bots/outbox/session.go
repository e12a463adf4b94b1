package outbox

import (
	"context"
	"fmt"
	"sync"

	"nize/store"
)

// A coding agent may make many calls. The first card of its session is posted in the
// private conversation, and the following ones in the thread below it. The places of the
// earlier cards determine that thread, so nothing is stored for it.

// maxSession is how many of a person's calls are searched for the session's last card. If
// it is older, a new thread begins.
const maxSession = 200

// postCopy posts a new copy.
func (c *Copies) postCopy(ctx context.Context, name string, at store.Address, call store.Call, m store.Message) error {
	p, ok := c.platforms[at.Surface].(Replier)
	if !ok || call.Ask == nil || call.Step == "" {
		return c.bringCopy(ctx, name, at, m, false)
	}
	defer c.sessions.lock(name + " " + call.Step)() // if two cards are posted at once, the second finds the first
	earlier, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Asks: true, User: call.By, Limit: maxSession})
	if err != nil {
		return fmt.Errorf("looking for the earlier cards of a session: %w", err)
	}
	for _, old := range earlier {
		if old.Step != call.Step || old.ID == call.ID || old.Expires.IsZero() { // it had no card
			continue
		}
		places, err := c.o.Places.ListPlaces(ctx, old.ID)
		if err != nil {
			return fmt.Errorf("reading where copies stand: %w", err)
		}
		if root := places[name]; root.Message != "" && root.Surface == at.Surface && root.Channel == at.Channel {
			at = p.Below(root)
			break
		}
	}
	return c.bringCopy(ctx, name, at, m, false)
}

// sessions is a set of locks by name. The zero value is ready to use.
type sessions struct {
	mu  sync.Mutex
	all map[string]*session
}

type session struct {
	sync.Mutex
	users int // number of goroutines that hold it or wait for it; guarded by sessions.mu
}

// lock locks a name and returns the function that unlocks it.
func (s *sessions) lock(name string) (unlock func()) {
	s.mu.Lock()
	one := s.all[name]
	if one == nil {
		if s.all == nil {
			s.all = map[string]*session{}
		}
		one = &session{}
		s.all[name] = one
	}
	one.users++
	s.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.all, name)
		}
	}
}
