package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nize/store"
	"nize/store/kv"
)

// TestCheckInChild: whatever a damaged database does to the process that reads
// it, the answer comes, in one line.
func TestCheckInChild(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nize.db")
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Begin(t.Context(), true)
	if err == nil {
		err = b.Make("some")
	}
	for i := 0; i < 3000 && err == nil; i++ {
		err = b.Put("some", binary.BigEndian.AppendUint64(nil, uint64(i)), make([]byte, 100))
	}
	if err == nil {
		err = b.Commit()
	}
	if err := errors.Join(err, f.Close(true)); err != nil {
		t.Fatal(err)
	}
	if err := CheckInChild(t.Context(), path); err != nil {
		t.Fatalf("a sound database: %v", err)
	}
	if err := CheckInChild(t.Context(), filepath.Join(dir, "none")); err != nil {
		t.Errorf("no database: %v", err)
	}
	circle(t, path)
	err = CheckInChild(t.Context(), path)
	if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 2*maxProblem {
		t.Errorf("pages in a circle: %v", err)
	}
}

// circle makes each branch page of a database lead to itself.
func circle(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const branch = 1 // a flag of a page: id (8 bytes), flags (2), count (2), overflow (4), elements of 16
	size, found := os.Getpagesize(), 0
	for at := 0; at+size <= len(b); at += size {
		page, order := b[at:at+size], binary.NativeEndian
		if order.Uint64(page) != uint64(at/size) || order.Uint16(page[8:]) != branch {
			continue
		}
		found++
		for i := range int(order.Uint16(page[10:])) {
			order.PutUint64(page[16+16*i+8:], uint64(at/size))
		}
	}
	if found == 0 {
		t.Fatal("the database has no branch page")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheckIsBounded: a check without an end is ended, by the clock, by its
// caller, and by the end of its parent.
func TestCheckIsBounded(t *testing.T) {
	endless := func() *exec.Cmd { return exec.Command("sleep", "600") }
	if err := checkWith(t.Context(), endless(), "x", time.Millisecond); !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), "did not end within") {
		t.Errorf("late: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checkWith(ctx, endless(), "x", time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "nize.db")
	f, err := Open(path, Options{}) // who waits for its lock is busy for a while
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(true)
	if err := CheckInChild(t.Context(), path); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a database in use: %v", err)
	}
	orphan := exec.Command(program)
	orphan.Env = []string{checkVar + "=" + path}
	in, err := orphan.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close() // as the system does for a parent that was killed
	var exit *exec.ExitError
	if err := orphan.Wait(); !errors.As(err, &exit) || exit.ExitCode() != checkOrphan {
		t.Errorf("without its parent: %v", err)
	}
}
