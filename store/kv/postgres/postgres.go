// Package postgres is the engine over a database server: PostgreSQL, or what speaks its
// protocol and has its advisory locks. One engine at a time has a database; others stand
// by.
//
// PostgreSQL it is from 9.6 on, which upserts and ends a transaction that stalls; from 14
// on it also ends the connection of a nized that hangs, so that another can take over.
// It may be behind a pooler that keeps a connection for each client (PgBouncer's pool
// mode session), which saves nothing, since an engine has 18 at most. One that shares
// them between transactions, and a server whose advisory locks do nothing or are not
// there (CockroachDB), are refused at opening: there the lock of one connection is given
// to a second, too. Each beat looks whether the lock is there, as well.
//
//	nize_key     bucket, key, value       what is kept
//	nize_bucket  name, sequence           the buckets that were made
//	nize_owner   epoch, commits, origin, held   one row: who has it, how many transactions
//	                                      wrote, where its nized is reached, and whether
//	                                      it has not closed the database
//
// A connection of its own has an advisory lock. Who gets it takes the next epoch, and
// each transaction that writes begins with the row of the owner under its epoch, which
// it counts up and has until its end: whoever has lost the lock without knowing it
// writes nothing more, and of a writer that hangs, which the server ends, nothing comes
// after what the next one did. So writers come one after the other, and the snapshot
// that a reader gets is the state between two of them: transactions are serialisable.
// The server is told so of those that write, which costs nothing that can be measured,
// and it undoes one only where another engine takes over meanwhile; of those that read
// it would keep account of each page for nothing. By the count a commit is told from none where the connection was lost
// meanwhile, and a server that came back with an older state from the one it was.
// The lock's connection also renews a lease, see lease.go: what is answered from memory,
// and every answer of the rooms above, needs it. It is over before the server gives the
// lock to another engine, by time where the owner hangs or is cut off, and at once where its
// connection is lost. A server that was just started has no locks, so an engine that finds
// one leaves it to the previous owner until that one's lease is over, unless it closed the
// database. What is left is a lock's connection that somebody ends on the server by hand: the
// owner notices when the end of the connection reaches it, and the next engine asks for the lock within
// 100 ms.
// The engine caches what its writers read and put, ranges included, see known.go. So most
// writers read nothing from the server, and send one message: the beginning, what they
// put, and the commit. Readers of the newest state use the cache while the lease holds.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"nize/store"
	"nize/store/kv"
)

const (
	// mark begins the name under which the server knows a lock's connection.
	mark = "nized/"
	// maxName is how much of a name the server keeps.
	maxName = 63
	// lockNumber is that of the advisory lock, which is a database's own.
	lockNumber = 0x6e697a65
	// beat is how often the lock's connection is tried.
	beat = time.Second
	// answer is for how long.
	answer = 2 * time.Second
	// again is how often one that stands by asks for the lock.
	again = 100 * time.Millisecond
	// deference is how long a database that is back is left to the engine that had it:
	// what that one runs would be reported as lost, and its lease may not be over.
	deference = leaseTime
	// release is how long the server may take to see that one that was killed
	// has gone.
	release = 5 * time.Second
	// mostReaders bounds the connections of readers.
	mostReaders = 16
	// idleLock is after how long without a beat the lock is another's.
	idleLock = 4 * time.Second
	// stall is how long a writer may leave the server without a message, which
	// then ends its transaction: others wait for it.
	stall = 4 * time.Second
	// patience is how long one transaction that writes may take, and how long
	// it is asked what became of a commit.
	patience = time.Minute
	// maxKey is what an index of PostgreSQL takes, with room for the bucket.
	maxKey = 2400
)

const tables = `
select pg_advisory_xact_lock(1852406374);
create table if not exists nize_bucket (name text collate "C" primary key, sequence bigint not null default 0);
create table if not exists nize_key (bucket text collate "C" not null, key bytea not null, value bytea not null, primary key (bucket, key));
create table if not exists nize_owner (one boolean primary key default true check (one), epoch bigint not null, commits bigint not null);
alter table nize_owner add column if not exists origin text not null default '';
alter table nize_owner add column if not exists held boolean not null default false;
insert into nize_owner (epoch, commits) values (0, 0) on conflict do nothing`

// Options say which database is opened.
type Options struct {
	// URL names it, and may hold a password; else PGPASSWORD or a file of
	// passwords (PGPASSFILE, ~/.pgpass) gives it.
	URL store.Secret
	Log *slog.Logger
	// Standby, if set, is called where another has the database: reads work by then.
	// Open waits for the end of that one, unless Standby errs.
	Standby func(*Engine) error
	// Says is what others read of this one in Replicas, in 57 bytes. It may be nil.
	Says func() string
	// Now is this machine's clock, which has to agree with the database's within
	// MostApart before this engine takes the database over; nil is not compared.
	Now func() time.Time

	testOnlyStall time.Duration // instead of stall
	testOnlyDial  pgconn.DialFunc
}

// Engine is an open database.
type Engine struct {
	log      *slog.Logger
	says     func() string // or nil
	config   *pgx.ConnConfig
	readers  *pgxpool.Pool
	writers  *pgxpool.Pool // of one: the outcome of a commit is asked beside it
	epoch    int64
	commits  uint64 // as of its last; this and known, the one writer alone uses
	known    known
	closed   atomic.Bool
	size     atomic.Int64
	lease    lease
	clock    clock
	standby  atomic.Int64 // how many engines wait for the lock
	taken    chan struct{}
	replaced sync.Once // closes taken
	end      context.CancelFunc
	held     sync.WaitGroup
}

var _ kv.Engine = (*Engine)(nil)

// Open opens a database and makes its tables where they lack. Where others are in
// the way it is store.ErrConflict. Errors name no password.
func Open(ctx context.Context, o Options) (*Engine, error) {
	config, err := pgxpool.ParseConfig(o.URL.Reveal())
	if err != nil {
		// Of what can't be read, nothing says which part is the password.
		return nil, fmt.Errorf("%w database address: it should read like postgres://user@host:5432/name", store.ErrInvalid)
	}
	set := config.ConnConfig.RuntimeParams
	if set["application_name"] == "" {
		set["application_name"] = "nized"
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	// A server that is gone without a word is found out within seconds.
	config.ConnConfig.DialFunc = (&net.Dialer{Control: setUserTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: beat, Interval: beat, Count: 3}}).DialContext
	if o.testOnlyDial != nil {
		config.ConnConfig.DialFunc = o.testOnlyDial
	}
	e := &Engine{log: o.Log, says: o.Says, clock: clock{now: o.Now}, config: config.ConnConfig, taken: make(chan struct{})}
	background, end := context.WithCancel(context.Background())
	e.end = end
	config.MaxConns = mostReaders
	if e.readers, err = pgxpool.NewWithConfig(background, config.Copy()); err != nil {
		end()
		return nil, named(err)
	}
	lock, err := e.awaitLock(ctx, o.Standby)
	if err != nil {
		return nil, errors.Join(err, e.Close(false))
	}
	err = e.own(ctx, lock)
	if err == nil {
		err = e.measure(ctx, lock)
	}
	if err == nil {
		config.MaxConns = 1
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { // not as it connects: poolers take nothing then
			// What is acknowledged is on disk, whatever the server's default.
			_, err := c.Exec(ctx, "set synchronous_commit = on; set idle_in_transaction_session_timeout = "+milliseconds(cmp.Or(o.testOnlyStall, stall)))
			return err
		}
		e.writers, err = pgxpool.NewWithConfig(background, config)
	}
	if err != nil {
		return nil, errors.Join(named(err), lock.Close(ctx), e.Close(false))
	}
	e.held.Go(func() { e.hold(background, lock) })
	return e, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// awaitLock is [Engine.await] for a server whose locks hold.
func (e *Engine) awaitLock(ctx context.Context, standby func(*Engine) error) (*pgx.Conn, error) {
	for {
		lock, err := e.await(ctx, standby)
		if err != nil {
			return nil, err
		}
		twice, err := e.tryLock(ctx)
		switch {
		case err != nil:
			return nil, errors.Join(named(err), lock.Close(ctx))
		case !twice:
			return lock, nil
		case lock.Ping(ctx) == nil:
			return nil, errors.Join(fmt.Errorf("%w database: its advisory locks are given to two at once; nize needs PostgreSQL itself, behind a pooler in session mode alone", store.ErrInvalid), lock.Close(ctx))
		}
		_ = lock.Close(ctx) // the connection was lost meanwhile, and the lock with it
		if standby != nil {
			standby = func(*Engine) error { return nil } // it does already
		}
	}
}

// tryLock reports whether another connection gets the lock, which it gives back.
func (e *Engine) tryLock(ctx context.Context) (got bool, err error) {
	c, err := e.readers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	err = c.QueryRow(ctx, fmt.Sprintf("select pg_try_advisory_lock(%d)", lockNumber)).Scan(&got) // such a pooler takes no arguments
	if err == nil && got {
		_, err = c.Exec(ctx, fmt.Sprintf("select pg_advisory_unlock(%d)", lockNumber))
	}
	return got, err
}

// await takes the lock. Where another has it, one that may stand by waits for its
// end, and any other for one that was killed a moment ago.
func (e *Engine) await(ctx context.Context, standby func(*Engine) error) (*pgx.Conn, error) {
	lock, err := e.lock(ctx, 0, true)
	if (errors.Is(err, store.ErrConflict) || errors.Is(err, errApart)) && standby != nil {
		if err := standby(e); err != nil {
			return nil, err
		}
		for lock, err = e.lock(ctx, again, false); errors.Is(err, store.ErrNoDatabase) && ctx.Err() == nil; lock, err = e.lock(ctx, deference, false) {
			select { // the connection was lost
			case <-time.After(beat):
			case <-ctx.Done():
			}
		}
		if ended := ctx.Err(); ended != nil && lock != nil {
			return nil, errors.Join(ended, lock.Close(context.WithoutCancel(ctx)))
		}
		return lock, cmp.Or(ctx.Err(), err)
	}
	for since := time.Now(); errors.Is(err, store.ErrConflict) && time.Since(since) < release; lock, err = e.lock(ctx, 0, true) {
		time.Sleep(release / 50)
	}
	return lock, err
}

// defers waits while a server that was just started may have an owner whose lease is not
// over, and which comes back. A server that can't be asked is no reason to wait.
func defers(ctx context.Context, c *pgx.Conn) error {
	ask, end := context.WithTimeout(ctx, answer)
	defer end()
	var up float64
	err := c.QueryRow(ask, "select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 from pg_attribute where attrelid = to_regclass('nize_owner') and attname = 'held' and not attisdropped").Scan(&up)
	left, held := deference-time.Duration(up*float64(time.Second)), false
	if err != nil || left <= 0 || c.QueryRow(ask, "select held from nize_owner").Scan(&held) != nil || !held {
		return ctx.Err()
	}
	select {
	case <-time.After(left):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// lock connects and takes the lock, which lasts as long as the connection. It waits for
// whoever has it where first is set, which is until it asks. fresh is set where this
// engine neither had the database nor waited for it: then it may have to defer.
func (e *Engine) lock(ctx context.Context, first time.Duration, fresh bool) (*pgx.Conn, error) {
	config := e.config.Copy()
	name := e.name()
	config.RuntimeParams["application_name"] = name
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, named(err)
	}
	// The server ends the connection of one that is gone or hangs, and the lock with
	// it: older servers know neither, and find out later.
	for _, set := range []string{"idle_session_timeout = " + milliseconds(idleLock), "client_connection_check_interval = " + milliseconds(beat)} {
		_, _ = c.Exec(ctx, "set "+set)
	}
	// Who waits asks again and again: the server would give the lock to one that hangs,
	// too, and to end each waiting by itself is an error in its log.
	var taken bool
	if fresh {
		err = defers(ctx, c)
	}
	if first == 0 && err == nil {
		taken, err = e.take(ctx, c)
	}
	for wait := first; err == nil && !taken && wait > 0; wait = again {
		select {
		case <-time.After(wait):
			if taken, err = e.take(ctx, c); errors.Is(err, errApart) {
				err = nil // until it is set
			}
			name = e.rename(ctx, c, name)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil && !taken {
		err = store.Mark(errors.New("another nized has this database open; stop that one first"), store.ErrConflict)
	}
	if err != nil {
		return nil, errors.Join(named(err), c.Close(ctx))
	}
	return c, nil
}

// own makes the tables and takes the next epoch.
func (e *Engine) own(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, tables); err != nil {
		return named(err)
	}
	return named(c.QueryRow(ctx, "update nize_owner set epoch = epoch + 1, origin = '', held = true returning epoch, commits").Scan(&e.epoch, &e.commits))
}

// hold keeps the lock and renews the lease.
func (e *Engine) hold(ctx context.Context, c *pgx.Conn) {
	for ctx.Err() == nil {
		lost := pause(ctx, c)
		try, end := context.WithTimeout(ctx, answer)
		if c != nil && (lost || e.measure(try, c) != nil) && ctx.Err() == nil {
			e.lease.revoke()
			e.log.Warn("the connection that holds the database is lost; connecting again")
			_ = c.Close(try) // it is lost
			c = nil
			e.readers.Reset() // and so are most likely the others
			e.writers.Reset()
		}
		if c == nil && ctx.Err() == nil {
			c = e.retake(try)
		}
		end()
	}
	e.lease.revoke()
	if c != nil {
		shut, end := context.WithTimeout(context.WithoutCancel(ctx), answer)
		// The next one need not wait for the end of the lease. Where this fails, it may.
		_, _ = c.Exec(shut, "update nize_owner set held = false where epoch = $1", e.epoch)
		_ = c.Close(shut) // the lock ends with the connection either way
		end()
	}
}

// pause waits until the next beat and reports whether c was lost meanwhile: the server may
// have given its lock away.
func pause(ctx context.Context, c *pgx.Conn) (lost bool) {
	ctx, end := context.WithTimeout(ctx, beat)
	defer end()
	if c == nil {
		<-ctx.Done()
		return false
	}
	for err := error(nil); ctx.Err() == nil; {
		if _, err = c.WaitForNotification(ctx); err != nil && ctx.Err() == nil {
			return true
		}
	}
	return false
}

// measure tries the connection by asking whether it has the lock, how large what is
// kept is, and how many more ask for the lock.
func (e *Engine) measure(ctx context.Context, c *pgx.Conn) error {
	var size, standby, held int64
	var unix float64
	asked := time.Now()
	err := c.QueryRow(ctx, `select extract(epoch from clock_timestamp())::float8, pg_total_relation_size('nize_key'),
		(select count(*) from pg_stat_activity where datname = current_database() and application_name like $2 and pid <> pg_backend_pid()
			and state_change > clock_timestamp() - interval '1 second'),
		(select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and granted and pid = pg_backend_pid()
			and database = (select oid from pg_database where datname = current_database()))`, lockNumber, mark+"%").Scan(&unix, &size, &standby, &held)
	if err == nil && held == 0 {
		err = errors.New("its connection does not hold the database")
	}
	if err != nil {
		return err
	}
	e.lease.renew(asked)
	e.clock.read(asked, unix)
	e.size.Store(size)
	e.standby.Store(standby)
	return nil
}

// Where names the server and its database, and tells how many bytes are in it and
// how many engines ask to have it.
func (e *Engine) Where() (name string, size int64, standby int) {
	return "PostgreSQL " + e.config.Host + "/" + e.config.Database, e.size.Load(), int(e.standby.Load())
}

// retake takes the lock again. One that had the database alone meanwhile left
// another epoch, under which this engine writes nothing.
func (e *Engine) retake(ctx context.Context) *pgx.Conn {
	c, err := e.lock(ctx, 0, false)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return nil // at the next beat
	}
	epoch, _, unknown := e.Owner(ctx)
	if unknown == nil && epoch != e.epoch {
		e.lose()
	}
	if err != nil {
		return nil
	}
	if unknown != nil || epoch != e.epoch { // it is for others
		_ = c.Close(ctx) // the lock ends with it either way
		return nil
	}
	e.log.Info("the connection that holds the database is back")
	return c
}

// lose notes that this engine writes nothing any more.
func (e *Engine) lose() { e.replaced.Do(func() { close(e.taken) }) }

// Advertise says where others reach the nized that has the database.
func (e *Engine) Advertise(ctx context.Context, origin string) error {
	_, err := e.readers.Exec(ctx, "update nize_owner set origin = $1 where epoch = $2", origin, e.epoch)
	return named(err)
}

// Owner tells the epoch of the engine that has the database, and what that one
// advertises, "" before it does.
func (e *Engine) Owner(ctx context.Context) (epoch int64, origin string, err error) {
	err = e.readers.QueryRow(ctx, "select epoch, origin from nize_owner").Scan(&epoch, &origin)
	return epoch, origin, named(err)
}

// Replica is a nized that has the database, or waits for it.
type Replica struct {
	Says        string
	Works       bool          // it has the database
	Apart       bool          // its clock keeps it from taking over
	Since, Seen time.Duration // ago: when it connected, and was heard last
}

// Replicas are those that the server hears, by the connections with which they have
// the lock or wait for it.
func (e *Engine) Replicas(ctx context.Context) (list []Replica, err error) {
	rows, err := e.readers.Query(ctx, `select application_name, exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.objid = $1 and l.granted),
		extract(epoch from clock_timestamp() - backend_start)::float8, extract(epoch from clock_timestamp() - greatest(backend_start, query_start, state_change))::float8
		from pg_stat_activity a where datname = current_database() and application_name like $2 order by backend_start`, lockNumber, mark+"%")
	if err != nil {
		return nil, named(err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Replica, err error) {
		var since, seen float64
		err = row.Scan(&r.Says, &r.Works, &since, &seen)
		r.Since, r.Seen = time.Duration(since*1e9), time.Duration(seen*1e9)
		if len(r.Says) == maxName {
			r.Says += "…"
		}
		r.Says, r.Apart = strings.CutPrefix(strings.TrimPrefix(r.Says, mark), apartMark)
		return r, err
	})
	return list, named(err)
}

// Taken is closed when this engine can write nothing any more: another one has taken
// the database over, since this one did not answer for a while, or it was set back, or
// nobody knows what became of a commit.
func (e *Engine) Taken() <-chan struct{} { return e.taken }

// Close implements [kv.Engine].
func (e *Engine) Close(bool) error {
	if e.closed.Swap(true) {
		return nil
	}
	e.end()
	e.held.Wait()
	e.readers.Close()
	if e.writers != nil { // it was opened
		e.writers.Close()
	}
	return nil
}

// named gives an error of the server or the wire its name.
func named(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, store.ErrConflict), errors.Is(err, errApart), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pg):
		switch {
		case pg.Code == "22012": // of the fence
			return kv.ErrTaken
		case pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23505": // which was said to be new
			return store.Mark(err, kv.ErrRetry)
		case pg.Code == "53100":
			return store.Mark(err, store.ErrDiskFull)
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
			pg.Code == "25P03", pg.Code == "25006", pg.Code == "0A000": // it stalled; the server became a replica
			return store.Mark(err, store.ErrNoDatabase)
		}
		return err
	}
	return store.Mark(err, store.ErrNoDatabase)
}

// Begin implements [kv.Engine].
func (e *Engine) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	if e.closed.Load() {
		return nil, store.ErrNotOpen
	}
	t := &transaction{e: e, ctx: ctx, end: func() {}}
	pool := e.readers
	if write {
		t.write = true
		t.ctx, t.end = context.WithTimeout(ctx, patience)
		t.puts, t.fresh, t.news, t.changed = map[place]put{}, map[place]bool{}, map[place]put{}, map[place]bool{}
		pool = e.writers
	}
	c, err := pool.Acquire(t.ctx)
	if err != nil {
		t.end()
		if e.closed.Load() {
			return nil, store.ErrNotOpen
		}
		return nil, store.Mark(err, store.ErrNoDatabase)
	}
	t.c, t.begins = c, true
	return t, nil
}
