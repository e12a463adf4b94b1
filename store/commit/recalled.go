package commit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"nize/store/kv"
)

// mostRecalled bounds what is kept; then it begins anew.
const mostRecalled = 4096

// recalled is what every call asks for, kept until something is written to the
// buckets that it was read from: one process at a time writes to a database, and
// one on a server costs a message for each question.
type recalled struct {
	mu      sync.Mutex // guards what follows
	commits uint64
	floor   uint64            // what saw fewer is not kept: see forget
	written map[string]uint64 // by bucket: the last commit that wrote to it
	// writing are the buckets of the commit under way, if there is one. Others may read
	// it from the database before this process knows of it, which takes as long as an
	// outage if the connection is lost.
	writing []string
	kept    map[any]kept
	reading map[any]*reading
	ended   bool
}

// reading is a read under way that others wait for who ask for the same: after a write
// many do at once, such as all open pages.
type reading struct {
	at    uint64 // as of kept
	done  chan struct{}
	value any // once done is closed
	ok    bool
}

type kept struct {
	value   any
	at      uint64 // how many commits it saw, at least
	buckets []string
}

func (r *recalled) find(key any) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.kept[key]
	return k.value, ok && r.holdsLocked(k.at, k.buckets)
}

// holdsLocked reports whether what was read of buckets when there were that many commits
// is what they have now.
func (r *recalled) holdsLocked(at uint64, buckets []string) bool {
	return !slices.ContainsFunc(buckets, func(b string) bool { return r.written[b] > at || slices.Contains(r.writing, b) })
}

// begin returns the read of that key that is under way, if it sees all that was written
// to the buckets. Otherwise the caller reads, and calls end.
func (r *recalled) begin(key any, buckets []string) (other *reading, at uint64, end func(value any, ok bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.reading[key]; one != nil && one.at >= r.floor && r.holdsLocked(one.at, buckets) {
		return one, 0, nil
	}
	if r.reading == nil {
		r.reading = map[any]*reading{}
	}
	one := &reading{at: r.commits, done: make(chan struct{})} // before it begins: what it sees is not older
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

func (r *recalled) keep(key any, k kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || k.at < r.floor {
		return
	}
	if r.kept == nil || len(r.kept) >= mostRecalled {
		r.kept = map[any]kept{}
	}
	r.kept[key] = k
}

// writes notes the buckets of a commit before it is made. wrote or forget ends that.
func (r *recalled) writes(buckets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = buckets
}

// wrote notes a commit before anybody is answered who waits for it.
func (r *recalled) wrote(buckets []string) {
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

// forget forgets all, and what is being read now: of a commit nobody knows what became.
func (r *recalled) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits++
	r.floor, r.kept, r.writing = r.commits, nil, nil
}

// end has nothing kept any more: what is closed answers nothing.
func (r *recalled) end() {
	r.forget()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.kept = true, nil
}

// Recall is view for what every call asks for: read reads these buckets alone, and
// what it returns of a key is the same until they change. Nobody changes it. read may run
// more than once, as in [DB.ReadRecent].
func Recall[V any](ctx context.Context, d *DB, what string, key any, read func(*Tx) (V, error), buckets ...string) (v V, err error) {
	for d.current() && ctx.Err() == nil {
		if found, ok := d.recalled.find(key); ok {
			return found.(V), nil
		}
		other, at, end := d.recalled.begin(key, buckets)
		if other == nil {
			return recallAnew(ctx, d, what, key, read, kept{nil, at, buckets}, end)
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

// recallAnew reads, keeps what it read, and hands it to those who wait for it.
func recallAnew[V any](ctx context.Context, d *DB, what string, key any, read func(*Tx) (V, error), k kept, end func(any, bool)) (v V, err error) {
	ok := false
	defer func() { end(k.value, ok) }() // also if read panics
	err = d.ReadRecent(ctx, what, func(t *Tx) (err error) {
		v, err = read(t)
		return err
	})
	if err != nil {
		return v, err
	}
	k.value, ok = v, true
	d.recalled.keep(key, k)
	return v, nil
}

// ReadRecent is Read for what was often just written: an engine far away answers from
// memory if it can. fn may run more than once, so it assigns its results, and adds nothing
// to them.
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
// database: another one may have it. It never ends for a file, whose lock lasts as long as
// the process.
func (d *DB) Term() context.Context {
	if e, ok := d.engine.(interface{ Term() context.Context }); ok {
		return e.Term()
	}
	return context.Background()
}

// current reports whether no other process can have the database.
func (d *DB) current() bool {
	e, ok := d.engine.(interface{ Current() bool })
	return !ok || e.Current()
}

// inParts are the buckets of which recall may be asked for a part: the keys that
// begin with one byte.
var inParts = []string{"calls_by"}

// Part names the part of a bucket, for Recall.
func Part(bucket string, head byte) string { return bucket + "/" + string(head) }

type allOf string

// Recall implements [kv.DB].
func (d *DB) Recall(ctx context.Context, what string, key any, read func(kv.Reader) (any, error), buckets ...string) (any, error) {
	return Recall(ctx, d, what, key, func(t *Tx) (any, error) { return read(t.KV()) }, buckets...)
}
