package database

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv/bolt"
)

var kills = flag.Int("kills", 0, "how often TestKillCompactingItself kills")

// child is what a test binary does that was started by a test of this file.
func child(role, dir string) int {
	ctx := context.Background()
	switch role {
	case "check":
		if err := bolt.Check(filepath.Join(dir, "nize.db")); err != nil {
			fmt.Println(err)
			return 2
		}
	case "open":
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			fmt.Println(err)
			return 2
		}
		d.Close()
	case "write":
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			fmt.Println(err)
			return 2
		}
		writeForEver(ctx, d)
	case "compact":
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			fmt.Println(err)
			return 2
		}
		go writeForEver(ctx, d)
		for {
			if _, err := d.Compact(ctx, store.System, true, nil); err != nil {
				fmt.Println(err)
				return 2
			}
			fmt.Println("compacted")
		}
	case "half":
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			fmt.Println(err)
			return 2
		}
		go writeForEver(ctx, d)
		if err := wasteForEver(ctx, d); err != nil {
			fmt.Println(err)
			return 2
		}
	case "erase":
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			fmt.Println(err)
			return 2
		}
		go writeForEver(ctx, d) // gives the parent something to count by
		for {                   // until it is killed, whose own events never end
			if _, err := d.EraseEvents(ctx, store.System, tester.User); err != nil {
				return 2
			}
		}
	}
	return 0
}

// writeForEver prints what was acknowledged, each line after the fact.
func writeForEver(ctx context.Context, d *DB) {
	lines := make(chan string, 64) // only so that writers need not wait for the pipe
	for range 4 {
		go func() {
			for {
				c := testCall(store.Running)
				if d.Begin(ctx, tester, c) == nil {
					lines <- "begun " + c.ID
				}
				if _, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done}); err == nil {
					lines <- "done " + c.ID
				}
				item := store.Item{ID: c.ID, Keys: []string{c.ID}}
				if fresh, err := d.Accept(ctx, item); err == nil && fresh {
					lines <- "item " + c.ID
				}
				r := testCall(store.Done)
				d.Record(tester, r)
			}
		}()
	}
	for line := range lines {
		if _, err := os.Stdout.WriteString(line + "\n"); err != nil {
			return // the parent is gone
		}
	}
}

// The keys in the bucket examples of a child whose file is compacted because half of it is
// free: some stay, and others come and go. Each has a value of a mebibyte.
const (
	stays  = 24
	wasted = 56 // with the others more than leastCompacted
)

func mebibyte(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1<<20) }

// wasteForEver leaves most of the file free, and compacts it as the hourly retention does.
func wasteForEver(ctx context.Context, d *DB) error {
	if err := putMany(ctx, d, "stays", stays); err != nil {
		return err
	}
	for {
		if err := waste(ctx, d); err != nil {
			return err
		}
		for range 2 { // pages are free once their readers have ended
			_, done, err := d.CompactIfHalfFree(ctx)
			if err != nil {
				return err
			}
			if done {
				fmt.Println("compacted")
			}
		}
	}
}

func putMany(ctx context.Context, d *DB, name string, n int) error {
	for i := range n {
		err := d.Write(ctx, "filling", func(t *commit.Tx) error { return t.Put("examples", fmt.Append(nil, name, i), mebibyte(i)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func waste(ctx context.Context, d *DB) error {
	if err := putMany(ctx, d, "wasted", wasted); err != nil {
		return err
	}
	return d.Write(ctx, "emptying", func(t *commit.Tx) error { return t.DeletePrefix("examples", []byte("wasted")) })
}

func startChild(t *testing.T, role, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NIZE_TEST_ROLE="+role, "NIZE_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// TestKill: whatever was acknowledged before a kill -9 is there afterwards,
// and nothing is half there.
func TestKill(t *testing.T) { kill(t, "write", 10) }

// TestKillCompacting is TestKill for a process that compacts its database all the time, so
// that most kills come during that.
func TestKillCompacting(t *testing.T) {
	compacted, unfinished := kill(t, "compact", 30)
	for compacted == 0 || unfinished == 0 { // on a very slow machine
		c, u := kill(t, "compact", 10)
		compacted, unfinished = compacted+c, unfinished+u
	}
	t.Logf("compacted %d times before a kill, and interrupted %d times", compacted, unfinished)
}

// TestKillCompactingItself is TestKill for a process whose file is compacted by itself, since
// most of it is free. Each kill comes during that, or just after. In the end the space is
// given back.
func TestKillCompactingItself(t *testing.T) {
	rounds := 3
	if *kills > 0 {
		rounds = *kills
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "nize.db")
	compacted, unfinished := killIn(t, dir, "half", rounds)
	t.Logf("compacted %d times before a kill, and interrupted %d times", compacted, unfinished)
	d := openTest(t, dir, Options{})
	if err := waste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for d.Surplus() != (Surplus{}) {
		var several sync.WaitGroup
		for range 4 { // only one compacts it, which is no error of the others
			several.Go(func() {
				if _, _, err := d.CompactIfHalfFree(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		several.Wait()
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2*stays<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	err = d.Read(t.Context(), "comparing", func(tx *commit.Tx) error {
		for i := range stays {
			if !bytes.Equal(tx.Get("examples", fmt.Append(nil, "stays", i)), mebibyte(i)) {
				t.Errorf("value %d is lost or was changed", i)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// kill kills children some times, and returns how often they compacted the database, and how
// many left an unfinished copy.
func kill(t *testing.T, role string, rounds int) (compacted, unfinished int) {
	return killIn(t, t.TempDir(), role, rounds)
}

func killIn(t *testing.T, dir, role string, rounds int) (compacted, unfinished int) {
	ctx := t.Context()
	path := filepath.Join(dir, "nize.db")
	for round := range rounds {
		cmd, out := startChild(t, role, dir)
		var lines []string
		scan := bufio.NewScanner(out)
		if role == "half" { // wait for the copy
			for _, err := os.Stat(path + ".compact"); err != nil && scan.Scan(); _, err = os.Stat(path + ".compact") {
				lines = append(lines, scan.Text())
			}
			for range rand.IntN(200) {
				scan.Scan()
				lines = append(lines, scan.Text())
			}
		}
		for n := 1 + rand.IntN(150); role != "half" && len(lines) < n && scan.Scan(); {
			lines = append(lines, scan.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for scan.Scan() { // what it still said before it died counts too
			lines = append(lines, scan.Text())
		}
		cmd.Wait() // it was killed: that is no news
		if _, err := os.Stat(path + ".compact"); err == nil {
			unfinished++
		}
		if bolt.Clean(path) {
			t.Fatal("a killed database calls itself clean")
		}
		if err := bolt.Check(path); err != nil {
			t.Fatal(err)
		}
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.WasClean() {
			t.Error("WasClean after a kill")
		}
		items := map[string]bool{}
		pending, err := d.Pending(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range pending {
			items[it.ID] = true
		}
		for _, line := range lines {
			if line == "compacted" {
				compacted++
			}
			what, id, whole := strings.Cut(line, " ")
			if !whole || len(id) != 26 {
				continue // the kill cut the line
			}
			c, err := d.GetCall(ctx, id)
			if err != nil || what == "done" && c.State != store.Done || what == "item" && !items[id] {
				t.Fatalf("round %d: %q was acknowledged: %v, %s", round, line, err, c.State)
			}
		}
		calls, err := d.ListCalls(ctx, store.CallQuery{Limit: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.VerifyEvents(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d acknowledged, %d calls in all", round, len(lines), len(calls))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if !bolt.Clean(path) {
			t.Fatal("a closed database is not clean")
		}
		if _, err := os.Stat(path + ".compact"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the unfinished copy is still there: %v", err)
		}
	}
	return compacted, unfinished
}

// fill makes a database that is large enough for pages of all kinds.
func fill(t *testing.T, dir string) {
	t.Helper()
	d, err := openAt(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		d.Record(tester, testCall(store.Done))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamage: a damaged file is an error that says so, never a panic of the
// process that opens it.
func TestDamage(t *testing.T) {
	good := t.TempDir()
	fill(t, good)
	d := openTest(t, good, Options{})
	if _, err := d.Backup(t.Context(), filepath.Join(good, "copy")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(good, "copy")) // as much as is used of the file
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(good, "key"))
	if err != nil {
		t.Fatal(err)
	}
	used := len(whole)
	for _, test := range []struct {
		name  string
		with  func() []byte
		opens bool // the damage need not show at Open
	}{
		{"cut to 1 byte", func() []byte { return whole[:1] }, false},
		{"cut to a page", func() []byte { return whole[:4096] }, false},
		{"cut to two pages", func() []byte { return whole[:8192] }, false},
		{"cut in half", func() []byte { return whole[:used/2] }, false},
		{"the last used byte is missing", func() []byte { return whole[:used-1] }, false},
		{"zeroes", func() []byte { return make([]byte, len(whole)) }, false},
		{"text", func() []byte { return []byte(strings.Repeat("this is no database\n", 5000)) }, false},
		{"both heads damaged", func() []byte {
			b := append([]byte(nil), whole...)
			b[30] ^= 0xff
			b[4096+30] ^= 0xff
			return b
		}, false},
		{"pages of noise", func() []byte {
			b := append([]byte(nil), whole...)
			for i := 2 * 4096; i < used; i++ {
				b[i] = byte(i * 7)
			}
			return b
		}, false},
		{"heads of pages", func() []byte {
			b := append([]byte(nil), whole...)
			for p := 2; p < used/4096; p += 3 {
				for i := range 8 {
					b[p*4096+8+i] ^= 0x55
				}
			}
			return b
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "nize.db"), test.with(), 0o600), os.WriteFile(filepath.Join(dir, "key"), key, 0o600)); err != nil {
				t.Fatal(err)
			}
			if bolt.Clean(filepath.Join(dir, "nize.db")) {
				t.Error("it calls itself clean")
			}
			// In a child, as nized does it: a crash is an answer for Check, and
			// only for Check.
			for _, role := range []string{"check", "open"} {
				cmd, out := startChild(t, role, dir)
				said, _ := io.ReadAll(out) // ends with the child
				err := cmd.Wait()
				if err == nil && !(role == "open" && test.opens) {
					t.Errorf("%s finds nothing", role)
				}
				if code := cmd.ProcessState.ExitCode(); role == "open" && err != nil && code != 2 {
					t.Errorf("open ended the process with %d: %s", code, said)
				}
				t.Logf("%s: %v, %s", role, err, said)
			}
		})
	}
}

func TestCheckMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nize.db")
	if err := bolt.Check(path); err != nil || !bolt.Clean(path) {
		t.Errorf("a database that is not there yet: %v", err)
	}
}
