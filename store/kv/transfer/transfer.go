// Package transfer copies one engine's content into another engine and verifies the copy.
//
// The target is marked before anything else and until it is verified: a target with the
// mark is an incomplete database that must not be used ([Unfinished]). An interrupted copy
// is not continued; its target must be emptied and copied to again.
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"nize/store"
	"nize/store/kv"
)

const (
	// chunk limits the bytes of one transaction, and so the memory used.
	chunk = 8 << 20
	// mark is the key of the mark, in the bucket that the caller names.
	mark = "unfinished copy"
)

// Copy is one copy. No one else may have either engine open.
type Copy struct {
	From, To kv.Engine
	// Mark is the bucket with the mark; it is copied last.
	Mark string
	// Within are buckets with a slash in their names, which engines don't list.
	Within []string
}

// Content describes the content of a bucket.
type Content struct {
	Bucket   string
	Keys     int
	Bytes    int64
	Sequence uint64
	Digest   [sha256.Size]byte // of its keys and values in order
}

// Unfinished reports whether the target of a transaction was not verified.
func Unfinished(b kv.Transaction, bucket string) (bool, error) {
	v, err := b.Get(bucket, []byte(mark))
	return v != nil, err
}

// Begin marks the target. It returns store.ErrConflict if the target has any bucket.
func (c Copy) Begin(ctx context.Context) error {
	return c.update(ctx, func(b kv.Transaction) error {
		names, err := b.Buckets()
		if err != nil {
			return err
		}
		if slices.Contains(names, c.Mark) {
			if cut, err := Unfinished(b, c.Mark); err != nil || cut {
				return errors.Join(err, store.Mark(errors.New("an earlier copy into it was cut off"), store.ErrConflict))
			}
		}
		if len(names) > 0 {
			return store.Mark(errors.New("it is not empty"), store.ErrConflict)
		}
		return errors.Join(b.Make(c.Mark), b.Put(c.Mark, []byte(mark), []byte{}))
	})
}

// End removes the mark.
func (c Copy) End(ctx context.Context) error {
	return c.update(ctx, func(b kv.Transaction) error { return b.Delete(c.Mark, []byte(mark)) })
}

func (c Copy) update(ctx context.Context, fn func(kv.Transaction) error) error {
	b, err := c.To.Begin(ctx, true)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if err := fn(b); err != nil {
		return err
	}
	return b.Commit()
}

// Run copies every bucket into a target that Begin marked, reads the target again, and
// compares.
func (c Copy) Run(ctx context.Context) (contents []Content, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil { // a damaged page of a mapped file
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
	}()
	from, err := c.From.Begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer from.Rollback()
	names, err := from.Buckets()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == c.Mark })
	for _, name := range append(append(names, c.Within...), c.Mark) {
		one, err := c.bucket(ctx, from, name)
		if err != nil {
			return nil, fmt.Errorf("copying bucket %s: %w", name, err)
		}
		contents = append(contents, one)
	}
	to, err := c.To.Begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer to.Rollback()
	for _, one := range contents {
		got, err := c.read(ctx, to, one.Bucket, func(_, _ []byte) error { return nil })
		if err != nil {
			return nil, fmt.Errorf("reading bucket %s again: %w", one.Bucket, err)
		}
		if got != one {
			return nil, fmt.Errorf("%w: bucket %s has %d keys at the source and %d at the target, or they differ", kv.ErrDamaged, one.Bucket, one.Keys, got.Keys)
		}
	}
	return contents, nil
}

// read calls do for each entry of a bucket except the mark, and returns its content.
func (c Copy) read(ctx context.Context, b kv.Transaction, bucket string, do func(k, v []byte) error) (one Content, err error) {
	one.Bucket = bucket
	if !strings.Contains(bucket, "/") {
		if one.Sequence, err = b.Sequence(bucket, 0); err != nil {
			return one, err
		}
	}
	sum, sizes := sha256.New(), make([]byte, 0, 16)
	failed := b.Range(bucket, kv.Range{}, func(k, v []byte) bool {
		if v == nil || bucket == c.Mark && string(k) == mark { // nil: a bucket within this one
			return true
		}
		sizes = binary.BigEndian.AppendUint64(sizes[:0], uint64(len(k)))
		sum.Write(binary.BigEndian.AppendUint64(sizes, uint64(len(v))))
		sum.Write(k)
		sum.Write(v)
		one.Keys++
		one.Bytes += int64(len(k) + len(v))
		err = errors.Join(ctx.Err(), do(k, v))
		return err == nil
	})
	sum.Sum(one.Digest[:0])
	return one, errors.Join(err, failed)
}

// bucket copies one bucket, in transactions of a chunk each.
func (c Copy) bucket(ctx context.Context, from kv.Transaction, name string) (one Content, err error) {
	var b kv.Transaction // nil: none is open
	defer func() {
		if b != nil {
			b.Rollback()
		}
	}()
	if !strings.Contains(name, "/") {
		err := c.update(ctx, func(b kv.Transaction) error {
			n, err := from.Sequence(name, 0)
			if err = errors.Join(err, b.Make(name)); err != nil || n == 0 {
				return err
			}
			_, err = b.Sequence(name, n)
			return err
		})
		if err != nil {
			return one, err
		}
	}
	size := 0
	one, err = c.read(ctx, from, name, func(k, v []byte) (err error) {
		if b == nil {
			if b, err = c.To.Begin(ctx, true); err != nil {
				return err
			}
		}
		if err := b.Put(name, k, v); err != nil {
			return err
		}
		if size += len(k) + len(v); size <= chunk {
			return nil
		}
		err = b.Commit()
		b, size = nil, 0
		return err
	})
	if err == nil && b != nil {
		err = b.Commit()
	}
	return one, err
}
