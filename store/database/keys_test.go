package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// secrets fills a database with every kind of sealed value and returns a check
// that all of them open.
func secrets(t *testing.T, d *DB) func(*DB) {
	t.Helper()
	ctx := t.Context()
	ids := []string{}
	for i := range 350 { // more than one chunk
		c := testCall(store.Running)
		c.Args = fmt.Appendf(nil, `{"n":%d}`, i)
		if err := d.Begin(ctx, tester, c); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: []byte(`{"content":[]}`)}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	ck := store.CredentialKey{Scope: "system", Service: "box", Name: "KEY"}
	if err := d.PutCredential(ctx, tester, store.Credential{CredentialKey: ck, Secret: store.NewSecret("open sesame")}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []store.Provider{{Name: "p", Kind: "openai", Key: store.NewSecret("sk-1")}, {Name: "bare", Kind: "openai"}} {
		if err := d.PutProvider(ctx, tester, p); err != nil {
			t.Fatal(err)
		}
	}
	item := store.Item{ID: store.NewID(time.Now()), Kind: "k", Payload: []byte("kept")}
	if _, err := d.Accept(ctx, item); err != nil {
		t.Fatal(err)
	}
	return func(d *DB) {
		t.Helper()
		if list, err := d.Pending(ctx); err != nil || len(list) != 1 || string(list[0].Payload) != "kept" {
			t.Fatalf("inbox: %+v, %v", list, err)
		}
		for i, id := range ids {
			c, err := d.GetCall(ctx, id)
			if err != nil || string(c.Args) != fmt.Sprintf(`{"n":%d}`, i) || c.Result == nil {
				t.Fatalf("call %d: %+v, %v", i, c, err)
			}
		}
		if c, err := d.GetCredential(ctx, ck); err != nil || c.Secret.Reveal() != "open sesame" {
			t.Fatalf("credential: %v", err)
		}
		if list, err := d.ListProviders(ctx); err != nil || len(list) != 2 || list[1].Key.Reveal() != "sk-1" {
			t.Fatalf("providers: %v, %v", list, err)
		}
		if _, err := d.VerifyEvents(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRotate(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	file := filepath.Join(dir, "key")
	d := openTest(t, dir, Options{})
	check := secrets(t, d)
	old := d.KeyID()
	next, err := seal.Next(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := d.Rotate(ctx, tester, next); err != nil || n != 2 {
		t.Fatalf("data key %d, %v", n, err)
	}
	if n, err := d.DataKeys(ctx); err != nil || n != 2 || d.KeyID() == old {
		t.Fatalf("%d data keys, %v, master %s", n, err, d.KeyID())
	}
	check(d)

	// A pass that ends in the middle leaves everything readable, also for the
	// next start.
	half, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := d.Reseal(half); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := seal.Adopt(file, old); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, dir, Options{})
	check(d)
	n, err := d.Reseal(ctx)
	if err != nil || n != 350+1+1+1+1 { // calls, credential, provider, inbox, audit key
		t.Fatalf("%d sealed anew, %v", n, err)
	}
	if n, err := d.Reseal(ctx); err != nil || n != 0 {
		t.Fatalf("%d sealed anew again, %v", n, err)
	}
	if n, err := d.DataKeys(ctx); err != nil || n != 1 {
		t.Fatalf("%d data keys, %v", n, err)
	}
	check(d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	check(openTest(t, dir, Options{}))
	if m, err := seal.OpenFor(file, old); err != nil || m.ID() != old {
		t.Errorf("the old key: %v", err)
	}
}

// TestModuleBuckets: a database gets the buckets of modules when it is opened. A rotation
// reseals those that are sealed, and keeps the older keys if it doesn't know them all.
func TestModuleBuckets(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	with := Options{Buckets: []kv.Bucket{{Name: "module", Sealed: true}, {Name: "module_clear"}}}
	check := func(d *DB) {
		t.Helper()
		err := d.View(ctx, "reading", func(r kv.Reader) error {
			v, err := r.Unseal("module", []byte("k"))
			if string(v) != "secret" {
				t.Errorf("unsealed %q", v)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := openTest(t, dir, Options{}).Close(); err != nil { // by a version without the module
		t.Fatal(err)
	}
	d := openTest(t, dir, with)
	err := d.Update(ctx, "writing", func(tx kv.Tx) error { return tx.PutSealed("module", []byte("k"), []byte("secret")) })
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{"module_clear", "other"} {
		err := d.Update(ctx, "writing", func(tx kv.Tx) error { return tx.PutSealed(bucket, []byte("k"), nil) })
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a secret in %s: %v", bucket, err)
		}
	}
	if _, err := d.Rotate(ctx, tester, d.master.Load()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	older := openTest(t, dir, Options{})
	if _, err := older.Reseal(ctx); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "module") {
		t.Errorf("resealed without the module: %v", err)
	}
	if n, err := older.DataKeys(ctx); err != nil || n != 2 {
		t.Errorf("%d data keys, %v", n, err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, dir, with)
	if n, err := d.Reseal(ctx); err != nil || n != 1 {
		t.Errorf("resealed %d, %v", n, err)
	}
	if n, err := d.DataKeys(ctx); err != nil || n != 1 {
		t.Errorf("%d data keys, %v", n, err)
	}
	if events, secrets, err := VerifyEngine(ctx, d.engine, d.master.Load(), with.Buckets); err != nil || events == 0 || secrets != 2 {
		t.Errorf("verified %d events and %d secrets: %v", events, secrets, err)
	}
	check(d)
}

// A value that does not open must not make the rest unreadable.
func TestResealDamaged(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, Options{})
	check := secrets(t, d)
	c := testCall(store.Pending)
	if err := d.Begin(ctx, tester, c); err != nil {
		t.Fatal(err)
	}
	err := d.Write(ctx, "damaging", func(t *commit.Tx) error {
		v := commit.CloneBytes(t.Get("calls", []byte(c.ID)))
		v[len(v)-3]++
		return t.Put("calls", []byte(c.ID), v)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Rotate(ctx, tester, d.master.Load()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reseal(ctx); !errors.Is(err, seal.ErrDamaged) || !strings.Contains(err.Error(), c.ID) {
		t.Fatalf("got %v", err)
	}
	if n, err := d.DataKeys(ctx); err != nil || n != 2 {
		t.Errorf("%d data keys, %v", n, err)
	}
	check(d)
}

// Every place that seals is one that a rotation seals again.
func TestSealedPlaces(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sealed {
		known[s.bucket] = true
	}
	files, err := filepath.Glob("../record/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.Seal\(("?)([^",/]*)`).FindAllStringSubmatch(string(text), -1) {
			found++
			if m[1] == "" || !known[m[2]] {
				t.Errorf("%s seals for %q: name the bucket as text, and add it to sealed in keys.go", f, m[2])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d places found", found)
	}
}

// A backup made while others write holds everything that was acknowledged
// before it began.
func TestBackupUnderLoad(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, Options{})
	var writers sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	stop := make(chan struct{})
	enough := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c := testCall(store.Pending)
				if err := d.Begin(ctx, tester, c); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, c.ID)
				if len(acked) == 200 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	mu.Lock()
	before := append([]string(nil), acked...)
	mu.Unlock()
	late := testCall(store.Done)
	d.Record(tester, late) // it waits for its place on disk, and must be in it
	to := filepath.Join(t.TempDir(), "nize.db")
	said, err := d.Backup(ctx, to)
	close(stop)
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := bolt.Check(to); err != nil {
		t.Fatal(err)
	}
	if id, err := Inspect(to); err != nil || id != said.Key {
		t.Fatalf("key %q, %v", id, err)
	}
	master, err := seal.OpenFor(filepath.Join(dir, "key"), said.Key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(ctx, Options{Path: to, Master: master, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, id := range append(before, late.ID) {
		if _, err := b.GetCall(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.VerifyEvents(ctx); err != nil || n < len(before) {
		t.Errorf("%d events, %v", n, err)
	}
}

// What is no database of ours is told apart without being changed.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	makeFile(t, foreign, func(b kv.Transaction) error { return b.Make("theirs") })
	bare := filepath.Join(dir, "bare.db")
	makeFile(t, bare, func(kv.Transaction) error { return nil })
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{foreign: store.ErrInvalid, bare: store.ErrInvalid, empty: store.ErrInvalid, filepath.Join(dir, "none"): os.ErrNotExist} {
		if _, err := Inspect(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
