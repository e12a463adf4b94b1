package bolt

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// killed copies what a killed process would leave in dir.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := errors.Join(os.CopyFS(to, os.DirFS(dir)), os.Chmod(filepath.Join(to, "key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return to
}

// slow is a database that commits nothing by itself.
func slow(t *testing.T, dir string) *DB {
	t.Helper()
	return openTest(t, dir, Options{ReadOnlyLag: time.Hour})
}

func beginTest(t *testing.T, d *DB) store.Call {
	t.Helper()
	c := testCall(store.Running)
	if err := d.Begin(t.Context(), tester, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// What began and ended by the journal is there after a kill, as it was: each
// once, with its events, also after further kills.
func TestJournalKilled(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := slow(t, dir)
	commits := func(path string) uint64 {
		s, _, err := readState(path)
		if err != nil {
			t.Fatal(err)
		}
		return s.txid
	}
	at := commits(d.path)
	running, done, failed := beginTest(t, d), beginTest(t, d), beginTest(t, d)
	result := &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"x < y"}]}`), Shown: []byte(`"shown"`)}
	ended, err := d.Finish(ctx, tester, done.ID, store.Outcome{State: store.Done, Result: result, Private: true})
	if err != nil || ended.State != store.Done || string(ended.Result.Raw) != string(result.Raw) || ended.Result.Late {
		t.Fatalf("it ended as %+v, %v", ended, err)
	}
	if _, err := d.Finish(ctx, tester, failed.ID, store.Outcome{State: store.Failed, Reason: store.Textf("no %s", "luck")}); err != nil {
		t.Fatal(err)
	}
	if n := commits(d.path); n != at {
		t.Errorf("%d commits were made", n-at)
	}
	if c, err := d.GetCall(ctx, running.ID); err != nil || c.State != store.Running {
		t.Errorf("it is %s, %v", c.State, err)
	}
	for range 2 {
		dir = killed(t, dir)
		d := slow(t, dir)
		for id, want := range map[string]store.State{running.ID: store.Running, done.ID: store.Done, failed.ID: store.Failed} {
			c, err := d.GetCall(ctx, id)
			if err != nil || c.State != want || string(c.Args) != `{"a":1}` {
				t.Errorf("after a kill it is %s with %s, %v; want %s", c.State, c.Args, err, want)
			}
			switch id {
			case done.ID:
				if !c.Finished.Equal(ended.Finished) || !c.Started.Equal(ended.Started) || !c.Private || string(c.Result.Raw) != string(result.Raw) || string(c.Result.Shown) != string(result.Shown) {
					t.Errorf("it ended as %+v, want %+v", c, ended)
				}
			case failed.ID:
				if c.Reason.String() != "no luck" {
					t.Errorf("its reason is %q", c.Reason)
				}
			}
		}
		events, err := d.Events(ctx, store.EventQuery{Kind: "call"})
		if err != nil || len(events) != 5 {
			t.Errorf("%d events, %v; want 3 beginnings and 2 ends", len(events), err)
		}
		if _, err := d.VerifyEvents(ctx); err != nil {
			t.Error(err)
		}
		for _, id := range []string{done.ID, failed.ID} {
			if _, err := d.Finish(ctx, tester, id, store.Outcome{State: store.Lost}); !errors.Is(err, store.ErrDecided) {
				t.Errorf("it ended again: %v", err)
			}
		}
		if err := d.Begin(ctx, tester, running); !errors.Is(err, store.ErrExists) {
			t.Errorf("it began again: %v", err)
		}
	}
}

// Whoever lists calls, reads the trail or counts finds what was acknowledged.
func TestJournalIsRead(t *testing.T) {
	ctx := t.Context()
	d := slow(t, t.TempDir())
	for i, look := range []func() (int, error){
		func() (int, error) {
			list, err := d.ListCalls(ctx, store.CallQuery{States: []store.State{store.Done}})
			return len(list), err
		},
		func() (int, error) {
			list, err := d.Events(ctx, store.EventQuery{Kind: "call.done"})
			return len(list), err
		},
		func() (int, error) {
			u, err := d.Usage(ctx, store.UsageQuery{By: "tool"})
			return int(u.Total.Calls), err
		},
	} {
		c := beginTest(t, d)
		if _, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done}); err != nil {
			t.Fatal(err)
		}
		if n, err := look(); n != i+1 || err != nil {
			t.Errorf("look %d finds %d, %v", i, n, err)
		}
	}
}

// One of several that end a call at the same time ends it.
func TestJournalEndsOnce(t *testing.T) {
	ctx := t.Context()
	d := openTest(t, t.TempDir(), Options{ReadOnlyLag: time.Microsecond})
	for range 50 {
		c := beginTest(t, d)
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done})
				errs <- err
			}()
		}
		n := 0
		for range 4 {
			if err := <-errs; err == nil {
				n++
			} else if !errors.Is(err, store.ErrDecided) {
				t.Error(err)
			}
		}
		if n != 1 {
			t.Errorf("%d ended it", n)
		}
	}
	if err := d.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// More than the journal has room for is committed meanwhile, and nothing of it
// is lost by a kill at any moment.
func TestJournalFull(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := slow(t, dir)
	var ids []string
	big := []byte(`{"a":"` + strings.Repeat("x", 20<<10) + `"}`)
	for i := range 120 {
		c := testCall(store.Running)
		if c.Args = big; i == 60 {
			c.Args = []byte(`{"a":"` + strings.Repeat("x", 100<<10) + `"}`) // larger than any record
		}
		if err := d.Begin(ctx, tester, c); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
		if i%13 != 0 {
			continue
		}
		d := slow(t, killed(t, dir))
		for _, id := range ids {
			if _, err := d.GetCall(ctx, id); err != nil {
				t.Fatalf("of %d: %v", len(ids), err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(journalPath(d.path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed database has a journal: %v", err)
	}
}

// A journal of another database, or of a later state than a copy that was put in
// place, brings nothing back; one that can't be written is done without.
func TestJournalOfAnother(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := slow(t, dir)
	beginTest(t, d)
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	older := killed(t, dir)
	for range 3 { // what the copy lacks, some of it committed
		beginTest(t, d)
		if err := d.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	beginTest(t, d)
	other := t.TempDir()
	if err := openTest(t, other, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		dir  string
		want int
	}{{older, 1}, {other, 0}} {
		from, err := os.Open(journalPath(d.path))
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(journalPath(filepath.Join(row.dir, "nize.db")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil || errors.Join(from.Close(), to.Close()) != nil {
			t.Fatal(err)
		}
		d := slow(t, row.dir)
		if list, err := d.ListCalls(ctx, store.CallQuery{}); err != nil || len(list) != row.want {
			t.Errorf("it has %d calls, %v; want %d", len(list), err, row.want)
		}
	}
	d.mu.Lock()
	d.endJournalLocked(errors.New("a test"))
	d.mu.Unlock()
	c := beginTest(t, d)
	if d := slow(t, killed(t, dir)); true {
		if _, err := d.GetCall(ctx, c.ID); err != nil {
			t.Errorf("without a journal it was not committed: %v", err)
		}
	}
}
