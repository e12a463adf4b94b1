package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/record"
	"nize/store/record/access"
	"nize/store/record/calls"
	"nize/store/record/catalog"
	"nize/store/record/incidents"
	"nize/store/record/people"
	"nize/store/record/retention"
	"nize/store/record/spending"
	"nize/store/record/threads"
	"nize/store/seal"
)

// Options configure Open. Master is required, and Path or Engine.
type Options struct {
	Path   string
	Engine kv.Engine // instead of the file at Path; closed with the database, and if Open fails
	Master *seal.Master
	Now    func() time.Time // nil is time.Now
	Log    *slog.Logger     // nil discards
	// Buckets are those of modules, beside [Buckets]. Open creates missing ones, and a
	// rotation of keys reseals those that are sealed: every open of a database passes the same.
	Buckets []kv.Bucket
	// Unchecked is the part of the file that CheckRest is to check.
	Unchecked *bolt.Unchecked
	// ReadOnlyLag is how long the record of a read-only call may be delayed; 0 is 200 ms,
	// which keeps the promise of 250 ms.
	ReadOnlyLag time.Duration

	testOnlyMigrations []migration // instead of the list in schema.go
	TestOnlyMaxSize    int         // of the file, in bytes: simulates a full disk
	TestOnlyFeedWindow int         // instead of 50,000
}

// DB is the store: all records over one database. It is safe for concurrent use; Close ends
// it.
type DB struct {
	*commit.DB
	nouns

	engine  kv.Engine
	buckets []kv.Bucket                 // all of them
	master  atomic.Pointer[seal.Master] // the key in use
}

type nouns struct {
	record.Nouns // the records that need only package kv
	access.Access
	calls.Calls
	catalog.Catalog
	incidents.Incidents
	people.People
	retention.Retention
	spending.Spending
	threads.Threads
	*commit.Trail
}

var _ store.DB = (*DB)(nil)

// Open opens the database at o.Path and creates it if there is none. It migrates an older
// schema after making a backup copy, and returns store.ErrOldSchema for a newer one. The
// errors for a damaged file and for one that nized has open say so.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Master == nil {
		return nil, fmt.Errorf("opening database %s: %w options: no master key", o.Path, store.ErrInvalid)
	}
	d, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", o.Path, err)
	}
	return d, nil
}

func open(o Options) (d *DB, err error) {
	c := commit.Options{Engine: o.Engine, Path: o.Path, Log: o.Log, Now: o.Now, ReadOnlyLag: o.ReadOnlyLag, FeedWindow: o.TestOnlyFeedWindow, Buckets: slices.Concat(Buckets, o.Buckets), Decode: decodeJournal}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Engine == nil {
		if c.File, err = bolt.Open(o.Path, bolt.Options{Fill: fillOf, Unchecked: o.Unchecked, TestOnlyMaxSize: o.TestOnlyMaxSize}); err != nil {
			return nil, err
		}
		c.Engine = c.File
	}
	list := migrations
	if o.testOnlyMigrations != nil {
		list = o.testOnlyMigrations
	}
	if err = prepare(&c, list, o.Master); err == nil {
		d = over(commit.New(c), c, o.Master)
		err = d.Run()
	}
	if err == nil {
		ctx := context.Background()
		if err = errors.Join(d.IndexWaiting(ctx), d.IndexGrants(ctx)); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Engine.Close(false))
	}
	return d, nil
}

// over returns the records over a [commit.DB].
func over(c *commit.DB, o commit.Options, master *seal.Master) *DB {
	trail := commit.TrailOf(c)
	d := &DB{DB: c, engine: o.Engine, buckets: o.Buckets, nouns: nouns{
		record.Over(c), access.Over(c), calls.Over(c), catalog.Over(c), incidents.Over(c),
		people.Over(c), retention.Over(c, trail), spending.Over(c), threads.Over(c), trail,
	}}
	d.master.Store(master)
	return d
}

// prepare migrates the schema and opens or creates the keys.
func prepare(c *commit.Options, list []migration, master *seal.Master) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = commit.Recovered(r)
		}
	}()
	if err := migrate(c, list); err != nil {
		return err
	}
	if err := addBuckets(c.Engine, c.Buckets); err != nil {
		return err
	}
	return loadKeys(c, master)
}

// decodeJournal implements [commit.DecodeJournal].
func decodeJournal(content []byte) (fn func(*commit.Tx) error, round bool, err error) {
	p, err := commit.UnpackN(content, 3)
	switch {
	case err != nil:
		return nil, false, err
	case len(p) >= calls.CallParts:
		fn, err = calls.DecodeBegun(content)
		return fn, false, err
	case string(p[0]) == threads.StepKind:
		fn, err = threads.DecodeStep(p)
		return fn, true, err
	}
	fn, err = spending.DecodeHeld(p)
	return fn, false, err
}

// Layout returns all buckets: those of the records and of modules.
func (d *DB) Layout() []kv.Bucket { return d.buckets }

// Health is the state of the store, for operators.
type Health = commit.Health

// Clocks holds the database's time and the current time.
type Clocks = commit.Clocks
