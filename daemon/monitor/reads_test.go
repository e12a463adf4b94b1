package monitor

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/alert"
	"nize/daemon/doctor"
	"nize/daemon/people"
	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// counted counts the transactions and the reads of an engine.
type counted struct {
	kv.Engine
	begun, reads atomic.Int64
}

func (c *counted) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	if write {
		return c.Engine.Begin(ctx, write)
	}
	c.begun.Add(1)
	t, err := c.Engine.Begin(ctx, write)
	return counting{t, c}, err
}

type counting struct {
	kv.Transaction
	of *counted
}

func (t counting) Get(bucket string, key []byte) ([]byte, error) {
	t.of.reads.Add(1)
	return t.Transaction.Get(bucket, key)
}

func (t counting) Range(bucket string, r kv.Range, do func(key, value []byte) bool) error {
	t.of.reads.Add(1)
	return t.Transaction.Range(bucket, r, do)
}

// TestReads: what doctor reads about budgets and incidents takes as many transactions and
// reads, however many people spend and however many incidents are active.
func TestReads(t *testing.T) {
	at := time.Date(2030, 5, 15, 12, 0, 0, 0, time.UTC) // no day ends meanwhile
	now := func() time.Time { return at }
	var first string
	for _, n := range []int{3, 300} {
		ctx, dir := t.Context(), t.TempDir()
		file, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		engine := &counted{Engine: file}
		db, err := database.Open(ctx, database.Options{Engine: engine, Master: master, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		var spends []store.Spend
		for i := range n {
			u, err := db.EnsureUser(ctx, fmt.Sprint("slack:T:U", i), fmt.Sprint("person-", i), store.Member)
			if err != nil {
				t.Fatal(err)
			}
			spends = append(spends, store.Spend{ID: store.NewID(db.Now()), At: db.Now(), User: u.ID, Provider: "p", Model: "m", Prompt: 50 + int64(i%2)*50})
			if _, err := db.OpenIncident(ctx, store.System, store.Incident{ID: store.NewID(db.Now()), Kind: alert.TokenEnds, Subject: u.ID}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.AddSpends(ctx, spends); err != nil {
			t.Fatal(err)
		}
		m := New(Options{Store: db, Directory: &people.Directory{Store: db}, Config: store.Defaults{"budgets.user.daily": "100"}, Now: now})
		var f doctor.Facts
		d := Doctor{Monitor: m}
		engine.begun.Store(0)
		engine.reads.Store(0)
		if err := d.budgets(ctx, &f); err != nil {
			t.Fatal(err)
		}
		if err := d.incidents(ctx, &f); err != nil {
			t.Fatal(err)
		}
		if len(f.Budgets) != n/2 || f.Active != n || len(f.Incidents) != 0 {
			t.Errorf("of %d people: %d budgets, %d incidents, %d of which told", n, len(f.Budgets), f.Active, len(f.Incidents))
		}
		took := fmt.Sprintf("%d transactions, %d reads", engine.begun.Load(), engine.reads.Load())
		t.Logf("%d people: %s", n, took)
		if first == "" {
			first = took
		} else if took != first {
			t.Errorf("%d people: %s; 3 people: %s", n, took, first)
		}
	}
}
