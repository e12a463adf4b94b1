package database

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record/calls"
	"nize/store/seal"
)

// Rewritten is what CompactRecords did.
type Rewritten struct {
	Records       int   // that were in the first form
	Before, After int64 // their bytes, keys of indexes included
	Damaged       int   // that can't be read, and are left as they are
	// Raised reports that the schema was raised: versions before can't open the database
	// any more.
	Raised bool
}

const (
	// rewriteBytes bounds what one transaction rewrites, and rewriteKeys what it looks at.
	rewriteBytes = 1 << 20
	rewriteKeys  = 2000
)

// CompactRecords raises the schema of a database that an earlier version made, so that
// records are written in the compact form from then on, and rewrites those that are there.
// It goes in small transactions, between those of others. If it ends early, by ctx or with
// the process, the next one goes on: it passes by what is in the compact form.
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
							continue // it was rewritten or deleted meanwhile, or is damaged
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
// last is where it ended, nil at the end of the bucket.
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
