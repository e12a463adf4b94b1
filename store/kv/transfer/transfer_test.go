package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
)

func open(t *testing.T, path string) *bolt.File {
	t.Helper()
	f, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(true) })
	return f
}

// filled is a source with all that is special: counters, an empty bucket, an empty
// value, a bucket within, more than one transaction's worth.
func filled(t *testing.T) *bolt.File {
	t.Helper()
	f := open(t, filepath.Join(t.TempDir(), "from.db"))
	err := Copy{To: f}.update(t.Context(), func(b kv.Transaction) error {
		err := errors.Join(b.Make("meta"), b.Make("empty"), b.Make("large"), b.Make("top"), b.Put("meta", []byte("a"), []byte{}), b.Put("top/in", []byte("k"), []byte("v")))
		for i := range 40 {
			err = errors.Join(err, b.Put("large", []byte(fmt.Sprintf("%04d", i)), bytes.Repeat([]byte{byte(i)}, 1<<20)))
		}
		_, seqErr := b.Sequence("empty", 7)
		return errors.Join(err, seqErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// counting fails at a commit, and notes the largest transaction.
type counting struct {
	kv.Engine
	commits, failAt int
	largest, size   int
	turn            func(k, v []byte) []byte // what is put instead
}

var errCut = errors.New("cut off")

func (c *counting) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	b, err := c.Engine.Begin(ctx, write)
	c.size = 0
	return counted{b, c}, err
}

type counted struct {
	kv.Transaction
	c *counting
}

func (b counted) Put(bucket string, k, v []byte) error {
	b.c.size += len(v)
	b.c.largest = max(b.c.largest, b.c.size)
	if b.c.turn != nil {
		v = b.c.turn(k, v)
	}
	return b.Transaction.Put(bucket, k, v)
}

func (b counted) Commit() error {
	if b.c.commits++; b.c.commits == b.c.failAt {
		b.Rollback()
		return errCut
	}
	return b.Transaction.Commit()
}

func unfinished(t *testing.T, e kv.Engine) bool {
	t.Helper()
	b, err := e.Begin(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Rollback()
	cut, err := Unfinished(b, "meta")
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

// TestCopy: all of it comes, in small transactions, and comes back the same.
func TestCopy(t *testing.T) {
	from := filled(t)
	there := &counting{Engine: open(t, filepath.Join(t.TempDir(), "there.db"))}
	first := Copy{From: from, To: there, Mark: "meta", Within: []string{"top/in"}}
	back := Copy{From: there, To: open(t, filepath.Join(t.TempDir(), "back.db")), Mark: "meta", Within: []string{"top/in"}}
	var said [2]string
	for i, c := range []Copy{first, back} {
		if err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !unfinished(t, c.To) {
			t.Error("a target that was begun has no mark")
		}
		contents, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.End(t.Context()); err != nil || unfinished(t, c.To) {
			t.Errorf("the mark is still there: %v", err)
		}
		for _, one := range contents {
			said[i] += fmt.Sprintf("%s %d %d; ", one.Bucket, one.Keys, one.Sequence)
		}
	}
	if want := "empty 0 7; large 40 0; top 0 0; top/in 1 0; meta 1 0; "; said[0] != want || said[1] != want {
		t.Errorf("copied %q, and back %q, want %q", said[0], said[1], want)
	}
	if there.largest > chunk+1<<20 {
		t.Errorf("a transaction had %d bytes", there.largest)
	}
	if err := back.Begin(t.Context()); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a target that has something: %v", err)
	}
}

// TestCutOff: wherever a copy ends, its target has the mark.
func TestCutOff(t *testing.T) {
	from := filled(t)
	for at := 2; ; at++ {
		to := &counting{Engine: open(t, filepath.Join(t.TempDir(), "to.db")), failAt: at}
		c := Copy{From: from, To: to, Mark: "meta", Within: []string{"top/in"}}
		if err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Run(t.Context())
		if err == nil {
			err = c.End(t.Context())
		}
		if err == nil {
			if at < 10 {
				t.Errorf("only %d commits were tried", at)
			}
			return
		}
		if !errors.Is(err, errCut) || !unfinished(t, to) {
			t.Errorf("cut off at commit %d: %v, marked %v", at, err, unfinished(t, to))
		}
		if err := c.Begin(t.Context()); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a second copy into the half one: %v", err)
		}
	}
}

// TestCompare: a target that is not what the source is, or a source that can't be
// read, is an error.
func TestCompare(t *testing.T) {
	from := filled(t)
	to := &counting{Engine: open(t, filepath.Join(t.TempDir(), "to.db")), turn: func(k, v []byte) []byte {
		if string(k) == "0017" {
			v = append([]byte{99}, v[1:]...)
		}
		return v
	}}
	c := Copy{From: from, To: to, Mark: "meta", Within: []string{"top/in"}}
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); !errors.Is(err, kv.ErrDamaged) || !unfinished(t, to) {
		t.Errorf("one byte differs: %v", err)
	}

	path := filepath.Join(t.TempDir(), "damaged.db")
	if err := from.CopyTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * os.Getpagesize(); at < len(whole); at += os.Getpagesize() { // the heads stay
		copy(whole[at:], bytes.Repeat([]byte{0xee}, 16))
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := bolt.Open(path, bolt.Options{ReadOnly: true})
	if err != nil {
		return // which is as good
	}
	defer damaged.Close(false)
	c = Copy{From: damaged, To: open(t, filepath.Join(t.TempDir(), "to2.db")), Mark: "meta"}
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a damaged source: %v", err)
	}
}
