// Package chattest is what every pretended chat platform stands on: the mutex
// of its world, the changes that tests wait for, timers and goroutines that end
// with it, its HTTP server, and websockets whose writer is a goroutine of its
// own. It knows no platform, and nothing of nize.
package chattest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Base is what a platform's Server embeds. Call [Base.Init] first.
type Base struct {
	Mu sync.Mutex // guards the world; whoever holds it neither waits nor writes to a connection

	ctx      context.Context // ends with Close; for what outlives the request that began it
	cancel   context.CancelFunc
	running  sync.WaitGroup
	http     *http.Server
	url      string
	closed   bool
	changed  chan struct{} // closed and made anew at every change
	revision int           // how many changes there were
	timers   map[*time.Timer]bool
	faults   map[string][]*Fault
}

// ErrClosed is for what waited when the platform ended.
var ErrClosed = errors.New("the pretended platform was closed")

// Init makes a Base usable.
func (b *Base) Init() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.changed, b.timers = make(chan struct{}), map[*time.Timer]bool{}
}

// Serve serves on l, which belongs to the Base from then on. A nil l is a free
// port of the loopback.
func (b *Base) Serve(l net.Listener, h http.Handler) error {
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	b.url = "http://" + l.Addr().String()
	b.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	b.running.Go(func() { _ = b.http.Serve(l) }) // ends with Close, and then always with an error
	return nil
}

// URL is where it is served, without a slash at the end.
func (b *Base) URL() string { return b.url }

// Context ends when the platform is closed.
func (b *Base) Context() context.Context { return b.ctx }

// Go runs f in a goroutine that Close waits for.
func (b *Base) Go(f func()) { b.running.Go(f) }

// Hold makes Close wait until the function is called.
func (b *Base) Hold() func() {
	b.running.Add(1)
	return b.running.Done
}

// ClosedLocked says whether it ended; b.Mu must be held.
func (b *Base) ClosedLocked() bool { return b.closed }

// End ends timers and the HTTP server, and waits for what runs. settle is called
// first, with b.Mu held; cut after it, without, to end connections.
func (b *Base) End(settle, cut func()) {
	b.Mu.Lock()
	if b.closed {
		b.Mu.Unlock()
		return
	}
	b.closed = true
	for t := range b.timers {
		t.Stop()
	}
	settle()
	b.TouchLocked()
	b.Mu.Unlock()
	b.cancel()
	cut()
	if b.http != nil {
		_ = b.http.Close() // it is going away
	}
	b.running.Wait()
}

// Wait returns when cond is true, which is looked at after every change, or
// with ctx's error. cond may call any method of the platform.
func (b *Base) Wait(ctx context.Context, cond func() bool) error {
	for {
		changed := b.Changed()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Changed is closed at the next change of anything.
func (b *Base) Changed() <-chan struct{} {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.changed
}

// Revision counts the changes of anything.
func (b *Base) Revision() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.revision
}

// TouchLocked wakes who waits; b.Mu must be held.
func (b *Base) TouchLocked() {
	b.revision++
	close(b.changed)
	b.changed = make(chan struct{})
}

// AfterLocked runs f with b.Mu held after d, unless the platform was closed
// before; b.Mu must be held.
func (b *Base) AfterLocked(d time.Duration, f func()) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		delete(b.timers, t)
		if !b.closed {
			f()
		}
	})
	b.timers[t] = true
	return t
}

// StopLocked ends a timer early; b.Mu must be held.
func (b *Base) StopLocked(t *time.Timer) {
	if t != nil {
		t.Stop()
		delete(b.timers, t)
	}
}

// Tester is a test; nizectl serves the pretended platforms too, and has no tests
// in it.
type Tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}
