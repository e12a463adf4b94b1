package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"nize/store"
	"nize/store/kv"
)

// state returns all that a file has.
func state(t *testing.T, f *File) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := f.allBuckets(t.Context())
	if err == nil {
		err = f.view(t.Context(), func(x *transaction) error {
			for _, name := range names {
				n, err := x.Sequence(name, 0)
				if err != nil {
					return err
				}
				all[name] = fmt.Sprint("sequence ", n)
				if err := x.Range(name, kv.Range{}, func(k, v []byte) bool {
					if v != nil {
						all[name+"\x00"+string(k)] = string(v)
					}
					return true
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// emptied opens a file of which most was deleted, and a bucket inside another.
func emptied(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, Options{Fill: map[string]float64{"full": 1}})
	if err == nil {
		err = f.update(t.Context(), func(x *transaction) error {
			err := errors.Join(x.Make("full"), x.Make("other"), x.Make("empty"))
			for i := 0; i < 20_000 && err == nil; i++ {
				k := binary.BigEndian.AppendUint64(nil, uint64(i))
				err = errors.Join(x.Put("full", k, make([]byte, 200)), x.Put("other", k, nil), x.Put("other/inner", k, []byte("in")))
			}
			_, serr := x.Sequence("other", 7)
			return errors.Join(err, serr)
		})
	}
	if err == nil {
		err = f.update(t.Context(), func(x *transaction) error {
			var err error
			for i := 0; i < 18_000 && err == nil; i++ {
				k := binary.BigEndian.AppendUint64(nil, uint64(i))
				err = errors.Join(x.Delete("full", k), x.Delete("other", k), x.Delete("other/inner", k))
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCompact: a compacted file has what it had, and what was written meanwhile; the room
// of deleted keys is the file system's again.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	f := emptied(t, path)
	defer func() { f.Close(false) }()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	held, err := f.Begin(t.Context(), false) // it goes on in the old file
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	want := state(t, f)
	first := make(chan struct{})
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if n == 1 {
				close(first)
			}
			err := f.update(t.Context(), func(x *transaction) error {
				for range 20 {
					name := []string{"full", "other", "other/inner", "late", "late/inner"}[rand.IntN(5)]
					if err := x.Make("late"); err != nil {
						return err
					}
					k := binary.BigEndian.AppendUint64(nil, uint64(rand.IntN(25_000)))
					if rand.IntN(3) == 0 {
						delete(want, name+"\x00"+string(k))
						if err := x.Delete(name, k); err != nil {
							return err
						}
						continue
					}
					v := fmt.Sprint(n)
					want[name+"\x00"+string(k)] = v
					if err := x.Put(name, k, []byte(v)); err != nil {
						return err
					}
				}
				n, err := x.Sequence("full", 1)
				want["full"] = fmt.Sprint("sequence ", n)
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	<-first
	for range 3 {
		if err := f.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := held.Get("other", binary.BigEndian.AppendUint64(nil, 19_999)); err != nil || v == nil {
		t.Errorf("a reader that began before: %q, %v", v, err)
	}
	held.Rollback()
	stop()
	writing.Wait()
	for _, name := range []string{"late", "late/inner"} {
		want[name] = "sequence 0"
	}
	check := func(when string) {
		t.Helper()
		got := state(t, f)
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%s: %q is %q, want %q", when, k, got[k], v)
			}
		}
		if len(got) != len(want) {
			for k := range got {
				if _, ok := want[k]; !ok {
					t.Fatalf("%s: %q is too many", when, k)
				}
			}
		}
	}
	check("after it")
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := f.CopyTo(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(true); err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil || !Clean(path) {
		t.Errorf("it is not clean: %v", err)
	}
	after, err := os.Stat(path)
	if err != nil || after.Size() > before.Size()/2 {
		t.Errorf("%d bytes of %d are left, %v", after.Size(), before.Size(), err)
	}
	s, err := ReadSizes(copied)
	if err != nil || s.Free > s.Used/20 || s.File != s.Used {
		t.Errorf("the copy: %+v, %v", s, err)
	}
	if f, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	check("opened again")
	if err := f.Close(true); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(copied, Options{}); err != nil {
		t.Fatal(err)
	}
	check("the copy")
}

// TestCompactNotDurable: if the new file may vanish from its directory in a power failure,
// nothing more is acknowledged until it was opened again.
func TestCompactNotDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	f := emptied(t, path)
	want := state(t, f)
	f.testOnlySyncDir = func(string) error { return syscall.ENOSPC }
	if err := f.Compact(t.Context()); err == nil || errors.Is(err, store.ErrDiskFull) {
		t.Errorf("compacting: %v", err)
	}
	put := func(x *transaction) error { return x.Put("other", []byte("late"), nil) }
	if err := f.update(t.Context(), put); err == nil || errors.Is(err, store.ErrDiskFull) || errors.Is(err, store.ErrNotOpen) || errors.Is(err, kv.ErrRetry) {
		t.Errorf("a write after it: %v", err)
	}
	if got := state(t, f); !maps.Equal(got, want) {
		t.Error("it does not have what it had")
	}
	if err := f.Close(true); err != nil || Clean(path) {
		t.Errorf("it calls itself clean, %v", err)
	}
	if err := CheckPages(t.Context(), path); err != nil {
		t.Error(err)
	}
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(false)
	if got := state(t, f); !maps.Equal(got, want) {
		t.Error("opened again, it does not have what it had")
	}
	if err := f.update(t.Context(), put); err != nil {
		t.Errorf("a write after it was opened again: %v", err)
	}
}

// TestCompactFails: without room, or ended early, the file stays as it is and in use, and
// nothing is left beside it.
func TestCompactFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	f := emptied(t, path)
	defer f.Close(false)
	want := state(t, f)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Compact(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if err := checkSpace(dir, "compacting", 1<<62); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("on a disk that is too small: %v", err)
	}
	f.TestOnlyMaxSize(64 << 10)
	if err := f.Compact(t.Context()); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("without room: %v", err)
	}
	f.TestOnlyMaxSize(0)
	f.compacting.Lock()
	if err := f.Compact(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("while another one runs: %v", err)
	}
	f.compacting.Unlock()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
	if got := state(t, f); !maps.Equal(got, want) {
		t.Error("the file is not what it was")
	}
	if err := os.WriteFile(compactPath(path), []byte("left by a kill"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Compact(t.Context()); err != nil {
		t.Errorf("after all: %v", err)
	}
}
