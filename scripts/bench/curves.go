package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
)

// size is the size of an installation.
type size struct {
	people, calls, waiting int
}

func (s size) String() string {
	return fmt.Sprintf("%d people, %d calls, %d waiting", s.people, s.calls, s.waiting)
}

const (
	curveThread = 30 // calls of one conversation
	curveRuns   = 20 // of each request
)

// curves measures the cost of each page in a small installation, in one a hundred times
// larger, and in one of a million calls, and how long each takes to start after kill -9.
func (b *bench) curves(ctx context.Context) error {
	for _, s := range []size{{30, 10_000, 10}, {3000, 300_000, 1000}, {3000, 1_000_000, 1000}} {
		if err := b.curve(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (b *bench) curve(ctx context.Context, s size) (err error) {
	name := fmt.Sprint("curves-", s.calls)
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if err := fill(ctx, dir, s); err != nil {
		return fmt.Errorf("filling it: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := b.startNized(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	added := 0
	for _, q := range []struct {
		what string
		do   work
		aim  float64
	}{
		{"status", func(ctx context.Context, _ int) error { return second(api.GetStatus.Call(ctx, d.api, api.Empty{})) }, 20},
		{"doctor", func(ctx context.Context, _ int) error {
			return second(api.Doctor.Call(ctx, d.api, api.DoctorRequest{}))
		}, 20},
		{"approvals list", func(ctx context.Context, _ int) error { return second(api.ListApprovals.Call(ctx, d.api, api.Empty{})) }, 0},
		{"a page of tokens", func(ctx context.Context, _ int) error {
			return second(api.ListTokens.Call(ctx, d.api, api.ListTokensRequest{User: "person-7"}))
		}, 0},
		{"a page of everybody's tokens", func(ctx context.Context, _ int) error {
			return second(api.ListTokens.Call(ctx, d.api, api.ListTokensRequest{}))
		}, 0},
		{"add a person", func(ctx context.Context, _ int) error {
			added++
			return second(api.AddUser.Call(ctx, d.api, api.AddUserRequest{Name: fmt.Sprint("added-", added), Role: store.Member}))
		}, 0},
		{"usage of 30 days by conversation, the top 40", func(ctx context.Context, _ int) error {
			return second(api.GetUsage.Call(ctx, d.api, api.GetUsageRequest{By: "conversation", Since: time.Now().AddDate(0, 0, -30), Top: 40}))
		}, 0},
		{"a page of calls", func(ctx context.Context, _ int) error {
			for _, err := range api.ReadAudit.Call(ctx, d.api, api.AuditRequest{Limit: 100}) {
				if err != nil {
					return err
				}
			}
			return nil
		}, 0},
	} {
		took, err := p50(ctx, curveRuns, q.do)
		if err != nil {
			return fmt.Errorf("%s: %w", q.what, err)
		}
		b.table.add(row{what: q.what + ", " + s.String(), value: millis(took), unit: "ms", aim: q.aim})
	}
	took, err := p50(ctx, 3, func(ctx context.Context, _ int) error {
		_ = d.cmd.Process.Signal(syscall.SIGKILL)
		<-d.exited
		_ = d.log.Close()
		if err := os.Remove(filepath.Join(d.dir, "nized.addr")); err != nil {
			return err
		}
		d, err = b.startNized(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	b.table.add(row{what: "kill -9 and start until ready, " + s.String(), value: millis(took), unit: "ms", aim: 300})
	return nil
}

func second[T any](_ T, err error) error { return err }

// fill writes the data of an installation with the store's own code.
func fill(ctx context.Context, dir string, s size) (err error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	people := make([]store.Caller, s.people)
	if err := many(len(people), func(i int) error {
		u, err := db.EnsureUser(ctx, fmt.Sprintf("slack:T:U%d", i), fmt.Sprintf("person-%d", i), store.Member)
		if err != nil {
			return err
		}
		people[i] = store.Caller{User: u.ID, Name: u.Name, Role: store.Member, Surface: store.OnTerminal}
		for n := range 3 {
			t := store.Token{Name: fmt.Sprintf("t%d-%d", i, n), User: u.ID, Hash: [32]byte{byte(n), byte(i), byte(i >> 8), 1}, Audience: store.ForMCP, Expires: time.Now().Add(1000 * time.Hour)}
			if _, err := db.CreateToken(ctx, people[i], t, false); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	threads := make([]string, max(1, s.calls/curveThread))
	if err := many(len(threads), func(i int) error {
		threads[i] = store.NewID(db.Now())
		by := people[i%len(people)]
		return db.PutThread(ctx, by, store.Thread{ID: threads[i], User: by.User, Title: "What is due", Address: store.Address{Surface: store.OnTerminal, Thread: threads[i]}})
	}); err != nil {
		return err
	}
	const batch = 20_000
	var spends []store.Spend
	for i := range s.calls {
		thread := i / curveThread % len(threads)
		by := people[thread%len(people)]
		db.Record(by, benchCall(db, by, threads[thread], store.Done, i))
		spends = append(spends, store.Spend{
			ID: store.NewID(db.Now()), At: db.Now().Add(-time.Duration(i) * 20 * 24 * time.Hour / time.Duration(s.calls)), User: by.User, Thread: threads[thread],
			Agent: "main", Provider: "main", Model: fmt.Sprint("model-", i%5), Prompt: 1000, Completion: 10, MicroUSD: 300, Priced: true, Took: time.Second,
		})
		if len(spends) == batch || i == s.calls-1 {
			if err := db.AddSpends(ctx, spends); err != nil {
				return err
			}
			spends = nil
		}
	}
	if err := many(s.waiting, func(i int) error {
		by := people[i%len(people)]
		return db.Begin(ctx, by, benchCall(db, by, threads[i%len(threads)], store.Pending, i))
	}); err != nil {
		return err
	}
	return db.Flush(ctx)
}

func benchCall(db *database.DB, by store.Caller, thread string, state store.State, i int) store.Call {
	now := db.Now()
	c := store.Call{
		ID: store.NewID(now), Server: fmt.Sprint("system-", i%20), Tool: fmt.Sprint("tool-", i%200), Args: fmt.Appendf(nil, `{"n":%d,"zone":"Europe/Berlin"}`, i),
		By: by.User, ByName: by.Name, Surface: by.Surface, Thread: thread, State: state, Policy: store.ByRequester, Created: now,
	}
	if state == store.Pending {
		c.Expires = now.Add(24 * time.Hour)
	} else {
		c.Started, c.Finished, c.Result = now, now, &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"it is noon"}]}`)}
	}
	c.Digest = c.ComputeDigest()
	return c
}

// many runs do n times, sixty-four at a time, so that they share commits.
func many(n int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, 64)
	var doing sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		doing.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	doing.Wait()
	return errors.Join(errs...)
}
