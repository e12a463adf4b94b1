package daemon

import (
	"context"
	"fmt"
	"sync"

	"nize/store"
)

// listeners are the streams on the control socket. One ends when its person is
// disabled, removed, or no longer who they were.
type listeners struct {
	users store.Users

	mu   sync.Mutex
	open map[*listener]struct{}
}

type listener struct {
	by  store.Caller
	end context.CancelFunc
}

func newListeners(users store.Users) *listeners {
	return &listeners{users: users, open: map[*listener]struct{}{}}
}

// enter notes a stream; leave takes it out. The person is looked at after it
// was noted, since they may have been disabled since they came in.
func (l *listeners) enter(ctx context.Context, by store.Caller, end context.CancelFunc) (leave func()) {
	one := &listener{by, end}
	l.mu.Lock()
	l.open[one] = struct{}{}
	l.mu.Unlock()
	l.check(ctx, one)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, one)
	}
}

// check ends the stream of somebody who may not go on.
func (l *listeners) check(ctx context.Context, one *listener) {
	u, err := l.users.GetUser(ctx, one.by.User)
	if err != nil || u.State != store.Active || u.ID != one.by.User || u.Role != one.by.Role {
		one.end()
	}
}

// run follows the feed until ctx ends.
func (l *listeners) run(ctx context.Context, feed store.Feed) error {
	after := feed.Last()
	l.recheck(ctx, "") // of those that began before it, what changed until then is not followed
	for change, err := range feed.Watch(ctx, after) {
		if err != nil {
			return fmt.Errorf("following the feed: %w", err)
		}
		if change.Kind == "user" {
			l.recheck(ctx, change.ID)
		}
	}
	return nil
}

// recheck looks anew at a person's streams; "" is everybody's.
func (l *listeners) recheck(ctx context.Context, user string) {
	l.mu.Lock()
	var theirs []*listener
	for one := range l.open {
		if user == "" || one.by.User == user {
			theirs = append(theirs, one)
		}
	}
	l.mu.Unlock()
	for _, one := range theirs {
		l.check(ctx, one)
	}
}
