package commit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
	"nize/store/kv"
)

const (
	// feedWindow is how many changes are kept: hours of a busy team, so that a reader that
	// was briefly disconnected need not start over.
	feedWindow = 50_000
	feedPage   = 256
	// feedRecent is how many of the newest changes are also kept in memory.
	feedRecent = 1024
)

// feed wakes watchers when there are new changes. All changes are in the database; a
// watcher that keeps up reads them from memory, since otherwise every watcher would read
// the database after each commit.
type feed struct {
	window int
	last   atomic.Uint64 // newest committed number
	oldest uint64        // that may still be kept; used by the writer only

	mu       sync.Mutex     // guards the fields below
	grown    chan struct{}  // closed at the next commit, and then replaced
	recent   []store.Change // without a gap; the last is the newest
	ended    bool
	watchers map[*atomic.Uint64]bool // the number that each has read up to
}

// watch registers a watcher; leave removes it.
func (f *feed) watch(after store.Seq) (at *atomic.Uint64, leave func()) {
	at = new(atomic.Uint64)
	at.Store(uint64(after))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[at] = true
	return at, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, at)
	}
}

// lag returns how many changes the slowest watcher has yet to read.
func (f *feed) lag() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, most := f.last.Load(), uint64(0)
	for at := range f.watchers {
		if n := at.Load(); n < last {
			most = max(most, last-n)
		}
	}
	return int(most)
}

func (f *feed) publish(last store.Seq, changes ...store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.recent = append(f.recent, changes...); len(f.recent) > 2*feedRecent {
		f.recent = slices.Clone(f.recent[len(f.recent)-feedRecent:])
	}
	f.last.Store(uint64(last))
	close(f.grown)
	f.grown = make(chan struct{})
}

// page returns the changes after the given number, if they are in memory; it is empty if
// there are none.
func (f *feed) page(after store.Seq) (page []store.Change, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, false
	}
	n := int64(f.last.Load()) - int64(after) // how many changes follow
	if n < 0 || n > int64(min(len(f.recent), f.window)) {
		return nil, false
	}
	page = f.recent[len(f.recent)-int(n):]
	return slices.Clone(page[:min(len(page), feedPage)]), true
}

// end wakes all watchers for the last time.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.grown)
	}
}

// more returns a channel that is closed at the next change.
func (f *feed) more() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grown
}

// DecodeSeq is the inverse of SeqKey.
func DecodeSeq(k []byte) uint64 { return binary.BigEndian.Uint64(k) }

// flag returns the stored form of a bool.
func flag(b bool) []byte {
	if b {
		return []byte{1}
	}
	return nil
}

// writeFeed numbers the transaction's changes, stores them and deletes those that have left
// the window.
func (t *Tx) writeFeed() (store.Seq, error) {
	last := t.DB.feed.last.Load()
	for i := range t.changes {
		last++
		c := &t.changes[i]
		c.Seq = store.Seq(last)
		if err := t.Put("feed", SeqKey(last), Pack([]byte(c.Kind), []byte(c.ID), []byte(c.Thread), []byte(c.State), flag(c.Approved), flag(c.Waited))); err != nil {
			return 0, err
		}
	}
	if len(t.changes) == 0 || last <= uint64(t.DB.feed.window) {
		return store.Seq(last), nil
	}
	// Twice as many as were added, so that a smaller window than before is also reached.
	oldest := last - uint64(t.DB.feed.window)
	from := t.DB.feed.oldest
	for n := from; n <= oldest && n < from+2*uint64(len(t.changes)); n++ {
		if err := t.Delete("feed", SeqKey(n)); err != nil {
			return 0, err
		}
		t.forgot = n
	}
	return store.Seq(last), nil
}

// Last implements [store.Feed].
func (d *DB) Last() store.Seq { return store.Seq(d.feed.last.Load()) }

// Watch implements [store.Feed]. After Close it yields store.ErrNotOpen.
func (d *DB) Watch(ctx context.Context, after store.Seq) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		at, leave := d.feed.watch(after)
		defer leave()
		for {
			more := d.feed.more() // before reading, so that no change is missed
			page, ok := d.feed.page(after)
			var err error
			if !ok {
				page, err = d.changes(ctx, after)
			}
			if ctx.Err() != nil {
				return
			}
			if errors.Is(err, store.ErrNoDatabase) { // continue when the database is available again
				select {
				case <-time.After(retryAfter):
					continue
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				yield(store.Change{}, err)
				return
			}
			for _, c := range page {
				if ctx.Err() != nil || !yield(c, nil) {
					return
				}
				after = c.Seq
				at.Store(uint64(after))
			}
			if len(page) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

// changes returns a copy of one page of the feed.
func (d *DB) changes(ctx context.Context, after store.Seq) (page []store.Change, err error) {
	err = d.Read(ctx, "reading changes", func(t *Tx) error {
		// Both ends as this transaction sees them: a commit is visible here a moment before
		// it is published.
		var oldest, newest uint64
		if k := t.First("feed", nil); k != nil {
			oldest = DecodeSeq(k)
		}
		if k := t.Last("feed", nil); k != nil {
			newest = DecodeSeq(k)
		}
		switch {
		case uint64(after)+1 < oldest:
			return fmt.Errorf("changes after %d %w: the oldest one kept is %d", after, store.ErrNotFound, oldest)
		case uint64(after) > newest:
			return fmt.Errorf("changes after %d %w: the newest one is %d", after, store.ErrNotFound, newest)
		}
		for k, v := range t.Scan("feed", kv.Range{From: SeqKey(uint64(after) + 1), Limit: feedPage}) {
			p, err := UnpackN(v, 5)
			if err != nil {
				return err
			}
			page = append(page, store.Change{
				Seq: store.Seq(DecodeSeq(k)), Kind: string(p[0]), ID: string(p[1]), Thread: string(p[2]),
				State: store.State(p[3]), Approved: len(p[4]) > 0, Waited: len(p) > 5 && len(p[5]) > 0,
			})
		}
		return nil
	})
	return page, err
}
