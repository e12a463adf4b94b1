package commit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
)

var _ kv.DB = (*DB)(nil)

// View implements [kv.DB].
func (d *DB) View(ctx context.Context, what string, fn func(kv.Reader) error) error {
	now := d.Now()
	return d.Read(ctx, what, func(t *Tx) error {
		t.Now = now
		return fn(t.KV())
	})
}

// Update implements [kv.DB].
func (d *DB) Update(ctx context.Context, what string, fn func(kv.Tx) error) error {
	return d.Write(ctx, what, func(t *Tx) error { return fn(t.KV()) })
}

// KV returns the transaction as a [kv.Tx].
func (t *Tx) KV() kv.Tx { return kvTx{t} }

// kvTx implements [kv.Tx].
type kvTx struct{ t *Tx }

func (x kvTx) Now() time.Time { return x.t.Now }

func (x kvTx) Get(bucket string, key []byte) ([]byte, error) {
	v := x.t.Get(bucket, key)
	if v == nil {
		return nil, store.ErrNotFound
	}
	return v, nil
}

func (x kvTx) Each(bucket string, prefix, from []byte, do func(k, v []byte) error) error {
	return x.t.EachIn(bucket, kv.Range{Prefix: prefix, From: from}, do)
}

func (x kvTx) Put(bucket string, key, value []byte) error { return x.t.Put(bucket, key, value) }
func (x kvTx) Delete(bucket string, key []byte) error     { return x.t.Delete(bucket, key) }

func (x kvTx) PutSealed(bucket string, key, plain []byte) error {
	if !slices.ContainsFunc(x.t.DB.buckets, func(b kv.Bucket) bool { return b.Sealed && b.Name == bucket }) {
		return fmt.Errorf("%w bucket %s: it is not declared as sealed", store.ErrInvalid, bucket)
	}
	return x.t.Put(bucket, key, x.t.Seal(bucket, string(key), plain))
}

func (x kvTx) Unseal(bucket string, key []byte) ([]byte, error) {
	v, err := x.Get(bucket, key)
	if err != nil {
		return nil, err
	}
	return x.t.DB.Unseal(bucket, string(key), v)
}

func (x kvTx) Event(by store.Caller, e store.Event, data any) error {
	return x.t.Event(Note{By: by, Kind: e.Kind, Subject: e.Subject, Tool: e.Tool, Outcome: e.Outcome, Data: data})
}

func (x kvTx) Change(c store.Change) { x.t.Change(c) }
