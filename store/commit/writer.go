package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/outage"
)

const (
	// lazyCount and lazyBytes bound what waits for the disk unwaited-for: a
	// second's worth at full speed, and memory that a small machine has.
	lazyCount = 8192
	lazyBytes = 32 << 20
	// flushCount is when the lag is not waited for: large commits cost little
	// more than small ones, but they hold others up.
	flushCount = 1024
	// maxMerge bounds one transaction.
	maxMerge = 1024
	// maxRetries bounds how often one is tried where another came first.
	maxRetries = 10
	// retryAfter is how soon records are tried again that could not be stored.
	retryAfter = time.Second
	// recoveredEvery is how often the feed tells that the database answers again.
	recoveredEvery = 2 * time.Second
)

// writer writes what waits: of a [DB], the part that one goroutine does.
type writer struct {
	db      *DB
	lag     time.Duration
	wake    chan struct{} // holds one: a poke says "look again", not how often
	written chan struct{} // closed when the writer has ended

	mu          sync.Mutex // guards what follows
	waiting     []*op
	lazy        []*op
	lazySize    int
	lazySince   time.Time      // when the oldest of lazy came
	lazyErr     error          // what Flush has yet to report
	retryAt     time.Time      // not before: the disk was full, or there was no database
	uncommitted map[string]any // what is shown of lazy, by key
	room        sync.Cond      // lazy got shorter, or never will
	full        error          // the last commit met a full disk, or no database
	outage      bool           // something failed since the database did not answer; the feed tells its end
	toldAt      time.Time      // when it told that last
	broken      error          // no commit can be trusted any more
	closing     bool
	early       early
}

// The life of an operation. Only its own goroutine may give it up, and only
// while the writer has not taken it; so an operation whose context ended is
// either not done at all or waited for.
const (
	opWaiting int32 = iota
	opTaken
	opGivenUp
)

// op is one operation on its way to the writer.
type op struct {
	// fn runs inside the transaction. It may run again if another operation of
	// the transaction fails, so it assigns its results and does not add to them.
	fn    func(*Tx) error
	err   error
	state atomic.Int32
	done  chan struct{} // nil: nobody waits
	// urgency is for what a full disk must not hold up, see reserve.go.
	urgency urgency
	// flushes is set if it is done once the records before it are committed, and so
	// never without them.
	flushes bool
	lazy    *Later
}

// Later is what an operation that nobody waits for carries.
type Later struct {
	Key   string // with one, Uncommitted gives Shown meanwhile
	Shown any    // a pointer, of which the newest of a key counts
	Size  int    // roughly, in bytes
	// Optional is what is left out rather than waited for while the queue is full.
	Optional bool

	// Awaited is what [DB.CommitJournal] waits for although it is in no journal.
	Awaited bool

	// Of a record in the journal alone.
	Fresh     bool   // it is left out where something is shown under its key
	Round     bool   // it is of a program's round
	Ran       bool   // it is what came of a call that ran: a full disk is no reason to leave it out
	Committed func() // called once it is, or never will be; it must not use the database
	seq       uint64 // its number there
}

// Write runs fn in a writing transaction and returns when that is on disk.
func (d *writer) Write(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{})})
}

// flush returns when the records that wait are on disk, or with the reason why not.
func (d *writer) flush(ctx context.Context, what string) error {
	return d.submit(ctx, what, &op{fn: func(*Tx) error { return nil }, done: make(chan struct{}), flushes: true})
}

func (d *writer) submit(ctx context.Context, what string, o *op) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	term := d.db.Term()
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return fmt.Errorf("%s: %w", what, store.ErrNotOpen)
	}
	if term.Err() != nil {
		d.mu.Unlock()
		return d.lapsed(what)
	}
	d.waiting = append(d.waiting, o)
	d.mu.Unlock()
	d.poke()
	select {
	case <-o.done:
	case <-term.Done(): // the one before it may wait for a database that does not answer
		if o.state.CompareAndSwap(opWaiting, opGivenUp) {
			return d.lapsed(what)
		}
		<-o.done
	case <-ctx.Done():
		if o.state.CompareAndSwap(opWaiting, opGivenUp) {
			if term.Err() != nil {
				return d.lapsed(what)
			}
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
		<-o.done // it is being written: the truth is a few milliseconds away
	}
	if o.err != nil {
		return fmt.Errorf("%s: %w", what, o.err)
	}
	return nil
}

// lapsed is why nothing is read or begun while this process may not have the database.
func (d *writer) lapsed(what string) error {
	d.noteOutage()
	return fmt.Errorf("%s: %w", what, store.ErrNoDatabase)
}

// WriteLater queues fn for the next transaction. It waits only while the queue is
// full; it reports false when the store is closed or cannot be written any more.
func (d *writer) WriteLater(l Later, fn func(*Tx) error) bool {
	o := &op{fn: fn, lazy: &l}
	d.mu.Lock()
	for !d.closing && d.broken == nil && (len(d.lazy) >= lazyCount || d.lazySize >= lazyBytes) {
		if l.Optional {
			d.mu.Unlock()
			return false
		}
		d.room.Wait()
	}
	if d.closing || d.broken != nil {
		d.mu.Unlock()
		return false
	}
	d.queueLocked(o)
	d.mu.Unlock()
	return true
}

// queueLocked queues what nobody waits for. It needs d.mu.
func (d *writer) queueLocked(o *op) {
	if len(d.lazy) == 0 {
		d.lazySince = time.Now()
	}
	d.lazy = append(d.lazy, o)
	d.lazySize += o.lazy.Size
	if o.lazy.Awaited {
		d.early.waits++
	}
	if o.lazy.Key != "" {
		d.uncommitted[o.lazy.Key] = o.lazy.Shown
	}
	if len(d.lazy) == 1 || len(d.lazy) == flushCount {
		d.poke()
	}
}

// Uncommitted is what is shown under a key whose record is not committed, or nil.
func (d *writer) Uncommitted(key string) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uncommitted[key]
}

// LogLost notes for Flush what later would not take.
func (d *writer) LogLost(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lazyErr == nil { // one says it all: the store is closed or broken
		d.lazyErr = fmt.Errorf("%s: %w", what, cmp.Or(d.broken, store.ErrNotOpen))
	}
}

// poke wakes the writer; one waiting poke is enough.
func (d *writer) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// write is the writer. It ends after Close, with both queues empty.
func (d *writer) write() {
	defer close(d.written)
	// A damaged page may make an engine touch memory outside the file; as a panic that
	// can be reported to who waits.
	debug.SetPanicOnFault(true)
	for {
		waiting, lazy, last := d.take()
		if len(waiting)+len(lazy) > 0 {
			d.settle(waiting, lazy)
		}
		if last {
			return
		}
	}
}

// take waits until there is something to write. last is set when the store is
// closing and nothing is left behind.
func (d *writer) take() (waiting, lazy []*op, last bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		wait, some := d.dueLocked()
		if some && wait <= 0 {
			n := min(len(d.waiting), maxMerge)
			for _, o := range d.waiting[:n] {
				if o.state.CompareAndSwap(opWaiting, opTaken) {
					waiting = append(waiting, o)
				}
			}
			d.waiting = append([]*op(nil), d.waiting[n:]...)
			lazy, d.lazy = d.lazy, nil
			if d.early.file != nil && len(lazy) > 0 {
				d.early.file.Turn()
			}
			last = d.closing && len(d.waiting) == 0
			d.mu.Unlock()
			return waiting, lazy, last
		}
		d.mu.Unlock()
		if !some {
			<-d.wake
			continue
		}
		timer.Reset(wait)
		select {
		case <-d.wake:
		case <-timer.C:
		}
	}
}

// dueLocked says whether there is something to write and how long that may
// wait. It needs d.mu.
func (d *writer) dueLocked() (wait time.Duration, some bool) {
	if len(d.waiting) > 0 || d.closing {
		return 0, true
	}
	if len(d.lazy) == 0 {
		return 0, false
	}
	due := d.lazySince.Add(d.lag)
	if len(d.lazy) >= flushCount {
		due = d.lazySince
	}
	if due.Before(d.retryAt) {
		due = d.retryAt
	}
	return time.Until(due), true
}

// settle writes what was taken and tells everybody.
func (d *writer) settle(waiting, lazy []*op) {
	err := d.run(append(lazy[:len(lazy):len(lazy)], waiting...))
	if errors.Is(err, store.ErrDiskFull) && len(lazy) > 0 && len(waiting) > 0 {
		// What people wait for is small, the records may be large: it may fit alone.
		var alone, flushes []*op
		for _, o := range waiting {
			if o.flushes {
				flushes = append(flushes, o)
			} else {
				alone = append(alone, o)
			}
		}
		if err2 := d.run(alone); err2 == nil {
			d.setFull(err) // for records there is no room yet
			d.keep(lazy, err)
			d.tell(alone, nil)
			d.tell(flushes, err)
			return
		}
	}
	if len(lazy) > 0 {
		d.keep(lazy, err)
	}
	if errors.Is(err, store.ErrDiskFull) {
		waiting = d.squeeze(waiting, err)
	}
	d.tell(waiting, err)
}

// tell wakes those who wait; err is of the commit and concerns all.
func (d *writer) tell(waiting []*op, err error) {
	for _, o := range waiting {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

// waits says whether what could not be stored may be before long: there is no
// room, or the database does not answer.
func waits(err error) bool {
	return errors.Is(err, store.ErrDiskFull) || errors.Is(err, store.ErrNoDatabase)
}

// keep forgets records that are written and puts back those that wait.
func (d *writer) keep(lazy []*op, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if waits(err) && !d.closing {
		d.lazy = append(lazy, d.lazy...)
		d.retryAt = time.Now().Add(retryAfter)
		d.lazyErr = err
		return
	}
	d.retryAt = time.Time{}
	if err == nil && waits(d.lazyErr) {
		d.lazyErr = nil // what waited for room is written
	}
	if err == nil && d.early.file != nil {
		d.early.file.Done()
	}
	for _, o := range lazy {
		d.lazySize -= o.lazy.Size
		d.early.committedLocked(o.lazy)
		if k := o.lazy.Key; k != "" && d.uncommitted[k] == o.lazy.Shown {
			delete(d.uncommitted, k)
		}
		if err == nil && o.err != nil {
			d.lazyErr = errors.Join(d.lazyErr, o.err)
		}
	}
	if err != nil {
		d.lazyErr = errors.Join(d.lazyErr, fmt.Errorf("writing %d records: %w", len(lazy), err))
	}
	d.room.Broadcast()
}

// run writes the operations in one transaction. It sets the error of each and
// returns that of the commit, which then holds for all of them.
func (d *writer) run(ops []*op) error {
	d.mu.Lock()
	broken := d.broken
	d.mu.Unlock()
	if broken != nil {
		return broken
	}
	journaled := uint64(0) // as far as that, also where one of them errs
	for _, o := range ops {
		if o.lazy != nil {
			journaled = max(journaled, o.lazy.seq)
		}
	}
	for again := 0; ; {
		bad, err := d.try(ops, journaled)
		if errors.Is(err, kv.ErrRetry) && again < maxRetries {
			again++
			time.Sleep(time.Duration(again) * time.Millisecond)
			continue
		}
		if err != nil {
			return d.failed(err)
		}
		if bad < 0 {
			return nil
		}
		// That one had changed something before it erred: without it, again.
		ops = append(ops[:bad:bad], ops[bad+1:]...)
	}
}

// try runs the operations in one transaction and commits it. bad is the index
// of an operation that erred after it had changed something; nothing is
// committed then.
func (d *writer) try(ops []*op, journaled uint64) (bad int, err error) {
	b, err := d.db.engine.Begin(context.Background(), true)
	if err != nil {
		return -1, err
	}
	defer func() {
		if r := recover(); r != nil {
			bad, err = -1, Recovered(r)
		}
		b.Rollback() // does nothing after a commit
	}()
	t := &Tx{DB: d.db, Raw: b, Now: d.db.clock.now(), head: d.db.head, Began: map[string]any{}}
	for i, o := range ops {
		before := t.Writes
		o.err = runOp(t, o.fn)
		switch {
		case errors.Is(o.err, kv.ErrRetry), errors.Is(o.err, kv.ErrTaken), errors.Is(o.err, store.ErrNoDatabase):
			return -1, o.err // no fault of the operation
		case o.err != nil && t.Writes != before:
			return i, nil
		}
	}
	if journaled > 0 {
		if err := t.Put("meta", []byte("journal"), SeqKey(journaled)); err != nil {
			return -1, err
		}
	}
	if t.Writes == 0 {
		return -1, nil
	}
	last, err := t.finish()
	if err != nil {
		return -1, err
	}
	d.db.recalled.writes(t.wrote)
	if err := b.Commit(); err != nil {
		d.db.recalled.forget()
		return -1, err
	}
	if t.head.seq != d.db.head.seq {
		d.db.trail.publish(store.Seq(t.head.seq))
	}
	d.db.head, d.db.feed.oldest = t.head, max(d.db.feed.oldest, t.forgot+1)
	if t.clockBack {
		d.db.clock.high.Store(t.Now.UnixNano())
	}
	d.db.recalled.wrote(t.wrote)
	d.setFull(nil)
	if len(t.changes) > 0 {
		if slices.ContainsFunc(t.changes, func(c store.Change) bool { return c.Kind == outage.Recovered }) {
			d.endOutage() // before the feed tells: what fails from here on, it tells once more
		}
		if d.db.told != nil {
			d.db.told(t.changes)
		}
		d.db.feed.publish(last, t.changes...)
	}
	return -1, nil
}

// runOp shields the writer from an operation that panics, as an engine does where
// a page is damaged.
func runOp(t *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Writes++ // nobody knows how far it came
			err = Recovered(r)
		}
	}()
	return fn(t)
}

// finish writes what every transaction writes: the feed, the head of the audit
// chain, the clock. It returns the feed's last number.
func (t *Tx) finish() (store.Seq, error) {
	last, err := t.writeFeed()
	if err != nil {
		return 0, err
	}
	if t.head.seq != t.DB.head.seq {
		if err := t.Put("meta", []byte("audit_head"), t.head.encode(t.DB.auditKey)); err != nil {
			return 0, err
		}
		if err := t.writeBlocks(); err != nil {
			return 0, err
		}
	}
	return last, t.Put("meta", []byte("clock"), TimeKey(t.Now))
}

// failed turns an error of a commit into what callers may know, and remembers
// what it means for later writes.
func (d *writer) failed(err error) error {
	switch {
	case errors.Is(err, store.ErrDiskFull):
		err = fmt.Errorf("%w (%w)", store.Mark(store.Errorf("the disk is full, so nothing can be stored; free some space and try again"), store.ErrDiskFull), err)
		d.setFull(err)
		return err
	case waits(err), errors.Is(err, kv.ErrRetry):
		err = fmt.Errorf("%w (%w)", store.Mark(store.Errorf("the database can't be reached, so nothing can be stored; try again later"), store.ErrNoDatabase), err)
		d.setFull(err)
		d.noteOutage()
		return err
	case errors.Is(err, store.ErrNotOpen):
		return store.ErrNotOpen
	}
	// After a failed fsync nobody knows what is on disk, and trying again may
	// report a success that is none.
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = fmt.Errorf("the database cannot be written any more, restart nized: %w", err)
	if errors.Is(err, kv.ErrTaken) {
		d.broken = store.Mark(fmt.Errorf("nothing can be stored here: %w", err), store.ErrNotOpen)
	}
	d.room.Broadcast()
	return d.broken
}

// noteOutage has the feed tell when the database answers again.
func (d *writer) noteOutage() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outage || d.closing || d.broken != nil {
		return
	}
	d.outage = true
	// Where readers fail and the writer does not, what it is told for would fail again.
	time.AfterFunc(time.Until(d.toldAt.Add(recoveredEvery)), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.closing || d.broken != nil {
			return
		}
		d.queueLocked(&op{lazy: &Later{}, fn: func(t *Tx) error {
			t.Change(store.Change{Kind: outage.Recovered})
			return nil
		}})
	})
}

func (d *writer) endOutage() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outage, d.toldAt = false, time.Now()
}

func (d *writer) setFull(err error) {
	d.mu.Lock()
	d.full = err
	d.mu.Unlock()
}

// Healthy returns nil, or why the last commit failed: ErrDiskFull, or a database
// that does not answer, until one succeeds again, or an I/O error, which stays until a restart. A gateway asks
// before it runs a call whose record would not wait.
func (d *writer) Healthy() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	if d.full == nil && !d.db.current() {
		return store.ErrNoDatabase
	}
	return d.full
}

// Flush implements [store.DB].
func (d *writer) Flush(ctx context.Context) error {
	err := d.flush(ctx, "flushing records")
	d.mu.Lock()
	defer d.mu.Unlock()
	late := d.lazyErr
	d.lazyErr = nil
	return errors.Join(err, late)
}

// Read runs fn in a reading transaction, which ends with the term of the database:
// another process may have changed by then what it reads.
func (d *writer) Read(ctx context.Context, what string, fn func(*Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	term, asked := d.db.Term(), ctx
	if term.Err() != nil {
		d.mu.Lock()
		closing := d.closing
		d.mu.Unlock()
		if closing {
			return fmt.Errorf("%s: %w", what, store.ErrNotOpen)
		}
		return d.lapsed(what)
	}
	if term.Done() != nil {
		within, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(term, end)()
		ctx = within
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = Recovered(r)
		}
		if term.Err() != nil && asked.Err() == nil {
			err = store.ErrNoDatabase // also where it was read: it may be stale
		}
		if errors.Is(err, store.ErrNoDatabase) && (asked.Err() == nil || term.Err() != nil) { // not where it is only busy
			d.noteOutage()
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	b, err := d.db.engine.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer b.Rollback()
	return fn(&Tx{DB: d.db, Raw: b})
}
