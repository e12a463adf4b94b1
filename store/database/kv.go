package database

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

var _ kv.DB = (*DB)(nil)

// View implements [kv.DB].
func (d *DB) View(ctx context.Context, what string, fn func(kv.Reader) error) error {
	now := d.clock.now()
	return d.view(ctx, what, func(t *tx) error {
		t.now = now
		return fn(kvTx{t})
	})
}

// Update implements [kv.DB].
func (d *DB) Update(ctx context.Context, what string, fn func(kv.Tx) error) error {
	return d.update(ctx, what, func(t *tx) error { return fn(kvTx{t}) })
}

// kvTx is a transaction as package record sees it.
type kvTx struct{ t *tx }

func (x kvTx) Now() time.Time { return x.t.now }

func (x kvTx) Get(bucket string, key []byte) ([]byte, error) {
	v := x.t.get(bucket, key)
	if v == nil {
		return nil, store.ErrNotFound
	}
	return v, nil
}

func (x kvTx) Each(bucket string, prefix, from []byte, do func(k, v []byte) error) error {
	return x.t.eachFrom(bucket, kv.Range{Prefix: prefix, From: from}, do)
}

func (x kvTx) Put(bucket string, key, value []byte) error { return x.t.put(bucket, key, value) }
func (x kvTx) Delete(bucket string, key []byte) error     { return x.t.del(bucket, key) }

func (x kvTx) PutSealed(bucket string, key, plain []byte) error {
	if !slices.Contains(record.Sealed, bucket) {
		return fmt.Errorf("%w bucket %s: record.Sealed doesn't name it", store.ErrInvalid, bucket)
	}
	return x.t.put(bucket, key, x.t.seal(bucket, string(key), plain))
}

func (x kvTx) Unseal(bucket string, key []byte) ([]byte, error) {
	v, err := x.Get(bucket, key)
	if err != nil {
		return nil, err
	}
	return x.t.db.unseal(bucket, string(key), v)
}

func (x kvTx) Event(by store.Caller, e store.Event, data any) error {
	return x.t.event(auditNote{by: by, kind: e.Kind, subject: e.Subject, tool: e.Tool, outcome: e.Outcome, data: data})
}

func (x kvTx) Change(c store.Change) { x.t.change(c) }
