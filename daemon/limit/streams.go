package limit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"nize/store"
)

// Streams limits the streams that people hold open: first per person, then in total. It is
// safe for concurrent use.
type Streams struct {
	// Quota returns the current limits.
	Quota func() store.Quota

	mu   sync.Mutex // guards the fields below
	open []*stream  // oldest first
}

type stream struct {
	owner string
	end   context.CancelFunc
}

// A StreamsError is returned if a limit is reached; it contains the limit's setting.
type StreamsError struct {
	Setting string
	// All is true if it is the total limit.
	All bool
}

func (e *StreamsError) Error() string {
	if e.All {
		return fmt.Sprintf("too many requests are open in total (the setting %s); try again later", e.Setting)
	}
	return fmt.Sprintf("too many of your requests are open (the setting %s); end one first", e.Setting)
}

// Enter counts a stream until leave is called. It returns a *StreamsError if the owner has
// reached the limit per person. If the total limit is reached, it ends the oldest stream of
// the owner with the most, provided that this is more than the given owner has; otherwise
// it returns a *StreamsError.
func (s *Streams) Enter(owner string, end context.CancelFunc) (leave func(), err error) {
	q := s.Quota()
	s.mu.Lock()
	defer s.mu.Unlock()
	list, theirs := make([]store.Kept, len(s.open)), int64(0)
	for i, o := range s.open {
		list[i] = store.Kept{Owner: o.owner, Size: 1}
		if o.owner == owner {
			theirs++
		}
	}
	if theirs >= q.Each {
		return nil, &StreamsError{Setting: q.Limit}
	}
	drop, err := q.MakeRoom(list, owner, 1)
	if err != nil || slices.ContainsFunc(drop, func(i int) bool { return list[i].Owner == owner }) {
		return nil, &StreamsError{Setting: q.LimitAll, All: true}
	}
	one := &stream{owner, end}
	var kept []*stream
	for i, o := range s.open {
		if slices.Contains(drop, i) {
			o.end()
		} else {
			kept = append(kept, o)
		}
	}
	s.open = append(kept, one)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = slices.DeleteFunc(s.open, func(o *stream) bool { return o == one })
	}, nil
}

// Count returns the number of open streams.
func (s *Streams) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
