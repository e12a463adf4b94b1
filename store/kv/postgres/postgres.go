// Package postgres implements the engine over PostgreSQL; one engine at a time owns a
// database, others stand by.
//
// The server may be another product that speaks PostgreSQL's protocol and has its advisory
// locks. PostgreSQL must be at least 9.6, for upserts and for ending a stalled transaction.
// From 14 on it also ends the connection of a nized that hangs, so that another can take
// over. A pooler in front of it must keep one connection per client (PgBouncer's pool mode
// session), which saves nothing, since an engine has at most 18. Open refuses a pooler that
// shares connections between transactions, and a server whose advisory locks have no effect
// or don't exist (CockroachDB): with these, a second connection also gets the lock of the
// first. Each heartbeat checks that the lock is held.
//
//	nize_key     bucket, key, value       the stored entries
//	nize_bucket  name, sequence           the created buckets
//	nize_owner   epoch, commits, origin, held   one row: the owner's epoch, the number of writing
//	                                      transactions, the owner's address, and whether
//	                                      it has not closed the database
//
// A separate connection holds an advisory lock. The lock holder increments the epoch. Every
// writing transaction begins by locking the owner row at its epoch and incrementing
// commits, and holds the row until its end. So an engine that lost the lock without
// noticing can't commit, and if a writer hangs, the server ends its transaction and none of
// its writes follow those of the next owner. Writers are therefore serialized, and a
// reader's snapshot is the state between two of them: transactions are serializable. Only
// writing transactions declare this isolation level to the server. It has no measurable
// cost, and the server aborts one only if another engine takes over meanwhile; for reading
// transactions the server would track each page for nothing. The number of commits shows
// whether a commit succeeded if the connection was lost meanwhile, and whether a server
// came back with an older state. The lock's connection also renews a lease, see lease.go.
// Every answer from the cache, and every answer of the packages above, needs it. The lease
// ends before the server gives the lock to another engine: by time if the owner hangs or is
// cut off, and at once if its connection is lost. A restarted server has no locks, so an
// engine that finds one leaves it to the previous owner until that one's lease has ended,
// unless that one closed the database. One case remains: an administrator ends a lock's
// connection on the server. The owner notices when the end of the connection reaches it,
// and the next engine requests the lock within 100 ms. The engine caches what its writers
// read and put, including ranges, see known.go. So most writers read nothing from the
// server and send one message: the beginning, the puts and the commit. Readers of the
// newest state use the cache while the lease lasts.
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
	// mark is the prefix of a lock connection's application name.
	mark = "nized/"
	// maxName is the length to which the server cuts a name.
	maxName = 63
	// lockNumber is the number of the advisory lock, which is local to a database.
	lockNumber = 0x6e697a65
	// beat is the interval of the heartbeats on the lock's connection.
	beat = time.Second
	// answer is the timeout of a heartbeat.
	answer = 2 * time.Second
	// again is how often a standby requests the lock.
	again = 100 * time.Millisecond
	// deference is how long a database that is available again is left to its previous
	// owner: otherwise its running calls would be reported as lost, and its lease may not
	// have ended.
	deference = leaseTime
	// release is how long the server may take to notice that a killed process is gone.
	release = 5 * time.Second
	// mostReaders limits the connections of readers.
	mostReaders = 16
	// idleLock is how long without a heartbeat the lock is held.
	idleLock = 4 * time.Second
	// stall is how long a writer may be silent before the server ends its transaction,
	// because others wait for it.
	stall = 4 * time.Second
	// patience is how long one writing transaction may take, and how long the engine tries
	// to find out the outcome of a commit.
	patience = time.Minute
	// maxKey is what an index of PostgreSQL accepts, minus space for the bucket.
	maxKey = 2400
)

const tables = `
select pg_advisory_xact_lock(1852406374);
create table if not exists nize_bucket (name text collate "C" primary key, sequence bigint not null default 0);
create table if not exists nize_key (bucket text collate "C" not null, key bytea not null, value bytea not null, primary key (bucket, key)) with (fillfactor = 80);
create table if not exists nize_owner (one boolean primary key default true check (one), epoch bigint not null, commits bigint not null);
alter table nize_owner add column if not exists origin text not null default '';
alter table nize_owner add column if not exists held boolean not null default false;
insert into nize_owner (epoch, commits) values (0, 0) on conflict do nothing`

// leaveRoom sets the fill factor of a table that an earlier version created. If a page has
// room, the server updates a row within it, and logs neither a new entry of the index nor
// what the row keeps at its end. It waits for a running VACUUM, so not for long.
const leaveRoom = "set local lock_timeout = '1s'; alter table nize_key set (fillfactor = 80)"

// Options configure Open.
type Options struct {
	// URL is the database's address and may contain a password. Otherwise PGPASSWORD or a
	// password file (PGPASSFILE, ~/.pgpass) provides it.
	URL store.Secret
	Log *slog.Logger
	// Standby, if set, is called if another engine owns the database; reads work by then.
	// Open then waits until the database is free, unless Standby returns an error.
	Standby func(*Engine) error
	// Says returns this engine's status for others' Replicas, at most 57 bytes. It may be
	// nil.
	Says func() string
	// Now is this machine's clock. It must agree with the database's within MostApart
	// before this engine takes the database over; if nil, clocks are not compared.
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
	writers  *pgxpool.Pool // one connection, beside which the outcome of a commit is queried
	epoch    int64
	commits  uint64 // as of its last commit; only the one writer uses this and known
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

// Open opens a database and creates its tables if they don't exist. It returns
// store.ErrConflict if another engine owns the database. Errors contain no password.
func Open(ctx context.Context, o Options) (*Engine, error) {
	config, err := pgxpool.ParseConfig(o.URL.Reveal())
	if err != nil {
		// If the address can't be parsed, any part of it may be the password.
		return nil, fmt.Errorf("%w database address: it should read like postgres://user@host:5432/name", store.ErrInvalid)
	}
	set := config.ConnConfig.RuntimeParams
	if set["application_name"] == "" {
		set["application_name"] = "nized"
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	// Detect within seconds that a server vanished.
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
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { // not as startup parameters, which poolers refuse
			// Acknowledged writes must be on disk, whatever the server's default.
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

// awaitLock is [Engine.await], and checks that the server's locks are exclusive.
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
			standby = func(*Engine) error { return nil } // it was called already
		}
	}
}

// tryLock reports whether another connection also gets the lock, which it then releases.
func (e *Engine) tryLock(ctx context.Context) (got bool, err error) {
	c, err := e.readers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	err = c.QueryRow(ctx, fmt.Sprintf("select pg_try_advisory_lock(%d)", lockNumber)).Scan(&got) // such a pooler accepts no arguments
	if err == nil && got {
		_, err = c.Exec(ctx, fmt.Sprintf("select pg_advisory_unlock(%d)", lockNumber))
	}
	return got, err
}

// await acquires the lock. If another engine has it, an engine that may stand by waits
// until that one ends; otherwise await waits briefly for one that was just killed.
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

// defers waits if the server was just started and the previous owner, whose lease may not
// have ended, may come back. If the server can't be queried, it doesn't wait.
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

// lock connects and acquires the lock, which lasts as long as the connection. If first is
// set, it waits for the lock and requests it after first. fresh is set if this engine
// neither owned the database nor waited for it: then it may have to defer.
func (e *Engine) lock(ctx context.Context, first time.Duration, fresh bool) (*pgx.Conn, error) {
	config := e.config.Copy()
	name := e.name()
	config.RuntimeParams["application_name"] = name
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, named(err)
	}
	// The server ends the connection of a client that is gone or hangs, and releases the
	// lock. Older servers have neither setting and notice later.
	for _, set := range []string{"idle_session_timeout = " + milliseconds(idleLock), "client_connection_check_interval = " + milliseconds(beat)} {
		_, _ = c.Exec(ctx, "set "+set)
	}
	// Poll for the lock: if standbys waited for it on the server, the server would also
	// give it to one that hangs, and cancelling each wait would log an error there.
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
				err = nil // until the clock is corrected
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

// own creates the tables and increments the epoch.
func (e *Engine) own(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, tables); err != nil {
		return named(err)
	}
	var set bool
	if err := c.QueryRow(ctx, "select 'fillfactor=80' = any(reloptions) is true from pg_class where oid = 'nize_key'::regclass").Scan(&set); err == nil && !set {
		if _, err := c.Exec(ctx, leaveRoom); err != nil {
			e.log.Info("the fill factor of the table was not set; the next start tries again", "err", err)
		}
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
			e.readers.Reset() // the other connections are most likely lost, too
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
		// The next owner then need not wait for the end of the lease. If this fails, it may
		// wait.
		_, _ = c.Exec(shut, "update nize_owner set held = false where epoch = $1", e.epoch)
		_ = c.Close(shut) // releases the lock in any case
		end()
	}
}

// pause waits until the next heartbeat and reports whether c was lost meanwhile: the server
// may then have given its lock away.
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

// measure sends a heartbeat: it checks that the connection holds the lock, and reads the
// size of the stored data and the number of standbys.
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

// Where returns the names of the server and its database, its size in bytes, and the number
// of engines that wait to own it.
func (e *Engine) Where() (name string, size int64, standby int) {
	return "PostgreSQL " + e.config.Host + "/" + e.config.Database, e.size.Load(), int(e.standby.Load())
}

// retake acquires the lock again. If another engine owned the database meanwhile, the epoch
// differs and this engine can't write any more.
func (e *Engine) retake(ctx context.Context) *pgx.Conn {
	c, err := e.lock(ctx, 0, false)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return nil // retry at the next heartbeat
	}
	epoch, _, unknown := e.Owner(ctx)
	if unknown == nil && epoch != e.epoch {
		e.lose()
	}
	if err != nil {
		return nil
	}
	if unknown != nil || epoch != e.epoch { // leave it to others
		_ = c.Close(ctx) // releases the lock in any case
		return nil
	}
	e.log.Info("the connection that holds the database is back")
	return c
}

// lose records that this engine can't write any more.
func (e *Engine) lose() { e.replaced.Do(func() { close(e.taken) }) }

// Advertise stores the address at which other nodes reach the active node.
func (e *Engine) Advertise(ctx context.Context, origin string) error {
	_, err := e.readers.Exec(ctx, "update nize_owner set origin = $1 where epoch = $2", origin, e.epoch)
	return named(err)
}

// Owner returns the epoch of the engine that owns the database, and the address that it
// advertises, "" if it has not done so yet.
func (e *Engine) Owner(ctx context.Context) (epoch int64, origin string, err error) {
	err = e.readers.QueryRow(ctx, "select epoch, origin from nize_owner").Scan(&epoch, &origin)
	return epoch, origin, named(err)
}

// Replica is a nized that owns the database, or waits for it.
type Replica struct {
	Says        string
	Works       bool          // it owns the database
	Apart       bool          // its clock prevents it from taking over
	Since, Seen time.Duration // time since it connected, and since its last message
}

// Replicas returns the replicas that are connected to the server, by the connections with
// which they hold the lock or wait for it.
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

// Taken returns a channel that is closed when this engine can't write any more: another
// engine took the database over while this one was unresponsive, the database was reset to
// an older state, or the outcome of a commit is unknown.
func (e *Engine) Taken() <-chan struct{} { return e.taken }

// Close implements [kv.Engine].
func (e *Engine) Close(bool) error {
	if e.closed.Swap(true) {
		return nil
	}
	e.end()
	e.held.Wait()
	e.readers.Close()
	if e.writers != nil { // Open succeeded
		e.writers.Close()
	}
	return nil
}

// named maps an error of the server or the connection to the errors of package kv and
// store.
func named(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, store.ErrConflict), errors.Is(err, errApart), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pg):
		switch {
		case pg.Code == "22012": // division by zero: the fence failed
			return kv.ErrTaken
		case pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23505" || pg.Code == wrongCount: // a conflict; a key that was declared new exists; a known one doesn't
			return store.Mark(err, kv.ErrRetry)
		case pg.Code == "53100":
			return store.Mark(err, store.ErrDiskFull)
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
			pg.Code == "25P03", pg.Code == "25006", pg.Code == "0A000": // the transaction stalled; the server became a replica
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
		t.puts, t.news = map[place]put{}, map[place]put{}
		t.fresh, t.stored, t.there, t.changed = map[place]bool{}, map[place]bool{}, map[place]bool{}, map[place]bool{}
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
