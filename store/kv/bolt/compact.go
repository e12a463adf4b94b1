package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	bbolt "go.etcd.io/bbolt"

	"nize/store"
	"nize/store/kv"
)

// bbolt never makes a file smaller: pages that hold nothing any more are used again, and
// nothing else. So the file is copied beside itself while it is in use, and the copy takes
// its name:
//
//  1. From now on the keys that are written are noted.
//  2. Each bucket is copied, a few keys in each transaction. No reader is long, so none
//     keeps the writer from reusing pages.
//  3. What was noted is copied once more, until there is little of it. With writers held
//     for a moment the rest is copied, the copy is flushed and renamed over the file, and
//     transactions that begin from then on use it.
//
// A process that is killed at any point leaves one whole file under the name: the old one,
// or a copy that has all of its commits. Transactions that read when the files change
// places go on in the old one, which is closed after the last of them.

// ErrRunning is returned by Compact while another one runs.
var ErrRunning = fmt.Errorf("%w: the database is being compacted", store.ErrConflict)

const (
	compactKeys  = 10_000  // that one transaction copies
	compactBytes = 4 << 20 // likewise
	compactRest  = 2000    // keys that are copied while writers are held
	compactTries = 20      // rounds over keys that were written meanwhile
)

// compactPath is the copy while it is made.
func compactPath(path string) string { return path + ".compact" }

// generation is an open file of bbolt and the transactions that use it.
type generation struct {
	db   *bbolt.DB
	open sync.WaitGroup
}

// place is a key in a bucket.
type place struct{ bucket, key string }

// written are the keys that were written while the file is copied.
type written map[place]bool

func (w written) add(bucket string, key []byte) {
	if w != nil {
		w[place{bucket, string(key)}] = true
	}
}

// Compact gives the room of pages that hold nothing back to the file system, and fills the
// others. Others may read and write meanwhile. It needs as much free room as the file will
// have; without it Compact returns store.ErrDiskFull, and the file stays as it is.
func (f *File) Compact(ctx context.Context) (err error) {
	if !f.compacting.TryLock() {
		return ErrRunning
	}
	defer f.compacting.Unlock()
	path := compactPath(f.path)
	if err := removeIfThere(path); err != nil {
		return fmt.Errorf("compacting the database: %w", err)
	}
	swapped := false
	db, err := f.copy(ctx, path, func(db *bbolt.DB, now *generation) error {
		if err := db.Sync(); err != nil {
			return err
		}
		db.NoSync = false
		if err := os.Rename(path, f.path); err != nil {
			return err
		}
		swapped = true
		f.swap.Lock()
		old := f.now
		f.now = now
		f.swap.Unlock()
		f.retired.Go(func() {
			old.open.Wait()
			_ = old.db.Close() // nothing of it is needed any more
		})
		// If this fails, a power cut may bring the old file back, without what is
		// committed from now on.
		return syncFile(filepath.Dir(f.path))
	})
	if !swapped && db != nil {
		err = errors.Join(err, db.Close())
	}
	if !swapped {
		err = errors.Join(err, removeIfThere(path))
	}
	if err != nil {
		return fmt.Errorf("compacting the database: %w", err)
	}
	return nil
}

// CopyTo makes a copy at path, where there is no file or an empty one. It has all commits
// before the call, and some that were made during it. It has no free pages.
func (f *File) CopyTo(ctx context.Context, path string) error {
	f.compacting.Lock()
	defer f.compacting.Unlock()
	db, err := f.copy(ctx, path, nil)
	if db != nil {
		err = errors.Join(err, failure(db.Sync()), failure(db.Close()))
	}
	if err != nil {
		return err
	}
	s, size, err := readState(path)
	if used := int64(s.pages * s.pageSize); err == nil && used < size {
		err = os.Truncate(path, used) // bbolt makes a file larger than it has to be
	}
	return err
}

// copy copies all buckets into a new file at path, which it returns open, if it could open
// it. swap, if set, is called before anything more is written.
func (f *File) copy(ctx context.Context, path string, swap func(*bbolt.DB, *generation) error) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { err = failure(err) }()
	to := &File{path: path, fill: copyFill(f.fill)}
	o := f.options(false)
	o.MaxSize = f.current().db.MaxSize
	if db, err = openFile(path, o); err != nil {
		return nil, err
	}
	db.NoSync = true // until all of it is there
	grows := db.AllocSize
	db.AllocSize = 1 << 20 // so that the file is hardly larger than it has to be
	to.now = &generation{db: db}
	defer func() {
		f.turn.Lock()
		f.noted = nil
		f.turn.Unlock()
	}()
	f.turn.Lock()
	f.noted = written{}
	f.turn.Unlock()
	if err := f.copyBuckets(ctx, to); err != nil {
		return db, err
	}
	for range compactTries {
		f.turn.Lock()
		noted := f.noted
		if len(noted) <= compactRest {
			f.turn.Unlock()
			break
		}
		f.noted = written{}
		f.turn.Unlock()
		if err := f.copyKeys(ctx, to, noted); err != nil {
			return db, err
		}
	}
	f.turn.Lock() // nothing is written until the copy is whole, and has changed places
	defer f.turn.Unlock()
	if err := f.copyKeys(ctx, to, f.noted); err != nil {
		return db, err
	}
	if err := f.copySequences(ctx, to); err != nil {
		return db, err
	}
	if f.closing.Load() {
		return db, store.ErrNotOpen
	}
	db.AllocSize = grows
	if swap != nil {
		return db, swap(db, to.now)
	}
	return db, nil
}

// copyFill is how full pages of a copy are left: all keys of it are put in their order, so
// buckets that change afterwards have some room, and not half of a page.
func copyFill(fill map[string]float64) map[string]float64 {
	full := map[string]float64{"": 0.9}
	maps.Copy(full, fill)
	return full
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// copyBuckets copies all buckets, those inside others under their names with a slash.
func (f *File) copyBuckets(ctx context.Context, to *File) error {
	names, err := f.allBuckets(ctx)
	for _, name := range names {
		if err == nil {
			err = f.copyBucket(ctx, to, name)
		}
	}
	return err
}

// allBuckets names the buckets, each of the top before those inside it.
func (f *File) allBuckets(ctx context.Context) (names []string, err error) {
	err = f.view(ctx, func(t *transaction) error {
		names = nil
		return t.tx.ForEach(func(top []byte, b *bbolt.Bucket) error {
			names = append(names, string(top))
			return b.ForEachBucket(func(inner []byte) error {
				names = append(names, string(top)+"/"+string(inner))
				return nil
			})
		})
	})
	return names, err
}

func (f *File) copyBucket(ctx context.Context, to *File, name string) error {
	top, _, nested := strings.Cut(name, "/")
	if !nested {
		if err := to.update(ctx, func(t *transaction) error { return t.Make(top) }); err != nil {
			return err
		}
	}
	for from, more := []byte(nil), true; more; {
		if f.closing.Load() {
			return store.ErrNotOpen
		}
		var keys, values [][]byte
		err := f.view(ctx, func(t *transaction) error {
			keys, values, more = nil, nil, false
			size := 0
			return t.Range(name, kv.Range{From: from}, func(k, v []byte) bool {
				if v == nil { // a bucket inside this one
					return true
				}
				if more = len(keys) == compactKeys || size > compactBytes; more {
					return false
				}
				keys, values, size = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v)), size+len(k)+len(v)
				return true
			})
		})
		if err == nil && len(keys) > 0 {
			from = append(bytes.Clone(keys[len(keys)-1]), 0)
			err = to.update(ctx, func(t *transaction) error {
				for i, k := range keys {
					if err := t.Put(name, k, values[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyKeys copies what is under keys now, and deletes in the copy what is gone.
func (f *File) copyKeys(ctx context.Context, to *File, keys written) error {
	return f.view(ctx, func(t *transaction) error {
		return to.update(ctx, func(w *transaction) error {
			for at := range keys {
				if at.key == "" { // a bucket was made
					if err := w.Make(at.bucket); err != nil {
						return err
					}
				}
			}
			for at := range keys {
				if at.key == "" {
					continue
				}
				v, err := t.Get(at.bucket, []byte(at.key))
				switch {
				case err != nil:
				case v == nil:
					err = w.Delete(at.bucket, []byte(at.key))
				default:
					err = w.Put(at.bucket, []byte(at.key), v)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// copySequences copies the counters of buckets.
func (f *File) copySequences(ctx context.Context, to *File) error {
	names, err := f.allBuckets(ctx)
	if err != nil {
		return err
	}
	return f.view(ctx, func(t *transaction) error {
		return to.update(ctx, func(w *transaction) error {
			for _, name := range names {
				n, err := t.Sequence(name, 0)
				if err == nil && n > 0 {
					_, err = w.Sequence(name, n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// view and update run fn in a transaction of a file that is copied, and of its copy.
func (f *File) view(ctx context.Context, fn func(*transaction) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := f.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer t.Rollback()
	defer recoverDamage(&err)
	return fn(t.(*transaction))
}

func (f *File) update(ctx context.Context, fn func(*transaction) error) (err error) {
	t, err := f.Begin(ctx, true)
	if err != nil {
		return err
	}
	defer t.Rollback()
	defer recoverDamage(&err)
	if err := fn(t.(*transaction)); err != nil {
		return err
	}
	return t.Commit()
}
