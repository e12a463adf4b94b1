package commit

import (
	"context"
	"os"
	"time"

	"nize/store"
)

// Health is how the store is, for operators.
type Health struct {
	Server         string        // where it is, if it is no file
	StandBy        int           // how many more nized wait to work on it there
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
	if d.file != nil {
		stats := d.file.Stats()
		h.Commits, h.CommitTime = stats.Commits, stats.CommitTime
	}
	if e, ok := d.engine.(interface{ Where() (string, int64, int) }); ok {
		h.Server, h.Size, h.StandBy = e.Where()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.Waiting = len(d.waiting) + len(d.lazy)
	return h
}

// Ping asks the server that has the database for its version; ok is false where it
// is a file.
func (d *DB) Ping(ctx context.Context) (version string, trip time.Duration, ok bool, err error) {
	e, ok := d.engine.(interface {
		Ping(context.Context) (string, time.Duration, error)
	})
	if ok {
		version, trip, err = e.Ping(ctx)
		if err == nil && !d.current() {
			err = store.ErrNoDatabase // another process may have it
		}
	}
	return version, trip, ok, err
}
