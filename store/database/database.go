package database

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
	"nize/store/record"
	"nize/store/seal"
)

// Options say how to open a database. Master is needed, and Path or Engine.
type Options struct {
	Path   string
	Engine kv.Engine // instead of the file at Path; it is closed with the database, and where Open fails
	Master *seal.Master
	Now    func() time.Time // nil is time.Now
	Log    *slog.Logger     // nil discards
	// ReadOnlyLag is how long a record of a read-only call may wait for its
	// place on disk; 0 is 200 ms, which keeps the promise of 250 ms.
	ReadOnlyLag time.Duration

	testOnlyMigrations []migration // instead of the list in schema.go
	testOnlyMaxSize    int         // of the file, in bytes: a full disk
	testOnlyFeedWindow int         // instead of feedWindow
}

const defaultLag = 200 * time.Millisecond

// DB is the store. It is safe for concurrent use; Close ends it.
type DB struct {
	record.Nouns // those that need no more of a database than package kv has

	engine   kv.Engine
	file     *bolt.File // which is the engine; nil: it is another
	path     string
	log      *slog.Logger
	lag      time.Duration
	keys     atomic.Pointer[keyring]
	auditKey []byte
	clock    clock
	feed     feed
	head     auditHead     // used by the writer only
	trail    feed          // of the audit trail: numbers of events
	erasing  chan struct{} // holds one: the erasure that may go on
	aliases  struct {
		atomic.Pointer[aliases]
		sync.Mutex // held while they are read again
	}

	wake    chan struct{} // holds one: a poke says "look again", not how often
	written chan struct{} // closed when the writer has ended
	closed  func() error

	mu        sync.Mutex // guards what follows
	waiting   []*op
	lazy      []*op
	lazySize  int
	lazySince time.Time              // when the oldest of lazy came
	lazyErr   error                  // what Flush has yet to report
	retryAt   time.Time              // not before: the disk was full
	unwritten map[string]*store.Call // calls in lazy, by id
	room      sync.Cond              // lazy got shorter, or never will
	full      error                  // the last commit met a full disk, or no database
	broken    error                  // no commit can be trusted any more
	closing   bool
	early     early

	used struct {
		sync.Mutex
		at       map[string]time.Time // by token id: last use that was noted
		recalled recalled             // has a lock of its own
	}
}

var _ store.DB = (*DB)(nil)

// Open opens the database at o.Path and makes it if there is none. An older
// schema is migrated after a backup copy; a newer one is store.ErrOldSchema.
// A damaged file is an error; one that nized has open is another, which says so.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Master == nil {
		return nil, fmt.Errorf("opening database %s: %w options: no master key", o.Path, store.ErrInvalid)
	}
	d := newDB(o)
	if err := d.open(o); err != nil {
		return nil, fmt.Errorf("opening database %s: %w", o.Path, err)
	}
	if d.file != nil {
		d.reserve()
		if err := d.early.open(); err != nil {
			return nil, fmt.Errorf("opening database %s: %w", o.Path, errors.Join(err, d.engine.Close(false)))
		}
	}
	go d.write()
	return d, nil
}

func newDB(o Options) *DB {
	d := &DB{
		path: o.Path, log: o.Log, lag: o.ReadOnlyLag,
		clock:     clock{read: o.Now},
		feed:      feed{window: feedWindow, grown: make(chan struct{}), watchers: map[*atomic.Uint64]bool{}},
		trail:     feed{grown: make(chan struct{})},
		wake:      make(chan struct{}, 1),
		written:   make(chan struct{}),
		erasing:   make(chan struct{}, 1),
		unwritten: map[string]*store.Call{},
	}
	d.early = early{db: d, running: map[string]*store.Call{}, reserved: map[string]store.Reservation{}, threads: map[string]*store.Thread{}}
	d.Nouns = record.Over(d)
	d.used.at = map[string]time.Time{}
	d.room.L = &d.mu
	d.closed = sync.OnceValue(d.close)
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.lag <= 0 {
		d.lag = defaultLag
	}
	if d.clock.read == nil {
		d.clock.read = time.Now
	}
	if o.testOnlyFeedWindow > 0 {
		d.feed.window = o.testOnlyFeedWindow
	}
	return d
}

func (d *DB) open(o Options) (err error) {
	if d.engine = o.Engine; d.engine == nil {
		if d.file, err = bolt.Open(o.Path, bolt.Options{Appended: appended, TestOnlyMaxSize: o.testOnlyMaxSize}); err != nil {
			return err
		}
		d.engine = d.file
	}
	if err := d.start(o); err != nil {
		return errors.Join(err, d.engine.Close(false))
	}
	return nil
}

// start brings the schema up to date and loads what the writer needs.
func (d *DB) start(o Options) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = recovered(r)
		}
	}()
	list := migrations
	if o.testOnlyMigrations != nil {
		list = o.testOnlyMigrations
	}
	if err := d.migrate(list); err != nil {
		return err
	}
	if err := d.addBuckets(); err != nil {
		return err
	}
	if err := d.loadKeys(o.Master); err != nil {
		return err
	}
	return d.begin(false, func(b kv.Transaction) error {
		t := &tx{db: d, b: b}
		if at := t.get("meta", []byte("clock")); at != nil {
			d.clock.raise(timeOf(at))
		}
		if seq := t.get("meta", []byte("journal")); seq != nil {
			d.early.last = decodeSeq(seq)
		}
		if ahead := d.clock.now().Sub(d.clock.read()); ahead > time.Hour {
			d.log.Warn("the clock is behind the newest record; expiry uses the record's time", "behind", ahead.Round(time.Second))
		}
		users, err := listJSON[store.User](t, "users", nil)
		if err != nil {
			return err
		}
		d.setAliases(users)
		if d.head, err = loadHead(t, d.auditKey); err != nil {
			return err
		}
		d.trail.last.Store(d.head.seq)
		if k := t.last("feed", nil); k != nil {
			d.feed.last.Store(decodeSeq(k))
			d.feed.oldest = decodeSeq(t.first("feed", nil))
		}
		return nil
	})
}

// WasClean says whether the database had been closed, not killed, before this
// Open; a new one counts as clean.
func (d *DB) WasClean() bool { return d.file == nil || d.file.WasClean() }

// Close writes what waits and closes the file. Later calls of any method give
// store.ErrNotOpen; a second Close gives what the first one gave.
func (d *DB) Close() error { return d.closed() }

func (d *DB) close() error {
	d.mu.Lock()
	d.closing = true
	d.room.Broadcast()
	d.mu.Unlock()
	d.poke()
	<-d.written
	d.used.recalled.end()
	d.feed.end()
	d.trail.end()
	d.mu.Lock()
	err := errors.Join(d.broken, d.lazyErr)
	d.mu.Unlock()
	if err == nil {
		d.noteBeside(context.Background()) // nothing is written any more
	}
	if err == nil {
		err = d.early.close()
	}
	if err = errors.Join(err, d.engine.Close(err == nil)); err != nil {
		return fmt.Errorf("closing database %s: %w", d.path, err)
	}
	return nil
}

// clock never goes back: not between two readings, and not behind what is
// stored.
type clock struct {
	read func() time.Time
	high atomic.Int64 // Unix nanoseconds
}

// Now is the time by which what is stored expires: never before any that was
// stored earlier. Who writes such a time reads it here, or a clock that was set
// back would have it over at once.
func (d *DB) Now() time.Time { return d.clock.now() }

func (c *clock) now() time.Time {
	c.raise(c.read())
	return time.Unix(0, c.high.Load()).UTC()
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
