// Package chattest is the base of the fake chat platforms: state, HTTP server, faults, rate
// limits and websockets. It has the mutex that guards a platform's state, the changes that tests
// wait for, timers and goroutines that end with it, and its HTTP server; calls with the faults
// that hit them, their counts and their limits (fault.go, rate.go); the rules of payloads, as
// tables that each platform words in its own way (rule.go); and websockets whose writer is a
// goroutine of its own (link.go). It knows no platform, and nothing of nize.
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

// Base is what a platform's Server embeds. Call [Base.Init] first.
type Base struct {
	Mu     sync.Mutex // guards the world; whoever holds it neither waits nor writes to a connection
	Counts Counts     // guarded by Mu

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
	links    map[*Link]bool // open websockets
	limits   []Limit
}

// ErrClosed is for what waited when the platform ended.
var ErrClosed = errors.New("the pretended platform was closed")

// Init makes a Base usable.
func (b *Base) Init() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.changed, b.timers, b.links = make(chan struct{}), map[*time.Timer]bool{}, map[*Link]bool{}
	b.Counts.Calls = map[string]int{}
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

// ClosedLocked says whether it ended; b.Mu must be held.
func (b *Base) ClosedLocked() bool { return b.closed }

// End ends timers, links and the HTTP server, and waits for what runs. settle is
// called first, with b.Mu held.
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

// Ask is something that a person did, until the app has answered it.
type Ask struct {
	Err  error
	done chan struct{}
	over bool
}

// NewAsk is one that waits.
func NewAsk() *Ask { return &Ask{done: make(chan struct{})} }

// SettleLocked ends the wait, once; the Base's Mu must be held.
func (a *Ask) SettleLocked(err error) {
	if !a.over {
		a.over, a.Err = true, err
		close(a.done)
	}
}

// SettledLocked says whether it was; the Base's Mu must be held.
func (a *Ask) SettledLocked() bool { return a.over }

// Wait returns what it was settled with.
func (a *Ask) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Find is the first of a list that is meant, or nil.
func Find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// Put replaces the one that is meant, or adds it; fresh says that it was added.
func Put[T any](list *[]*T, v T, is func(*T) bool) (fresh bool) {
	if old := Find(*list, is); old != nil {
		*old = v
		return false
	}
	*list = append(*list, &v)
	return true
}

// Read are copies of those of a list that are wanted, all where want is nil. The
// list is got with b.Mu held.
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

// Change does f with b.Mu held, and wakes who waits.
func (b *Base) Change(f func()) {
	_ = b.Try(func() error { f(); return nil }) // nothing can go wrong
}

// Try is Change for what may be refused.
func (b *Base) Try(f func() error) error {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	defer b.TouchLocked()
	return f()
}

// Get reads something with b.Mu held.
func Get[T any](b *Base, f func() T) T {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return f()
}

// Tester is a test; nizectl serves the pretended platforms too, and has no tests
// in it.
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
