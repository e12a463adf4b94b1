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
	// lazyCount and lazyBytes limit the queue of writes without a waiting caller: one
	// second's worth at full speed, and memory that a small machine has.
	lazyCount = 8192
	lazyBytes = 32 << 20
	// flushCount is the queue length at which the lag is skipped: large commits cost little
	// more than small ones, but they delay others.
	flushCount = 1024
	// maxMerge limits the operations of one transaction.
	maxMerge = 1024
	// maxRetries limits how often a transaction is retried after a conflict.
	maxRetries = 10
	// retryAfter is the delay before records that could not be stored are tried again.
	retryAfter = time.Second
	// recoveredEvery is the minimum interval between two changes that report that the
	// database is available again.
	recoveredEvery = 2 * time.Second
)

// writer executes queued writes: the part of a [DB] that runs in one goroutine.
type writer struct {
	db      *DB
	lag     time.Duration
	wake    chan struct{} // capacity 1: a signal means "check again"; their number doesn't matter
	written chan struct{} // closed when the writer has ended

	mu          sync.Mutex // guards the fields below
	waiting     []*op
	lazy        []*op
	lazySize    int
	lazySince   time.Time      // when the oldest of lazy was queued
	lazyErr     error          // what Flush has yet to report
	retryAt     time.Time      // not before: the disk was full, or the database unavailable
	uncommitted map[string]any // the Shown values of lazy, by key
	room        sync.Cond      // signaled when lazy shrinks or never will
	full        error          // the last commit failed on a full disk or an unavailable database
	outage      bool           // the database was unavailable for some caller; the feed will report its recovery
	toldAt      time.Time      // time of the last such report
	broken      error          // set if commits can no longer be trusted
	closing     bool
	early       early
}

// The states of an operation. Only its caller may give it up, and only while the writer has
// not taken it. So an operation whose context ended is either not executed at all or waited
// for.
const (
	opWaiting int32 = iota
	opTaken
	opGivenUp
)

// op is one operation queued for the writer.
type op struct {
	// fn runs inside the transaction. It may run again if another operation of the
	// transaction fails, so it must assign its results, not append to them.
	fn    func(*Tx) error
	err   error
	state atomic.Int32
	done  chan struct{} // nil: no caller waits
	// urgency determines what happens on a full disk, see reserve.go.
	urgency urgency
	// flushes is set if it completes once the records before it are committed, so it can't
	// be committed without them.
	flushes bool
	lazy    *Later
}

// Later describes an operation without a waiting caller.
type Later struct {
	Key   string // if set, Uncommitted returns Shown until the commit
	Shown any    // a pointer; the newest of a key counts
	Size  int    // approximate, in bytes
	// Optional drops the operation instead of waiting if the queue is full.
	Optional bool

	// Awaited makes [DB.CommitJournal] wait for it although it is not in the journal.
	Awaited bool

	// For records in the journal only.
	Fresh     bool   // drop it if there is an uncommitted value under its key
	Round     bool   // it belongs to a program's round
	Ran       bool   // it is the outcome of a call that ran: it is kept even on a full disk
	Committed func() // called when it is committed, or never will be; it must not use the database
	seq       uint64 // its number in the journal
}

// Write runs fn in a writing transaction and returns when that is on disk.
func (d *writer) Write(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{})})
}

// flush returns when the queued records are on disk, or an error if they can't be written.
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
	case <-term.Done(): // an earlier operation may wait for an unavailable database
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
		<-o.done // it is being written: the result is known in a few milliseconds
	}
	if o.err != nil {
		return fmt.Errorf("%s: %w", what, o.err)
	}
	return nil
}

// lapsed returns the error for operations while this process may not own the database.
func (d *writer) lapsed(what string) error {
	d.noteOutage()
	return fmt.Errorf("%s: %w", what, store.ErrNoDatabase)
}

// WriteLater queues fn for the next transaction. It waits only while the queue is full; it
// returns false if the store is closed or can no longer be written.
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

// queueLocked queues an operation without a waiting caller. It requires d.mu.
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

// Uncommitted returns the Shown value of a key whose record is not committed, or nil.
func (d *writer) Uncommitted(key string) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uncommitted[key]
}

// LogLost makes the next Flush return an error for an operation that WriteLater refused.
func (d *writer) LogLost(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lazyErr == nil { // one error is enough: the store is closed or broken
		d.lazyErr = fmt.Errorf("%s: %w", what, cmp.Or(d.broken, store.ErrNotOpen))
	}
}

// poke wakes the writer; one pending signal is enough.
func (d *writer) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// write is the writer goroutine. It ends after Close, when both queues are empty.
func (d *writer) write() {
	defer close(d.written)
	// A damaged page may make an engine access memory outside the file. Turn the fault into
	// a panic, which is reported to the waiting caller.
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

// take waits until there is something to write. last is set if the store is closing and
// nothing remains.
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

// dueLocked reports whether there is something to write and how long it may wait. It
// requires d.mu.
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

// settle writes the taken operations and notifies their callers.
func (d *writer) settle(waiting, lazy []*op) {
	err := d.run(append(lazy[:len(lazy):len(lazy)], waiting...))
	if errors.Is(err, store.ErrDiskFull) && len(lazy) > 0 && len(waiting) > 0 {
		// The operations with waiting callers are small, the records may be large: the
		// former may fit alone.
		var alone, flushes []*op
		for _, o := range waiting {
			if o.flushes {
				flushes = append(flushes, o)
			} else {
				alone = append(alone, o)
			}
		}
		if err2 := d.run(alone); err2 == nil {
			d.setFull(err) // there is still no space for the records
			d.keep(lazy, err)
			d.notify(alone, nil)
			d.notify(flushes, err)
			return
		}
	}
	if len(lazy) > 0 {
		d.keep(lazy, err)
	}
	if errors.Is(err, store.ErrDiskFull) {
		waiting = d.squeeze(waiting, err)
	}
	d.notify(waiting, err)
}

// notify wakes the waiting callers; err is the commit's error and applies to all.
func (d *writer) notify(waiting []*op, err error) {
	for _, o := range waiting {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

// waits reports whether a failed write may succeed later: the disk is full, or the database
// is unavailable.
func waits(err error) bool {
	return errors.Is(err, store.ErrDiskFull) || errors.Is(err, store.ErrNoDatabase)
}

// keep removes written records from the queue and requeues those that must wait.
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
		d.lazyErr = nil // the records that waited for space are written
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

// run executes the operations in one transaction. It sets the error of each and returns the
// commit's error, which applies to all of them.
func (d *writer) run(ops []*op) error {
	d.mu.Lock()
	broken := d.broken
	d.mu.Unlock()
	if broken != nil {
		return broken
	}
	journaled := uint64(0) // includes operations that fail
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
		// The operation had changed something before it failed: retry without it.
		ops = append(ops[:bad:bad], ops[bad+1:]...)
	}
}

// try executes the operations in one transaction and commits it. If an operation failed
// after it had changed something, nothing is committed and bad is its index.
func (d *writer) try(ops []*op, journaled uint64) (bad int, err error) {
	b, err := d.db.engine.Begin(context.Background(), true)
	if err != nil {
		return -1, err
	}
	defer func() {
		if r := recover(); r != nil {
			bad, err = -1, Recovered(r)
		}
		b.Rollback() // has no effect after a commit
	}()
	t := &Tx{DB: d.db, Raw: b, Now: d.db.clock.now(), head: d.db.head, Began: map[string]any{}}
	for i, o := range ops {
		before := t.Writes
		o.err = runOp(t, o.fn)
		switch {
		case errors.Is(o.err, kv.ErrRetry), errors.Is(o.err, kv.ErrTaken), errors.Is(o.err, store.ErrNoDatabase):
			return -1, o.err // not the operation's fault
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
	d.db.cache.beginWrite(t.wrote)
	if err := b.Commit(); err != nil {
		d.db.cache.clear()
		return -1, err
	}
	if t.head.seq != d.db.head.seq {
		d.db.trail.publish(store.Seq(t.head.seq))
	}
	d.db.head, d.db.feed.oldest = t.head, max(d.db.feed.oldest, t.forgot+1)
	if t.clockBack {
		d.db.clock.high.Store(t.Now.UnixNano())
	}
	d.db.cache.endWrite(t.wrote)
	d.setFull(nil)
	if len(t.changes) > 0 {
		if slices.ContainsFunc(t.changes, func(c store.Change) bool { return c.Kind == outage.Recovered }) {
			d.endOutage() // before publishing: later failures must be reported again
		}
		if d.db.onCommit != nil {
			d.db.onCommit(t.changes)
		}
		d.db.feed.publish(last, t.changes...)
	}
	return -1, nil
}

// runOp recovers from a panic of an operation, which an engine raises if a page is damaged.
func runOp(t *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Writes++ // it may have changed something
			err = Recovered(r)
		}
	}()
	return fn(t)
}

// finish writes what every transaction writes: the feed, the head of the audit chain, the
// clock. It returns the feed's last number.
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

// failed converts an error of a commit into the error for callers, and records its
// consequences for later writes.
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
	// After a failed fsync the content of the disk is unknown, and a retry may report a
	// false success.
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = unwritable(err)
	if errors.Is(err, kv.ErrTaken) {
		d.broken = store.Mark(fmt.Errorf("nothing can be stored here: %w", err), store.ErrNotOpen)
	}
	d.room.Broadcast()
	return d.broken
}

func unwritable(err error) error {
	return fmt.Errorf("the database cannot be written any more, restart nized: %w", err)
}

// Broken returns why nothing can be stored until a restart, or nil: an error of the disk,
// damage, or another process that took the database over. Unlike [writer.Healthy] it omits
// conditions that end by themselves.
func (d *writer) Broken() error {
	if err := d.Healthy(); !waits(err) {
		return err
	}
	return nil
}

// noteOutage schedules a change that reports that the database is available again.
func (d *writer) noteOutage() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outage || d.closing || d.broken != nil {
		return
	}
	d.outage = true
	// If readers fail but the writer does not, an immediate report would only make the same
	// reads fail again.
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

// Healthy returns nil, or an error if records can't be written: ErrDiskFull or an
// unavailable database until a commit succeeds, or an I/O error, which stays until a
// restart. A gateway checks it before it runs a call whose record would be delayed.
func (d *writer) Healthy() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	if d.db.file != nil {
		if err := d.db.file.Failed(); err != nil { // the next commit finds it
			return unwritable(err)
		}
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

// Read runs fn in a reading transaction. It ends with the database's term, because another
// process may then change what fn reads.
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
			err = store.ErrNoDatabase // even if fn succeeded: its data may be stale
		}
		if errors.Is(err, store.ErrNoDatabase) && (asked.Err() == nil || term.Err() != nil) { // not if the database is only busy
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
