package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// Options configure a [DB]. Engine and Log are required.
type Options struct {
	Engine   kv.Engine  // it is closed with the database
	File     *bolt.File // set if the engine is a file
	Path     string     // of the file
	Log      *slog.Logger
	Sealer   *seal.Sealer
	AuditKey []byte
	Now      func() time.Time // nil is time.Now
	// ReadOnlyLag is how long a write without a waiting caller may be delayed; 0 is 200 ms,
	// which keeps the promise of 250 ms.
	ReadOnlyLag time.Duration
	FeedWindow  int // how many changes are kept; 0 is 50,000
	// Schema is the schema of the database; it decides in which form records are written.
	Schema  uint64
	Buckets []kv.Bucket // all of them; PutSealed needs their declarations
	// Decode returns the function that commits a record of the journal.
	Decode DecodeJournal
}

const defaultLag = 200 * time.Millisecond

// DB is a database with transactions, audit trail and feed. It is safe for concurrent use;
// Close ends it.
type DB struct {
	writer

	engine     kv.Engine
	file       *bolt.File // set if the engine is a file
	path       string
	log        *slog.Logger
	buckets    []kv.Bucket
	sealer     atomic.Pointer[seal.Sealer]
	auditKey   []byte
	schema     atomic.Uint64
	clock      clock
	feed       feed
	head       auditHead // used by the writer only
	trail      feed      // of the audit trail: numbers of events
	cache      cache
	pseudonyms pseudonyms
	aliases    struct {
		atomic.Pointer[aliases]
		sync.Mutex // held while they are reloaded
	}
	// onCommit, if set, is called with the changes of each commit, in order, before the callers
	// that wait for it return. It must not use the database.
	onCommit func([]store.Change)
	closed   func() error
}

// OnCommit sets a function that is called with the changes of each commit, in order, before the
// callers that wait for it return. It must not use the database. OnCommit must be called before
// Run.
func (d *DB) OnCommit(told func([]store.Change)) { d.onCommit = told }

// New returns a [DB] that doesn't write until Run is called.
func New(o Options) *DB {
	d := &DB{
		engine: o.Engine, file: o.File, path: o.Path, log: o.Log, auditKey: o.AuditKey, buckets: o.Buckets,
		clock: clock{read: o.Now},
		feed:  feed{window: feedWindow, grown: make(chan struct{}), watchers: map[*atomic.Uint64]bool{}},
		trail: feed{grown: make(chan struct{})},
	}
	d.sealer.Store(o.Sealer)
	d.schema.Store(o.Schema)
	d.writer.db, d.writer.lag = d, o.ReadOnlyLag
	d.wake, d.written, d.uncommitted = make(chan struct{}, 1), make(chan struct{}), map[string]any{}
	d.early = early{db: d, decode: o.Decode}
	d.room.L = &d.mu
	d.closed = sync.OnceValue(d.close)
	if d.writer.lag <= 0 {
		d.writer.lag = defaultLag
	}
	if d.clock.read == nil {
		d.clock.read = time.Now
	}
	if e, ok := o.Engine.(interface{ Time() (time.Time, bool) }); ok {
		d.clock.reference = e.Time
	}
	if o.FeedWindow > 0 {
		d.feed.window = o.FeedWindow
	}
	return d
}

// Run loads the writer's state, commits what a killed process left in the journal, and
// starts the writer.
func (d *DB) Run() error {
	if err := d.load(); err != nil {
		return err
	}
	if d.file != nil {
		d.reserve()
		if err := d.early.open(); err != nil {
			return err
		}
	}
	go d.write()
	return nil
}

func (d *DB) load() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = Recovered(r)
		}
	}()
	return Transact(d.engine, false, func(b kv.Transaction) error {
		t := &Tx{DB: d, Raw: b}
		if at := t.Get("meta", []byte("clock")); at != nil {
			d.clock.raise(TimeOf(at))
		}
		if seq := t.Get("meta", []byte("journal")); seq != nil {
			d.early.last = DecodeSeq(seq)
		}
		if ahead := d.clock.now().Sub(d.clock.present()); ahead > time.Hour {
			d.log.Warn("the clock is behind the newest record; expiry uses the record's time: nizectl database clock", "behind", ahead.Round(time.Second))
		}
		users, err := ListJSON[store.User](t, "users", nil)
		if err != nil {
			return err
		}
		d.setAliases(users)
		if d.head, err = loadHead(t, d.auditKey); err != nil {
			return err
		}
		d.trail.last.Store(d.head.seq)
		if k := t.Last("feed", nil); k != nil {
			d.feed.last.Store(DecodeSeq(k))
			if d.feed.oldest, _, err = t.oldestChange(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Transact runs fn in a transaction of the engine.
func Transact(e kv.Engine, write bool, fn func(kv.Transaction) error) error {
	b, err := e.Begin(context.Background(), write)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if err := fn(b); err != nil || !write {
		return err
	}
	return b.Commit()
}

// WasClean reports whether the database was closed, not killed, before this Open. It is
// true for a new database.
func (d *DB) WasClean() bool { return d.file == nil || d.file.WasClean() }

// Unchecked reports whether a part of the file is still to be checked by CheckRest.
func (d *DB) Unchecked() bool { return d.file != nil && d.file.Unchecked() }

// CheckRest checks the part of a file that was not checked before it was opened, beside other
// operations. If it is damaged, nothing more is written.
func (d *DB) CheckRest(ctx context.Context) error {
	if !d.Unchecked() {
		return nil
	}
	err := d.file.CheckRest(ctx)
	if errors.Is(err, kv.ErrDamaged) {
		d.mu.Lock()
		d.broken = fmt.Errorf("the database is damaged, so nothing more is stored: %w", err)
		d.room.Broadcast()
		d.mu.Unlock()
	}
	return err
}

// Close writes queued operations and closes the file. Later calls of any method return
// store.ErrNotOpen; a second Close returns the result of the first.
func (d *DB) Close() error { return d.closed() }

func (d *DB) close() error {
	d.mu.Lock()
	d.closing = true
	d.room.Broadcast()
	d.mu.Unlock()
	d.poke()
	<-d.written
	d.cache.close()
	d.feed.end()
	d.trail.end()
	d.mu.Lock()
	err := errors.Join(d.broken, d.lazyErr)
	d.mu.Unlock()
	if err == nil {
		d.NoteBeside(context.Background()) // the writer has stopped
	}
	if err == nil {
		err = d.early.close()
	}
	if err = errors.Join(err, d.engine.Close(err == nil)); err != nil {
		return fmt.Errorf("closing database %s: %w", d.path, err)
	}
	return nil
}

// clock never goes back: not between two readings, and not behind the stored time. If
// several machines share a database, it stays within mostApart of the database's time,
// which advances with the monotonic time: a clock that jumps, or that of a machine that
// takes over, must not expire everyone's tokens permanently.
type clock struct {
	read      func() time.Time
	reference func() (t time.Time, ok bool) // nil without one
	high      atomic.Int64                  // Unix nanoseconds
}

// mostApart is how far a machine's clock may differ from the database's.
const mostApart = 30 * time.Second

// Now returns the time for expiry decisions: never before any time that was stored earlier.
// Code that stores such a time must read it here; otherwise, after the machine's clock was
// set back, it would expire at once.
func (d *DB) Now() time.Time { return d.clock.now() }

func (c *clock) now() time.Time {
	c.raise(c.present())
	return time.Unix(0, c.high.Load()).UTC()
}

// present returns the machine's time, limited by the reference.
func (c *clock) present() time.Time {
	t := c.read()
	if c.reference == nil {
		return t
	}
	ref, ok := c.reference()
	switch {
	case !ok:
	case t.After(ref.Add(mostApart)):
		return ref.Add(mostApart)
	case t.Before(ref.Add(-mostApart)):
		return ref.Add(-mostApart)
	}
	return t
}

func (c *clock) raise(t time.Time) {
	n := t.UnixNano()
	for {
		old := c.high.Load()
		if n <= old || c.high.CompareAndSwap(old, n) {
			return
		}
	}
}
