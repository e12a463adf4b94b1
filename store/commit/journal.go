package commit

import (
	"context"
	"errors"
	"fmt"
	"os"

	"nize/store"
	"nize/store/journal"
)

// Most calls that may change something are outside a chat conversation and no person waits
// for them. A commit at the beginning and one at the end of each would cost more than the
// rest of the call. So both records are written to a journal beside the database, the first
// flushed before the call is sent anywhere, and queued for the next commit. The results of
// a program's round are written in the same way, and so are the reservation and cost of a
// model call, unless a budget is nearly used up. At startup the records that a killed
// process left are committed.

// early is that journal and its uncommitted records.
type early struct {
	db     *DB
	file   *journal.File // nil: everything is committed at once
	decode DecodeJournal
	waits  int    // uncommitted records
	rounds int    // those of them that belong to rounds
	last   uint64 // the newest record that was committed when the database was opened
}

// DecodeJournal returns the function that commits a record of the journal, and whether the
// record belongs to a program's round.
type DecodeJournal func(content []byte) (fn func(*Tx) error, round bool, err error)

// JournalPath returns the path of the journal of the database at path.
func JournalPath(path string) string { return path + ".journal" }

// Journaled is a record in the journal, or none.
type Journaled struct {
	db   *DB
	file *journal.File
	seq  uint64
}

// OK reports whether there is a record. If not, the caller must commit at once.
func (j Journaled) OK() bool { return j.seq > 0 }

// Flush returns when the record is durable, in the journal or in the database.
func (j Journaled) Flush(ctx context.Context) error {
	if j.seq == 0 {
		return nil
	}
	err := j.file.Flush(j.seq)
	if err == nil {
		return nil
	}
	j.db.mu.Lock()
	j.db.early.endLocked(err)
	j.db.mu.Unlock()
	return j.db.flush(ctx, "writing records") // commits the record, too
}

// Journals reports whether there is a journal. If not, callers need not encode a record for
// it.
func (d *writer) Journals() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.early.file != nil
}

// Journal writes a record and queues fn, which commits it.
func (d *writer) Journal(content []byte, l Later, fn func(*Tx) error) (j Journaled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &d.early
	if e.file == nil || d.closing || d.broken != nil || d.full != nil && !l.Ran || len(d.lazy) >= lazyCount || d.lazySize >= lazyBytes || l.Fresh && d.uncommitted[l.Key] != nil {
		return j
	}
	seq, err := e.file.Append(content)
	if err != nil {
		if !errors.Is(err, journal.ErrFull) {
			e.endLocked(err)
		}
		return j
	}
	e.waits++
	if l.Round {
		e.rounds++
	}
	l.seq, l.Size = seq, l.Size+1024+len(content)
	d.queueLocked(&op{fn: fn, lazy: &l})
	return Journaled{d.db, e.file, seq}
}

// committedLocked records that a record is committed, or never will be. It requires db.mu.
func (e *early) committedLocked(l *Later) {
	if l.Awaited {
		e.waits--
	}
	if l.seq == 0 {
		return
	}
	e.waits--
	if l.Round {
		e.rounds--
	}
	if l.Committed != nil {
		l.Committed()
	}
}

// endLocked abandons the journal: from now on everything is committed at once. It requires
// db.mu.
func (e *early) endLocked(err error) {
	if e.file != nil {
		e.db.log.Error("the journal can't be written; everything is committed at once", "err", err)
		e.file = nil // queued records are committed from memory
	}
}

// CommitJournal returns when everything in the journal is committed. On a full disk it
// returns ErrDiskFull: the database may be older than the journal.
func (d *writer) CommitJournal(ctx context.Context) error {
	d.mu.Lock()
	waits := d.early.waits
	d.mu.Unlock()
	if waits == 0 {
		return nil
	}
	return d.flush(ctx, "writing records")
}

// CatchUp is [writer.CommitJournal] for callers that only display records: on a full disk
// they display what is committed.
func (d *writer) CatchUp(ctx context.Context) error {
	if err := d.CommitJournal(ctx); !errors.Is(err, store.ErrDiskFull) {
		return err
	}
	return nil
}

// Sync implements [kv.DB]. Of the records stored through it, only rounds use the journal.
func (d *writer) Sync(ctx context.Context) error {
	d.mu.Lock()
	rounds := d.early.rounds
	d.mu.Unlock()
	if rounds == 0 {
		return nil
	}
	return d.CommitJournal(ctx)
}

// open commits what the last run left in the journal, and opens it. It is called before the
// writer runs.
func (e *early) open() error {
	d := e.db
	last, path := e.last, JournalPath(d.path)
	records, err := journal.Read(path, d.auditKey, last)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var left []*op
	for _, content := range records {
		last++
		fn, round, err := e.decode(content)
		if err != nil {
			return fmt.Errorf("reading record %d of %s: %w", last, path, err)
		}
		left = append(left, &op{fn: fn, lazy: &Later{seq: last, Round: round}})
	}
	if len(left) > 0 {
		err := d.run(left)
		if errors.Is(err, store.ErrDiskFull) && d.db.file != nil && d.giveRoom(reserveForNo) { // they may be ends of calls
			full := err
			err = d.run(left)
			d.reserve()
			d.setFull(full) // still full for everything else
		}
		for _, o := range left {
			if o.err != nil {
				d.log.Error("a record of the journal could not be committed", "err", o.err)
			}
		}
		d.log.Info("what was begun or ended before the last run was killed is committed", "records", len(left))
		if errors.Is(err, store.ErrDiskFull) {
			for _, o := range left { // retried until it succeeds; the journal keeps them meanwhile
				d.lazy = append(d.lazy, o)
				e.waits++
				if o.lazy.Round {
					e.rounds++
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	if e.file, err = journal.Open(path, d.auditKey, last); err != nil {
		d.log.Warn("there is no room for the journal; everything is committed at once", "err", err)
		e.file = nil
	}
	return nil
}

// close closes and removes the journal once everything is committed.
func (e *early) close() error {
	if e.file == nil {
		return nil
	}
	return errors.Join(e.file.Close(), os.Remove(JournalPath(e.db.path)))
}
