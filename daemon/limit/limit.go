// Package limit counts what somebody does, so that nobody does too much of it.
package limit

import (
	"math"
	"sync"
	"time"
)

// maxKeys bounds what a limit remembers. Beyond it everybody who is new is
// refused until a minute is over, so that a flood from many addresses does not
// open the door.
const maxKeys = 10_000

// late is by how much one that took its time before another may be counted after it,
// without being taken for a clock that was set back.
const late = time.Second

// Limit lets each key through so often in a span of time. It is safe for concurrent
// use.
type Limit struct {
	Most int
	Per  time.Duration

	mu   sync.Mutex
	seen map[string]*count
}

type count struct {
	n     int
	until time.Time
}

// Take says whether the key may go on. A clock that was set back begins anew.
func (l *Limit) Take(key string, now time.Time) bool { return l.Count(key, now) <= l.Most }

// Count says how often the key came in its span, with this time.
func (l *Limit) Count(key string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.seen[key]
	if c == nil || !now.Before(c.until) || c.until.Sub(now) > l.Per+late {
		if c == nil && len(l.seen) >= maxKeys {
			for k, o := range l.seen {
				if !now.Before(o.until) {
					delete(l.seen, k)
				}
			}
			if len(l.seen) >= maxKeys {
				return math.MaxInt
			}
		}
		if l.seen == nil {
			l.seen = map[string]*count{}
		}
		c = &count{until: now.Add(l.Per)}
		l.seen[key] = c
	}
	c.n++
	return c.n
}
