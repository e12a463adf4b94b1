package bots_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/store"
)

// steps are the events around a stop, in this order.
type steps struct {
	ctx     context.Context
	read    chan struct{} // the stop has read the conversation, which has no message yet
	taken   chan struct{} // the message was given to the agent and has left the queue
	stopped chan struct{} // the stop has returned
	saying  chan struct{}
	armed   atomic.Bool // the next reading of the clock is that of the beginning turn
}

func (s *steps) wait(step chan struct{}) {
	select {
	case <-step:
	case <-s.ctx.Done():
	}
}

// lateThreads delays the GetThread of a stop.
type lateThreads struct {
	store.Threads
	s *steps
}

type aStop struct{}

func (l lateThreads) GetThread(ctx context.Context, id string) (store.Thread, error) {
	th, err := l.Threads.GetThread(ctx, id)
	if ctx.Value(aStop{}) != nil {
		close(l.s.read)
		l.s.wait(l.s.taken)
	}
	return th, err
}

// lateAgent takes the message after the stop has read the conversation.
type lateAgent struct {
	*botstest.Agent
	s *steps
}

func (a lateAgent) Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error) {
	close(a.s.saying)
	a.s.wait(a.s.read)
	turn, err := a.Agent.Say(ctx, by, in)
	a.s.armed.Store(true)
	return turn, err
}

// A stop that arrives while a message is being taken ends its turn: it isn't lost between
// the queue, which the message has left, and the turn, which has not begun.
func TestStopOfWhatIsTaken(t *testing.T) {
	o := newOffice(t)
	id := store.NewID(time.Now()) // on a surface that the office doesn't have
	if err := o.db.PutThread(o.ctx, store.System, store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Thread: id}}); err != nil {
		t.Fatal(err)
	}
	s := &steps{ctx: o.ctx, read: make(chan struct{}), taken: make(chan struct{}), stopped: make(chan struct{}), saying: make(chan struct{})}
	memory := botstest.NewMemory(store.OnSlack)
	c := bots.New(bots.Options{
		Agent: lateAgent{o.agent, s}, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: lateThreads{o.db, s}, Calls: o.db, Feed: o.db,
		Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond,
		Now: func() time.Time {
			if s.armed.CompareAndSwap(true, false) {
				close(s.taken)
				s.wait(s.stopped)
			}
			return time.Now()
		},
	})
	ctx, cancel := context.WithCancel(o.ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	if _, err := c.Message(ctx, store.Inbound{Key: "1", Thread: id, By: o.by, Text: "slow never"}); err != nil {
		t.Fatal(err)
	}
	s.wait(s.saying)
	if err := c.Stop(context.WithValue(ctx, aStop{}, true), o.by, id); err != nil {
		t.Fatal(err)
	}
	close(s.stopped)
	if _, err := memory.See(ctx, func(all []store.Message) bool {
		for _, m := range all {
			if strings.Contains(m.Text, "never") {
				t.Fatal("what was stopped is answered")
			}
			if m.Kind == store.NoticeMessage && strings.Contains(m.Text, "Stopped") {
				return true
			}
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
