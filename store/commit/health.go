package commit

import (
	"context"
	"os"
	"time"

	"nize/store"
)

// Health is the state of the store, for operators.
type Health struct {
	Server         string        // where it is, if it is not a file
	StandBy        int           // how many other nized instances wait to take over the database
	Size           int64         // of the file, in bytes
	Waiting        int           // operations queued for the writer, including those without a waiting caller
	Lag            int           // changes that the slowest watcher of the feed has yet to read
	LaggingThreads time.Duration // how far the clock is behind the newest record
	Commits        uint64        // since the file was created
	CommitTime     time.Duration // of the commits since it was opened: laying out pages, writing them, the flush
}

// Health returns the state of the store. It never waits for the disk.
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

// Ping queries the database server's version; ok is false if the database is a file.
func (d *DB) Ping(ctx context.Context) (version string, trip time.Duration, ok bool, err error) {
	e, ok := d.engine.(interface {
		Ping(context.Context) (string, time.Duration, error)
	})
	if ok {
		version, trip, err = e.Ping(ctx)
		if err == nil && !d.current() {
			err = store.ErrNoDatabase // another process may own it
		}
	}
	return version, trip, ok, err
}
