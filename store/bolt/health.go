package bolt

import (
	"os"
	"time"

	bbolt "go.etcd.io/bbolt"
)

// Health is how the store is, for operators.
type Health struct {
	Size           int64         // of the file, in bytes
	Waiting        int           // operations before the writer, those that nobody waits for included
	Lag            int           // changes that the slowest watcher of the feed has yet to read
	LaggingThreads time.Duration // how far the clock is behind the newest record
	Commits        uint64        // since the file was made
	CommitTime     time.Duration // of those since it was opened: laying out pages, writing them, the flush
}

// Health tells how the store is. It never waits for the disk.
func (d *DB) Health() Health {
	h := Health{Lag: d.feed.lag(), LaggingThreads: max(0, time.Duration(d.clock.high.Load()-d.clock.read().UnixNano()))}
	if info, err := os.Stat(d.path); err == nil {
		h.Size = info.Size()
	}
	_ = d.bolt.View(func(b *bbolt.Tx) error { h.Commits = uint64(b.ID()); return nil }) // a closed one has none to tell
	stats := d.bolt.Stats()
	h.CommitTime = stats.TxStats.GetRebalanceTime() + stats.TxStats.GetSpillTime() + stats.TxStats.GetWriteTime()
	d.mu.Lock()
	defer d.mu.Unlock()
	h.Waiting = len(d.waiting) + len(d.lazy)
	return h
}
