package control

import (
	"context"
	"sync"

	"nize/daemon/api"
	"nize/store"
)

// progress forwards servers' progress notifications of running calls to followers. It keeps
// only the latest while the call runs, so a slow follower skips some. The zero value is
// ready to use.
type progress struct {
	mu    sync.Mutex
	calls map[progressKey]*told
}

// progressKey names a call by its caller, so that people can follow only their own calls.
type progressKey struct{ user, name string }

// told is the latest progress of a call.
type told struct {
	latest api.Progress
	n      int           // number of notifications
	more   chan struct{} // closed by the next notification, or when the call ends
	ended  bool
}

// begin returns the function that takes a call's progress, and the one that ends it.
func (p *progress) begin(key progressKey) (tell store.ProgressFunc, end func()) {
	t := &told{more: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[progressKey]*told{}
	}
	p.calls[key] = t
	tell = func(done, total float64, message string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.ended {
			return
		}
		t.latest = api.Progress{Done: done, Total: total, Message: message}
		t.n++
		close(t.more)
		t.more = make(chan struct{})
	}
	return tell, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.ended = true
		close(t.more)
		if p.calls[key] == t {
			delete(p.calls, key)
		}
	}
}

// follow sends progress until the call or ctx ends; it returns immediately if no call of
// that name is running.
func (p *progress) follow(ctx context.Context, key progressKey, send func(api.Progress) error) error {
	p.mu.Lock()
	t := p.calls[key]
	p.mu.Unlock()
	for seen := 0; t != nil; {
		p.mu.Lock()
		n, latest, more, ended := t.n, t.latest, t.more, t.ended
		p.mu.Unlock()
		switch {
		case n > seen:
			seen = n
			if err := send(latest); err != nil {
				return err
			}
			continue
		case ended:
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// FollowProgress sends the progress of a call that the caller named.
func (t *Tools) FollowProgress(ctx context.Context, by store.Caller, req api.FollowProgressRequest, send func(api.Progress) error) error {
	return t.progress.follow(ctx, progressKey{by.User, req.Follow}, send)
}
