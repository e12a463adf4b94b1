package commit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"nize/store/kv"
)

// maxCached is the maximum size of the cache; beyond it the cache is cleared.
const maxCached = 4096

// cache is a cache of values that every call reads. An entry is valid until one of the
// buckets that it was read from is written. That works because one process at a time writes
// to a database; if the database is on a server, each read would cost a round trip.
type cache struct {
	mu      sync.Mutex // guards the fields below
	commits uint64
	floor   uint64            // reads that saw fewer commits are not cached: see clear
	written map[string]uint64 // the last commit that wrote to each bucket
	// writing are the buckets of the commit in progress, if any. Other readers may see it
	// in the database before this process knows its result; if the connection is lost, that
	// takes until the outage ends.
	writing []string
	entries map[any]cacheEntry
	reading map[any]*reading
	ended   bool
}

// reading is a read in progress that other callers of the same key wait for: after a write
// many read the same at once, such as all open pages.
type reading struct {
	at    uint64 // as in cacheEntry
	done  chan struct{}
	value any // set when done is closed
	ok    bool
}

type cacheEntry struct {
	value   any
	at      uint64 // the minimum number of commits that it saw
	buckets []string
}

func (r *cache) get(key any) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.entries[key]
	return k.value, ok && r.holdsLocked(k.at, k.buckets)
}

// holdsLocked reports whether data read from buckets after at commits is still current.
func (r *cache) holdsLocked(at uint64, buckets []string) bool {
	return !slices.ContainsFunc(buckets, func(b string) bool { return r.written[b] > at || slices.Contains(r.writing, b) })
}

// begin returns the read of that key that is in progress, if it sees every write to the
// buckets. Otherwise the caller must read and then call end.
func (r *cache) begin(key any, buckets []string) (other *reading, at uint64, end func(value any, ok bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.reading[key]; one != nil && one.at >= r.floor && r.holdsLocked(one.at, buckets) {
		return one, 0, nil
	}
	if r.reading == nil {
		r.reading = map[any]*reading{}
	}
	one := &reading{at: r.commits, done: make(chan struct{})} // counted before the read begins, so that the read is no older
	r.reading[key] = one
	return nil, one.at, func(value any, ok bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.reading[key] == one {
			delete(r.reading, key)
		}
		one.value, one.ok = value, ok
		close(one.done)
	}
}

func (r *cache) put(key any, k cacheEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || k.at < r.floor {
		return
	}
	if r.entries == nil || len(r.entries) >= maxCached {
		r.entries = map[any]cacheEntry{}
	}
	r.entries[key] = k
}

// beginWrite records the buckets of a commit before it is made. endWrite or clear ends that
// state.
func (r *cache) beginWrite(buckets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = buckets
}

// endWrite records a commit before the callers that wait for it return.
func (r *cache) endWrite(buckets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written == nil {
		r.written = map[string]uint64{}
	}
	r.commits++
	r.writing = nil
	for _, b := range buckets {
		r.written[b] = r.commits
	}
}

// clear drops all entries and invalidates reads in progress, because the result of a
// commit is unknown.
func (r *cache) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits++
	r.floor, r.entries, r.writing = r.commits, nil, nil
}

// close drops the cache and disables it.
func (r *cache) close() {
	r.clear()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.entries = true, nil
}

// Recall is a cached [DB.View]. read must read only the given buckets, and its result for a
// key must depend only on them. Callers must not modify the result. read may run more than
// once, as in [DB.ReadRecent].
func Recall[V any](ctx context.Context, d *DB, what string, key any, read func(*Tx) (V, error), buckets ...string) (v V, err error) {
	for d.current() && ctx.Err() == nil {
		if found, ok := d.cache.get(key); ok {
			return found.(V), nil
		}
		other, at, end := d.cache.begin(key, buckets)
		if other == nil {
			return readIntoCache(ctx, d, what, key, read, cacheEntry{nil, at, buckets}, end)
		}
		select {
		case <-other.done:
			if other.ok && d.current() {
				return other.value.(V), nil
			}
		case <-ctx.Done():
		}
	}
	err = d.Read(ctx, what, func(t *Tx) (err error) {
		v, err = read(t)
		return err
	})
	return v, err
}

// readIntoCache reads the value, caches it, and returns it to the callers that wait for it.
func readIntoCache[V any](ctx context.Context, d *DB, what string, key any, read func(*Tx) (V, error), k cacheEntry, end func(any, bool)) (v V, err error) {
	ok := false
	defer func() { end(k.value, ok) }() // even if read panics
	err = d.ReadRecent(ctx, what, func(t *Tx) (err error) {
		v, err = read(t)
		return err
	})
	if err != nil {
		return v, err
	}
	k.value, ok = v, true
	d.cache.put(key, k)
	return v, nil
}

// ReadRecent is Read for data that was often just written: a remote engine answers from
// memory if it can. fn may run more than once, so it must assign its results, not append to
// them.
func (d *DB) ReadRecent(ctx context.Context, what string, fn func(*Tx) error) (err error) {
	if e, ok := d.engine.(interface {
		Recent(func(kv.Transaction)) bool
	}); ok && ctx.Err() == nil && e.Recent(func(b kv.Transaction) { err = fn(&Tx{DB: d, Raw: b}) }) {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		return err
	}
	return d.Read(ctx, what, fn)
}

// Term returns a context that ends when this process may no longer answer from the
// database, because another process may own it. It never ends for a file, whose lock lasts
// as long as the process.
func (d *DB) Term() context.Context {
	if e, ok := d.engine.(interface{ Term() context.Context }); ok {
		return e.Term()
	}
	return context.Background()
}

// current reports whether this process still owns the database.
func (d *DB) current() bool {
	e, ok := d.engine.(interface{ Current() bool })
	return !ok || e.Current()
}

// inParts are the buckets of which Recall can name a part: the keys that begin with one
// byte.
var inParts = []string{"calls_by"}

// Part returns the name of a part of a bucket, for Recall.
func Part(bucket string, head byte) string { return bucket + "/" + string(head) }

type allOf string

// Recall implements [kv.DB].
func (d *DB) Recall(ctx context.Context, what string, key any, read func(kv.Reader) (any, error), buckets ...string) (any, error) {
	return Recall(ctx, d, what, key, func(t *Tx) (any, error) { return read(t.KV()) }, buckets...)
}

// Decoded lists the records of a bucket that are stored as JSON, and decodes only those that
// changed since its last list. Its lists share what the records point to.
type Decoded[T any] struct {
	mu    sync.Mutex // guards known
	known map[string]decodedRecord[T]
}

type decodedRecord[T any] struct {
	raw   []byte
	value T
}

// List returns every record of the bucket in key order, like [ListJSON].
func (d *Decoded[T]) List(t *Tx, bucket string) (list []T, err error) {
	d.mu.Lock()
	before := d.known
	d.mu.Unlock()
	now := make(map[string]decodedRecord[T], len(before)) // before may be in use
	list = make([]T, 0, len(before))
	err = t.Each(bucket, nil, func(k, v []byte) error {
		one, ok := before[string(k)]
		if !ok || !bytes.Equal(one.raw, v) {
			value, err := DecodeJSON[T](v)
			if err != nil {
				return err
			}
			one = decodedRecord[T]{bytes.Clone(v), value}
		}
		now[string(k)] = one
		list = append(list, one.value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.known = now
	d.mu.Unlock()
	return list, nil
}
