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
	"syscall"

	bbolt "go.etcd.io/bbolt"

	"nize/store"
	"nize/store/kv"
)

// bbolt never shrinks a file: it only reuses free pages. To shrink it, the file is copied
// beside itself while it is in use, and the copy replaces it:
//
//  1. Each write records its keys from now on.
//  2. Each bucket is copied, a few keys per transaction. Read transactions are short, so
//     they don't keep the writer from reusing pages.
//  3. The recorded keys are copied again, until few are left. Then writers are blocked
//     briefly: the last keys are copied, and the copy is flushed and renamed over the file.
//     Later transactions use the copy.
//
// If the process is killed at any point, there is one complete file under the name: the old
// one, or a copy with all of its commits. Transactions that are reading during the
// replacement continue in the old file, which is closed after the last of them.

// ErrRunning is returned by Compact while another call of it, CopyTo or CheckRest runs.
var ErrRunning = fmt.Errorf("%w: the database is being compacted, copied or checked", store.ErrConflict)

const (
	compactKeys  = 10_000  // per transaction
	compactBytes = 4 << 20 // per transaction
	compactRest  = 2000    // keys copied while writers are blocked
	compactTries = 20      // rounds of copying recorded keys

	// spareSpace stays free beside the copy, so that compacting never takes the disk space
	// that the records of calls need.
	spareSpace = 128 << 20
)

// compactPath returns the path of the unfinished copy.
func compactPath(path string) string { return path + ".compact" }

// generation is an open file of bbolt and the transactions that use it.
type generation struct {
	db   *bbolt.DB
	open sync.WaitGroup
}

// place is a key in a bucket.
type place struct{ bucket, key string }

// written is the set of keys written since a copy began.
type written map[place]bool

func (w written) add(bucket string, key []byte) {
	if w != nil {
		w[place{bucket, string(key)}] = true
	}
}

// Compact returns the space of free pages to the file system and fills the other pages. It
// runs beside other transactions. It needs as much free space as the new file will have; if
// there is less, it returns store.ErrDiskFull, and the file is unchanged. If the new file
// can't be made durable under its name, nothing more is written until the next Open.
func (f *File) Compact(ctx context.Context) (err error) {
	if !f.compacting.TryLock() {
		return ErrRunning
	}
	defer f.compacting.Unlock()
	switch u := f.unchecked.Load(); {
	case u.damage() != nil:
		return u.damage()
	case u != nil: // a copy of a damaged file could lack entries, and pass the check
		return ErrRunning
	}
	path := compactPath(f.path)
	if err := removeIfThere(path); err != nil {
		return fmt.Errorf("compacting the database: %w", err)
	}
	if err := checkSpace(filepath.Dir(path), "compacting", f.CompactSpace()); err != nil {
		return err
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
			_ = old.db.Close() // the file is no longer needed
		})
		sync := f.testOnlySyncDir
		if sync == nil {
			sync = syncFile
		}
		if err := sync(filepath.Dir(f.path)); err != nil {
			// A power failure may restore the old file, without any later commit. The next
			// Open flushes the directory first.
			err = fmt.Errorf("flushing the directory after the database was replaced: %v", err) // a full disk is no reason to go on
			f.failed.Store(&err)
			return err
		}
		return nil
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

// CompactSpace returns how much free disk space Compact needs, in bytes.
func (f *File) CompactSpace() int64 {
	used, free := f.Room()
	return used - free + spareSpace
}

// CopyTo writes a copy to path, where there must be no file or an empty one. The copy has
// all commits before the call, may have later ones, and has no free pages. If CheckRest has
// found damage, CopyTo returns it, since the copy could lack entries unnoticed.
func (f *File) CopyTo(ctx context.Context, path string) error {
	f.compacting.Lock()
	defer f.compacting.Unlock()
	if err := f.unchecked.Load().damage(); err != nil {
		return err
	}
	db, err := f.copy(ctx, path, nil)
	if db != nil {
		err = errors.Join(err, failure(db.Sync()), failure(db.Close()))
	}
	if err != nil {
		return err
	}
	s, size, err := readState(path)
	if used := int64(s.pages * s.pageSize); err == nil && used < size {
		err = os.Truncate(path, used) // bbolt allocates more than it needs
	}
	return err
}

// copy copies all buckets to a new file at path. It returns the open file even with an
// error, if it could be opened. If swap is set, it is called before further writes.
func (f *File) copy(ctx context.Context, path string, swap func(*bbolt.DB, *generation) error) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { err = failure(err) }()
	to := &File{path: path, fill: copyFill(f.fill)}
	o := f.options(false)
	o.MaxSize = f.current().db.MaxSize
	if db, err = openFile(path, o); err != nil {
		return nil, err
	}
	db.NoSync = true // until the copy is complete
	grows := db.AllocSize
	db.AllocSize = 1 << 20 // so that the file is hardly larger than necessary
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
	f.turn.Lock() // block writers until the copy is complete and in place
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

// copyFill returns the fill of pages in a copy. All keys are written in order, so pages of
// buckets that change later get a little free space instead of half a page.
func copyFill(fill map[string]float64) map[string]float64 {
	full := map[string]float64{"": 0.9}
	maps.Copy(full, fill)
	return full
}

// checkSpace returns store.ErrDiskFull if the file system of a directory has fewer than need
// bytes free. If the file system doesn't report that, checkSpace returns nil.
func checkSpace(dir, what string, need int64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return nil
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < need {
		return fmt.Errorf("%w: %s needs %d MiB free, there are %d", store.ErrDiskFull, what, need>>20+1, free>>20)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// copyBuckets copies all buckets; an inner bucket's name is OUTER/INNER.
func (f *File) copyBuckets(ctx context.Context, to *File) error {
	names, err := f.allBuckets(ctx)
	for _, name := range names {
		if err == nil {
			err = f.copyBucket(ctx, to, name)
		}
	}
	return err
}

// allBuckets returns the names of all buckets, each outer one before its inner ones.
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

// copyKeys copies the current values of keys, and deletes the keys that no longer exist.
func (f *File) copyKeys(ctx context.Context, to *File, keys written) error {
	return f.view(ctx, func(t *transaction) error {
		return to.update(ctx, func(w *transaction) error {
			for at := range keys {
				if at.key == "" { // a new bucket
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

// view runs fn in a read transaction. update runs it in a write transaction.
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
