package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// record runs a queue and records what was done, and when.
type record struct {
	mu   sync.Mutex // guards the fields below
	done []string
	at   []time.Duration
}

func (r *record) add(k string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.at = append(r.done, k), append(r.at, after)
}

// Keys are processed when they are due, earliest first; a key set again is processed once,
// at its last time, and a dropped one never.
func TestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		q, r, began := New[string](time.Now), &record{}, time.Now()
		go q.Run(ctx, 1, func(_ context.Context, k string) { r.add(k, time.Since(began)) })
		q.Set("late", began.Add(time.Hour))
		q.Set("soon", began.Add(time.Second))
		q.Set("moved", began.Add(time.Minute))
		q.Set("moved", began.Add(2*time.Minute))
		q.Advance("moved", began.Add(3*time.Minute)) // it is due earlier
		q.Set("dropped", began.Add(time.Minute))
		synctest.Wait()
		if due, ok := q.Due("moved"); !ok || !due.Equal(began.Add(2*time.Minute)) || q.Has("nobody") {
			t.Errorf("moved is due at %v, %v", due, ok)
		}
		q.Drop("dropped")
		q.Advance("late", began.Add(90*time.Second))
		time.Sleep(time.Hour)
		stop()
		synctest.Wait()
		if want := []string{"soon", "late", "moved"}; !slices.Equal(r.done, want) {
			t.Errorf("done: %v, want %v", r.done, want)
		}
		if want := []time.Duration{time.Second, 90 * time.Second, 2 * time.Minute}; !slices.Equal(r.at, want) {
			t.Errorf("at: %v, want %v", r.at, want)
		}
	})
}

// Work for a key never overlaps; a request during the work causes another run. Other keys
// run concurrently, up to the limit.
func TestAtOnce(t *testing.T) {
	for _, row := range []struct{ atOnce, most int }{{1, 1}, {2, 2}, {0, 5}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			q := New[string](time.Now)
			var mu sync.Mutex // guards the fields below
			busy, most, times := map[string]bool{}, 0, map[string]int{}
			go q.Run(ctx, row.atOnce, func(_ context.Context, k string) {
				mu.Lock()
				if busy[k] {
					t.Errorf("%s is worked on twice", k)
				}
				busy[k] = true
				times[k]++
				most = max(most, len(busy))
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				delete(busy, k)
				mu.Unlock()
			})
			for _, k := range []string{"a", "b", "c", "d", "e"} {
				q.Set(k, time.Now())
			}
			time.Sleep(time.Millisecond)
			if !q.Has("a") || !q.Has("e") {
				t.Error("what is due or worked on is not there")
			}
			for _, k := range []string{"a", "b", "c", "d", "e"} {
				q.Set(k, time.Now())
				q.Set(k, time.Now())
			}
			time.Sleep(time.Minute)
			stop()
			synctest.Wait()
			for k, n := range times {
				if n != 2 && !(row.atOnce > 0 && n == 1) { // one that had not begun is done once
					t.Errorf("%d at once: %s was done %d times", row.atOnce, k, n)
				}
			}
			if len(times) != 5 || most != row.most {
				t.Errorf("%d keys, %d at once; want 5, %d", len(times), most, row.most)
			}
		})
	}
}

// Run waits for the work it began, and a later Run processes the rest.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		q, r := New[string](time.Now), &record{}
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			q.Run(ctx, 0, func(_ context.Context, k string) {
				time.Sleep(time.Second)
				r.add(k, time.Since(began))
			})
			close(ended)
		}()
		q.Set("a", began)
		synctest.Wait()
		stop()
		q.Set("left", time.Now())
		<-ended
		if !slices.Equal(r.done, []string{"a"}) {
			t.Errorf("done: %v", r.done)
		}
		ctx, stop = context.WithCancel(t.Context())
		defer stop()
		go q.Run(ctx, 1, func(_ context.Context, k string) { r.add(k, 0) })
		time.Sleep(time.Second)
		stop()
		synctest.Wait()
		if !slices.Equal(r.done, []string{"a", "left"}) {
			t.Errorf("done: %v", r.done)
		}
	})
}

// TestLanes: work delivered late takes its place by its order, while later work waits; a
// held lane waits for it.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l, r := NewLanes(), &record{}
		add := func(lane, order, name string) func() {
			ticket := l.Add(ctx, lane, order)
			return func() { ticket.SetWork(func(context.Context) { r.add(name, 0) }) }
		}
		release, again := l.Hold("a"), l.Hold("a")
		for _, begin := range []func(){add("a", "9", "9"), add("a", "11", "11"), add("a", "10", "10"), add("a", "", "last"), add("a", "8", "8 behind what has no order")} {
			begin()
		}
		add("b", "1", "of another lane")()
		synctest.Wait()
		if want := []string{"of another lane"}; !slices.Equal(r.done, want) || !l.Busy("a") || l.Busy("b") {
			t.Errorf("done: %v, want %v", r.done, want)
		}
		release()
		release() // has no effect
		synctest.Wait()
		if len(r.done) != 1 {
			t.Errorf("done while it is held: %v", r.done)
		}
		again()
		synctest.Wait()
		if want := []string{"of another lane", "9", "10", "11", "last", "8 behind what has no order"}; !slices.Equal(r.done, want) {
			t.Errorf("done: %v, want %v", r.done, want)
		}
		r.done = nil
		begin := add("a", "5", "5") // being stored while 4 is delivered
		synctest.Wait()
		first := add("a", "4", "4")
		begin()
		synctest.Wait()
		first()
		synctest.Wait()
		if want := []string{"4", "5"}; !slices.Equal(r.done, want) || l.Busy("a") {
			t.Errorf("done: %v, want %v", r.done, want)
		}
		l.Hold("a")
		add("a", "", "never")()
		stop()
		l.Wait()
		if len(r.done) != 2 {
			t.Errorf("done after the end: %v", r.done)
		}
	})
}
