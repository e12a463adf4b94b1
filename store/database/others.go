package database

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"nize/store"
	"nize/store/kv"
)

// Others may write to the database of an engine that is shared. Each transaction
// tells how many commits there were before it: where those are more than are known
// of, one that writes, or reads the feed, reads again what is kept in memory, and
// tells the watchers of the feed and the trail. A commit of others has that done at
// once. So what others changed is here as what was changed here is, in the order of
// the commits.

// known is what is in memory of the database's end.
type known struct {
	// Used by the writer only.
	head    auditHead
	commits uint64 // after its last one

	mu     sync.Mutex    // held while what others changed is read
	caught atomic.Uint64 // as many commits are in what is kept in memory

	followed chan struct{} // closed when nobody follows any more; nil: nobody does
}

// reload reads again what others changed since the last look.
func (k *known) reload(t *tx) error {
	d, commits := t.db, t.b.Commits()
	if commits <= k.caught.Load() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if commits <= k.caught.Load() {
		return nil
	}
	var head auditHead
	for key, v := range t.scan("meta", kv.Range{}) {
		switch string(key) {
		case "clock":
			d.clock.raise(timeOf(v))
		case "audit_head":
			var err error
			if head, err = decodeHead(d.auditKey, v); err != nil {
				return err
			}
		}
	}
	last, missed := d.feed.last.Load(), false
	kinds := map[string]bool{}
	for key, v := range t.scan("feed", kv.Range{From: seqKey(last + 1), Limit: feedPage}) {
		c, err := readChange(key, v)
		if err != nil {
			return err
		}
		missed = missed || uint64(c.Seq) != last+1
		kinds[c.Kind], last = true, uint64(c.Seq)
	}
	if len(kinds) > 0 {
		if newest := decodeSeq(t.last("feed", nil)); newest > last {
			last, missed = newest, true
		}
	}
	if missed || kinds["user"] {
		users, err := listJSON[store.User](t, "users", nil)
		if err != nil {
			return err
		}
		d.setAliases(users)
	}
	if missed || kinds["keys"] {
		if _, err := loadKeys(t, d.keys.Load().master); err != nil {
			return err
		}
	}
	k.caught.Store(commits)
	d.feed.publish(store.Seq(last))
	d.trail.publish(store.Seq(head.seq))
	return nil
}

// wrote notes the commit of t.
func (k *known) wrote(t *tx) {
	k.head, k.commits = t.head, t.b.Commits()+1
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caught.Store(max(k.caught.Load(), k.commits))
}

// follow reads what others commit as they do.
func (d *DB) follow(e kv.Shared) {
	defer close(d.known.followed)
	for range e.Committed() {
		err := d.view(context.Background(), "reading what others changed", d.known.reload)
		if err != nil && !errors.Is(err, store.ErrNotOpen) {
			d.log.Warn("what others changed is read later", "err", err)
		}
	}
}
