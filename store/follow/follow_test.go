package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type event struct{ key, text string }

func (e event) String() string { return e.key + e.text }

// rest returns the events that wait, and the error after them, if any.
func rest(q *Queue[event]) (all []string, err error) {
	for {
		e, ok, err := q.Take()
		if !ok || err != nil {
			return all, err
		}
		all = append(all, e.String())
	}
}

func TestQueue(t *testing.T) {
	replacing := Options[event]{
		Replaces:   func(older, newer event) (bool, bool) { return older.key == newer.key, newer.key != "state" },
		Size:       func(e event) int { return len(e.text) },
		MostEvents: 3, MostSize: 10,
	}
	for name, c := range map[string]struct {
		opt   Options[event]
		first []event
		do    func(q *Queue[event])
		want  string
		err   error
	}{
		"in order": {Options[event]{}, []event{{"a", "1"}}, func(q *Queue[event]) { q.Add(event{"b", "1"}); q.Add(event{"a", "2"}) }, "a1 b1 a2", nil},
		"replaced in place": {replacing, nil, func(q *Queue[event]) {
			q.Add(event{"a", "1"})
			q.Add(event{"b", "1"})
			q.Add(event{"a", "2"})
		}, "a2 b1", nil},
		"replaced at the end": {replacing, nil, func(q *Queue[event]) {
			q.Add(event{"state", "1"})
			q.Add(event{"b", "1"})
			q.Add(event{"state", "2"})
		}, "b1 state2", nil},
		"a replaced one frees its size": {replacing, nil, func(q *Queue[event]) {
			for range 100 {
				q.Add(event{"a", "123456789"})
				q.Add(event{"state", "1"})
			}
		}, "a123456789 state1", nil},
		"a taken one frees its size": {replacing, nil, func(q *Queue[event]) {
			for range 100 {
				q.Add(event{"a", "1234567890"})
				_, _, _ = q.Take()
			}
			q.Add(event{"a", "1234567890"})
		}, "a1234567890", nil},
		"too many": {replacing, nil, func(q *Queue[event]) {
			for n := range 4 {
				q.Add(event{fmt.Sprint(n), ""})
			}
		}, "", ErrBehind},
		"too large": {replacing, nil, func(q *Queue[event]) { q.Add(event{"a", "12345"}); q.Add(event{"b", "123456"}) }, "", ErrBehind},
		"dropped, then nothing more": {replacing, []event{{"a", "1"}}, func(q *Queue[event]) {
			q.Drop()
			q.Add(event{"b", "1"})
		}, "", ErrBehind},
		"reset": {replacing, []event{{"a", "1"}}, func(q *Queue[event]) {
			q.Drop()
			q.Add(event{"a", "12345678901"})
			q.Reset()
			q.Add(event{"b", "1"})
		}, "b1", nil},
		"no limits": {Options[event]{}, nil, func(q *Queue[event]) {
			for range 5 {
				q.Add(event{"a", strings.Repeat("x", 3)})
			}
		}, "axxx axxx axxx axxx axxx", nil},
		"ended": {Options[event]{}, []event{{"a", "1"}}, func(q *Queue[event]) {
			q.Add(event{"a", "2"})
			q.End()
			q.Add(event{"a", "3"})
		}, "a1 a2", ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewQueue(c.opt, c.first...)
			c.do(q)
			got, err := rest(q)
			if strings.Join(got, " ") != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestNext: a reader waits for what comes, gets everything in order, and then the end.
func TestNext(t *testing.T) {
	q := NewQueue(Options[event]{}, event{"", "0"})
	const n = 1000
	go func() {
		for i := 1; i < n; i++ {
			q.Add(event{"", fmt.Sprint(i)})
		}
		q.End()
	}()
	for i := range n {
		if e, err := q.Next(t.Context()); err != nil || e.text != fmt.Sprint(i) {
			t.Fatalf("event %d: %q, %v", i, e.text, err)
		}
	}
	if _, err := q.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("after the last: %v", err)
	}
	why := errors.New("the reader left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := NewQueue(Options[event]{}).Next(ctx); !errors.Is(err, why) {
		t.Errorf("after the reader left: %v", err)
	}
}
