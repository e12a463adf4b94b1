package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// memoryConn is an in-memory connection that answers each request with a list of one tool,
// possibly a different one each time.
type memoryConn struct {
	changes bool
	lists   atomic.Int32
	once    sync.Once
	cause   error
	gone    chan struct{}
}

func (c *memoryConn) Call(context.Context, *wire.Request) (json.RawMessage, error) {
	n := c.lists.Add(1)
	if !c.changes {
		n = 0
	}
	return json.RawMessage(fmt.Sprintf(`{"tools":[{"name":"echo","description":"%d"}]}`, n)), nil
}
func (c *memoryConn) Done() <-chan struct{} { return c.gone }
func (c *memoryConn) Cause() error          { <-c.gone; return c.cause }
func (c *memoryConn) Terminate(bool)        { c.Fail(wire.ErrEnded) }
func (c *memoryConn) Child() process.Child  { return nil }
func (c *memoryConn) Fail(err error)        { c.once.Do(func() { c.cause = err; close(c.gone) }) }

// connected gives the pool a server with a session over a memoryConn.
func (b *bench) connected(cfg store.Server) (*server, *session, *memoryConn) {
	b.t.Helper()
	conn := &memoryConn{gone: make(chan struct{})}
	sess := &session{Conn: conn, cfg: cfg, gate: strictGate{}, since: time.Now(),
		changed: make(chan struct{}, 1), checkWanted: make(chan struct{}, 1), listing: make(chan struct{}, 1)}
	if err := sess.list(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	s := newServer(b.Pool, b.put(cfg), nil)
	s.lanes[""] = &lane{sess: sess, used: time.Now()}
	if err := b.addServer(s); err != nil {
		b.t.Fatal(err)
	}
	return s, sess, conn
}

// A server that continuously reports list changes is listed less and less often, and at the
// normal rate again after a quiet period.
func TestStormIsAnsweredByFewLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		_, sess, conn := b.connected(store.Server{Name: "far", Transport: store.HTTP, URL: "http://far"})
		storm := func(lasts time.Duration) int32 {
			before := conn.lists.Load()
			for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(10 * time.Millisecond) {
				sess.markChanged()
			}
			return conn.lists.Load() - before
		}
		for n, most := range []int32{16, 7, 7} { // the pause doubles from one second to five minutes, and stays there
			if got := storm(time.Hour / 2); got > most || got < 5 {
				t.Errorf("half an hour, number %d: its list was read %d times, want 5 to %d", n, got, most)
			}
		}
		time.Sleep(time.Hour)
		before := conn.lists.Load()
		sess.markChanged()
		time.Sleep(settleTime)
		if got := conn.lists.Load() - before; got != 1 {
			t.Errorf("a change after a quiet time was looked at %d times within a second", got)
		}
	})
}

// slowTools is a store with slow writes.
type slowTools struct {
	*memory
	takes time.Duration
	spent *time.Duration // total time of the writes, which run one after the other
}

func (m slowTools) PutTools(ctx context.Context, by store.Caller, server string, tools []store.Tool) (store.ToolDiff, error) {
	<-time.After(m.takes)
	*m.spent += m.takes
	return m.memory.PutTools(ctx, by, server, tools)
}

// The store has one writer: the longer it takes to store a constantly changing list, the
// less often the list is stored.
func TestListThatIsNeverTheSameLeavesTheStoreToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		var spent time.Duration
		b.opt.Tools = slowTools{b.db, time.Second, &spent}
		_, sess, conn := b.connected(store.Server{Name: "far", Transport: store.HTTP, URL: "http://far"})
		conn.changes = true
		const lasts = 2 * time.Minute // long enough for seven lists by the pause alone
		for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(10 * time.Millisecond) {
			sess.markChanged()
		}
		if most := lasts/100 + 2*time.Second; spent > most || spent == 0 {
			t.Errorf("%s of %s were spent on storing it, want at most %s", spent, lasts, most)
		}
	})
}

// A server that was disconnected for flooding is not reconnected by calls, and its status
// shows the reason and the remaining time.
func TestFloodingServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		s, sess, conn := b.connected(store.Server{Name: "far", Transport: store.HTTP, URL: "http://127.0.0.1:1"})
		var flood error
		for flood == nil {
			flood = s.budget.Spend(1<<20, t.Context().Done())
			if st := b.state("far"); flood == nil && st.LastError != "" && !strings.Contains(st.LastError, "it floods: it sends more than 256KiB a second of unsolicited data; it is held back") {
				t.Fatalf("while it is held back it is %+v", st)
			}
		}
		conn.Fail(flood)
		<-sess.Done()
		synctest.Wait()
		st := b.state("far")
		if st.State != Down || !strings.HasSuffix(st.LastError, "it was disconnected, and is left alone for 1m0s") {
			t.Errorf("after it was cut off it is %s: %s", st.State, st.LastError)
		}
		for range 50 { // any number of times, for any caller
			time.Sleep(time.Second)
			_, err := s.session(t.Context(), "u-member", false)
			if f := wire.AsFault(err); f.Reach != wire.Never || !strings.Contains(err.Error(), "left alone for 1m0s; the next attempt is in ") {
				t.Fatalf("a call was answered with %v", err)
			}
		}
		if got := s.lanes["u-member"]; got.failures != 0 || got.dial != nil {
			t.Error("a call had it dialed")
		}
		if got := s.lanes[""]; got.failures != 1 || got.dial != nil {
			t.Errorf("the keeper tried it %d times in its rest", got.failures)
		}
		if errors.Is(flood, context.Canceled) {
			t.Error("it was not cut off")
		}
	})
}

type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An unresponsive server does not delay the connection to another one.
func TestSilentServerHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		contacted := make(chan string, 100)
		db := newMemory()
		p := New(Options{Servers: db, Tools: db, Gate: strictGate{}, MaxParallel: 1, Base: tripFunc(func(r *http.Request) (*http.Response, error) {
			contacted <- r.URL.Host
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		defer func() {
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for _, name := range []string{"silent", "good"} {
			if err := p.addServer(newServer(p, store.Server{Name: name, Transport: store.HTTP, URL: "http://" + name}, nil)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for got := range contacted {
				if got == name {
					break
				}
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("%s was contacted after %s, want at most 2s", name, took)
			}
		}
	})
}

// Problems with a list are reported, but not separately for each tool.
func TestWarningsOfOneListAreFew(t *testing.T) {
	s := &session{gate: strictGate{}, cfg: store.Server{Name: "far"}}
	c := &catalog{byName: map[string]offer{}}
	for range 5000 {
		s.addTool(c, json.RawMessage(`{"name":"echo"}`))
	}
	if got := len(c.warns); got != maxWarnings || len(c.list) != 1 {
		t.Errorf("%d warnings of %d tools, want %d of one", got, len(c.list), maxWarnings)
	}
}

// A server that accepts connections but then fails costs a complete listing each time, so
// callers wait for the backoff, as with a child process.
func TestSessionsThatComeToNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		s := newServer(b.Pool, store.Server{Name: "far", Transport: store.HTTP, URL: "http://127.0.0.1:1"}, nil)
		l := &lane{owner: "u-member"}
		s.lanes[l.owner] = l
		for n := range maxBrief {
			if s.mustWaitLocked(l) {
				t.Fatalf("after %d of them a caller waits", n)
			}
			l.sess = &session{Conn: &memoryConn{}, since: time.Now()}
			s.clearSessionLocked(l, l.sess, wire.ErrEnded)
		}
		if !s.mustWaitLocked(l) {
			t.Errorf("after %d of them a caller does not wait", maxBrief)
		}
		l.sess = &session{Conn: &memoryConn{}, since: time.Now()}
		time.Sleep(steady)
		if s.clearSessionLocked(l, l.sess, wire.ErrEnded); s.mustWaitLocked(l) {
			t.Error("after a session that lived a caller waits")
		}
	})
}
