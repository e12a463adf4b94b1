// Package postgres is the engine over a database server: anything that speaks
// PostgreSQL's protocol with serialisable transactions. One nized works on a
// database at a time.
//
//	nize_key     bucket, key, value   what is kept
//	nize_bucket  name, sequence       the buckets that were made
//	nize_owner   epoch, commits       who writes: one row
//
// Who opens the engine holds an advisory lock for as long as a connection of its
// own lasts, and takes the next epoch. Each transaction that writes begins with
// the row of the owner: it has to name this epoch, so that one who lost the lock
// without knowing it writes nothing more, and it counts the commits. By that
// count a commit is told from none where the connection was lost meanwhile.
//
// So writers come one after the other, and the snapshot that a reader gets is
// the state between two of them: serialisable, and never to be tried again.
// What a writer puts is sent in one message with its commit, or before it reads
// a range.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// lockNumber is that of the advisory lock, which is a database's own.
	lockNumber = 0x6e697a65
	// beat is how often the lock's connection is tried, and for how long.
	beat = 2 * time.Second
	// release is how long the server may take to see that one that was killed
	// has gone.
	release = 5 * time.Second
	// mostReaders bounds the connections of readers.
	mostReaders = 16
	// patience is how long one transaction that writes may take, and how long
	// it is asked what became of a commit.
	patience = time.Minute
	// maxKey is what an index of PostgreSQL takes, with room for the bucket.
	maxKey = 2400
)

const tables = `
create table if not exists nize_bucket (name text collate "C" primary key, sequence bigint not null default 0);
create table if not exists nize_key (bucket text collate "C" not null, key bytea not null, value bytea not null, primary key (bucket, key));
create table if not exists nize_owner (one boolean primary key default true check (one), epoch bigint not null, commits bigint not null);
insert into nize_owner (epoch, commits) values (0, 0) on conflict do nothing`

// Options say which database is opened.
type Options struct {
	// URL names it, and may hold a password; else PGPASSWORD or a file of
	// passwords (PGPASSFILE, ~/.pgpass) gives it.
	URL store.Secret
	Log *slog.Logger

	testOnlyDial pgconn.DialFunc
}

// Engine is an open database.
type Engine struct {
	log     *slog.Logger
	config  *pgx.ConnConfig
	readers *pgxpool.Pool
	writers *pgxpool.Pool // of one: the outcome of a commit is asked beside it
	epoch   int64
	closed  atomic.Bool
	lost    atomic.Bool // the lock, until it is taken again
	size    atomic.Int64
	end     context.CancelFunc
	held    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	commits int64      // in this database, as far as is known
}

var _ kv.Engine = (*Engine)(nil)

// Open opens a database and makes its tables where they lack. One that another
// nized has open is store.ErrConflict. Errors name no password.
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
	set["synchronous_commit"] = "on" // what is acknowledged is on disk, whatever the server's default
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	if o.testOnlyDial != nil {
		config.ConnConfig.DialFunc = o.testOnlyDial
	}
	e := &Engine{log: o.Log, config: config.ConnConfig}
	lock, err := e.lock(ctx)
	for since := time.Now(); errors.Is(err, store.ErrConflict) && time.Since(since) < release; lock, err = e.lock(ctx) {
		time.Sleep(release / 50)
	}
	if err != nil {
		return nil, err
	}
	if err = e.own(ctx, lock); err == nil {
		err = named(e.measure(ctx, lock))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(ctx))
	}
	background, end := context.WithCancel(context.Background())
	e.end = end
	config.MaxConns = mostReaders
	if e.readers, err = pgxpool.NewWithConfig(background, config.Copy()); err == nil {
		config.MaxConns = 1
		if e.writers, err = pgxpool.NewWithConfig(background, config); err != nil {
			e.readers.Close()
		}
	}
	if err != nil {
		end()
		return nil, errors.Join(named(err), lock.Close(ctx))
	}
	e.held.Go(func() { e.hold(background, lock) })
	return e, nil
}

// lock connects and takes the lock, which lasts as long as the connection.
func (e *Engine) lock(ctx context.Context) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, e.config.Copy())
	if err != nil {
		return nil, named(err)
	}
	var taken bool
	err = c.QueryRow(ctx, "select pg_try_advisory_lock($1)", lockNumber).Scan(&taken)
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
	return named(c.QueryRow(ctx, "update nize_owner set epoch = epoch + 1 returning epoch, commits").Scan(&e.epoch, &e.commits))
}

// hold keeps the lock. While it is lost nothing is read or written: another
// nized may have taken the database over.
func (e *Engine) hold(ctx context.Context, c *pgx.Conn) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if c != nil {
				shut, end := context.WithTimeout(context.WithoutCancel(ctx), beat)
				_ = c.Close(shut) // the lock ends with the connection either way
				end()
			}
			return
		case <-tick.C:
		}
		try, end := context.WithTimeout(ctx, beat)
		if c != nil && e.measure(try, c) != nil && ctx.Err() == nil {
			e.lost.Store(true)
			e.log.Error("the connection that holds the database is lost; nothing is read or written until it is back")
			_ = c.Close(try) // it is lost
			c = nil
		}
		if c == nil && ctx.Err() == nil {
			c = e.retake(try)
		}
		end()
	}
}

// measure tries the connection by asking how large what is kept is.
func (e *Engine) measure(ctx context.Context, c *pgx.Conn) error {
	var size int64
	err := c.QueryRow(ctx, "select pg_total_relation_size('nize_key')").Scan(&size)
	if err == nil {
		e.size.Store(size)
	}
	return err
}

// Where names the server and its database, and tells how many bytes are in it.
func (e *Engine) Where() (name string, size int64) {
	return "PostgreSQL " + e.config.Host + "/" + e.config.Database, e.size.Load()
}

// retake takes the lock again, if nobody else had the database meanwhile.
func (e *Engine) retake(ctx context.Context) *pgx.Conn {
	c, err := e.lock(ctx)
	if err != nil {
		return nil // at the next beat
	}
	var epoch int64
	if err := c.QueryRow(ctx, "select epoch from nize_owner").Scan(&epoch); err != nil || epoch != e.epoch {
		if err == nil {
			e.log.Error("another nized has had the database since; restart this one")
		}
		_ = c.Close(ctx) // and the lock with it
		return nil
	}
	e.lost.Store(false)
	e.log.Info("the connection that holds the database is back")
	return c
}

// Close implements [kv.Engine].
func (e *Engine) Close(bool) error {
	if e.closed.Swap(true) {
		return nil
	}
	e.end()
	e.held.Wait()
	e.readers.Close()
	e.writers.Close()
	return nil
}

// named gives an error of the server or the wire its name.
func named(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, store.ErrConflict), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pg):
		switch {
		case pg.Code == "40001" || pg.Code == "40P01":
			return store.Mark(err, kv.ErrRetry)
		case pg.Code == "53100":
			return store.Mark(err, store.ErrDiskFull)
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"):
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
	if e.lost.Load() {
		return nil, store.ErrNoDatabase
	}
	t := &transaction{e: e, ctx: ctx, end: func() {}}
	pool, begin := e.readers, ""
	if write {
		e.mu.Lock()
		t.write, t.commits = true, e.commits+1
		e.mu.Unlock()
		t.ctx, t.end = context.WithTimeout(ctx, patience)
		t.puts = map[place]put{}
		pool = e.writers
		begin = fmt.Sprintf("begin isolation level serializable; update nize_owner set commits = %d where epoch = %d and commits = %d returning epoch", t.commits, e.epoch, t.commits-1)
	}
	c, err := pool.Acquire(t.ctx)
	if err != nil {
		t.end()
		if e.closed.Load() {
			return nil, store.ErrNotOpen
		}
		return nil, store.Mark(err, store.ErrNoDatabase)
	}
	if t.c = c; !write {
		t.begin = "begin isolation level repeatable read read only" // its snapshot is of the first question anyway
		return t, nil
	}
	results, err := c.Conn().PgConn().Exec(t.ctx, begin).ReadAll()
	switch {
	case err != nil:
		err = named(err)
	case len(results[1].Rows) == 0:
		err = errors.New("another nized has written to the database")
	}
	if err != nil {
		t.Rollback()
		return nil, err
	}
	return t, nil
}
