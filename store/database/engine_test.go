package database

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/outage"
)

// unsteady is an engine whose commits fail as often as fails says.
type unsteady struct {
	kv.Engine
	with  error
	fails atomic.Int64
	lost  atomic.Bool // what is asked for is with, too
}

func (u *unsteady) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	b, err := u.Engine.Begin(ctx, write)
	return unsteadyTx{b, u}, err
}

type unsteadyTx struct {
	kv.Transaction
	u *unsteady
}

func (t unsteadyTx) Get(bucket string, key []byte) ([]byte, error) {
	if t.u.lost.Load() {
		return nil, t.u.with
	}
	return t.Transaction.Get(bucket, key)
}

func (t unsteadyTx) Commit() error {
	if t.u.fails.Add(-1) >= 0 {
		t.Rollback()
		return t.u.with
	}
	return t.Transaction.Commit()
}

// TestUnsteadyEngine: where another transaction came first the same is done
// again; where the database does not answer, who waits is told, and what nobody
// waits for is stored when it does.
func TestUnsteadyEngine(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	file, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := &unsteady{Engine: file, with: kv.ErrRetry}
	d := openTest(t, dir, Options{Engine: u})
	u.fails.Store(3)
	if err := d.PutSetting(ctx, tester, "", "a", "1"); err != nil {
		t.Errorf("another came first: %v", err)
	}
	u.with = store.ErrNoDatabase
	u.fails.Store(1)
	if err := d.PutSetting(ctx, tester, "", "b", "1"); !errors.Is(err, store.ErrNoDatabase) || !errors.Is(d.Healthy(), store.ErrNoDatabase) {
		t.Errorf("no answer: %v, %v", err, d.Healthy())
	}
	for change, err := range d.Watch(ctx, 0) {
		if err != nil || change.Kind == outage.Recovered {
			break // who works in the background is told that the database answers again
		}
	}
	call := testCall(store.Done)
	u.fails.Store(1)
	d.Record(tester, call)
	if err := d.Flush(ctx); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("no answer: %v", err)
	}
	if err := d.Flush(ctx); err != nil || d.Healthy() != nil {
		t.Errorf("afterwards: %v, %v", err, d.Healthy())
	}
	if got, err := d.ListSettings(ctx, ""); err != nil || len(got) != 1 || got["a"] != "1" {
		t.Errorf("the settings are %v, %v", got, err)
	}
	if _, err := d.GetCall(ctx, call.ID); err != nil {
		t.Errorf("the record that waited: %v", err)
	}
	if n, err := d.VerifyEvents(ctx); err != nil || n != 2 {
		t.Errorf("%d events hold: %v", n, err)
	}
	u.with = kv.ErrTaken
	u.lost.Store(true)
	if err := d.Done(ctx, call.ID); !errors.Is(err, store.ErrNotOpen) || !errors.Is(d.Healthy(), kv.ErrTaken) {
		t.Errorf("a question finds out that another has it: %v, %v", err, d.Healthy())
	}
	u.lost.Store(false)
	for range 2 { // it stays so
		if err := d.PutSetting(ctx, tester, "", "c", "1"); !errors.Is(err, store.ErrNotOpen) || !errors.Is(d.Healthy(), kv.ErrTaken) {
			t.Errorf("another has it: %v, %v", err, d.Healthy())
		}
	}
}
