// Package kvtest is the contract that every engine of package kv passes.
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"nize/store"
	"nize/store/kv"
)

// Engine is an engine and what else the contract checks.
type Engine interface {
	kv.DB
	store.Feed
	Events(ctx context.Context, q store.EventQuery) ([]store.Event, error)
}

// Bucket is a bucket that the contract may fill, and SealedBucket one for secrets; both are
// empty in a new database.
const (
	Bucket       = "examples"
	SealedBucket = "hook_secrets"
)

var ada = store.Caller{User: "ada", Name: "Ada", Role: store.Admin, Surface: store.OnCLI}

// Run runs the contract. open opens an empty database for one test and closes it at its
// end; reopen simulates a restart.
func Run(t *testing.T, open func(t *testing.T) (db Engine, reopen func() Engine)) {
	for name, test := range map[string]func(*env){
		"Keys": keys, "Order": order, "Errors": undone, "Lost": noLostUpdate, "Skew": noSkew, "State": oneState, "Sealed": sealed, "Trail": trail, "Context": contexts,
	} {
		t.Run(name, func(t *testing.T) {
			db, reopen := open(t)
			test(&env{t, db, reopen})
		})
	}
}

type env struct {
	*testing.T
	Engine
	reopen func() Engine
}

func (e *env) update(fn func(kv.Tx) error) error { return e.Update(e.Context(), "a test", fn) }

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) value(key string) (value string, err error) {
	err = e.View(e.Context(), "a test", func(r kv.Reader) error {
		v, err := r.Get(Bucket, []byte(key))
		value = string(v)
		return err
	})
	return value, err
}

// all joins the entries that Each visits.
func all(r kv.Reader, prefix, from string) string {
	var out []string
	start := []byte(from)
	if from == "" {
		start = nil
	}
	err := r.Each(Bucket, []byte(prefix), start, func(k, v []byte) error {
		out = append(out, fmt.Sprintf("%s=%s", k, v))
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(out, " ")
}

func keys(e *env) {
	e.ok(e.update(func(tx kv.Tx) error {
		if _, err := tx.Get(Bucket, []byte("a")); !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("a key that isn't there: %v", err)
		}
		if err := errors.Join(tx.Put(Bucket, []byte("a"), []byte("1")), tx.Put(Bucket, []byte("b"), []byte("1")), tx.Put(Bucket, []byte("a"), []byte("2"))); err != nil {
			return err
		}
		if v, err := tx.Get(Bucket, []byte("a")); err != nil || string(v) != "2" {
			return fmt.Errorf("it reads its own writes: %q, %v", v, err)
		}
		return errors.Join(tx.Delete(Bucket, []byte("b")), tx.Delete(Bucket, []byte("none")))
	}))
	before := e.at()
	e.Engine = e.reopen()
	if got, err := e.value("a"); err != nil || got != "2" {
		e.Errorf("after a restart: %q, %v", got, err)
	}
	if _, err := e.value("b"); !errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), "a test: ") {
		e.Errorf("a deleted key: %v", err)
	}
	if e.at() < before {
		e.Error("the time went back")
	}
}

func (e *env) at() (at int64) {
	e.ok(e.View(e.Context(), "a test", func(r kv.Reader) error { at = r.Now().UnixNano(); return nil }))
	return at
}

func order(e *env) {
	e.ok(e.update(func(tx kv.Tx) error {
		for _, k := range []string{"b\x00\xff", "a\x00", "b\x00a", "b", "b\x00", "c", "b\x00b", "b\x01"} {
			if err := tx.Put(Bucket, []byte(k), nil); err != nil {
				return err
			}
		}
		return nil
	}))
	stop := errors.New("stop")
	e.ok(e.View(e.Context(), "a test", func(r kv.Reader) error {
		if got, want := all(r, "b\x00", ""), "b\x00= b\x00a= b\x00b= b\x00\xff="; got != want {
			e.Errorf("with the prefix: %q, want %q", got, want)
		}
		if got, want := all(r, "b\x00", "b\x00aa"), "b\x00b= b\x00\xff="; got != want {
			e.Errorf("from a key on: %q, want %q", got, want)
		}
		if got := all(r, "x", ""); got != "" {
			e.Errorf("none: %q", got)
		}
		n := 0
		if err := r.Each(Bucket, nil, nil, func(_, _ []byte) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
			e.Errorf("ended by its visitor: %v after %d", err, n)
		}
		return nil
	}))
}

// undone: an error undoes the whole transaction, including the trail and the feed.
func undone(e *env) {
	last := e.Last()
	err := e.update(func(tx kv.Tx) error {
		tx.Change(store.Change{Kind: "k", ID: "1"})
		if err := errors.Join(tx.Put(Bucket, []byte("a"), []byte("1")), tx.Event(ada, store.Event{Kind: "k.put", Subject: "a"}, nil)); err != nil {
			return err
		}
		return store.ErrConflict
	})
	if !errors.Is(err, store.ErrConflict) {
		e.Fatalf("got %v", err)
	}
	if err := e.update(func(tx kv.Tx) error {
		return errors.Join(tx.Put(Bucket, []byte("a"), nil), tx.Event(store.Caller{}, store.Event{Kind: "k.put"}, nil))
	}); !errors.Is(err, store.ErrInvalid) {
		e.Errorf("a change by nobody: %v", err)
	}
	if _, err := e.value("a"); !errors.Is(err, store.ErrNotFound) {
		e.Errorf("it left a trace: %v", err)
	}
	if list, err := e.Events(e.Context(), store.EventQuery{}); err != nil || len(list) != 0 || e.Last() != last {
		e.Errorf("events %v, %v; feed %d, was %d", list, err, e.Last(), last)
	}
}

// noLostUpdate: data that a transaction read is still current when it writes.
func noLostUpdate(e *env) {
	const n = 32
	var wg sync.WaitGroup
	errs := make(chan error, n) // one of each
	for range n {
		wg.Go(func() {
			errs <- e.update(func(tx kv.Tx) error {
				v, err := tx.Get(Bucket, []byte("count"))
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				return tx.Put(Bucket, []byte("count"), append([]byte("x"), v...))
			})
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		e.ok(err)
	}
	if got, err := e.value("count"); err != nil || len(got) != n {
		e.Errorf("%d of %d are there, %v", len(got), n, err)
	}
}

// noSkew: of transactions that each leave only if others remain, one remains.
func noSkew(e *env) {
	const n = 16
	for i := range n {
		e.ok(e.update(func(tx kv.Tx) error { return tx.Put(Bucket, fmt.Append(nil, "duty/", i), nil) }))
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			err := e.update(func(tx kv.Tx) error {
				if len(strings.Fields(all(tx, "duty/", ""))) < 2 {
					return store.ErrRefused
				}
				return tx.Delete(Bucket, fmt.Append(nil, "duty/", i))
			})
			if err != nil && !errors.Is(err, store.ErrRefused) {
				e.Error(err)
			}
		})
	}
	wg.Wait()
	e.ok(e.View(e.Context(), "a test", func(r kv.Reader) error {
		if got := strings.Fields(all(r, "duty/", "")); len(got) != 1 {
			e.Errorf("there are %q", got)
		}
		return nil
	}))
}

// oneState: a reader sees one state, whatever others write between its reads, and the next
// reader sees their writes.
func oneState(e *env) {
	write := func(value string) error {
		return e.update(func(tx kv.Tx) error {
			return errors.Join(tx.Put(Bucket, []byte("a"), []byte(value)), tx.Put(Bucket, []byte("b"), []byte(value)),
				tx.Put(Bucket, []byte("row/"+value), nil), tx.Delete(Bucket, []byte("row/1")))
		})
	}
	e.ok(write("0"))
	e.ok(e.update(func(tx kv.Tx) error { return tx.Put(Bucket, []byte("row/1"), nil) }))
	read := func(between func() error) (got string, err error) {
		err = e.View(e.Context(), "a test", func(r kv.Reader) error {
			a, err := r.Get(Bucket, []byte("a"))
			if err = errors.Join(err, between()); err != nil {
				return err
			}
			rows := all(r, "row/", "")
			b, err := r.Get(Bucket, []byte("b"))
			got = fmt.Sprintf("%s %s: %s", a, b, rows)
			return err
		})
		return got, err
	}
	for i, want := range []string{"0 0: row/0= row/1=", "2 2: row/0= row/2=", "3 3: row/0= row/2= row/3="} {
		got, err := read(func() error { return write(fmt.Sprint(i + 2)) })
		if err != nil || got != want {
			e.Errorf("it read %q, want %q, %v", got, want, err)
		}
	}
}

func sealed(e *env) {
	e.ok(e.update(func(tx kv.Tx) error { return tx.PutSealed(SealedBucket, []byte("a"), []byte("the secret")) }))
	e.Engine = e.reopen()
	e.ok(e.update(func(tx kv.Tx) error {
		stored, err := tx.Get(SealedBucket, []byte("a"))
		if err != nil || strings.Contains(string(stored), "secret") {
			return fmt.Errorf("as it is kept: %q, %v", stored, err)
		}
		return tx.Put(SealedBucket, []byte("b"), append([]byte(nil), stored...))
	}))
	if err := e.update(func(tx kv.Tx) error { return tx.PutSealed(Bucket, []byte("a"), nil) }); !errors.Is(err, store.ErrInvalid) {
		e.Errorf("in a bucket that keys are not rotated for: %v", err)
	}
	e.ok(e.View(e.Context(), "a test", func(r kv.Reader) error {
		if got, err := r.Unseal(SealedBucket, []byte("a")); err != nil || string(got) != "the secret" {
			e.Errorf("opened: %q, %v", got, err)
		}
		if got, err := r.Unseal(SealedBucket, []byte("b")); err == nil {
			e.Errorf("moved to another key it opens: %q", got)
		}
		if _, err := r.Unseal(SealedBucket, []byte("none")); !errors.Is(err, store.ErrNotFound) {
			e.Errorf("none: %v", err)
		}
		return nil
	}))
}

func trail(e *env) {
	last := e.Last()
	e.ok(e.update(func(tx kv.Tx) error {
		tx.Change(store.Change{Kind: "k", ID: "1", State: "put"})
		return tx.Event(ada, store.Event{Kind: "k.put", Subject: "1", Tool: "box:x", Outcome: "done"}, map[string]int{"n": 9})
	}))
	list, err := e.Events(e.Context(), store.EventQuery{})
	e.ok(err)
	if len(list) != 1 || list[0].Kind != "k.put" || list[0].User != "ada" || list[0].Tool != "box:x" || list[0].Outcome != "done" || string(list[0].Data) != `{"n":9}` {
		e.Errorf("the trail has %+v", list)
	}
	for c, err := range e.Watch(e.Context(), last) {
		e.ok(err)
		if c.Kind != "k" || c.ID != "1" || c.State != "put" || c.Seq != last+1 {
			e.Errorf("the feed has %+v", c)
		}
		break
	}
}

func contexts(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	if err := e.Update(ctx, "late", func(tx kv.Tx) error { return tx.Put(Bucket, []byte("a"), nil) }); !errors.Is(err, context.Canceled) {
		e.Errorf("update: %v", err)
	}
	if err := e.View(ctx, "late", func(kv.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
		e.Errorf("view: %v", err)
	}
	if _, err := e.value("a"); !errors.Is(err, store.ErrNotFound) {
		e.Errorf("it was written: %v", err)
	}
}
