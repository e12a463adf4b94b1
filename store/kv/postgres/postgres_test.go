package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/kv/kvtest"
	"nize/store/kv/postgres/postgrestest"
	"nize/store/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url store.Secret, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Engine {
	t.Helper()
	return openWith(t, Options{URL: url, testOnlyDial: dial})
}

func openWith(t *testing.T, o Options) *Engine {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(true) })
	return e
}

func update(e kv.Engine, fn func(kv.Transaction) error) error {
	b, err := e.Begin(context.Background(), true)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if err := fn(b); err != nil {
		return err
	}
	return b.Commit()
}

func putKey(e kv.Engine, key string) error {
	return update(e, func(b kv.Transaction) error {
		return errors.Join(b.Make("b"), b.Put("b", []byte(key), []byte("v")))
	})
}

func keys(t *testing.T, e kv.Engine) (list []string) {
	t.Helper()
	b, err := e.Begin(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Rollback()
	if err := b.Range("b", kv.Range{}, func(k, _ []byte) bool { list = append(list, string(k)); return true }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestLikeTheFile: whatever is asked, the answer is the embedded engine's.
func TestLikeTheFile(t *testing.T) {
	file, err := bolt.Open(filepath.Join(t.TempDir(), "x.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close(true)
	both := []kv.Engine{file, open(t, postgrestest.New(t), nil)}
	seed := rand.Uint64()
	t.Log("seed", seed)
	var said [2][]string
	for i, e := range both {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() []byte {
			k := make([]byte, 1+r.IntN(3))
			for i := range k {
				k[i] = []byte{0, 1, 'a', 0xff}[r.IntN(4)]
			}
			return k
		}
		say := func(format string, args ...any) { said[i] = append(said[i], fmt.Sprintf(format, args...)) }
		for round := range 5 {
			err := update(e, func(b kv.Transaction) error {
				if err := errors.Join(b.Make("b"), b.Make("top")); err != nil {
					return err
				}
				for range 1000 * round { // more than one message's worth
					if err := b.Put("b", append(some(), byte(r.IntN(256)), byte(r.IntN(256))), some()); err != nil {
						return err
					}
				}
				for range 60 {
					bucket, k := []string{"b", "top/in"}[r.IntN(2)], some()
					var err error
					switch r.IntN(5) {
					case 0:
						err = b.Put(bucket, k, some()[:r.IntN(2)])
					case 1:
						err = b.Delete(bucket, k)
					case 2:
						v, getErr := b.Get(bucket, k)
						say("%x %v", v, v == nil)
						err = getErr
					case 3:
						n, seqErr := b.Sequence("b", uint64(r.IntN(3)))
						say("%d", n)
						err = seqErr
					case 4:
						q := kv.Range{Reverse: r.IntN(2) == 0, Limit: r.IntN(2) * r.IntN(400)}
						for _, part := range []*[]byte{&q.Prefix, &q.From, &q.Before} {
							if r.IntN(2) == 0 {
								*part = some()[:1]
							}
						}
						left := r.IntN(3000)
						err = b.Range(bucket, q, func(k, v []byte) bool {
							say("%x=%x", k, v)
							again, getErr := b.Get(bucket, k) // it may use the transaction
							left--
							return left > 0 && getErr == nil && bytes.Equal(again, v)
						})
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("(-file +server):\n%.2000s", diff)
	}
}

// cutting is a connection that is lost at the next commit: before the server has it,
// before its answer comes, or so that the server has it once another was closed.
type cutting struct {
	net.Conn
	cut  *atomic.Int32
	late *atomic.Pointer[func()]
	now  atomic.Bool
	held bool
}

const (
	cutBefore = 1 + iota
	cutAfter
	cutLate
)

// commitName is what the client calls the statement.
var (
	commitSum  = sha256.Sum256([]byte("commit"))
	commitName = fmt.Appendf(nil, "stmtcache_%x", commitSum[:24])
)

func (c *cutting) Write(p []byte) (int, error) {
	if c.held {
		return 0, net.ErrClosed
	}
	if p[0] == 'X' { // it ends
		if deliver := c.late.Swap(nil); deliver != nil {
			(*deliver)()
		}
	}
	if p[0] == 'B' && bytes.Contains(p, commitName) { // it binds, and does not prepare
		switch c.cut.Swap(0) {
		case cutBefore:
			c.Close()
		case cutAfter:
			c.now.Store(true)
		case cutLate:
			c.held, p = true, bytes.Clone(p)
			deliver := func() {
				_, _ = c.Conn.Write(p)
				_, _ = c.Conn.Read(make([]byte, 1)) // it is done
				_ = c.Conn.Close()
			}
			c.late.Store(&deliver)
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(p)
}

func (c *cutting) Close() error {
	if c.held {
		return nil
	}
	return c.Conn.Close()
}

func (c *cutting) Read(p []byte) (int, error) {
	if !c.now.Load() {
		return c.Conn.Read(p)
	}
	_, _ = c.Conn.Read(make([]byte, 1)) // the server answers once it has committed
	c.Close()
	return 0, net.ErrClosed
}

// TestFaults: what became of a commit whose answer was lost is asked, never guessed,
// and so with all else that a server and the way to it come to.
func TestFaults(t *testing.T) {
	var (
		cut    atomic.Int32
		late   atomic.Pointer[func()]
		refuse atomic.Int32 // how many connections are not made
		url    store.Secret
	)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if refuse.Add(-1) >= 0 {
			return nil, errors.New("it is away")
		}
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &cutting{Conn: c, cut: &cut, late: &late}, err
	}
	cutting := func(how int32) func(*testing.T, kv.Engine, kv.Transaction) {
		return func(*testing.T, kv.Engine, kv.Transaction) { cut.Store(how) }
	}
	ask := func(t *testing.T, statement string) {
		c, err := pgx.Connect(t.Context(), url.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Error(err)
		}
	}
	const others = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
	const noLock = others + " and pid in (select pid from pg_locks where locktype = 'advisory')"
	kvtest.Faults(t, func(t *testing.T) (kv.Engine, func() kv.Engine) {
		url = postgrestest.New(t)
		e := open(t, url, dial)
		ask(t, "create function no_room() returns trigger language plpgsql as $$begin raise exception 'no space left' using errcode = '53100'; end$$;"+
			" create trigger no_room before insert on nize_key for each row when (new.key = 'full') execute function no_room()")
		return e, func() kv.Engine {
			e.Close(true)
			e = open(t, url, dial)
			return e
		}
	}, map[string]kvtest.Fault{
		"the commit is lost": {Do: cutting(cutBefore), Want: store.ErrNoDatabase},
		"its answer is lost": {Do: cutting(cutAfter)},
		"it comes late":      {Do: cutting(cutLate), Want: store.ErrNoDatabase},
		"restarted":          {Want: store.ErrNoDatabase, Do: func(t *testing.T, _ kv.Engine, _ kv.Transaction) { ask(t, others); refuse.Store(3) }},
		"the lock is lost":   {Do: func(t *testing.T, _ kv.Engine, _ kv.Transaction) { ask(t, noLock) }},
		"full disk": {
			Want: store.ErrDiskFull,
			Do: func(t *testing.T, _ kv.Engine, b kv.Transaction) {
				if err := b.Put("b", []byte("full"), nil); err != nil {
					t.Error(err)
				}
			},
		},
		"taken over": {Want: kvtest.ErrUnknown, Do: func(t *testing.T, e kv.Engine, b kv.Transaction) {
			refuse.Store(1000)
			ask(t, noLock)
			open(t, url, nil).Close(true)
			refuse.Store(0)
		}},
	})
}

// TestAlone: who has the database keeps others out, and those who lost their
// lock without knowing it write nothing more.
func TestAlone(t *testing.T) {
	url, cutOff := postgrestest.New(t), new(atomic.Bool)
	first := open(t, url, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if cutOff.Load() {
			return nil, errors.New("cut off")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
	if err := putKey(first, "first"); err != nil {
		t.Fatal(err)
	}
	alone := Options{URL: url, Log: slog.New(slog.DiscardHandler)}
	if _, err := Open(t.Context(), alone); !errors.Is(err, store.ErrConflict) {
		t.Errorf("alone beside another: %v", err)
	}
	late, err := first.Begin(t.Context(), true) // it has a connection
	if err != nil {
		t.Fatal(err)
	}
	defer late.Rollback()
	cutOff.Store(true) // what it is connected with goes on
	if err := postgrestest.Ask("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + first.config.Database + "' and pid in (select pid from pg_locks where locktype = 'advisory')"); err != nil {
		t.Fatal(err)
	}
	second := openWith(t, alone)
	if err := errors.Join(late.Put("b", []byte("late"), nil), late.Commit()); !errors.Is(err, kv.ErrTaken) {
		t.Errorf("the first one goes on writing: %v", err)
	}
	if err := putKey(second, "second"); err != nil {
		t.Error(err)
	}
	if got := keys(t, second); strings.Join(got, " ") != "first second" {
		t.Errorf("there are %q", got)
	}
}

// TestRestart: of a server that was restarted, the one that had the database has it again.
func TestRestart(t *testing.T) {
	url := postgrestest.New(t)
	first := openWith(t, Options{URL: url, Says: func() string { return "first" }})
	standing, opened := make(chan struct{}), make(chan *Engine, 1)
	go func() {
		second, err := Open(t.Context(), Options{URL: url, Log: slog.New(slog.DiscardHandler), Says: func() string { return "second" }, Standby: func(*Engine) error {
			close(standing)
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	<-standing
	for _, _, n := first.Where(); n != 1; _, _, n = first.Where() {
		<-time.After(beat / 10)
	}
	// A restart ends all connections at once. Ended one by one, that of the second could ask
	// for the lock between the end of the first one's and its own, so it goes before.
	end := "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '" + first.config.Database + "'"
	for _, all := range []string{end + " and pid not in (select pid from pg_locks where locktype = 'advisory' and granted)", end} {
		if err := postgrestest.Ask(all); err != nil {
			t.Fatal(err)
		}
	}
	for works := ""; works == ""; {
		<-time.After(beat / 10)
		list, err := first.Replicas(t.Context())
		if err != nil && !errors.Is(err, store.ErrNoDatabase) {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Works {
				works = r.Says
			}
		}
		if works != "" && works != "first" {
			t.Errorf("%s has it", works)
		}
	}
	if err := putKey(first, "still"); err != nil {
		t.Error(err)
	}
	if err := first.Close(true); err != nil {
		t.Error(err)
	}
	if next := <-opened; next == nil || next.Close(true) != nil {
		t.Error("nobody has it afterwards")
	}
}

// TestLockLostAtStart: a connection that is lost between taking the lock and the look
// whether the server's locks hold is no proof that they don't.
func TestLockLostAtStart(t *testing.T) {
	url := postgrestest.New(t)
	config, err := pgx.ParseConfig(url.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	locked := "select count(pg_terminate_backend(pid)) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = '" + config.Database + "')"
	var lost atomic.Int64
	e := open(t, url, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c, err := pgx.Connect(ctx, url.Reveal()); err == nil && lost.Load() == 0 {
			var n int64
			if err := c.QueryRow(ctx, locked).Scan(&n); err == nil {
				lost.Add(n)
			}
			_ = c.Close(ctx)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
	if lost.Load() != 1 {
		t.Fatalf("%d connections were lost", lost.Load())
	}
	if err := putKey(e, "works"); err != nil {
		t.Error(err)
	}
}

// TestDefers: of a server that was just started, an engine that neither had the database
// nor waited for it leaves it to the one that had, whose lease may not be over.
func TestDefers(t *testing.T) {
	url, cutOff := postgrestest.New(t), new(atomic.Bool)
	first := open(t, url, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if cutOff.Load() {
			return nil, errors.New("cut off")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
	// Says that the server was just started, and that somebody asked.
	if err := postgrestest.AskIn(url, `create table asked (at timestamptz);
		create function public.pg_postmaster_start_time() returns timestamptz language plpgsql as $$begin insert into asked values (now()); return clock_timestamp(); end$$`); err != nil {
		t.Fatal(err)
	}
	cutOff.Store(true)
	if err := postgrestest.Ask("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + first.config.Database + "' and pid in (select pid from pg_locks where locktype = 'advisory')"); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		e, err := Open(t.Context(), Options{URL: store.NewSecret(url.Reveal() + "&search_path=public,pg_catalog"), Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = e.Close(true)
		}
		opened <- err
	}()
	c, err := pgx.Connect(t.Context(), url.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for asked := 0; asked == 0; {
		if err := c.QueryRow(t.Context(), "select count(*) from asked").Scan(&asked); err != nil {
			t.Fatal(err)
		}
	}
	cutOff.Store(false)
	if err := <-opened; !errors.Is(err, store.ErrConflict) {
		t.Errorf("one that was not here before: %v", err)
	}
	if err := putKey(first, "still"); err != nil {
		t.Error(err)
	}
}

// TestNoLocks: a server that says yes to each who asks for the lock is refused, and so
// is a pooler that gives the connection of the one to the other.
func TestNoLocks(t *testing.T) {
	url := postgrestest.New(t)
	c, err := pgx.Connect(t.Context(), url.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), "create function public.pg_try_advisory_lock(bigint) returns boolean language sql as 'select true'"); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{URL: store.NewSecret(url.Reveal() + "&search_path=public,pg_catalog"), Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestStandby: one that stands by takes over when the other closes, or is silent for
// too long; that one learns of it.
func TestStandby(t *testing.T) {
	url, gone := postgrestest.New(t), new(atomic.Bool)
	first := openWith(t, Options{URL: url, testOnlyStall: time.Second, testOnlyDial: silently(t, gone)})
	if err := putKey(first, "first"); err != nil {
		t.Fatal(err)
	}
	standing := make(chan struct{}, 2) // one of each
	standby := Options{URL: url, Log: slog.New(slog.DiscardHandler), Standby: func(e *Engine) error {
		if got := keys(t, e); strings.Join(got, " ") != "first" {
			t.Errorf("while it stands by there are %q", got)
		}
		standing <- struct{}{}
		return nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { _, err := Open(ctx, standby); stopped <- err }()
	<-standing
	cancel()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("one that is told to stop: %v", err)
	}
	refused := standby
	refused.Standby = func(*Engine) error { return store.ErrInvalid }
	if _, err := Open(t.Context(), refused); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("one that may not stand by: %v", err)
	}
	opened := make(chan *Engine, 1)
	go func() {
		e, err := Open(t.Context(), standby)
		if err != nil {
			t.Error(err)
		}
		opened <- e
	}()
	<-standing
	for _, _, n := first.Where(); n != 1; _, _, n = first.Where() { // it is counted at the next beat
		select {
		case <-first.Taken():
			t.Fatal("it was taken over while it answered")
		case <-time.After(beat / 10):
		}
	}
	term := first.Term()
	if term.Err() != nil || !first.Current() {
		t.Error("it has no lease")
	}
	gone.Store(true)
	second := <-opened
	if second == nil {
		t.FailNow()
	}
	defer second.Close(true)
	if first.Current() || first.Term().Err() == nil || term.Err() == nil {
		t.Error("the lease of the first one goes on while another has the database")
	}
	if err := putKey(second, "second"); err != nil {
		t.Error(err)
	}
	gone.Store(false)
	<-first.Taken()
	if err := putKey(first, "late"); err == nil {
		t.Error("the first one goes on writing")
	}
	if got := keys(t, second); strings.Join(got, " ") != "first second" {
		t.Errorf("there are %q", got)
	}
}

// TestHanging: one that hangs while it stands by is known by when it was heard last,
// and is not the next one.
func TestHanging(t *testing.T) {
	url, gone := postgrestest.New(t), new(atomic.Bool)
	first := openWith(t, Options{URL: url, Says: func() string { return strings.Repeat("x", 80) }})
	standing := make(chan struct{})
	wait := Options{URL: url, Log: slog.New(slog.DiscardHandler), Says: func() string { return "1.0 a" }, testOnlyDial: silently(t, gone), Standby: func(*Engine) error {
		standing <- struct{}{}
		return nil
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer func() {
		stop()
		<-ended
	}()
	go func() {
		defer close(ended)
		if _, err := Open(ctx, wait); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that hangs: %v", err)
		}
	}()
	<-standing
	seen := func() (s string, longest time.Duration) {
		list, err := first.Replicas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			s += fmt.Sprintf("%s %t, ", r.Says, r.Works)
			longest = max(longest, r.Seen)
		}
		return s, longest
	}
	name := strings.Repeat("x", maxName-len(mark)) + "… true, "
	until := func(n int, what string, longest time.Duration) {
		for {
			s, d := seen()
			if _, _, waiting := first.Where(); waiting == n && s == what && d >= longest {
				return
			}
			<-time.After(beat / 10)
		}
	}
	until(1, name+"1.0 a false, ", 0)
	gone.Store(true)
	until(0, name+"1.0 a false, ", beat)
	wait.Says, wait.testOnlyDial = func() string { return "1.0 b" }, nil
	opened := make(chan *Engine, 1)
	go func() {
		e, err := Open(t.Context(), wait)
		if err != nil {
			t.Error(err)
		}
		opened <- e
	}()
	<-standing
	until(1, name+"1.0 a false, 1.0 b false, ", 0)
	since := time.Now()
	if err := first.Close(true); err != nil {
		t.Error(err)
	}
	if next := <-opened; next == nil || next.Close(true) != nil {
		t.Error("the next one did not get it")
	}
	t.Logf("the next one had it after %v", time.Since(since))
}

// TestStalled: a writer that says nothing does not hold up the others, and what it
// did is gone.
func TestStalled(t *testing.T) {
	stalled := openWith(t, Options{URL: postgrestest.New(t), testOnlyStall: 100 * time.Millisecond})
	b, err := stalled.Begin(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Rollback()
	if err := errors.Join(b.Make("b"), b.Put("b", []byte("stalled"), nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := stalled.readers.Exec(t.Context(), "update nize_owner set commits = commits"); err != nil { // after it
		t.Error(err)
	}
	if err := b.Commit(); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("the one that stalled: %v", err)
	}
	if err := putKey(stalled, "again"); err != nil {
		t.Error(err)
	}
	if got := keys(t, stalled); strings.Join(got, " ") != "again" {
		t.Errorf("there are %q", got)
	}
}

// silent swallows what is written, as a network does that is gone.
type silent struct {
	net.Conn
	now *atomic.Bool
}

// silently dials what is closed at the end of the test: nothing else would end a
// read there.
func silently(t *testing.T, gone *atomic.Bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return silent{c, gone}, err
	}
}

func (c silent) Write(p []byte) (int, error) {
	if c.now.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestSilentRollback: a server that does not answer any more holds nobody up for
// long.
func TestSilentRollback(t *testing.T) {
	gone := new(atomic.Bool)
	e := open(t, postgrestest.New(t), silently(t, gone))
	b, err := e.Begin(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	since := time.Now()
	b.Rollback() // without its deadline it never returns
	t.Logf("it took %v", time.Since(since))
	gone.Store(false)
	if err := putKey(e, "next"); err != nil {
		t.Error(err)
	}
}

// TestAddress: nothing of an address that can't be used is told.
func TestAddress(t *testing.T) {
	for _, at := range []string{"postgres://ada:s3cret@[::1/x", "nonsense s3cret", "postgres://ada:s3cret@127.0.0.1:1/x?connect_timeout=1"} {
		_, err := Open(t.Context(), Options{URL: store.NewSecret(at), Log: slog.New(slog.DiscardHandler)})
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
}

// counted counts what is sent on all connections but the first, which holds the
// lock: a message and its answer are a round trip.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	if p[0] != 'Q' { // which is how transactions end that were not committed
		c.sent.Add(1)
	}
	return c.Conn.Write(p)
}

// counting opens a database, and counts.
func counting(t *testing.T) (e *Engine, sent *atomic.Int64) {
	var dialled atomic.Int64
	sent = new(atomic.Int64)
	return open(t, postgrestest.New(t), func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if dialled.Add(1) == 1 {
			return c, err
		}
		return counted{c, sent}, err
	}), sent
}

// TestKnown: what a writer read or put, the next ones need not ask for, and see as it
// is; what is new is put unasked, unless it was there.
func TestKnown(t *testing.T) {
	e, sent := counting(t)
	put := func(key, value string) error {
		return update(e, func(b kv.Transaction) error { return b.Put("b", []byte(key), []byte(value)) })
	}
	want := func(b kv.Transaction, key, value string) error {
		if v, err := b.Get("b", []byte(key)); err != nil || string(v) != value {
			return fmt.Errorf("%s is %.20q, want %.20q (%v)", key, v, value, err)
		}
		return nil
	}
	isNew := func(b kv.Transaction, key string, yes bool) error {
		if ok, err := b.New("b", []byte(key)); ok != yes || err != nil {
			return fmt.Errorf("%s is new: %v, want %v (%v)", key, ok, yes, err)
		}
		return b.Put("b", []byte(key), []byte("put"))
	}
	for i := range 3 { // the statements are known by then
		key := fmt.Sprint("new", i)
		before := sent.Load()
		err := update(e, func(b kv.Transaction) error {
			if i > 0 {
				return errors.Join(want(b, "a", "1"), isNew(b, key, true))
			}
			return errors.Join(want(b, "a", ""), b.Put("b", []byte("a"), []byte("1")), isNew(b, key, true))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := sent.Load() - before; i == 2 && n != 1 {
			t.Errorf("a transaction of what is known took %d messages", n)
		}
	}
	refused := errors.New("refused")
	if err := update(e, func(b kv.Transaction) error { return errors.Join(b.Put("b", []byte("a"), []byte("x")), refused) }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	big := strings.Repeat("x", largeValue)
	for _, err := range []error{
		update(e, func(b kv.Transaction) error { return errors.Join(want(b, "a", "1"), b.Delete("b", []byte("a"))) }),
		update(e, func(b kv.Transaction) error { return want(b, "a", "") }),
		put("a", big+big),
		update(e, func(b kv.Transaction) error { return want(b, "a", big+big) }),
		put("a", "2"),
		update(e, func(b kv.Transaction) error { // more than is ever known, and sent in between
			var err error
			for i := range 2 * mostKnown / largeValue {
				err = errors.Join(err, b.Put("b", fmt.Append(nil, "big", i), []byte(big)))
			}
			return errors.Join(err, b.Put("b", []byte("a"), []byte("3")), b.Range("b", kv.Range{}, func(_, _ []byte) bool { return false }), want(b, "a", "3"))
		}),
		update(e, func(b kv.Transaction) error { return errors.Join(want(b, "a", "3"), want(b, "big1", big)) }),
		update(e, func(b kv.Transaction) error { return isNew(b, "new3", true) }),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	e.known.forget()
	err := update(e, func(b kv.Transaction) error {
		return errors.Join(isNew(b, "new1", true), b.Put("b", []byte("a"), []byte("4")))
	})
	if !errors.Is(err, kv.ErrRetry) {
		t.Errorf("a key that is there: %v", err)
	}
	if err := update(e, func(b kv.Transaction) error { return errors.Join(isNew(b, "new1", false), want(b, "a", "3")) }); err != nil {
		t.Error("again:", err)
	}
	if err := update(e, func(b kv.Transaction) error { return isNew(b, "new4", true) }); err != nil {
		t.Error(err)
	}
	// A server that came back with an older state is not written to as though it had the newer.
	if _, err := e.readers.Exec(t.Context(), "update nize_owner set commits = commits - 1"); err != nil {
		t.Fatal(err)
	}
	if err := put("a", "5"); err == nil || !strings.Contains(err.Error(), "set back") {
		t.Errorf("after it was set back: %v", err)
	}
}

// TestRoundTrips: a page of a list is one round trip, and a call one at its beginning and
// one at its end, once a connection has the statements; the messages that end the transactions are waited for by nobody.
func TestRoundTrips(t *testing.T) {
	ctx := t.Context()
	e, sent := counting(t)
	master, err := seal.Open(filepath.Join(t.TempDir(), "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(ctx, database.Options{Engine: e, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	by := store.Caller{User: "ada", Name: "Ada", Role: store.Admin, Surface: store.OnCLI}
	for i := range 100 {
		id := store.NewID(db.Now())
		if err := db.PutThread(ctx, by, store.Thread{ID: id, User: "ada", Title: "t"}); err != nil {
			t.Fatal(err)
		}
		if err := db.Begin(ctx, by, store.Call{ID: store.NewID(db.Now()), By: "ada", Server: "s", Tool: "t", Thread: id, State: store.Running}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.AddUser(ctx, by, store.User{Name: "u", Role: store.Member, Identities: []string{fmt.Sprint("slack:T:", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		if err := db.Begin(ctx, by, store.Call{ID: store.NewID(db.Now()), By: "another", Server: "s", Tool: "t", State: store.Pending}); err != nil {
			t.Fatal(i, err)
		}
	}
	// Of the trail: its ends, the columns of a block, the events. A call asks for none of
	// those that wait, and the people are kept until one changes.
	wantTrips := map[string]int64{"calls": 1, "conversations": 1, "events": 4, "people": 0, "a call that changes something": 2, "the trail, verified": 7}
	for what, list := range map[string]func() (int, error){
		"calls": func() (int, error) {
			l, err := db.ListCalls(ctx, store.CallQuery{User: "ada", Limit: 100})
			return len(l), err
		},
		"conversations": func() (int, error) { l, err := db.ListThreads(ctx, "ada", 100); return len(l), err },
		"a call that changes something": func() (int, error) {
			id := store.NewID(db.Now())
			l, err := db.FindWaiting(ctx, store.Call{By: "ada"})
			err = errors.Join(err, db.Begin(ctx, by, store.Call{ID: id, By: "ada", Server: "s", Tool: "t", State: store.Running}))
			_, ended := db.Finish(ctx, by, id, store.Outcome{State: store.Done})
			return 100 + len(l), errors.Join(err, ended)
		},
		"the trail, verified": func() (int, error) {
			n, err := db.VerifyEvents(ctx)
			if n < 500 {
				return n, err
			}
			return 100, err
		},
		"people": func() (int, error) { l, err := db.ListUsers(ctx); return len(l), err },
		"events": func() (int, error) { l, err := db.Events(ctx, store.EventQuery{Limit: 100}); return len(l), err },
	} {
		fewest := int64(100)
		for range 40 { // each connection gets to know the statements
			before := sent.Load()
			if n, err := list(); err != nil || n != 100 {
				t.Fatalf("%s: %d, %v", what, n, err)
			}
			fewest = min(fewest, sent.Load()-before)
		}
		if fewest != wantTrips[what] {
			t.Errorf("%s took %d round trips, want %d", what, fewest, wantTrips[what])
		}
	}
}

// TestLogOfCalls: a call that changes something logs at most a few kilobytes on the server, as
// much again for each of its copies. Sixteen callers share transactions, as in a busy team.
func TestLogOfCalls(t *testing.T) {
	const most, rounds, callers, each = 3100, 6, 16, 25
	ctx, url := t.Context(), postgrestest.New(t)
	master, err := seal.Open(filepath.Join(t.TempDir(), "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(ctx, database.Options{Engine: open(t, url, nil), Master: master})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	by := store.Caller{User: store.NewID(db.Now()), Name: "Ada", Role: store.Admin, Surface: store.OnMCP, Token: store.NewID(db.Now()), Address: "127.0.0.1"}
	call := func(i int) error {
		c := store.Call{
			ID: store.NewID(db.Now()), Server: "system-0", Tool: "write_page", Args: fmt.Appendf(nil, `{"page":%d}`, 10_000_000_000+i), Pin: strings.Repeat("ab", 32),
			By: by.User, ByName: by.Name, Surface: by.Surface, Token: by.Token, State: store.Running, Owner: by.Token, Policy: store.ByRequester,
		}
		c.Digest = c.ComputeDigest()
		if err := db.Begin(ctx, by, c); err != nil {
			return err
		}
		_, err := db.Finish(ctx, by, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"12 seats, from 18:30"}]}`)}})
		return err
	}
	fewest := int64(1 << 40) // the server also logs its own work, and whole pages after a checkpoint
	for range rounds {
		before, err := postgrestest.ReadSizes(url)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for i := range each {
					if err := call(caller*each + i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		after, err := postgrestest.ReadSizes(url)
		if err != nil {
			t.Fatal(err)
		}
		fewest = min(fewest, (after.Log-before.Log)/(callers*each))
	}
	t.Logf("%d B a call", fewest)
	if fewest > most {
		t.Errorf("a call logs %d B, want at most %d", fewest, most)
	}
}

// TestWrongExpectation: a transaction that inserts a key that exists, or updates one that was
// deleted behind the engine's back, changes nothing, and the next one succeeds.
func TestWrongExpectation(t *testing.T) {
	e := open(t, postgrestest.New(t), nil)
	for what, expect := range map[string]struct {
		key    string
		before string // a statement
	}{
		"a declared absent key exists": {"absent", "insert into nize_key values ('b', 'absent', 'theirs')"},
		"a known key doesn't exist":    {"there", "delete from nize_key where bucket = 'b' and key = 'there'"},
	} {
		if err := putKey(e, "there"); err != nil { // it is known by then
			t.Fatal(err)
		}
		if _, err := e.readers.Exec(t.Context(), expect.before); err != nil {
			t.Fatal(err)
		}
		put := func() error {
			return update(e, func(b kv.Transaction) error {
				b.(*transaction).Absent("b", []byte("absent"))
				return errors.Join(b.Put("b", []byte("other "+what), []byte("v")), b.Put("b", []byte(expect.key), []byte("ours")))
			})
		}
		if err := put(); !errors.Is(err, kv.ErrRetry) {
			t.Errorf("%s: %v, want ErrRetry", what, err)
		}
		if list := keys(t, e); slices.Contains(list, "other "+what) {
			t.Errorf("%s: half of the transaction is stored: %q", what, list)
		}
		if err := put(); err != nil {
			t.Errorf("%s: the next transaction: %v", what, err)
		}
		var value string
		if err := e.readers.QueryRow(t.Context(), "select convert_from(value, 'UTF8') from nize_key where bucket = 'b' and key = $1", []byte(expect.key)).Scan(&value); err != nil || value != "ours" {
			t.Errorf("%s: then it is %q, %v", what, value, err)
		}
	}
}

// TestFillFactor: a table of an earlier version also leaves room in its pages.
func TestFillFactor(t *testing.T) {
	url := postgrestest.New(t)
	open(t, url, nil).Close(true)
	if err := postgrestest.AskIn(url, "alter table nize_key reset (fillfactor)"); err != nil {
		t.Fatal(err)
	}
	var set string
	e := open(t, url, nil)
	if err := e.readers.QueryRow(t.Context(), "select array_to_string(reloptions, ',') from pg_class where relname = 'nize_key'").Scan(&set); err != nil || set != "fillfactor=80" {
		t.Errorf("it is %q, %v", set, err)
	}
}

// TestLargeValues: a range is read whole, and never held whole.
func TestLargeValues(t *testing.T) {
	e := open(t, postgrestest.New(t), nil)
	const n = 30
	err := update(e, func(b kv.Transaction) error {
		err := b.Make("b")
		for i := range n {
			err = errors.Join(err, b.Put("b", []byte{byte(i)}, make([]byte, 1<<20)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Begin(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Rollback()
	if keys, _, cut, err := b.(*transaction).rows("b", kv.Range{From: []byte{}, Limit: mostRows}); err != nil || !cut || len(keys) > mostRead>>20+1 {
		t.Errorf("%d values of a MiB are held at once, %v, %v", len(keys), cut, err)
	}
	for _, r := range []kv.Range{{}, {Reverse: true}, {Limit: 25}} {
		var got []byte
		if err := b.Range("b", r, func(k, _ []byte) bool { got = append(got, k...); return true }); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, n)
		if r.Limit > 0 {
			want = want[:r.Limit]
		}
		for i := range want {
			if want[i] = byte(i); r.Reverse {
				want[i] = byte(n - 1 - i)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%+v: %v", r, got)
		}
	}
}

// TestKnownRanges: a range that a writer read to its end is known to the next ones and to
// readers of the newest state, with what was put and deleted since; nothing is known of
// what was not committed, is too large, or after another engine took over.
func TestKnownRanges(t *testing.T) {
	e, sent := counting(t)
	const prefix = "p/"
	list := func(b kv.Transaction, r kv.Range) (got string) {
		r.Prefix = []byte(prefix)
		if err := b.Range("b", r, func(k, v []byte) bool { got += fmt.Sprintf("%s=%.5s ", k[len(prefix):], v); return true }); err != nil {
			got = err.Error()
		}
		return got
	}
	// check compares what a writer, a reader and memory have.
	check := func(what, want string, inMemory bool) {
		t.Helper()
		r, err := e.Begin(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := list(r, kv.Range{}); got != want {
			t.Errorf("%s: a reader has %q, want %q", what, got, want)
		}
		r.Rollback()
		got := ""
		if known := e.Recent(func(b kv.Transaction) { got = list(b, kv.Range{}) }); known != inMemory || known && got != want {
			t.Errorf("%s: memory has %q (%t), want %q (%t)", what, got, known, want, inMemory)
		}
		err = update(e, func(b kv.Transaction) error {
			if got := list(b, kv.Range{}); got != want {
				t.Errorf("%s: a writer has %q, want %q", what, got, want)
			}
			return b.Put("b", []byte("other"), []byte(what))
		})
		if err != nil {
			t.Fatal(what, err)
		}
	}
	put := func(key, value string) error {
		return update(e, func(b kv.Transaction) error {
			if value == "" {
				return b.Delete("b", []byte(prefix+key))
			}
			return b.Put("b", []byte(prefix+key), []byte(value))
		})
	}
	check("nothing", "", false)
	check("what was empty", "", true)
	for _, p := range [][2]string{{"b", "1"}, {"a", "1"}, {"c", "1"}, {"b", "2"}, {"c", ""}} {
		if err := put(p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	check("after puts", "a=1 b=2 ", true)
	refused := errors.New("refused")
	err := update(e, func(b kv.Transaction) error {
		err := errors.Join(b.Put("b", []byte(prefix+"d"), []byte("x")), b.Delete("b", []byte(prefix+"a")))
		if got := list(b, kv.Range{}); got != "b=2 d=x " {
			t.Errorf("what a writer put itself: %q", got)
		}
		if got := list(b, kv.Range{Reverse: true, Limit: 1}) + list(b, kv.Range{From: []byte(prefix + "c")}) + list(b, kv.Range{Before: []byte(prefix + "c")}); got != "d=x d=x b=2 " {
			t.Errorf("parts of it: %q", got)
		}
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	check("after one that was undone", "a=1 b=2 ", true)
	before := sent.Load()
	err = update(e, func(b kv.Transaction) error {
		list(b, kv.Range{})
		return b.Put("b", []byte(prefix+"e"), []byte("1"))
	})
	if n := sent.Load() - before; err != nil || n != 1 {
		t.Errorf("a writer of what is known took %d messages, %v", n, err)
	}
	if err := put("e", strings.Repeat("x", largeValue+1)); err != nil {
		t.Fatal(err)
	}
	check("a large value", "a=1 b=2 e=xxxxx ", false)
	if err := put("e", ""); err != nil {
		t.Fatal(err)
	}
	check("without it", "a=1 b=2 ", false)
	check("again", "a=1 b=2 ", true)

	// An id that is new has nothing; if it is not, nothing comes of that.
	begin := func(b kv.Transaction, id string) error {
		_, err := b.New("ids", []byte(id))
		b.(*transaction).Fresh("b", []byte(id))
		none := true
		return errors.Join(err, b.Range("b", kv.Range{Prefix: []byte(id)}, func(_, _ []byte) bool { none = false; return true }),
			b.Put("ids", []byte(id), fmt.Append(nil, none)), b.Put("b", []byte(id+"1"), []byte("1")))
	}
	if err := update(e, func(b kv.Transaction) error { return begin(b, "q/") }); err != nil {
		t.Fatal(err)
	}
	if known := e.Recent(func(b kv.Transaction) {
		if v, err := b.Get("b", []byte("q/1")); string(v) != "1" || err != nil {
			t.Errorf("of a new one there is %q, %v", v, err)
		}
	}); !known {
		t.Error("what was put of a new one is not known")
	}
	e.known.forget()
	if err := update(e, func(b kv.Transaction) error { return begin(b, "q/") }); !errors.Is(err, kv.ErrRetry) {
		t.Errorf("one that is not new: %v", err)
	}
	e.lease.revoke()
	if e.Recent(func(kv.Transaction) {}) {
		t.Error("memory answers without a lease")
	}
}

// TestAhead: keys that are read at once are one message, and are there as Get has them.
func TestAhead(t *testing.T) {
	e, sent := counting(t)
	if err := errors.Join(putKey(e, "a"), putKey(e, "b")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // the statements are known by then
		e.known.forget()
		before := sent.Load()
		err := update(e, func(b kv.Transaction) error {
			err := b.(*transaction).Ahead([][2]string{{"b", "a"}, {"b", "b"}, {"b", "none"}})
			for key, want := range map[string]string{"a": "v", "b": "v", "none": ""} {
				v, getErr := b.Get("b", []byte(key))
				if err = errors.Join(err, getErr); string(v) != want || (v == nil) != (want == "") {
					t.Errorf("%s is %q", key, v)
				}
			}
			return errors.Join(err, b.Put("b", []byte("c"), []byte("v")))
		})
		if n := sent.Load() - before; err != nil || i == 2 && n != 2 {
			t.Errorf("it took %d messages, %v", n, err)
		}
	}
}

// holding is a connection over which the answer to the next commit comes once gate is
// closed.
type holding struct {
	net.Conn
	gate *atomic.Pointer[chan struct{}] // of the next commit; nil holds nothing
	wait atomic.Pointer[chan struct{}]
}

func (c *holding) Write(p []byte) (int, error) {
	if p[0] == 'B' && bytes.Contains(p, commitName) {
		if gate := c.gate.Swap(nil); gate != nil {
			c.wait.Store(gate)
		}
	}
	return c.Conn.Write(p)
}

func (c *holding) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gate := c.wait.Swap(nil); gate != nil {
		<-*gate
	}
	return n, err
}

// TestKnownInCommit: from when readers of the database may see a commit, memory has what
// it made or nothing, also before its answer arrives.
func TestKnownInCommit(t *testing.T) {
	var next atomic.Pointer[chan struct{}]
	e := open(t, postgrestest.New(t), func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &holding{Conn: c, gate: &next}, err
	})
	write := func(value string) error {
		return update(e, func(b kv.Transaction) error {
			_, err := b.Get("b", []byte("p/single"))
			return errors.Join(err, b.Range("b", kv.Range{Prefix: []byte("p/range/")}, func(_, _ []byte) bool { return true }),
				b.Put("b", []byte("p/single"), []byte(value)), b.Put("b", []byte("p/range/1"), []byte(value)), b.Put("b", []byte("p/range/"+value), nil))
		})
	}
	state := func(b kv.Transaction) (got string, err error) {
		v, err := b.Get("b", []byte("p/single"))
		got = string(v)
		return got, errors.Join(err, b.Range("b", kv.Range{Prefix: []byte("p/range/")}, func(k, v []byte) bool {
			got += fmt.Sprintf(" %s=%s", k, v)
			return true
		}))
	}
	for _, value := range []string{"old", "older"} { // the second has the statements known
		if err := errors.Join(write(value), update(e, func(b kv.Transaction) error { return b.Put("b", []byte("else"), []byte(value)) })); err != nil {
			t.Fatal(err)
		}
	}
	gate, done := make(chan struct{}), make(chan error, 1)
	next.Store(&gate)
	go func() { done <- write("new") }()
	for seen := ""; !strings.HasPrefix(seen, "new "); { // until readers have it
		b, err := e.Begin(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if seen, err = state(b); err != nil {
			t.Fatal(err)
		}
		b.Rollback()
	}
	for what, fn := range map[string]func(b kv.Transaction) string{
		"a key":          func(b kv.Transaction) string { v, _ := b.Get("b", []byte("p/single")); return string(v) },
		"a key of many":  func(b kv.Transaction) string { v, _ := b.Get("b", []byte("p/range/1")); return string(v) },
		"one that lacks": func(b kv.Transaction) string { v, _ := b.Get("b", []byte("p/range/new")); return fmt.Sprint(v == nil) },
		"a range":        func(b kv.Transaction) string { got, _ := state(b); return got },
	} {
		got := ""
		if e.Recent(func(b kv.Transaction) { got = fn(b) }) {
			t.Errorf("memory has %q of %s while readers have what is newer", got, what)
		}
	}
	if !e.Recent(func(b kv.Transaction) { _, _ = b.Get("b", []byte("else")) }) {
		t.Error("memory lacks what the commit does not change")
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := "", "new p/range/1=new p/range/new= p/range/old= p/range/older="; !e.Recent(func(b kv.Transaction) { got, _ = state(b) }) || got != want {
		t.Errorf("after the commit memory has %q, want %q", got, want)
	}
}
