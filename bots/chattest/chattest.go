// Package chattest is the base of the fake chat platforms: state, HTTP server, faults, rate
// limits and websockets.
//
// It has the mutex that guards a platform's state, the notification of changes that tests
// wait for, timers and goroutines that end with the platform, and its HTTP server. It also
// has calls with injected faults, counts and limits (fault.go, rate.go), the rules of
// payloads as tables, for which each platform has its own error texts (rule.go), and
// websockets with a separate writing goroutine (link.go). It depends neither on a platform
// nor on nize.
package chattest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Base is embedded by a platform's Server. Call [Base.Init] first.
type Base struct {
	Mu     sync.Mutex // guards the platform's state; its holder must not wait or write to a connection
	Counts Counts     // guarded by Mu

	ctx      context.Context // cancelled by Close; for work that outlives its request
	cancel   context.CancelFunc
	running  sync.WaitGroup
	http     *http.Server
	url      string
	closed   bool
	changed  chan struct{} // closed and replaced at every change
	revision int           // number of changes
	timers   map[*time.Timer]bool
	faults   map[string][]*Fault
	links    map[*Link]bool // open websockets
	limits   []Limit
}

// ErrClosed is returned to waiters when the platform is closed.
var ErrClosed = errors.New("the pretended platform was closed")

// Init initializes a Base.
func (b *Base) Init() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.changed, b.timers, b.links = make(chan struct{}), map[*time.Timer]bool{}, map[*Link]bool{}
	b.Counts.Calls = map[string]int{}
}

// Serve serves on l and takes ownership of it. A nil l means a free loopback port.
func (b *Base) Serve(l net.Listener, h http.Handler) error {
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	b.url = "http://" + l.Addr().String()
	b.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	b.running.Go(func() { _ = b.http.Serve(l) }) // always returns an error when Close ends it
	return nil
}

// URL returns the server's URL, without a trailing slash.
func (b *Base) URL() string { return b.url }

// Context returns a context that is cancelled when the platform is closed.
func (b *Base) Context() context.Context { return b.ctx }

// Go runs f in a goroutine that Close waits for.
func (b *Base) Go(f func()) { b.running.Go(f) }

// ClosedLocked reports whether the platform is closed; b.Mu must be held.
func (b *Base) ClosedLocked() bool { return b.closed }

// End ends timers, links and the HTTP server, and waits for goroutines. It first calls
// settle with b.Mu held.
func (b *Base) End(settle func()) {
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
	b.Drop()
	if b.http != nil {
		_ = b.http.Close() // the server is shutting down
	}
	b.running.Wait()
}

// Wait returns when cond returns true, which is checked after every change, or ctx's error.
// cond may call any method of the platform.
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

// Changed returns a channel that is closed at the next change.
func (b *Base) Changed() <-chan struct{} {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.changed
}

// Revision returns the number of changes.
func (b *Base) Revision() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.revision
}

// TouchLocked wakes all waiters; b.Mu must be held.
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

// Ask is a person's action until the app has answered it.
type Ask struct {
	Err  error
	done chan struct{}
	over bool
}

// NewAsk returns a pending Ask.
func NewAsk() *Ask { return &Ask{done: make(chan struct{})} }

// SettleLocked ends the wait, once; the Base's Mu must be held.
func (a *Ask) SettleLocked(err error) {
	if !a.over {
		a.over, a.Err = true, err
		close(a.done)
	}
}

// SettledLocked reports whether it is settled; the Base's Mu must be held.
func (a *Ask) SettledLocked() bool { return a.over }

// Wait returns the error with which it was settled.
func (a *Ask) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Find returns the first matching element of a list, or nil.
func Find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// Put replaces the matching element or appends v; fresh reports that it was appended.
func Put[T any](list *[]*T, v T, is func(*T) bool) (fresh bool) {
	if old := Find(*list, is); old != nil {
		*old = v
		return false
	}
	*list = append(*list, &v)
	return true
}

// Read returns copies of the matching elements of a list, or of all if want is nil. It
// calls list with b.Mu held.
func Read[T any](b *Base, list func() []*T, want func(*T) bool, clone func(*T) T) (out []T) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, v := range list() {
		if want == nil || want(v) {
			out = append(out, clone(v))
		}
	}
	return out
}

// Change calls f with b.Mu held, and wakes all waiters.
func (b *Base) Change(f func()) {
	_ = b.Try(func() error { f(); return nil }) // f can't fail
}

// Try is Change for functions that may fail.
func (b *Base) Try(f func() error) error {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	defer b.TouchLocked()
	return f()
}

// Get returns the result of f, called with b.Mu held.
func Get[T any](b *Base, f func() T) T {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return f()
}

// Tester is a test; it is an interface because nizectl serves the doubles too and must not
// import testing.
type Tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Run serves a platform on loopback until the test ends.
func Run[S interface {
	Start(net.Listener) error
	Close()
}](t Tester, s S) S {
	t.Helper()
	if err := s.Start(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
