package people

import (
	"context"
	"fmt"
	"sync"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/store"
)

// Streams are people's open streams. A stream is ended when its person is disabled or
// removed, or their rights change.
type Streams struct {
	users store.Users
	open  limit.Streams // streams counted by Enter

	mu  sync.Mutex
	all map[*openStream]struct{}
}

type openStream struct {
	by  store.Caller
	end context.CancelFunc
}

// NewStreams returns an empty Streams. The settings limit how many requests a person may
// hold open.
func NewStreams(users store.Users, config store.Config) *Streams {
	s := &Streams{users: users, all: map[*openStream]struct{}{}}
	s.open.Quota = func() store.Quota { return store.QuotaOf(config, "limits.user.requests", "limits.requests") }
	return s
}

// Enter counts a long-lived request towards the caller's quota and watches it. It returns
// an error with the code rate_limited if the caller may not open another one.
func (s *Streams) Enter(ctx context.Context, by store.Caller, end context.CancelFunc) (leave func(), err error) {
	left, err := s.Count(by.User, end)
	if err != nil {
		return nil, err
	}
	unwatch := s.Watch(ctx, by, end)
	return func() { unwatch(); left() }, nil
}

// Count counts a long-lived request of a person or project, without watching it. It returns
// an error with the code rate_limited if they may not open another one.
func (s *Streams) Count(owner string, end context.CancelFunc) (leave func(), err error) {
	leave, err = s.open.Enter(owner, end)
	if err != nil {
		return nil, &api.Error{Code: "rate_limited", Message: err.Error()}
	}
	return leave, nil
}

// Watch calls end when the stream's person may not continue. The person is looked up after
// the stream is registered, since they may have been disabled after they were
// authenticated.
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

// check ends a stream if its person may not continue.
func (s *Streams) check(ctx context.Context, one *openStream) {
	u, err := s.users.GetUser(ctx, one.by.User)
	if err != nil || u.State != store.Active || u.ID != one.by.User || u.Role != one.by.Role {
		one.end()
	}
}

// Run follows the feed until ctx ends.
func (s *Streams) Run(ctx context.Context, feed store.Feed) error {
	after := feed.Last()
	s.recheck(ctx, "") // the feed lacks changes before its start, so recheck the streams opened until then
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

// recheck rechecks a person's streams; "" is everyone's.
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
