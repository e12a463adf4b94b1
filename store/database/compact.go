package database

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/record/calls"
	"nize/store/seal"
)

// Rewritten is the result of CompactRecords.
type Rewritten struct {
	Records       int   // records that were in the first form
	Before, After int64 // bytes, with index keys
	Damaged       int   // unreadable records, which are left unchanged
	// Raised reports whether the schema was raised, so that earlier versions can no longer
	// open the database.
	Raised bool
}

const (
	// rewriteBytes is the limit of rewritten bytes per transaction, rewriteKeys of examined
	// keys.
	rewriteBytes = 1 << 20
	rewriteKeys  = 2000
)

// CompactRecords raises the schema of a database from an earlier version, so that new
// records are written in the compact form, and rewrites the existing ones. It works in
// small transactions between others. If it is interrupted, the next call continues, because
// it skips compact records.
func (d *DB) CompactRecords(ctx context.Context, by store.Caller, progress func(Rewritten)) (r Rewritten, err error) {
	if !d.Compacts() {
		err := d.Write(ctx, "raising the schema", func(t *commit.Tx) error {
			if err := t.Put("meta", []byte("schema"), commit.SeqKey(commit.CompactSchema)); err != nil {
				return err
			}
			return t.Event(commit.Note{By: by, Kind: "database.schema", Data: map[string]any{"schema": commit.CompactSchema}})
		})
		if err != nil {
			return r, err
		}
		d.SetSchema(commit.CompactSchema)
		r.Raised = true
	}
	for _, step := range []struct {
		bucket string
		again  func(t *commit.Tx, k, v []byte) (fresh []byte, freed int, err error)
	}{
		{"calls", calls.Rewrite},
		{"events", func(t *commit.Tx, _, v []byte) ([]byte, int, error) {
			fresh, err := t.RewriteEvent(v)
			return fresh, 0, err
		}},
	} {
		for after, more := []byte(nil), true; more; {
			var chunk Rewritten
			old, last, err := d.firstForm(ctx, step.bucket, after)
			if err != nil {
				return r, err
			}
			if len(old) > 0 {
				err = d.Write(ctx, "rewriting "+step.bucket, func(t *commit.Tx) error {
					chunk = Rewritten{}
					for _, k := range old {
						v := commit.CloneBytes(t.Get(step.bucket, k))
						if short, err := commit.IsCompact(v); short || len(v) == 0 || err != nil {
							continue // rewritten or deleted meanwhile, or damaged
						}
						fresh, freed, err := step.again(t, k, v)
						if errors.Is(err, commit.ErrDamaged) || errors.Is(err, seal.ErrDamaged) {
							chunk.Damaged++
							continue
						}
						if err != nil {
							return fmt.Errorf("%s %q: %w", step.bucket, k, err)
						}
						if fresh == nil {
							continue
						}
						chunk.Records++
						chunk.Before += int64(len(v) + freed)
						chunk.After += int64(len(fresh))
						if err := t.Put(step.bucket, k, fresh); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err != nil {
				return r, err
			}
			r.Records, r.Before, r.After, r.Damaged = r.Records+chunk.Records, r.Before+chunk.Before, r.After+chunk.After, r.Damaged+chunk.Damaged
			if after, more = last, last != nil; more && progress != nil {
				progress(r)
			}
		}
	}
	return r, nil
}

// firstForm returns the keys of the next records after a key that are in the first form.
// last is the last examined key, or nil at the end of the bucket.
func (d *DB) firstForm(ctx context.Context, bucket string, after []byte) (old [][]byte, last []byte, err error) {
	err = d.Read(ctx, "looking for records to rewrite", func(t *commit.Tx) error {
		old, last = nil, nil
		var from []byte
		if after != nil {
			from = append(commit.CloneBytes(after), 0)
		}
		looked, size := 0, 0
		for k, v := range t.Scan(bucket, kv.Range{From: from, Limit: rewriteKeys}) {
			looked++
			last = commit.CloneBytes(k)
			if short, err := commit.IsCompact(v); err == nil && !short {
				old = append(old, last)
			}
			if size += len(v); size > rewriteBytes {
				return nil
			}
		}
		if looked < rewriteKeys {
			last = nil
		}
		return nil
	})
	return old, last, err
}

// Compacted is the result of Compact.
type Compacted struct {
	Rewritten
	FileBefore, FileAfter int64  // bytes of the file
	Server                string // the database server, if there is no file
}

// Compact returns free space to the file system. If records is set, it rewrites older
// records first; see [DB.CompactRecords]. On a database server, VACUUM frees the space.
func (d *DB) Compact(ctx context.Context, by store.Caller, records bool, progress func(Rewritten)) (c Compacted, err error) {
	before := d.Health()
	c.Server = before.Server
	if records {
		if c.Rewritten, err = d.CompactRecords(ctx, by, progress); err != nil {
			return c, fmt.Errorf("rewriting records: %w", err)
		}
	}
	file, ok := d.engine.(*bolt.File)
	if !ok {
		return c, nil
	}
	if err := d.Flush(ctx); err != nil {
		return c, fmt.Errorf("compacting the database: %w", err)
	}
	c.FileBefore = d.Health().Size
	if err := file.Compact(ctx); err != nil {
		return c, commit.NoRoom(err)
	}
	c.FileAfter = d.Health().Size
	return c, nil
}

// leastCompacted is the minimum size of a file that nize compacts automatically.
const leastCompacted = 64 << 20

// Surplus is the free part of a file that is worth compacting; zero for other databases. Its
// fields are in bytes.
type Surplus struct {
	Size, Free int64
	Needs      int64 // free disk space that compacting takes
}

// Surplus returns the free part of the file if it is more than half.
func (d *DB) Surplus() (s Surplus) {
	file, ok := d.engine.(*bolt.File)
	if !ok {
		return s
	}
	if size, free := file.Room(); size >= leastCompacted && free > size/2 {
		s = Surplus{Size: size, Free: free, Needs: file.CompactSpace()}
	}
	return s
}

// CompactIfHalfFree compacts the file if more than half of it is free. It leaves that to the
// next call while the file is being compacted, copied or checked.
func (d *DB) CompactIfHalfFree(ctx context.Context) (c Compacted, done bool, err error) {
	if d.Surplus() == (Surplus{}) {
		return c, false, nil
	}
	c, err = d.Compact(ctx, store.System, false, nil)
	if errors.Is(err, bolt.ErrRunning) {
		return c, false, nil
	}
	return c, err == nil, err
}

// Stored describes a stored record.
type Stored struct {
	Form   string // compact, parts or empty
	Size   int    // bytes
	Call   *store.Call
	Args   int // bytes of a call's sealed arguments
	Result int // bytes of its sealed result
	// Changes are the changes in a feed entry.
	Changes []store.Change
}

// ShowStored returns how a record of calls, events or the feed is stored. It doesn't unseal
// anything. It returns store.ErrNotFound if there is no such record.
func (d *DB) ShowStored(ctx context.Context, bucket string, key []byte) (s Stored, err error) {
	err = d.Read(ctx, "reading a record", func(t *commit.Tx) error {
		v := t.Get(bucket, key)
		if v == nil {
			return store.ErrNotFound
		}
		short, err := commit.IsCompact(v)
		if err != nil {
			return err
		}
		s = Stored{Size: len(v), Form: "parts"}
		switch {
		case short:
			s.Form = "compact"
		case len(v) == 0:
			s.Form = "empty"
		}
		switch bucket {
		case "calls":
			c, err := calls.DecodeCall(string(key), v)
			s.Call, s.Args, s.Result = &c.Head, len(c.Args), len(c.Result)
			return err
		case "feed":
			s.Changes, err = commit.DecodeChanges(key, v)
		}
		return err
	})
	return s, err
}
