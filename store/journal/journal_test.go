package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var testKey = []byte("a key of a test")

func open(t testing.TB, path string, seq uint64) *File {
	t.Helper()
	j, err := Open(path, testKey, seq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func appendAll(t testing.TB, j *File, records ...string) {
	t.Helper()
	for _, r := range records {
		seq, err := j.Append([]byte(r))
		if err == nil {
			err = j.Flush(seq)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, path string, after uint64) (out []string) {
	t.Helper()
	records, err := Read(path, testKey, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		out = append(out, string(r))
	}
	return out
}

// What is behind what the database has is read, over any number of turns, and
// nothing else.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	if got := read(t, path, 0); got != nil {
		t.Errorf("a missing journal has %q", got)
	}
	j := open(t, path, 7)
	want := []string{}
	seq, has := uint64(7), uint64(7) // the newest, and what the database has
	for n := range 40 {
		for range n % 5 {
			seq++
			r := fmt.Sprintf("record %d %s", seq, bytes.Repeat([]byte("x"), n*13))
			appendAll(t, j, r)
			want = append(want, r)
		}
		if got := read(t, path, has); !slices.Equal(got, want) {
			t.Fatalf("turn %d: behind %d there are %.60q, want %.60q", n, has, got, want)
		}
		j.Turn()
		taken := len(want)
		if n%3 == 0 {
			continue // the commit fails
		}
		seq++
		appendAll(t, j, "meanwhile") // while it is committed
		want = append(want, "meanwhile")
		has, want = has+uint64(taken), want[taken:]
		j.Done()
	}
	// A number that the database can't have comes from another copy of it.
	for _, after := range []uint64{has - 1, seq + 1, 0} {
		if got := read(t, path, after); after != has-1 && got != nil {
			t.Errorf("behind %d there are %q", after, got)
		}
	}
	if other, err := Read(path, []byte("another key"), has); err != nil || other != nil {
		t.Errorf("with another key it has %q, %v", other, err)
	}
}

func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 0)
	record := make([]byte, MaxRecord/2)
	if _, err := j.Append(make([]byte, MaxRecord)); !errors.Is(err, ErrFull) {
		t.Errorf("a record that is too large: %v", err)
	}
	fill := func() (n int) {
		for ; ; n++ {
			if _, err := j.Append(record); errors.Is(err, ErrFull) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	one := fill()
	j.Turn()
	if two := fill(); one < 10 || two != one {
		t.Errorf("the halves take %d and %d", one, two)
	}
	j.Turn() // the first is not free yet
	if n := fill(); n != 0 {
		t.Errorf("%d found room that is held", n)
	}
	if got := read(t, path, 0); len(got) != 2*one {
		t.Errorf("it has %d of %d", len(got), 2*one)
	}
	j.Done()
	j.Turn()
	if n := fill(); n != one {
		t.Errorf("a free half takes %d, want %d", n, one)
	}
}

// What was written as the machine died ends the journal; what stands before it
// is there.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	appendAll(t, open(t, path, 0), "one", "two", "three")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.LastIndexFunc(whole[:halfSize], func(r rune) bool { return r != 0 }) + 1
	for n := range end {
		torn := slices.Clone(whole)
		torn[n] ^= 0x40
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		got := read(t, path, 0)
		if len(got) > 2 || !slices.Equal(got, []string{"one", "two", "three"}[:len(got)]) {
			t.Errorf("with byte %d changed it has %q", n, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "j")
	appendAll(f, open(f, path, 0), "one", "two")
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:200])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, r := range read(t, path, 0) {
			if r != "one" && r != "two" {
				t.Errorf("it has %q", r)
			}
		}
	})
}
