package commit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/record/calls"
)

// hold keeps the writer busy until the function it returns is called, so that
// operations pile up behind it.
func hold(t *testing.T, d *database.DB) (release func()) {
	t.Helper()
	busy, free := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- d.Write(context.Background(), "holding", func(*commit.Tx) error {
			close(busy)
			<-free
			return nil
		})
	}()
	<-busy
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func queued(d *database.DB) int {
	n, _ := d.Queued()
	return n
}

// TestGroupCommit: what waits at once shares one commit, and one that fails
// after it wrote something leaves no trace and spoils nothing.
func TestGroupCommit(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, database.Options{})
	before := d.DB.File().Stats().Commits
	release := hold(t, d)
	const n = 40
	errs := make([]error, n)
	runs := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = d.Write(ctx, fmt.Sprint("op ", i), func(t *commit.Tx) error {
				runs[i]++
				if err := t.Put("settings", commit.Key("", fmt.Sprint(i)), []byte("x")); err != nil {
					return err
				}
				t.Change(store.Change{Kind: "setting", ID: fmt.Sprint(i)})
				if err := t.Event(commit.Note{By: tester, Kind: "setting.put", Subject: fmt.Sprint(i)}); err != nil {
					return err
				}
				switch i {
				case 7, 30:
					return store.ErrInvalid
				case 20:
					panic("a damaged page")
				}
				return nil
			})
		})
	}
	waitFor(t, func() bool { return queued(d) == n })
	release()
	wg.Wait()
	after := d.DB.File().Stats().Commits
	// Holding wrote nothing; every try is a transaction number, so four of them.
	if got := after - before; got > 5 {
		t.Errorf("%d transactions for one group", got)
	}
	set, err := d.ListSettings(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		bad := i == 7 || i == 20 || i == 30
		if (err != nil) != bad || (set[fmt.Sprint(i)] == "") != bad || runs[i] == 0 {
			t.Errorf("op %d: error %v, stored %q, ran %d times", i, err, set[fmt.Sprint(i)], runs[i])
		}
	}
	if !errors.Is(errs[7], store.ErrInvalid) || !errors.Is(errs[20], commit.ErrDamaged) || !strings.Contains(errs[20].Error(), "op 20") {
		t.Errorf("errors: %v, %v", errs[7], errs[20])
	}
	if d.Last() != n-3 {
		t.Errorf("the feed has %d changes", d.Last())
	}
	if held, err := d.VerifyEvents(ctx); held != n-3 || err != nil {
		t.Errorf("%d events hold: %v", held, err)
	}
}

// waitFor polls without sleeping; what it waits for is a few instructions away.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
		// Let the other goroutines run.
		ch := make(chan struct{})
		go close(ch)
		<-ch
	}
}

// TestGivenUp: an operation whose caller left before it was taken is not done.
func TestGivenUp(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	release := hold(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { got <- d.PutSetting(ctx, tester, "", "a", "1") }()
	waitFor(t, func() bool { return queued(d) == 1 })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	release()
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if set, err := d.ListSettings(t.Context(), ""); err != nil || len(set) != 0 {
		t.Errorf("it was done all the same: %v, %v", set, err)
	}
}

// TestLag: a record that nobody waits for is on disk within 250 ms.
func TestLag(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := openAt(t.Context(), dir, database.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx := t.Context()
		stored := func(id string) bool {
			err := d.Read(ctx, "", func(t *commit.Tx) error { _, err := calls.LoadCall(t, id); return err })
			return err == nil
		}
		c := testCall(store.Done)
		d.Record(tester, c)
		time.Sleep(150 * time.Millisecond) // of the bubble's clock
		synctest.Wait()
		if stored(c.ID) {
			t.Error("written without waiting for company")
		}
		more := testCall(store.Done)
		d.Record(tester, more) // does not put the first one off
		time.Sleep(51 * time.Millisecond)
		synctest.Wait()
		if !stored(c.ID) || !stored(more.ID) {
			t.Error("not written after 201 ms")
		}
		// A durable write takes the records along.
		c = testCall(store.Done)
		d.Record(tester, c)
		if err := d.PutSetting(ctx, tester, "", "a", "1"); err != nil {
			t.Fatal(err)
		}
		if !stored(c.ID) {
			t.Error("the commit left it behind")
		}
	})
}

// TestDiskFull: writes say so, reads go on, records wait, and all is well as
// soon as there is room.
func TestDiskFull(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, database.Options{TestOnlyMaxSize: 4 << 20})
	first := testCall(store.Running)
	if err := d.Begin(ctx, tester, first); err != nil {
		t.Fatal(err)
	}
	var err error
	blob := strings.Repeat("x", 100<<10)
	for i := 0; err == nil && i < 100; i++ {
		err = d.PutSetting(ctx, tester, "", fmt.Sprint(i), blob)
	}
	if !errors.Is(err, store.ErrDiskFull) || !errors.Is(d.Healthy(), store.ErrDiskFull) {
		t.Fatalf("got %v, healthy: %v", err, d.Healthy())
	}
	if _, err := d.GetCall(ctx, first.ID); err != nil {
		t.Errorf("reading: %v", err)
	}
	big := testCall(store.Done)
	big.Args = []byte(`"` + noise(600<<10) + `"`)
	d.Record(tester, big)
	if err := d.Flush(ctx); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("flushing: %v", err)
	}
	if _, err := d.GetCall(ctx, big.ID); err != nil {
		t.Errorf("the record that waits: %v", err)
	}
	// A call that ran at the brink has ended for everybody, and is written later.
	result := &store.Result{Raw: []byte(`"` + noise(600<<10) + `"`)}
	ended, err := d.Finish(ctx, tester, first.ID, store.Outcome{State: store.Done, Result: result})
	if err != nil || ended.State != store.Done || !ended.Result.Late {
		t.Fatalf("a call that ends on a full disk: %s, %v", ended.State, err)
	}
	if c, err := d.GetCall(ctx, first.ID); err != nil || c.State != store.Done || !c.Result.Late || len(c.Result.Raw) != len(result.Raw) {
		t.Errorf("reading it: %s, %v", c.State, err)
	}
	if _, err := d.Finish(ctx, tester, first.ID, store.Outcome{State: store.Lost}); !errors.Is(err, store.ErrDecided) {
		t.Errorf("ending it again: %v", err)
	}
	if err := d.Read(ctx, "", func(t *commit.Tx) error {
		s, err := calls.LoadCall(t, first.ID)
		if err == nil && s.Head.State != store.Running {
			err = fmt.Errorf("it is %s on disk", s.Head.State)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := d.Begin(ctx, tester, big2()); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("a call begins unrecorded: %v", err)
	}
	// There is room again, and it goes on by itself.
	if err := d.Write(ctx, "", func(*commit.Tx) error { d.DB.File().TestOnlyMaxSize(0); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := d.Flush(ctx); err != nil || d.Healthy() != nil {
		t.Fatalf("afterwards: %v, %v", err, d.Healthy())
	}
	if err := d.Read(ctx, "", func(t *commit.Tx) error { _, err := calls.LoadCall(t, big.ID); return err }); err != nil {
		t.Errorf("the record that waited is lost: %v", err)
	}
	if c, err := d.GetCall(ctx, first.ID); err != nil || c.State != store.Done || c.Result.Late || !c.Finished.Equal(ended.Finished) || len(c.Result.Raw) != len(result.Raw) {
		t.Errorf("the call that ended on the full disk is %s, late %t, %s, %v", c.State, c.Result.Late, c.Finished, err)
	}
	if list, err := d.Events(ctx, store.EventQuery{Limit: 1, Kind: "call.done", Tool: first.ToolID()}); err != nil || len(list) != 1 || !strings.Contains(string(list[0].Data), `"late":true`) {
		t.Errorf("its event is %+v, %v", list, err)
	}
	if _, err := d.VerifyEvents(ctx); err != nil {
		t.Error(err)
	}
}

// big2 is a call that has no room where little is left.
func big2() store.Call {
	c := testCall(store.Running)
	c.ID, c.Args = "01ARZ3NDEKTSV4RRFFQ69G5FAW", []byte(`"`+noise(600<<10)+`"`)
	return c
}

// TestBroken: after an I/O error nothing is written any more, since nobody
// knows what is on disk.
func TestBroken(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	ctx := t.Context()
	d.Failed(errors.New("fdatasync: input/output error"))
	if err := d.PutSetting(ctx, tester, "", "a", "1"); err == nil || !strings.Contains(err.Error(), "restart nized") {
		t.Fatalf("got %v", err)
	}
	d.Record(tester, testCall(store.Done)) // does not wait for ever
	if err := d.Flush(ctx); err == nil {
		t.Error("flushing a broken store works")
	}
	if _, err := d.ListSettings(ctx, ""); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := d.Close(); err == nil || bolt.Clean(d.Path()) {
		t.Errorf("it closes as if nothing had been: %v", err)
	}
}

// TestQueueBound: the queue of records has a bound, and who meets it waits.
func TestQueueBound(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{ReadOnlyLag: time.Hour})
	release := hold(t, d)
	c := testCall(store.Done)
	c.Result = &store.Result{Raw: []byte(`"` + strings.Repeat("x", 8<<20) + `"`)}
	done := make(chan int, 8)
	go func() {
		for i := range 8 {
			c := c
			c.ID = fmt.Sprint("c", i)
			d.Record(tester, c)
			done <- i
		}
		close(done)
	}()
	for range 4 { // 32 MiB
		<-done
	}
	select {
	case <-done:
		t.Error("a fifth one did not wait")
	default:
	}
	release()
	if err := d.PutSetting(t.Context(), tester, "", "a", "1"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		if err := d.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, lazy := d.Queued()
		return len(done) == 4 && lazy == 0
	})
}

func TestFeedWindow(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, database.Options{TestOnlyFeedWindow: 10})
	for i := range 60 {
		if err := d.PutSetting(ctx, tester, "", fmt.Sprint(i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range d.Watch(ctx, 3) {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	n := store.Seq(50)
	for c, err := range d.Watch(ctx, 50) {
		if n++; err != nil || c.Seq != n {
			t.Fatalf("got %+v, %v", c, err)
		}
		if n == 60 {
			break
		}
	}
	d.Close()
	for _, err := range d.Watch(ctx, 60) {
		if !errors.Is(err, store.ErrNotOpen) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// TestWatchEndsWithClose: a watcher that waits does not outlive the store.
func TestWatchEndsWithClose(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	got := make(chan error, 1)
	go func() {
		for _, err := range d.Watch(context.Background(), 0) {
			got <- err
		}
		close(got)
	}()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for err := range got {
		if !errors.Is(err, store.ErrNotOpen) {
			t.Errorf("got %v", err)
		}
	}
}

// TestReaderDuringGrowth: the remap deadlock of the embedded engine (a writer that must grow
// the map waits for readers) cannot happen below the initial map.
func TestReaderDuringGrowth(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, database.Options{})
	err := d.Read(ctx, "", func(*commit.Tx) error {
		for i := range 40 { // 40 MiB while a reader stands there
			if err := d.PutSetting(ctx, tester, "", fmt.Sprint(i), strings.Repeat("x", 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "nize.db")); err != nil || info.Size() < 40<<20 {
		t.Errorf("it did not grow: %v", err)
	}
}

// TestFeedInMemory: what is in memory of the feed is what the database has, and who
// begins before it reads the database first, without a gap.
func TestFeedInMemory(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	const all = 2*commit.FeedRecent + 3
	for i := range all {
		if err := d.Update(t.Context(), "changing", func(tx kv.Tx) error {
			tx.Change(store.Change{Kind: "call", ID: fmt.Sprint(i), Thread: "t", State: store.Pending, Approved: i%2 == 0})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if page, ok := d.DB.FeedPage(d.Last()); !ok || len(page) != 0 {
		t.Errorf("after the newest there come %v, %v", page, ok)
	}
	if _, ok := d.DB.FeedPage(d.Last() + 1); ok {
		t.Error("what is after the newest one is known")
	}
	if _, ok := d.DB.FeedPage(d.Last() - all); ok {
		t.Error("what is no more in memory is known")
	}
	for _, n := range []store.Seq{1, commit.FeedPage, commit.FeedPage + 1, commit.FeedRecent} {
		after := d.Last() - n
		page, ok := d.DB.FeedPage(after)
		want, err := commit.Changes(d.DB, t.Context(), after)
		if !ok || err != nil || !slices.Equal(page, want) {
			t.Errorf("after %d: %v of %v, want %v, %v", after, ok, page, want, err)
		}
	}
	begun := d.Last() - all
	next := begun
	for c, err := range d.Watch(t.Context(), begun) {
		if next++; err != nil || c.Seq != next {
			t.Fatalf("got %+v, %v after %d", c, err, next-1)
		}
		if next == d.Last() {
			break
		}
	}
}

// TestRecalled: what is asked for with every call is found again without a look, and
// never after what it was read from was changed, whoever asks meanwhile.
// TestRecallTogether: those who ask for the same while it is being read wait for that
// one read, unless something was written since it began, or it failed.
func TestRecallTogether(t *testing.T) {
	d, ctx := openTest(t, t.TempDir(), database.Options{}), t.Context()
	put := func(value string) {
		if err := d.Update(ctx, "writing", func(tx kv.Tx) error { return tx.Put("budgets", []byte("k"), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	var looks atomic.Int64
	ask := func(ctx context.Context, hold func() error) (string, error) {
		return commit.Recall(ctx, d.DB, "asking", commit.AllOf("k"), func(tx *commit.Tx) (string, error) {
			looks.Add(1)
			return string(tx.Get("budgets", []byte("k"))), hold()
		}, "budgets")
	}
	for name, c := range map[string]struct {
		fails bool
		more  int64 // reads beyond the first
	}{"it succeeds": {false, 0}, "it fails": {true, 1}} {
		put(name) // so that nothing is kept
		looks.Store(0)
		reading, leave := make(chan struct{}), make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := ask(ctx, func() error {
				close(reading)
				<-leave
				if c.fails {
					return errors.New("broken")
				}
				return nil
			})
			if (err != nil) != c.fails {
				t.Errorf("%s: the first: %v", name, err)
			}
		})
		<-reading
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := ask(gone, func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: who has left: %v", name, err)
		}
		for range 8 {
			asking.Go(func() {
				if got, err := ask(ctx, func() error { return nil }); err != nil || got != name {
					t.Errorf("%s: got %q, %v", name, got, err)
				}
			})
		}
		for range 1000 {
			runtime.Gosched() // lets them ask; whenever they do, what they get is right
		}
		close(leave)
		asking.Wait()
		if n := looks.Load() - 1; n != c.more {
			t.Errorf("%s: %d more reads, want %d", name, n, c.more)
		}
	}
	reading, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	put("old")
	go func() {
		defer close(done)
		_, _ = ask(ctx, func() error { close(reading); <-leave; return nil })
	}()
	<-reading
	put("new")
	if got, err := ask(ctx, func() error { return nil }); err != nil || got != "new" {
		t.Errorf("after a write while it is read: got %q, %v", got, err)
	}
	close(leave)
	<-done
	if got, err := ask(ctx, func() error { return nil }); err != nil || got != "new" {
		t.Errorf("after the old read ended: got %q, %v", got, err)
	}
}

func TestRecalled(t *testing.T) {
	d, ctx := openTest(t, t.TempDir(), database.Options{}), t.Context()
	looks := 0
	ask := func() string {
		v, err := commit.Recall(ctx, d.DB, "asking", commit.AllOf("tools"), func(t *commit.Tx) (string, error) {
			looks++
			return string(t.Get("budgets", []byte("k"))), nil
		}, "budgets")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	put := func(bucket, value string) {
		if err := d.Update(ctx, "writing", func(tx kv.Tx) error { return tx.Put(bucket, []byte("k"), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	put("budgets", "1")
	for range 3 {
		if got := ask(); got != "1" {
			t.Errorf("got %q", got)
		}
	}
	put("meta", "other")
	if ask(); looks != 1 {
		t.Errorf("it was read %d times", looks)
	}
	put("budgets", "2")
	if got := ask(); got != "2" {
		t.Errorf("got %q after the change", got)
	}
	// What is read while a commit is under way is not kept beyond it.
	stale, err := commit.Recall(ctx, d.DB, "asking", commit.AllOf("k"), func(tx *commit.Tx) (string, error) {
		v := string(tx.Get("budgets", []byte("k")))
		put("budgets", "3")
		return v, nil
	}, "budgets")
	if err != nil || stale != "2" {
		t.Errorf("got %q, %v", stale, err)
	}
	if v, ok := d.Find(commit.AllOf("k")); ok {
		t.Errorf("%v is kept beyond the change", v)
	}
	if _, err = commit.Recall(ctx, d.DB, "asking", commit.AllOf("f"), func(*commit.Tx) (string, error) { d.Forget(); return "", nil }, "budgets"); err != nil {
		t.Error(err)
	}
	if v, ok := d.Find(commit.AllOf("f")); ok {
		t.Errorf("%q is kept, which was read while all was forgotten", v)
	}
	d.Close()
	if _, err := commit.Recall(ctx, d.DB, "asking", commit.AllOf("tools"), func(*commit.Tx) (string, error) { return "", nil }, "budgets"); !errors.Is(err, store.ErrNotOpen) {
		t.Errorf("after Close: %v", err)
	}
}

// lateEngine answers the commit of the value "new" when the test lets it.
type lateEngine struct {
	kv.Engine
	made, answer chan struct{}
}

type lateTransaction struct {
	kv.Transaction
	e    *lateEngine
	late bool
}

func (e *lateEngine) Begin(ctx context.Context, write bool) (kv.Transaction, error) {
	b, err := e.Engine.Begin(ctx, write)
	return &lateTransaction{Transaction: b, e: e}, err
}

func (t *lateTransaction) Put(bucket string, key, value []byte) error {
	t.late = t.late || string(value) == "new"
	return t.Transaction.Put(bucket, key, value)
}

func (t *lateTransaction) Commit() error {
	err := t.Transaction.Commit()
	if t.late {
		close(t.e.made)
		<-t.e.answer
	}
	return err
}

// TestRecallInCommit: from when readers may see a commit, nothing older is recalled, also
// before the engine answers.
func TestRecallInCommit(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	file, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := &lateEngine{file, make(chan struct{}), make(chan struct{})}
	d := openTest(t, dir, database.Options{Engine: late})
	put := func(value string) error {
		return d.Update(ctx, "writing", func(tx kv.Tx) error { return tx.Put("budgets", []byte("k"), []byte(value)) })
	}
	ask := func(bucket string) (v string) {
		v, err := commit.Recall(ctx, d.DB, "asking", commit.AllOf(bucket), func(tx *commit.Tx) (string, error) { return string(tx.Get(bucket, []byte("k"))), nil }, bucket)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := put("old"); err != nil || ask("budgets") != "old" || ask("servers") != "" {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- put("new") }()
	<-late.made
	if got := ask("budgets"); got != "new" {
		t.Errorf("%q is recalled while readers have what is newer", got)
	}
	if _, ok := d.Find(commit.AllOf("servers")); !ok {
		t.Error("what the commit does not change is not recalled")
	}
	close(late.answer)
	if err := <-done; err != nil || ask("budgets") != "new" {
		t.Error("after the commit:", err)
	}
	if _, ok := d.Find(commit.AllOf("budgets")); !ok {
		t.Error("what was asked for after the commit is not recalled")
	}
}

// TestNoneWaits: that no call waits is found again without a look, until one does.
func TestNoneWaits(t *testing.T) {
	d, ctx := openTest(t, t.TempDir(), database.Options{}), t.Context()
	by := store.Caller{User: "ada", Name: "Ada"}
	waiting := func(want int) {
		t.Helper()
		if list, err := d.ListCalls(ctx, store.CallQuery{Waiting: true, User: "ada"}); err != nil || len(list) != want {
			t.Errorf("%d calls wait, want %d, %v", len(list), want, err)
		}
	}
	waiting(0)
	if err := d.Begin(ctx, by, store.Call{ID: "ran", By: "ada", Server: "s", Tool: "t", State: store.Running}); err != nil {
		t.Fatal(err)
	}
	if none, ok := d.Find(commit.Part("calls_by", 'w')); !ok || none != true {
		t.Error("it is asked for again after a call that does not wait")
	}
	if err := d.Begin(ctx, by, store.Call{ID: "waits", By: "ada", Server: "s", Tool: "t", State: store.Pending}); err != nil {
		t.Fatal(err)
	}
	waiting(1)
	if _, err := d.Decide(ctx, by, "waits", store.Decision{Verb: store.Deny}); err != nil {
		t.Fatal(err)
	}
	waiting(0)
}
