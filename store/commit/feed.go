package commit

import (
	"cmp"
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
	"nize/store/compact"
	"nize/store/kv"
	"nize/store/record"
)

const (
	// feedWindow is how many changes are kept: hours of a busy team, so that a reader that
	// was briefly disconnected need not start over.
	feedWindow = 50_000
	feedPage   = 256
	// feedRecent is how many of the newest changes are also kept in memory.
	feedRecent = 1024
	// feedEntry is how many may share an entry.
	feedEntry = 64
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

// encodeChanges returns changes, the last of which has the number of their key, in the
// compact form.
func encodeChanges(changes []store.Change) []byte {
	b := append(make([]byte, 0, 64*len(changes)), CompactForm...)
	var short []byte
	for _, c := range changes {
		for _, part := range []string{c.Kind, c.ID, c.Thread, string(c.State)} {
			short = compact.AppendWords(short[:0], []byte(part), "")
			b = appendPart(b, short)
		}
		b = append(b, flags(c.Approved, c.Waited))
	}
	return b
}

func flags(list ...bool) (b byte) {
	for i, set := range list {
		if set {
			b |= 1 << i
		}
	}
	return b
}

// DecodeChanges returns what is stored under a key of the feed: one change in the first
// form, any number in the compact one.
func DecodeChanges(k, v []byte) ([]store.Change, error) {
	short, err := IsCompact(v)
	if err != nil {
		return nil, err
	}
	last := store.Seq(DecodeSeq(k))
	if !short {
		p, err := UnpackN(v, 5)
		if err != nil {
			return nil, err
		}
		return []store.Change{{
			Seq: last, Kind: string(p[0]), ID: string(p[1]), Thread: string(p[2]),
			State: store.State(p[3]), Approved: len(p[4]) > 0, Waited: len(p) > 5 && len(p[5]) > 0,
		}}, nil
	}
	var changes []store.Change
	for b := v[len(CompactForm):]; len(b) > 0; {
		var texts [4]string
		for i := range texts {
			part, rest, err := record.CutPart(b)
			if err != nil {
				return nil, err
			}
			text, err := compact.AppendText(nil, part, "")
			if err != nil {
				return nil, damaged(err)
			}
			texts[i], b = string(text), rest
		}
		if len(b) == 0 {
			return nil, ErrDamaged
		}
		changes = append(changes, store.Change{
			Kind: texts[0], ID: texts[1], Thread: texts[2], State: store.State(texts[3]),
			Approved: b[0]&1 != 0, Waited: b[0]&2 != 0,
		})
		b = b[1:]
	}
	for i := range changes {
		changes[i].Seq = last - store.Seq(len(changes)-1-i)
	}
	return changes, nil
}

// writeFeed numbers the transaction's changes, stores them and deletes those that have left
// the window.
func (t *Tx) writeFeed() (store.Seq, error) {
	last := t.DB.feed.last.Load()
	for i := range t.changes {
		last++
		t.changes[i].Seq = store.Seq(last)
	}
	// In the compact form those of one transaction share entries: they cost an engine
	// more than what they hold.
	entries := slices.Chunk(t.changes, 1)
	encode := func(c []store.Change) []byte {
		return Pack([]byte(c[0].Kind), []byte(c[0].ID), []byte(c[0].Thread), []byte(c[0].State), flag(c[0].Approved), flag(c[0].Waited))
	}
	if t.DB.Compacts() {
		entries, encode = slices.Chunk(t.changes, feedEntry), encodeChanges
	}
	for changes := range entries {
		key := SeqKey(uint64(changes[len(changes)-1].Seq))
		t.Absent("feed", key)
		if err := t.Put("feed", key, encode(changes)); err != nil {
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

// oldestChange returns the number of the oldest change that is kept.
func (t *Tx) oldestChange() (seq uint64, ok bool, err error) {
	for k, v := range t.Scan("feed", kv.Range{Limit: 1}) {
		changes, err := DecodeChanges(k, v)
		if err != nil || len(changes) == 0 {
			return 0, false, cmp.Or(err, ErrDamaged)
		}
		return uint64(changes[0].Seq), true, nil
	}
	return 0, false, nil
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
		if first, ok, err := t.oldestChange(); err != nil {
			return err
		} else if ok {
			oldest = first
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
			changes, err := DecodeChanges(k, v)
			if err != nil {
				return err
			}
			for _, c := range changes {
				if c.Seq > after {
					page = append(page, c)
				}
			}
			if len(page) >= feedPage {
				break
			}
		}
		return nil
	})
	return page, err
}
