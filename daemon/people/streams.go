package people

import (
	"context"
	"fmt"
	"sync"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/store"
)

// Streams are those that people read. One ends when its person is disabled,
// removed, or no longer who they were.
type Streams struct {
	users store.Users
	open  limit.Streams // those that Enter counts

	mu  sync.Mutex
	all map[*openStream]struct{}
}

type openStream struct {
	by  store.Caller
	end context.CancelFunc
}

// NewStreams returns none. How many requests people may hold open is in the settings.
func NewStreams(users store.Users, config store.Config) *Streams {
	s := &Streams{users: users, all: map[*openStream]struct{}{}}
	s.open.Quota = func() store.Quota { return store.QuotaOf(config, "limits.user.requests", "limits.requests") }
	return s
}

// Enter counts a request that stays open for the caller's quota and watches it.
// It returns an error with the code rate_limited if the caller may not have another.
func (s *Streams) Enter(ctx context.Context, by store.Caller, end context.CancelFunc) (leave func(), err error) {
	left, err := s.Count(by.User, end)
	if err != nil {
		return nil, err
	}
	unwatch := s.Watch(ctx, by, end)
	return func() { unwatch(); left() }, nil
}

// Count counts a request that stays open, of a person or project, without watching it.
// It returns an error with the code rate_limited if they may not have another.
func (s *Streams) Count(owner string, end context.CancelFunc) (leave func(), err error) {
	leave, err = s.open.Enter(owner, end)
	if err != nil {
		return nil, &api.Error{Code: "rate_limited", Message: err.Error()}
	}
	return leave, nil
}

// Watch ends a stream by end when its person may not go on. The person is looked up
// after the stream was noted, since they may have been disabled since they came in.
func (s *Streams) Watch(ctx context.Context, by store.Caller, end context.CancelFunc) (leave func()) {
	one := &openStream{by, end}
	s.mu.Lock()
	s.all[one] = struct{}{}
	s.mu.Unlock()
	s.check(ctx, one)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, one)
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
	for one := range s.all {
		if user == "" || one.by.User == user {
			theirs = append(theirs, one)
		}
	}
	s.mu.Unlock()
	for _, one := range theirs {
		s.check(ctx, one)
	}
}
