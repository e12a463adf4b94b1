package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/kv"
)

// TestCheckPages: a sound file passes, and what bbolt's own check finds in a damaged one is
// found, whatever that does to who reads it.
func TestCheckPages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	if err := CheckPages(t.Context(), path); err != nil {
		t.Errorf("no file: %v", err)
	}
	f, err := Open(path, Options{})
	if err == nil {
		err = f.update(t.Context(), func(x *transaction) error {
			err := errors.Join(x.Make("b"), x.Put("b", []byte("large"), make([]byte, 50_000)), x.Make("small"), x.Put("small", []byte("k"), nil))
			for i := 0; i < 3000 && err == nil; i++ {
				err = errors.Join(x.Put("b", []byte{byte(i >> 8), byte(i)}, make([]byte, 50)), x.Put("b/in", []byte{byte(i >> 8), byte(i)}, nil))
			}
			return err
		})
	}
	if err := errors.Join(err, f.Close(false)); err != nil {
		t.Fatal(err)
	}
	if err := CheckPages(t.Context(), path); err != nil {
		t.Fatalf("a sound file: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CheckPages(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := readState(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.db")
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 60 {
		b := append([]byte(nil), whole...)
		// The head of a page, or anything in it.
		at := int(random.Uint64N(s.pages)) * int(s.pageSize)
		if random.IntN(4) > 0 {
			at += random.IntN(40)
		} else {
			at += random.IntN(int(s.pageSize))
		}
		for i := range 1 + random.IntN(8) {
			b[at+i] = byte(random.IntN(256))
		}
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		pages := CheckPages(t.Context(), bad)
		if in := checkInParts(t, bad); (in == nil) != (pages == nil) {
			t.Errorf("damaged at %d: in parts %v, at once %v", at, in, pages)
		}
		if pages != nil {
			found++
			if !errors.Is(pages, kv.ErrDamaged) {
				t.Errorf("damaged at %d: %v", at, pages)
			}
			continue
		}
		if err := CheckInChild(t.Context(), bad); err != nil {
			t.Errorf("damaged at %d: it passes, and bbolt says %v", at, err)
		}
	}
	if found < 20 {
		t.Errorf("%d of 60 damaged files were found", found)
	}
	circle(t, path)
	if err := CheckPages(t.Context(), path); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("pages in a circle: %v", err)
	}
	if _, err := checkPages(t.Context(), path, 0); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("pages in a circle, at a start: %v", err)
	}
}

// checkInParts checks a file at the start and then what is left.
func checkInParts(t *testing.T, path string) error {
	t.Helper()
	rest, err := checkPages(t.Context(), path, 5)
	if err != nil {
		return err
	}
	f, err := Open(path, Options{Unchecked: rest})
	if err != nil {
		return err
	}
	defer f.Close(false)
	return f.CheckRest(t.Context())
}

// largeAndSmall makes a database with a bucket of many leaves, one with a few, and one with
// values of many pages, which was not closed.
func largeAndSmall(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Open(path, Options{})
	for n := 0; n < 40 && err == nil; n++ {
		err = f.update(t.Context(), func(x *transaction) error {
			err := errors.Join(x.Make("large"), x.Make("small"), x.Make("long"), x.Put("large/inner", []byte{byte(n)}, make([]byte, 500)))
			for i := 0; i < 1000 && err == nil; i++ {
				err = errors.Join(x.Put("large", []byte{byte(n), byte(i >> 8), byte(i)}, make([]byte, 100)), x.Put("small", []byte{byte(i)}, make([]byte, 20)))
			}
			return errors.Join(err, x.Put("long", []byte{byte(n)}, make([]byte, 40_000)))
		})
	}
	if err := errors.Join(err, f.Close(false)); err != nil {
		t.Fatal(err)
	}
	return path
}

// pageOf returns the offset of the last leaf of a bucket.
func pageOf(t *testing.T, path, bucket string) int64 {
	t.Helper()
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(false)
	size := int64(f.current().db.Info().PageSize)
	var at int64
	err = f.view(t.Context(), func(x *transaction) error {
		c := &pageCheck{ctx: t.Context(), pageSize: int(size)}
		if err := c.mapFile(path, uint64(x.tx.Size()/size)); err != nil {
			return err
		}
		defer c.unmap()
		id := x.root([]string{bucket})
		for {
			page, flags, count, err := c.page(id)
			if err != nil || flags == pageLeaf {
				at = int64(id) * size
				return err
			}
			id = binary.NativeEndian.Uint64(page[pageHead+(count-1)*elementSize+8:])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func overwrite(t *testing.T, path string, at int64, with ...byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(with, at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCheckRest: at a start everything is checked that could make the damage spread, and
// small buckets. Damage in leaves of large ones is found beside writers, and makes the next
// start check the whole file.
func TestCheckRest(t *testing.T) {
	const most = 60 // leaves: small has 10, long 40, large 1500
	for _, test := range []struct {
		name    string
		damage  func(t *testing.T, path string)
		atStart bool
	}{
		{"none", func(*testing.T, string) {}, false},
		{"an entry of a small bucket", func(t *testing.T, path string) {
			overwrite(t, path, pageOf(t, path, "small")+pageHead+4, 255, 255)
		}, true},
		{"an entry of a large bucket", func(t *testing.T, path string) {
			overwrite(t, path, pageOf(t, path, "large")+pageHead+4, 255, 255)
		}, false},
		{"the order of a large bucket", func(t *testing.T, path string) {
			at := pageOf(t, path, "large")
			overwrite(t, path, at+pageHead+4, 100) // into the value before
		}, false},
		{"a leaf's number", func(t *testing.T, path string) {
			overwrite(t, path, pageOf(t, path, "large"), 3, 0)
		}, false},
		{"a leaf's kind", func(t *testing.T, path string) {
			overwrite(t, path, pageOf(t, path, "large")+8, pageBranch)
		}, false},
		{"a leaf's length", func(t *testing.T, path string) {
			overwrite(t, path, pageOf(t, path, "large")+12, 1)
		}, false},
		{"a free page that a leaf begins with", func(t *testing.T, path string) {
			free(t, path, pageOf(t, path, "large"))
		}, true},
		{"a free page inside of a leaf", func(t *testing.T, path string) {
			free(t, path, pageOf(t, path, "long")+int64(os.Getpagesize()))
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := largeAndSmall(t)
			test.damage(t, path)
			rest, err := checkPages(t.Context(), path, most)
			if test.atStart {
				if !errors.Is(err, kv.ErrDamaged) {
					t.Errorf("at the start: %v", err)
				}
				return
			}
			if err != nil || rest == nil {
				t.Fatalf("at the start: %v, %v", rest, err)
			}
			f, err := Open(path, Options{Unchecked: rest})
			if err != nil {
				t.Fatal(err)
			}
			if !f.Unchecked() {
				t.Error("it counts as checked")
			}
			err = f.CheckRest(t.Context())
			if test.name == "none" {
				if err != nil || f.Unchecked() {
					t.Errorf("a sound file: %v", err)
				}
				if err := f.Close(true); err != nil || !Clean(path) {
					t.Errorf("closed, it is not clean, %v", err)
				}
				return
			}
			if !errors.Is(err, kv.ErrDamaged) || !f.Unchecked() {
				t.Errorf("later: %v", err)
			}
			if err := f.Close(true); err != nil || Clean(path) {
				t.Errorf("closed, it is clean, %v", err)
			}
			if _, err := CheckStart(t.Context(), path); !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("at the next start: %v", err)
			}
		})
	}
}

// free puts a page into the list of free pages, in place of its first one.
func free(t *testing.T, path string, at int64) {
	t.Helper()
	s, _, err := readState(path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, int64(s.freelist*s.pageSize)+pageHead, binary.NativeEndian.AppendUint64(nil, uint64(at)/s.pageSize)...)
}

// TestCheckRestBesideWriters: pages that are written during the check don't count as
// damaged, and a file that is closed before its end is checked again.
func TestCheckRestBesideWriters(t *testing.T) {
	path := largeAndSmall(t)
	rest, err := checkPages(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Options{Unchecked: rest})
	if err != nil {
		t.Fatal(err)
	}
	checks, ended := 0, make(chan error, 1)
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		var err error
		for n := 0; writing.Err() == nil && err == nil; n++ {
			err = f.update(t.Context(), func(x *transaction) error {
				err := x.Delete("large", []byte{byte(n), 0, 1})
				for i := range 200 {
					err = errors.Join(err, x.Put("large", []byte{byte(n * 7), byte(i), byte(n)}, make([]byte, 300)), x.Put("long", []byte{byte(n), byte(i)}, make([]byte, 100)))
				}
				return err
			})
		}
		ended <- err
	}()
	for ; checks < 20; checks++ {
		f.unchecked.Store(rest)
		if err := f.CheckRest(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f.unchecked.Store(rest)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.CheckRest(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := f.Close(true); err != nil || Clean(path) {
		t.Errorf("closed before it was checked, it is clean, %v", err)
	}
	if err := f.CheckRest(t.Context()); !errors.Is(err, store.ErrNotOpen) {
		t.Errorf("a closed file: %v", err)
	}
	if rest, err := CheckStart(t.Context(), path); err != nil {
		t.Errorf("checked again: %v, %v", rest, err)
	}
}

func FuzzCheckPages(f *testing.F) {
	f.Add(3, 8, []byte{2})
	f.Add(4, 16, []byte{255, 255, 255, 255})
	path := filepath.Join(f.TempDir(), "x.db")
	file, err := Open(path, Options{})
	if err == nil {
		err = file.update(f.Context(), func(x *transaction) error {
			err := x.Make("b")
			for i := 0; i < 500 && err == nil; i++ {
				err = errors.Join(x.Put("b", []byte{byte(i >> 8), byte(i)}, make([]byte, 50)), x.Put("b/in", []byte{byte(i)}, nil))
			}
			return err
		})
	}
	if err := errors.Join(err, file.Close(false)); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page, at int, with []byte) {
		b := append([]byte(nil), whole...)
		begin := page*os.Getpagesize() + at
		if page < 0 || at < 0 || page > len(b) || at > len(b) || begin > len(b) {
			return
		}
		copy(b[begin:], with)
		bad := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = CheckPages(t.Context(), bad) // whatever it says, it ends
	})
}

// TestInterruptedChecks: if processes end again and again before the check has found what
// crashes them, the whole file is checked at a start. Closing the file is not such an end.
func TestInterruptedChecks(t *testing.T) {
	const most = 60
	ctx := t.Context()
	start := func(t *testing.T, path string) (*File, error) {
		rest, err := checkStart(ctx, path, most)
		if err != nil {
			return nil, err
		}
		return Open(path, Options{Unchecked: rest})
	}
	for _, test := range []struct {
		name    string
		damaged bool
		ends    []func(*File) error // of the processes before
		whole   bool                // the start checks the whole file
	}{
		{"killed once", true, []func(*File) error{kill}, false},
		{"killed twice", true, []func(*File) error{kill, kill}, true},
		{"killed and closed", true, []func(*File) error{kill, closed, kill}, false},
		{"closed twice", true, []func(*File) error{closed, closed}, false},
		{"sound, killed twice", false, []func(*File) error{kill, kill}, true},
		{"sound, killed after the check", false, []func(*File) error{kill, func(f *File) error { return errors.Join(f.CheckRest(ctx), kill(f)) }}, false},
		{"sound, killed twice and then again", false, []func(*File) error{kill, kill, kill}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := largeAndSmall(t)
			if test.damaged {
				overwrite(t, path, pageOf(t, path, "large")+8, pageBranch)
			}
			for _, end := range test.ends {
				f, err := start(t, path)
				if err == nil {
					err = end(f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			f, err := start(t, path)
			if test.damaged && test.whole {
				if !errors.Is(err, kv.ErrDamaged) {
					t.Fatalf("started: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close(false)
			if f.Unchecked() == test.whole {
				t.Errorf("unchecked: %t", f.Unchecked())
			}
		})
	}
}

func kill(f *File) error   { return f.Close(false) }
func closed(f *File) error { return f.Close(true) }

// TestDamagedIsNotCopied: neither a backup nor a compacted file is made of a damaged one.
func TestDamagedIsNotCopied(t *testing.T) {
	path := largeAndSmall(t)
	overwrite(t, path, pageOf(t, path, "large")+pageHead+4, 100) // the order of its keys
	rest, err := checkPages(t.Context(), path, 60)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Options{Unchecked: rest})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(false)
	if err := f.Compact(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("compacting before the check: %v", err)
	}
	if err := f.CheckRest(t.Context()); !errors.Is(err, kv.ErrDamaged) {
		t.Fatalf("checking: %v", err)
	}
	if err := f.Compact(t.Context()); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("compacting: %v", err)
	}
	if err := f.CopyTo(t.Context(), filepath.Join(t.TempDir(), "copy.db")); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("copying: %v", err)
	}
}

// TestCheckRestOfRemoved: the check ends if its file was removed or replaced, so the open
// one can still be copied.
func TestCheckRestOfRemoved(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(path+".other", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := largeAndSmall(t)
			rest, err := checkPages(t.Context(), path, 60)
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".other", content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := Open(path, Options{Unchecked: rest})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close(false)
			if err := errors.Join(f.update(t.Context(), func(x *transaction) error { return x.Put("small", []byte("new"), nil) }), replace(path)); err != nil {
				t.Fatal(err)
			}
			if err := f.CheckRest(t.Context()); err == nil || errors.Is(err, kv.ErrDamaged) {
				t.Errorf("checking: %v", err)
			}
			if err := f.CopyTo(t.Context(), filepath.Join(t.TempDir(), "copy.db")); err != nil {
				t.Errorf("copying: %v", err)
			}
		})
	}
}
