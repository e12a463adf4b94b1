package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nize/mcp/mcptest"
	"nize/mcp/upstream/wire"
	"nize/store"
)

func (b *bench) state(name string) ServerStatus {
	b.t.Helper()
	for _, st := range b.Status() {
		if st.Name == name {
			return st
		}
	}
	b.t.Fatalf("no server %s", name)
	return ServerStatus{}
}

func TestIdleServerRestsUntilItIsCalled(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	cfg := stdio(m)
	cfg.IdleTimeout = store.Duration(100 * time.Millisecond)
	b.register(cfg)
	for round := range 2 {
		eventually(t, "its rest", func() bool { st := b.state("child"); return st.State == Idle && st.Sessions == 0 })
		if st := b.state("child"); st.Tools != 1 || st.Restarts != 0 || st.LastError != "" {
			t.Errorf("round %d: at rest it is %+v", round, st)
		}
		begin := time.Now()
		b.good("child:echo", `{"n":1}`, `{"n":1}`)
		st := b.state("child")
		again := st.State == Idle && time.Since(begin) >= 100*time.Millisecond // its idle time elapsed again
		if st.State != Connected && !again || st.Restarts != 0 {
			t.Errorf("round %d: after a call it is %+v", round, st)
		}
	}
	// After an edit to keep it alive, it stays connected.
	cfg.KeepAlive = true
	b.put(cfg)
	b.sync(admin, "child")
	held, ok := b.findServer("child")
	if !ok {
		t.Fatal("no entry")
	}
	if got := held.untilIdle(); got != relistTime {
		t.Errorf("a server that is kept alive is looked at in %s, want %s", got, relistTime)
	}
}

func TestBusyServerIsNotIdle(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	release := make(chan struct{})
	m := mcptest.New(t, mcptest.Options{JSON: true, Tools: []mcptest.Tool{{Name: "slow", Do: func(context.Context, json.RawMessage) json.RawMessage {
		<-release
		return mcptest.Text("done")
	}}}})
	cfg := remote(m.HTTP())
	cfg.IdleTimeout = store.Duration(50 * time.Millisecond)
	b.register(cfg)
	done := make(chan error, 1)
	call := b.call("far:slow", `{}`)
	go func() {
		_, err := b.Run(t.Context(), member, call, nil)
		done <- err
	}()
	eventually(t, "the call", func() bool { return m.Calls("slow") == 1 })
	held, _ := b.findServer("far")
	for range 20 { // whenever it is asked
		if held.closeIdle() {
			t.Fatal("it rests with a call in flight")
		}
		runtime.Gosched()
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The startup time of a server does not count as idle time.
func TestSlowStartIsNotIdle(t *testing.T) {
	t.Parallel()
	b, way := newHeldBench(t)
	m := mcptest.New(t, mcptest.Options{JSON: true, Tools: []mcptest.Tool{echo}})
	cfg := remote(m.HTTP())
	cfg.IdleTimeout = store.Duration(50 * time.Millisecond)
	b.register(cfg)
	eventually(t, "its rest", func() bool { st := b.state("far"); return st.State == Idle && st.Sessions == 0 })
	s, _ := b.findServer("far")
	s.mu.Lock()
	s.cfg.IdleTimeout = store.Duration(time.Hour)
	s.mu.Unlock()
	list := way.next(t, wire.MethodList)
	done := make(chan error, 1)
	call := b.call("far:echo", `{}`)
	go func() {
		_, err := b.Run(t.Context(), member, call, nil)
		done <- err
	}()
	<-list.come
	s.mu.Lock()
	s.lanes[""].used = time.Now().Add(-2 * time.Hour) // as if it had been starting that long
	s.mu.Unlock()
	s.syncing <- struct{}{} // blocks the call before it is sent
	list.release()
	eventually(t, "its session", func() bool { return s.currentSession("") != nil })
	if s.closeIdle() {
		t.Error("it rests again before the call that woke it")
	}
	<-s.syncing
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{JSON: true, Tools: []mcptest.Tool{echo}})
	cfg := remote(m.HTTP())
	cfg.RateLimit = store.Rate{Calls: 3, Per: store.Duration(time.Hour)}
	b.register(cfg)
	var wg sync.WaitGroup
	var passed atomic.Int32
	for range 10 {
		wg.Go(func() {
			if _, err := b.Run(t.Context(), member, b.call("far:echo", `{}`), nil); err == nil {
				passed.Add(1)
			} else {
				fails(t, err, store.CodeRateLimited, "far is limited to 3/1h calls", "try again in")
			}
		})
	}
	wg.Wait()
	if passed.Load() != 3 || m.Calls("echo") != 3 {
		t.Errorf("%d passed, %d arrived, want 3", passed.Load(), m.Calls("echo"))
	}
}

func TestRateLimitForgets(t *testing.T) {
	s := &server{name: "x", cfg: store.Server{RateLimit: store.Rate{Calls: 2, Per: store.Duration(time.Minute)}}}
	at := time.Unix(0, 0)
	for i, test := range []struct {
		after time.Duration
		pass  bool
	}{{0, true}, {30 * time.Second, true}, {59 * time.Second, false}, {60 * time.Second, true}, {61 * time.Second, false}, {90 * time.Second, true}, {10 * time.Minute, true}} {
		if err := s.admitCallLocked(at.Add(test.after)); (err == nil) != test.pass {
			t.Errorf("call %d at %s: %v", i, test.after, err)
		}
	}
	if len(s.recentCalls) != 1 {
		t.Errorf("it remembers %d calls", len(s.recentCalls))
	}
}

// expired is a context whose deadline passes when over is closed.
type expired struct {
	context.Context
	over chan struct{}
}

func (c expired) Done() <-chan struct{} { return c.over }

func (c expired) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestCircuit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var late atomic.Pointer[chan struct{}] // the deadline of the current call
	m := mcptest.New(t, mcptest.Options{JSON: true, Tools: []mcptest.Tool{echo, {Name: "hang", Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(*late.Load()) // the call has arrived; now let its deadline pass
		<-ctx.Done()
		return nil
	}}}})
	b.register(remote(m.HTTP()))
	for range openAfter {
		over := make(chan struct{})
		late.Store(&over)
		_, err := b.run(expired{t.Context(), over}, "far:hang", `{}`)
		fails(t, err, store.CodeUnknown)
	}
	held, _ := b.findServer("far")
	pause := func(d time.Duration) (was time.Duration) {
		held.mu.Lock()
		defer held.mu.Unlock()
		l := held.lanes[""]
		was = time.Until(l.openUntil)
		l.openUntil = time.Now().Add(d)
		return was
	}
	if was := pause(time.Hour); was > time.Second { // long enough that it does not elapse before the check
		t.Errorf("the circuit is open for %s", was)
	}
	if st := b.state("far"); st.State != Open || !strings.Contains(st.LastError, "5 calls in a row") {
		t.Errorf("after %d calls without an answer: %+v", openAfter, st)
	}
	_, err := b.run(t.Context(), "far:echo", `{}`)
	fails(t, err, store.CodeUnavailable, "its circuit is open", "the next attempt is in")
	if n := m.Calls("echo"); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	// The circuit half-opens after its pause, and an answer closes it.
	pause(0)
	for range 20 {
		b.good("far:echo", `{}`, `{}`)
	}
	if st := b.state("far"); st.State != Connected || st.LastError != "" {
		t.Errorf("after an answer: %+v", st)
	}
}

func TestCircuitLetsOneCallTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lane{unanswered: openAfter, openUntil: time.Now().Add(time.Second), lastErr: io.EOF}
		if l.checkCircuitLocked(time.Now()) == nil {
			t.Error("an open circuit lets a call through")
		}
		time.Sleep(time.Second) // in the bubble's time
		if err := l.checkCircuitLocked(time.Now()); err != nil {
			t.Errorf("the first after the pause: %v", err)
		}
		if l.checkCircuitLocked(time.Now()) == nil {
			t.Error("and so does a second, while the first is under way")
		}
	})
}

func TestServerThatKeepsEndingIsOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.put(store.Server{Name: "child", Transport: store.Stdio, Command: "/bin/false"})
	fail := func() {
		if _, err := b.Sync(t.Context(), admin, "child"); err == nil {
			t.Fatal("false is no server")
		}
	}
	for range openAfter {
		fail()
	}
	eventually(t, "an open circuit", func() bool {
		st := b.state("child")
		if st.State != Open { // its pause elapsed before the check
			fail()
		}
		return st.State == Open
	})
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("memory is sampled on Linux only")
	}
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "hang", Fault: mcptest.Hang}}})
	cfg := stdio(m)
	cfg.MemoryLimit = 1 << 30
	b.register(cfg)
	done := make(chan error, 1)
	call := b.call("child:hang", `{}`)
	go func() {
		_, err := b.Run(t.Context(), member, call, nil)
		done <- err
	}()
	eventually(t, "the call", func() bool { return m.Calls("hang") == 1 })
	pid := b.state("child").PID
	if used := b.families()[pid]; used.Memory < 1<<20 || used.Memory > 1<<30 || len(used.PIDs) != 1 {
		t.Fatalf("it uses %v", used)
	}
	cfg.MemoryLimit = 1 << 20 // less than any test binary has
	b.put(cfg)
	if _, err := b.Sync(t.Context(), admin, "child"); err != nil && !strings.Contains(err.Error(), "over its memory_limit of 1MiB") { // it may already be killed during the listing
		t.Fatal(err)
	}
	fails(t, <-done, store.CodeUnknown, "over its memory_limit of 1MiB")
	eventually(t, "a word on it", func() bool { return strings.Contains(b.state("child").LastError, "over its memory_limit of 1MiB") })
	eventually(t, "its end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// A server that exceeds its memory limit before its first answer is stopped, too.
func TestMemoryLimitWhileConnecting(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("memory is sampled on Linux only")
	}
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Fault: mcptest.Deaf, Tools: []mcptest.Tool{echo}})
	cfg := stdio(m)
	cfg.MemoryLimit, cfg.StartTimeout = 1<<20, store.Duration(time.Minute)
	if _, err := b.Probe(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "over its memory_limit of 1MiB") {
		t.Errorf("a server that is tried: %v", err)
	}
	b.put(cfg)
	if _, err := b.Sync(t.Context(), admin, "child"); err == nil || !strings.Contains(err.Error(), "over its memory_limit of 1MiB") {
		t.Errorf("a server that is connected: %v", err)
	}
}

// watchful checks each call's header against who the arguments say calls.
type watchful struct {
	t     *testing.T
	seen  [2]atomic.Int32
	under http.RoundTripper
}

func (w *watchful) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	for i, user := range []string{"ann", "bob"} {
		if bytes.Contains(body, []byte(`"i_am":"`+user+`"`)) {
			w.seen[i].Add(1)
			if got := r.Header.Get("Authorization"); got != "Bearer "+user+"-key" {
				w.t.Errorf("a call of %s had %q", user, got)
			}
		}
	}
	return w.under.RoundTrip(r)
}

func TestHeadersOfTwoPeopleNeverCross(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	b := newBench(t, nil)
	base := wire.NewTransport()
	t.Cleanup(base.CloseIdleConnections)
	w := &watchful{t: t, under: base}
	b.base = w
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "whoami", Fault: mcptest.Fault("none")}}, JSON: true})
	for _, u := range []string{"ann", "bob"} {
		b.secret("user", u, "TOKEN", "", u+"-key")
	}
	b.secret("system", "", "TOKEN", "", "shared-key")
	cfg := withKey(m.HTTP())
	cfg.MaxConcurrency = 32
	b.register(cfg)
	var wg sync.WaitGroup
	var next atomic.Int32
	for range 32 {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > calls {
					return
				}
				user := []string{"ann", "bob"}[n%2]
				args := fmt.Sprintf(`{"i_am":%q,"n":%d}`, user, n)
				res, err := b.Run(t.Context(), store.Caller{User: user}, b.call("far:whoami", args), nil)
				if err != nil || res.Text() != args {
					t.Errorf("call %d of %s: %v", n, user, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range w.seen {
		if got := w.seen[i].Load(); got != calls/2 {
			t.Errorf("person %d: %d calls were seen, want %d", i, got, calls/2)
		}
	}
}
