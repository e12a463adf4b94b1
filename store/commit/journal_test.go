package commit_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/database"
	"nize/store/project"
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
func slow(t *testing.T, dir string) *database.DB {
	t.Helper()
	return openTest(t, dir, database.Options{ReadOnlyLag: time.Hour})
}

func beginTest(t *testing.T, d *database.DB) store.Call {
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
	at := d.DB.File().Stats().Commits
	running, done, failed := beginTest(t, d), beginTest(t, d), beginTest(t, d)
	result := &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"x < y"}]}`), Shown: []byte(`"shown"`)}
	ended, err := d.Finish(ctx, tester, done.ID, store.Outcome{State: store.Done, Result: result, Private: true, Hooks: []store.HookRef{{ID: "mask", After: "changed"}}})
	if err != nil || ended.State != store.Done || string(ended.Result.Raw) != string(result.Raw) || ended.Result.Late {
		t.Fatalf("it ended as %+v, %v", ended, err)
	}
	if _, err := d.Finish(ctx, tester, failed.ID, store.Outcome{State: store.Failed, Reason: store.Textf("no %s", "luck")}); err != nil {
		t.Fatal(err)
	}
	if n := d.DB.File().Stats().Commits; n != at {
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
				if !c.Finished.Equal(ended.Finished) || !c.Started.Equal(ended.Started) || !c.Private || string(c.Result.Raw) != string(result.Raw) || string(c.Result.Shown) != string(result.Shown) ||
					!slices.Equal(c.Hooks, ended.Hooks) {
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
	d := openTest(t, t.TempDir(), database.Options{ReadOnlyLag: time.Microsecond})
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
	if _, err := os.Stat(commit.JournalPath(d.Path())); !errors.Is(err, os.ErrNotExist) {
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
	if err := openTest(t, other, database.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		dir  string
		want int
	}{{older, 1}, {other, 0}} {
		from, err := os.Open(commit.JournalPath(d.Path()))
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(commit.JournalPath(filepath.Join(row.dir, "nize.db")))
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
	d.EndJournal(errors.New("a test"))
	c := beginTest(t, d)
	if d := slow(t, killed(t, dir)); true {
		if _, err := d.GetCall(ctx, c.ID); err != nil {
			t.Errorf("without a journal it was not committed: %v", err)
		}
	}
}

// What a program's round came to, and what its model calls held and cost, is there
// after a kill without a commit; whoever reads it before finds it too.
func TestJournalRounds(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := slow(t, dir)
	ann, err := d.EnsureUser(ctx, "local:1", "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	of := project.Project{ID: "p", Name: "p", Owner: ann.ID}
	if err := d.PutProject(ctx, store.System, of); err != nil {
		t.Fatal(err)
	}
	at := d.DB.File().Stats().Commits
	by := of.Caller()
	say := func(n int, role store.TurnRole, text string) store.Turn {
		return store.Turn{Thread: "c", N: n, Role: role, Text: text, By: by, Opaque: []byte(`{"o":1}`)}
	}
	steps := []project.Step{
		{Round: project.Round{ID: "r", Project: "p", Conversation: "c", State: []byte(`{"n":1}`)}, Thread: &store.Thread{ID: "c", User: by.User}, Turns: []store.Turn{say(0, store.FromUser, "hello")}},
		{Round: project.Round{ID: "r", Project: "p", Conversation: "c", State: []byte(`{"n":2}`)}, Turns: []store.Turn{say(1, store.FromModel, "good"), say(2, store.FromUser, "day")}},
	}
	spend := func(id string) store.Spend {
		return store.Spend{ID: id, User: by.User, Provider: "m", Model: "m", Prompt: 100, Priced: true, MicroUSD: 5}
	}
	for i, step := range steps {
		id := []string{"settled", "cut off"}[i]
		if err := d.Reserve(ctx, by, store.Reservation{Spend: spend(id), Tokens: 200, MicroUSD: 10}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := d.SettleSpend(ctx, by, spend(id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.PutRound(ctx, step, i == 1); err != nil {
			t.Fatal(err)
		}
	}
	if th, err := d.GetThread(ctx, "c"); err != nil || th.User != by.User {
		t.Errorf("the conversation is %+v, %v", th, err)
	}
	if now := d.DB.File().Stats().Commits; now != at {
		t.Errorf("%d commits were made", now-at)
	}
	left := killed(t, dir)
	for i, d := range []*database.DB{d, slow(t, left), slow(t, killed(t, left))} {
		turns, err := d.Turns(ctx, "c")
		if err != nil || len(turns) != 3 || turns[2].Text != "day" || string(turns[1].Opaque) != `{"o":1}` {
			t.Errorf("%d: it said %+v, %v", i, turns, err)
		}
		if r, err := d.GetRound(ctx, "p", "r"); err != nil || string(r.State) != `{"n":2}` {
			t.Errorf("%d: the round is %s, %v", i, r.State, err)
		}
		if th, err := d.GetThread(ctx, "c"); err != nil || th.Title != "hello" {
			t.Errorf("%d: the conversation is %+v, %v", i, th, err)
		}
		abandoned := 0
		if i > 0 {
			if abandoned, err = d.SettleAbandoned(ctx); err != nil || abandoned != 1 {
				t.Errorf("%d: %d calls were cut off, %v", i, abandoned, err)
			}
		}
		if u, err := d.Usage(ctx, store.UsageQuery{}); err != nil || int(u.Total.Calls) != 1+abandoned {
			t.Errorf("%d: %d calls are booked, %v", i, u.Total.Calls, err)
		}
	}
}

// What is reserved by the journal counts as what is committed does: of many calls
// at once no more begin than a budget has room for.
func TestJournalBudget(t *testing.T) {
	ctx := t.Context()
	d := openTest(t, t.TempDir(), database.Options{ReadOnlyLag: time.Millisecond})
	var began, used atomic.Int64
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			for j := range 25 {
				s := store.Spend{ID: fmt.Sprint(i, ".", j), User: "ann", Provider: "m", Model: "m", Prompt: int64(5 + j%6)}
				r := store.Reservation{Spend: s, Tokens: 10, UserDaily: 1000}
				var full *store.BudgetError
				if err := d.Reserve(ctx, tester, r); errors.As(err, &full) {
					continue
				} else if err != nil {
					t.Error(err)
				}
				began.Add(1)
				if j%5 == 0 {
					if err := d.Release(ctx, s.ID); err != nil {
						t.Error(err)
					}
				} else if _, err := d.SettleSpend(ctx, tester, s); err != nil {
					t.Error(err)
				} else {
					used.Add(s.Prompt)
				}
			}
		})
	}
	calls.Wait()
	u, err := d.Usage(ctx, store.UsageQuery{User: "ann"})
	if err != nil || u.Total.Prompt != used.Load() || used.Load() > 1010 || used.Load() < 900 {
		t.Errorf("%d began and used %d of 1,000; %d are counted, %v", began.Load(), used.Load(), u.Total.Prompt, err)
	}
}
