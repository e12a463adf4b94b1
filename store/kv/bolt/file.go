// Package bolt is the embedded engine: one bbolt file that one process has open.
//
// [Open] checks the two meta pages before bbolt maps the file, since mapping a truncated
// file crashes the process. [Clean] reports whether the file was closed cleanly, from a
// small file beside it that has the number of the last transaction, without opening the
// database; if it was not, the caller runs [CheckStart] first, and [File.CheckRest] later.
//
// Values are mapped memory. Reading one after its transaction is a fault that can't be
// recovered. A damaged page causes a fault inside the transaction, so callers that run one
// call debug.SetPanicOnFault and recover. A long reader prevents the reuse of pages and can
// block a growing writer, so a transaction must not do I/O or call foreign code.
package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"nize/store"
	"nize/store/kv"
)

const (
	lockTimeout = 500 * time.Millisecond
	// initialMmap is the size of the first mapping, so that a growing writer need not wait
	// for readers: 1 GiB of addresses, not of memory.
	initialMmap = 1 << (30 - 32/bits.UintSize*3) // 128 MiB if addresses have 32 bits
)

// recoverDamage turns a panic of bbolt, which a damaged page causes, into an error.
func recoverDamage(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
	}
}

// Options are the options of Open.
type Options struct {
	// Fill is the share of a page of a bucket that is filled when the page is split, from
	// 0.1 to 1. The default of 0.5 suits keys in any order. If keys are put in order,
	// nothing is added to an earlier page, so the rest of it would be lost.
	Fill     map[string]float64
	ReadOnly bool
	// Unchecked is the result of CheckStart: what CheckRest checks later.
	Unchecked *Unchecked

	TestOnlyMaxSize int // size limit of the file in bytes, to simulate a full disk
}

// File is an open file.
type File struct {
	path  string
	fill  map[string]float64
	clean bool
	max   int // testOnlyMaxSize

	swap sync.RWMutex // guards now
	now  *generation
	// failed, if set, is why nothing more can be written durably.
	failed atomic.Pointer[error]
	// testOnlySyncDir is called instead of syncFile for the directory, if it is set.
	testOnlySyncDir func(path string) error
	// turn is held by the writing transaction. It guards noted, the keys that were written
	// since a copy of the file began; nil if none is being made.
	turn  sync.Mutex
	noted written

	compacting sync.Mutex                // held while Compact, CopyTo or CheckRest runs
	unchecked  atomic.Pointer[Unchecked] // set until CheckRest has found no damage
	closing    atomic.Bool
	retired    sync.WaitGroup // earlier generations that still have readers
}

var _ kv.Engine = (*File)(nil)

// Open opens the file at path and creates it if it doesn't exist. It returns an error if
// the file is damaged, and store.ErrConflict if another process has it open.
func Open(path string, o Options) (*File, error) {
	if err := precheck(path); err != nil {
		return nil, err
	}
	f := &File{path: path, fill: o.Fill, clean: Clean(path), max: o.TestOnlyMaxSize}
	f.unchecked.Store(o.Unchecked)
	db, err := openFile(path, f.options(o.ReadOnly))
	f.now = &generation{db: db}
	if err != nil || o.ReadOnly {
		return f, err
	}
	// A new file, or one that replaced another before a failure, may not be in its directory
	// after a power failure until that is flushed.
	if err := syncFile(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("flushing the directory of the database: %w", err), db.Close())
	}
	// The file is not clean from here until Close.
	if err := errors.Join(Unmark(path), removeIfThere(compactPath(path))); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if o.Unchecked != nil {
		_ = markChecking(path, o.Unchecked.processes) // on a full disk, this process isn't counted
	}
	return f, nil
}

func (f *File) options(readOnly bool) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         lockTimeout,
		ReadOnly:        readOnly,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: initialMmap,
		MaxSize:         f.max,
	}
}

// current returns the current generation.
func (f *File) current() *generation {
	f.swap.RLock()
	defer f.swap.RUnlock()
	return f.now
}

// openFile is bbolt.Open that returns panics as errors.
func openFile(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
	}()
	db, err = bbolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: it is in use, most likely by another nized on this data directory; stop that one first", store.ErrConflict)
	case err != nil:
		return nil, err
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := os.Chmod(path, 0o600); err != nil { // a copied file may have a wider mode
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// WasClean reports whether the file had been closed cleanly before it was opened; it is
// true for a new file.
func (f *File) WasClean() bool { return f.clean }

// Failed returns why nothing more can be written durably, or nil.
func (f *File) Failed() error {
	if failed := f.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Close implements [kv.Engine].
func (f *File) Close(clean bool) error {
	f.closing.Store(true)
	f.compacting.Lock() // Compact and CheckRest stop soon
	defer f.compacting.Unlock()
	f.retired.Wait()
	err, unchecked := f.current().db.Close(), f.unchecked.Load()
	switch {
	case err != nil || !clean || f.failed.Load() != nil || unchecked.damage() != nil:
		return err
	case unchecked != nil:
		return Unmark(f.path)
	}
	return mark(f.path)
}

// Stats are the figures of a file.
type Stats struct {
	Commits    uint64        // since the file was created
	CommitTime time.Duration // of commits since Open: laying out and writing pages, and the flush
}

// Stats never waits for the disk.
func (f *File) Stats() (s Stats) {
	db := f.current().db
	_ = db.View(func(b *bbolt.Tx) error { s.Commits = uint64(b.ID()); return nil }) // 0 for a closed file
	stats := db.Stats()
	s.CommitTime = stats.TxStats.GetRebalanceTime() + stats.TxStats.GetSpillTime() + stats.TxStats.GetWriteTime()
	return s
}

// TestOnlyMaxSize sets the size limit of the file; 0 removes it. Only a writing transaction
// may call it.
func (f *File) TestOnlyMaxSize(n int) { f.current().db.MaxSize = n }

// CopyBefore copies the file to a file beside it. It returns store.ErrDiskFull if there is
// no room for the copy and for the migration after it.
func (f *File) CopyBefore(to string) error {
	err := f.current().db.View(func(b *bbolt.Tx) error {
		if err := checkSpace(filepath.Dir(f.path), "a migration", 2*b.Size()); err != nil {
			return err
		}
		return b.CopyFile(to+".part", 0o600)
	})
	if err == nil {
		err = syncFile(to + ".part")
	}
	if err == nil {
		err = os.Rename(to+".part", to)
	}
	if err != nil {
		if rerr := os.Remove(to + ".part"); !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// failure translates an error of bbolt to one of store.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, bolterrors.ErrMaxSizeReached):
		return store.Mark(err, store.ErrDiskFull)
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return store.ErrNotOpen
	}
	return err
}

// Begin implements [kv.Engine].
func (f *File) Begin(_ context.Context, write bool) (kv.Transaction, error) {
	if write {
		f.turn.Lock()
		if failed := f.failed.Load(); failed != nil {
			f.turn.Unlock()
			return nil, *failed
		}
	}
	f.swap.RLock()
	g := f.now
	g.open.Add(1)
	f.swap.RUnlock()
	t := &transaction{f: f, g: g, write: write}
	var err error
	if t.tx, err = g.db.Begin(write); err != nil {
		t.end()
		return nil, failure(err)
	}
	if write {
		t.noted = f.noted
	}
	t.open = t.few[:0]
	return t, nil
}

// end releases the turn and the generation. Further calls do nothing.
func (t *transaction) end() {
	if t.g == nil {
		return
	}
	t.g.open.Done()
	t.g = nil
	if t.write {
		t.f.turn.Unlock()
	}
}

type transaction struct {
	tx    *bbolt.Tx
	f     *File
	g     *generation // nil after the end
	write bool
	noted written // records the keys that are written, if set

	open []opened // cache of buckets, since bbolt looks them up each time
	few  [4]opened
}

type opened struct {
	name string
	b    *bbolt.Bucket
}

// bucket returns a bucket, which may be inside a top-level one, such as the vectors of a
// model. It returns nil for an inner bucket that doesn't exist.
func (t *transaction) bucket(name string) (*bbolt.Bucket, error) {
	for i := range t.open {
		if t.open[i].name == name {
			return t.open[i].b, nil
		}
	}
	b := t.tx.Bucket([]byte(name))
	if b == nil {
		top, inner, nested := strings.Cut(name, "/")
		b = t.tx.Bucket([]byte(top))
		if !nested || b == nil {
			return nil, fmt.Errorf("%w: bucket %s is missing", kv.ErrDamaged, top)
		}
		if b = b.Bucket([]byte(inner)); b == nil {
			return nil, nil
		}
	}
	if fill, ok := t.f.fill[name]; ok {
		b.FillPercent = fill
	} else if fill, ok := t.f.fill[""]; ok { // the default for other buckets
		b.FillPercent = fill
	}
	t.open = append(t.open, opened{name, b})
	return b, nil
}

func (t *transaction) Get(bucket string, key []byte) ([]byte, error) {
	b, err := t.bucket(bucket)
	if b == nil {
		return nil, err
	}
	return b.Get(key), nil
}

// New implements [kv.Transaction].
func (t *transaction) New(bucket string, key []byte) (bool, error) {
	v, err := t.Get(bucket, key)
	return v == nil, err
}

func (t *transaction) Put(bucket string, key, value []byte) error {
	t.noted.add(bucket, key)
	b, err := t.bucket(bucket)
	if err != nil {
		return err
	}
	if b == nil {
		top, inner, _ := strings.Cut(bucket, "/")
		if b, err = t.tx.Bucket([]byte(top)).CreateBucket([]byte(inner)); err != nil {
			return failure(err)
		}
	}
	return failure(b.Put(key, value))
}

func (t *transaction) Delete(bucket string, key []byte) error {
	t.noted.add(bucket, key)
	b, err := t.bucket(bucket)
	if b == nil {
		return err
	}
	return failure(b.Delete(key))
}

// Range implements [kv.Transaction].
func (t *transaction) Range(bucket string, r kv.Range, do func(k, v []byte) bool) error {
	b, err := t.bucket(bucket)
	if b == nil {
		return err
	}
	c := b.Cursor()
	from := r.From
	if bytes.Compare(from, r.Prefix) < 0 {
		from = r.Prefix
	}
	if !r.Reverse {
		k, v := c.Seek(from)
		for n := 0; k != nil && bytes.HasPrefix(k, r.Prefix) && (r.Before == nil || bytes.Compare(k, r.Before) < 0); k, v = c.Next() {
			if !do(k, v) {
				break
			}
			if n++; n == r.Limit {
				break
			}
		}
		return nil
	}
	k, v := last(c, kv.End(r))
	for n := 0; k != nil && bytes.Compare(k, from) >= 0; k, v = c.Prev() {
		if !do(k, v) {
			break
		}
		if n++; n == r.Limit {
			break
		}
	}
	return nil
}

// last moves to the last key before end; a nil end is the end of the bucket.
func last(c *bbolt.Cursor, end []byte) (k, v []byte) {
	if end == nil {
		return c.Last()
	}
	if k, _ := c.Seek(end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func (t *transaction) Sequence(bucket string, add uint64) (uint64, error) {
	b, err := t.bucket(bucket)
	if b == nil {
		return 0, err
	}
	n := b.Sequence() + add
	if add == 0 {
		return n, nil
	}
	return n, failure(b.SetSequence(n))
}

func (t *transaction) Buckets() (names []string, err error) {
	err = t.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		names = append(names, string(name))
		return nil
	})
	return names, err
}

func (t *transaction) Make(bucket string) error {
	t.noted.add(bucket, nil)
	_, err := t.tx.CreateBucketIfNotExists([]byte(bucket))
	return failure(err)
}

func (t *transaction) Commit() error {
	defer t.end() // bbolt rolls back what it can't commit
	return failure(t.tx.Commit())
}

// Rollback implements [kv.Transaction]; it does nothing after a commit.
func (t *transaction) Rollback() {
	_ = t.tx.Rollback()
	t.end()
}
