package people

import (
	"context"
	"fmt"
	"sync"

	"nize/store"
)

// Streams are those that people read. One ends when its person is disabled,
// removed, or no longer who they were.
type Streams struct {
	users store.Users

	mu   sync.Mutex
	open map[*openStream]struct{}
}

type openStream struct {
	by  store.Caller
	end context.CancelFunc
}

// NewStreams returns none.
func NewStreams(users store.Users) *Streams {
	return &Streams{users: users, open: map[*openStream]struct{}{}}
}

// Enter notes a stream; leave takes it out. The person is looked up after it
// was noted, since they may have been disabled since they came in.
func (s *Streams) Enter(ctx context.Context, by store.Caller, end context.CancelFunc) (leave func()) {
	one := &openStream{by, end}
	s.mu.Lock()
	s.open[one] = struct{}{}
	s.mu.Unlock()
	s.check(ctx, one)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, one)
	}
}

// check ends the stream of somebody who may not go on.
func (s *Streams) check(ctx context.Context, one *openStream) {
	u, err := s.users.GetUser(ctx, one.by.User)
	if err != nil || u.State != store.Active || u.ID != one.by.User || u.Role != one.by.Role {
		one.end()
	}
}

// Run follows the feed until ctx ends.
func (s *Streams) Run(ctx context.Context, feed store.Feed) error {
	after := feed.Last()
	s.recheck(ctx, "") // of those that began before it, what changed until then is not followed
	for change, err := range feed.Watch(ctx, after) {
		if err != nil {
			return fmt.Errorf("following the feed: %w", err)
		}
		if change.Kind == "user" {
			s.recheck(ctx, change.ID)
		}
	}
	return nil
}

// recheck checks a person's streams again; "" is everybody's.
func (s *Streams) recheck(ctx context.Context, user string) {
	s.mu.Lock()
	var theirs []*openStream
	for one := range s.open {
		if user == "" || one.by.User == user {
			theirs = append(theirs, one)
		}
	}
	s.mu.Unlock()
	for _, one := range theirs {
		s.check(ctx, one)
	}
}
