package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"nize/store"
	"nize/store/journal"
)

// Most calls that may change something belong to no conversation and wait for
// nobody. A commit for the beginning of one and one for its end would cost more
// than all else about it. So both go into a journal beside the database, the first
// flushed before it is sent anywhere, and into the queue of records that the next
// commit takes. A start commits what a killed process left.

// early is that journal and who is in it.
type early struct {
	file    *journal.File          // nil: each call is committed at once
	running map[string]*store.Call // calls whose beginning went through it
	waits   int                    // records that are not committed
	last    uint64                 // the newest record that was, when the database was opened
}

func journalPath(path string) string { return path + ".journal" }

// beginEarly begins a call by the journal; ok says whether it did.
func (d *DB) beginEarly(ctx context.Context, by store.Caller, c store.Call) (ok bool, err error) {
	if c.State != store.Running || c.Thread != "" || c.Replaces != "" || !c.Expires.IsZero() || len(c.Decisions) > 0 || c.Result != nil || by.User == "" || checkCall(c) != nil {
		return false, nil
	}
	known := false
	err = d.view(ctx, "beginning call "+c.ID, func(t *tx) error {
		known = t.get("calls", []byte(c.ID)) != nil
		return nil
	})
	if err != nil || known {
		return false, err
	}
	c = copyCall(c)
	fillTimes(&c, d.clock.now())
	d.mu.Lock()
	file, seq := d.early.file, uint64(0)
	if d.unwritten[c.ID] == nil && d.early.running[c.ID] == nil {
		if seq = d.journalLocked(by, &c, func(t *tx) error { return t.addCall(by, c) }); seq > 0 {
			d.early.running[c.ID] = &c
		}
	}
	d.mu.Unlock()
	if seq == 0 {
		return false, nil
	}
	if err := file.Flush(seq); err != nil {
		d.mu.Lock()
		d.endJournalLocked(err)
		d.mu.Unlock()
		return true, d.update(ctx, "beginning call "+c.ID, func(*tx) error { return nil }) // with which it is committed
	}
	return true, nil
}

// finishEarly ends a call that began so; ok says whether it did. Only one caller
// ends it.
func (d *DB) finishEarly(by store.Caller, id string, o store.Outcome) (c store.Call, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	began := d.early.running[id]
	delete(d.early.running, id)
	if began == nil || by.User == "" {
		return c, false
	}
	ended, at := copyCall(*began), d.clock.now()
	if endCall(&ended, o, at) != nil {
		return c, false
	}
	if o.Result != nil {
		r := *o.Result
		ended.Result = &r
		ended = copyCall(ended)
	}
	if d.journalLocked(by, &ended, func(t *tx) error {
		_, _, err := moveCall(t, by, id, finishing(o, at, false))
		return err
	}) == 0 {
		return c, false
	}
	c = copyCall(ended)
	c.By = d.alias(c.By)
	return c, true
}

// journalLocked writes what a call has become and queues fn, which commits it. It
// needs d.mu, and returns the record's number, or 0 where it has to be committed
// at once.
func (d *DB) journalLocked(by store.Caller, c *store.Call, fn func(*tx) error) uint64 {
	if d.early.file == nil || d.closing || d.broken != nil || d.full != nil || len(d.lazy) >= lazyCount || d.lazySize >= lazyBytes {
		return 0
	}
	record, err := encodeEarly(by, *c)
	if err != nil {
		return 0
	}
	seq, err := d.early.file.Append(record)
	if err != nil {
		if !errors.Is(err, journal.ErrFull) {
			d.endJournalLocked(err)
		}
		return 0
	}
	d.early.waits++
	d.queueLocked(&op{fn: fn, lazy: &lazyOp{call: c, size: 1024 + len(record), seq: seq}})
	return seq
}

// endJournalLocked has each call committed at once from now on. It needs d.mu.
func (d *DB) endJournalLocked(err error) {
	if d.early.file != nil {
		d.log.Error("the journal of calls can't be written; each call is committed at once", "err", err)
		d.early.file = nil // what waits is committed from memory
	}
}

// commitEarly returns when what went through the journal is committed.
func (d *DB) commitEarly(ctx context.Context) error {
	d.mu.Lock()
	waits := d.early.waits
	d.mu.Unlock()
	if waits == 0 {
		return nil
	}
	return d.update(ctx, "writing calls", func(*tx) error { return nil })
}

// encodeEarly is a call as the journal has it, and who acts. The journal is
// sealed as a whole.
func encodeEarly(by store.Caller, c store.Call) ([]byte, error) {
	s := storedCall{args: c.Args}
	if c.Result != nil {
		var err error
		if s.result, err = packResult(c.Result); err != nil {
			return nil, err
		}
	}
	c.Args, c.Result = nil, nil
	s.head = c
	call, err := encodeCall(s)
	return pack([]byte(by.User), []byte(by.Name), []byte(by.Surface), []byte(by.Identity), []byte(by.Token), []byte(by.Address), call), err
}

// decodeEarly is what commits such a record.
func decodeEarly(record []byte) (func(*tx) error, error) {
	p, err := unpackN(record, 7)
	if err != nil {
		return nil, err
	}
	by := store.Caller{User: string(p[0]), Name: string(p[1]), Surface: store.Surface(p[2]), Identity: string(p[3]), Token: string(p[4]), Address: string(p[5])}
	s, err := decodeCall(p[6])
	if err != nil {
		return nil, err
	}
	c := s.head
	if c.State == store.Running {
		c.Args = s.args
		return func(t *tx) error { return t.addCall(by, c) }, nil
	}
	o := store.Outcome{State: c.State, Reason: c.Reason, Private: c.Private}
	if len(s.result) > 0 {
		if o.Result, err = unpackResult(s.result); err != nil {
			return nil, err
		}
	}
	return func(t *tx) error {
		_, _, err := moveCall(t, by, c.ID, finishing(o, c.Finished, false))
		return err
	}, nil
}

// openJournal commits what the last run left in the journal, and opens it. The
// writer does not run yet.
func (d *DB) openJournal() error {
	last, path := d.early.last, journalPath(d.path)
	records, err := journal.Read(path, d.auditKey, last)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var left []*op
	for _, record := range records {
		last++
		fn, err := decodeEarly(record)
		if err != nil {
			return fmt.Errorf("reading record %d of %s: %w", last, path, err)
		}
		left = append(left, &op{fn: fn, lazy: &lazyOp{seq: last}})
	}
	if len(left) > 0 {
		err := d.run(left)
		for _, o := range left {
			if o.err != nil {
				d.log.Error("a record of the journal could not be committed", "err", o.err)
			}
		}
		d.log.Info("what was begun or ended before the last run was killed is committed", "records", len(left))
		if errors.Is(err, store.ErrDiskFull) {
			d.lazy, d.early.waits = left, len(left) // as long as it takes, and the file keeps them
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.early.running = map[string]*store.Call{}
	if d.early.file, err = journal.Open(path, d.auditKey, last); err != nil {
		d.log.Warn("there is no room for the journal of calls; each call is committed at once", "err", err)
		d.early.file = nil
	}
	return nil
}

// closeJournal ends it when all is committed.
func (d *DB) closeJournal() error {
	if d.early.file == nil {
		return nil
	}
	return errors.Join(d.early.file.Close(), os.Remove(journalPath(d.path)))
}
