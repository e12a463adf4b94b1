package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"nize/mcp/mcptest"
	"nize/store"
)

// queueCalls queues calls of a person one after the other, so that their order is known,
// and sends each name to ran when its call has a slot.
func queueCalls(t *testing.T, ctx context.Context, s *slots, calls *sync.WaitGroup, ran chan<- string, person string, n int) {
	t.Helper()
	for i := range n {
		_, _, before := s.count()
		calls.Go(func() {
			if s.acquire(ctx, person) == nil {
				ran <- fmt.Sprint(person, i)
			}
		})
		eventually(t, "its place in the queue", func() bool { _, _, now := s.count(); return now == before+1 })
	}
}

func TestSlotsGoRoundByPerson(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		queue []string // persons with how many calls each, in the order in which they come
		calls []int
		want  []string
	}{
		{"one person", []string{"a"}, []int{4}, []string{"a0", "a1", "a2", "a3"}},
		{"a hundred before another's first", []string{"a", "b"}, []int{100, 1}, []string{"a0", "b0", "a1", "a2"}},
		{"three", []string{"a", "b", "c"}, []int{3, 2, 1}, []string{"a0", "b0", "c0", "a1", "b1", "a2"}},
		{"somebody comes again", []string{"a", "b", "a"}, []int{1, 2, 1}, []string{"a0", "b0", "a0", "b1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, ran := newSlots(1), make(chan string)
			ctx, stop := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			defer calls.Wait()
			defer stop()
			if err := s.acquire(ctx, "holder"); err != nil {
				t.Fatal(err)
			}
			for i, person := range test.queue {
				queueCalls(t, ctx, s, &calls, ran, person, test.calls[i])
			}
			var got []string
			for range test.want {
				s.release()
				got = append(got, <-ran)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("they ran as %v, want %v", got, test.want)
			}
		})
	}
}

// A call that is given up gives its place, or the slot that it got at the same moment,
// to the next one.
func TestSlotsOfCancelledCalls(t *testing.T) {
	t.Parallel()
	s, ran := newSlots(1), make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer stop()
	if err := s.acquire(ctx, "holder"); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, person := range []string{"a", "b"} {
		kept = append(kept, person+"0")
		leaves, leave := context.WithCancel(ctx)
		queueCalls(t, leaves, s, &calls, ran, person, 2)
		queueCalls(t, ctx, s, &calls, ran, person, 1)
		leave()
		eventually(t, "the end of those that left", func() bool { _, _, waiting := s.count(); return waiting == len(kept) })
	}
	for _, want := range kept {
		s.release()
		if got := <-ran; got != want {
			t.Errorf("%s ran, want %s", got, want)
		}
	}
	s.release()
	const many = 2000
	var race sync.WaitGroup
	for i := range many {
		race.Go(func() {
			leaves, leave := context.WithCancel(ctx)
			go leave()
			if s.acquire(leaves, fmt.Sprint(i%7)) == nil {
				s.release()
			}
		})
	}
	race.Wait()
	if most, used, waiting := s.count(); most != 1 || used != 0 || waiting != 0 || len(s.queues) != 0 || s.turns.Len() != 0 {
		t.Errorf("in the end %d of %d run, %d wait, %d queues", used, most, waiting, len(s.queues))
	}
	if err := s.acquire(ctx, "a"); err != nil {
		t.Error(err)
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	if err := s.acquire(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up before: %v", err)
	}
}

func TestSlotsAreResized(t *testing.T) {
	t.Parallel()
	s, ran := newSlots(1), make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer stop()
	if err := s.acquire(ctx, "holder"); err != nil {
		t.Fatal(err)
	}
	queueCalls(t, ctx, s, &calls, ran, "a", 3)
	s.resize(2)
	if got := <-ran; got != "a0" {
		t.Errorf("%s ran", got)
	}
	s.resize(1)
	s.release() // one goes on, which is as many as may
	if _, used, waiting := s.count(); used != 1 || waiting != 2 {
		t.Errorf("%d run and %d wait", used, waiting)
	}
	s.release()
	if got := <-ran; got != "a1" {
		t.Errorf("%s ran", got)
	}
}

// One member's queued calls don't hold up another member's.
func TestQueueOfAServerIsFair(t *testing.T) {
	t.Parallel()
	const queued = 100
	b := newBench(t, nil)
	arrived, release := make(chan string), make(chan struct{})
	m := mcptest.New(t, mcptest.Options{JSON: true, Tools: []mcptest.Tool{{Name: "slow", Do: func(_ context.Context, args json.RawMessage) json.RawMessage {
		arrived <- string(args)
		<-release
		return mcptest.Text("done")
	}}}})
	cfg := remote(m.HTTP())
	cfg.MaxConcurrency = 1
	b.register(cfg)
	s, _ := b.findServer("far")
	var calls sync.WaitGroup
	run := func(user, args string) {
		call := b.call("far:slow", args)
		calls.Go(func() {
			if _, err := b.Run(t.Context(), store.Caller{User: user}, call, nil); err != nil {
				t.Errorf("%s of %s: %v", args, user, err)
			}
		})
	}
	for i := range queued {
		run("ann", fmt.Sprintf(`{"ann":%d}`, i))
	}
	<-arrived
	eventually(t, "a queue", func() bool { _, _, waiting := s.slots.count(); return waiting == queued-1 })
	run("bob", `{"bob":0}`)
	eventually(t, "bob", func() bool { _, _, waiting := s.slots.count(); return waiting == queued })
	release <- struct{}{}
	before := 0
	for got := <-arrived; got != `{"bob":0}`; got = <-arrived {
		before++
		release <- struct{}{}
	}
	if before > 1 {
		t.Errorf("%d calls of ann ran before bob's first, want one at most", before)
	}
	release <- struct{}{}
	for range queued - 1 - before {
		<-arrived
		release <- struct{}{}
	}
	calls.Wait()
}
