package bolt

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

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
