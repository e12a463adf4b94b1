package bots_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/outbox"
	"nize/store"
)

// crowd is a platform with several readers.
type crowd struct{ *botstest.Memory }

func (crowd) Batch(store.Address) int { return 3 }

// gathered is an agent that answers all messages with one turn.
type gathered struct{ *botstest.Agent }

func (g gathered) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	turns, err := g.Threads.Turns(ctx, thread)
	if err != nil {
		return err
	}
	said, last := 0, 0
	for _, t := range turns {
		switch {
		case t.Role == store.FromUser:
			said, last = said+1, t.N
		case t.Role == store.FromModel:
			said = 0
		}
	}
	if said == 0 {
		return nil
	}
	text := fmt.Sprintf("answer to %d", said)
	tell(store.Progress{Kind: "turn", Turn: fmt.Sprintf("%s/%d", thread, len(turns)), Text: text})
	return g.Threads.Append(ctx, store.System, store.Turn{Thread: thread, N: len(turns), Role: store.FromModel, Text: text, Re: last, At: time.Now()}, false)
}

// After three answers in a minute, further messages wait and get one common answer when the
// minute is over.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		memory := crowd{botstest.NewMemory(store.OnSlack)}
		agent := gathered{&botstest.Agent{Threads: o.db, Calls: o.db, Now: time.Now}}
		c := bots.New(bots.Options{Agent: agent, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db,
			Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		id := store.NewID(time.Now())
		if err := o.db.PutThread(ctx, store.System, store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Thread: id}}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for i := range 7 {
			if _, err := c.Message(ctx, store.Inbound{Key: fmt.Sprint(i), Thread: id, By: o.by, Text: "hello"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		answers := func() (n int, last string) {
			turns, err := o.db.Turns(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, turn := range turns {
				if turn.Role == store.FromModel {
					n, last = n+1, turn.Text
				}
			}
			return n, last
		}
		if n, _ := answers(); n != 3 {
			t.Errorf("%d answers in %v, want 3", n, time.Since(began))
		}
		state := func() outbox.State { states := memory.States(); return states[len(states)-1] }
		if s := state(); s != outbox.Working {
			t.Errorf("while messages wait the thread is %s, want %s", s, outbox.Working)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, last := answers(); n != 4 || last != "answer to 4" {
			t.Errorf("%d answers after %v, the last %q; want 4, the last to 4 messages", n, time.Since(began), last)
		}
		if s := state(); s != outbox.Idle {
			t.Errorf("in the end the thread is %s, want %s", s, outbox.Idle)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A restart doesn't lift the limit: answers of the minute before it count, including the
// interrupted one, and waiting messages continue to wait.
func TestBatchRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		memory := crowd{botstest.NewMemory(store.OnSlack)}
		agent := gathered{&botstest.Agent{Threads: o.db, Calls: o.db, Now: time.Now}}
		id := store.NewID(time.Now())
		ctx := t.Context()
		if err := o.db.PutThread(ctx, store.System, store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Thread: id}}); err != nil {
			t.Fatal(err)
		}
		// run is a process that gets messages, a second apart, and then ends.
		said := 0
		run := func(messages int, then time.Duration) {
			t.Helper()
			c := bots.New(bots.Options{Agent: agent, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db,
				Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond})
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			synctest.Wait()
			for range messages {
				said++
				if _, err := c.Message(ctx, store.Inbound{Key: fmt.Sprint(said), Thread: id, By: o.by, Text: "hello"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				time.Sleep(time.Second)
			}
			time.Sleep(then)
			synctest.Wait()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		answers := func() (list []string) {
			turns, err := o.db.Turns(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, turn := range turns {
				if turn.Role == store.FromModel {
					list = append(list, turn.Text)
				}
			}
			return list
		}
		run(2, 0)
		// One message was given to the agent but not answered when the process ended.
		turns, err := o.db.Turns(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.db.Append(ctx, o.by, store.Turn{Thread: id, N: len(turns), Role: store.FromUser, By: o.by, Text: "cut", At: time.Now()}, true); err != nil {
			t.Fatal(err)
		}
		// And one was accepted but not given to the agent.
		waits, err := json.Marshal(store.Inbound{Key: "waits", Thread: id, By: o.by, Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.db.Accept(ctx, store.Item{ID: store.NewID(time.Now()), Kind: "message", Payload: waits, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		run(1, 5*time.Second)
		if got := answers(); len(got) != 3 { // including the interrupted one
			t.Fatalf("after a restart within the minute: %q", got)
		}
		run(1, 5*time.Second)
		if got := answers(); len(got) != 3 {
			t.Errorf("after another restart: %q", got)
		}
		run(0, time.Minute)
		if got := answers(); len(got) != 4 || got[3] != "answer to 3" {
			t.Errorf("when the minute is over: %q", got)
		}
		time.Sleep(2 * time.Minute)
		run(3, 0)
		if got := answers(); len(got) != 7 {
			t.Errorf("after quiet minutes: %q", got)
		}
	})
}
