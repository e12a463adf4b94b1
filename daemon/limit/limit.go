// Package limit implements rate limits, and limits on open streams.
package limit

import (
	"math"
	"sync"
	"time"
)

// maxKeys bounds the keys that a limit remembers. Beyond it, new keys are rejected until a
// minute is over, so that a flood from many addresses doesn't disable the limit.
const maxKeys = 10_000

// late is by how much an earlier timestamp may arrive after a later one without being taken
// for a clock that was set back.
const late = time.Second

// Limit allows each key a number of times per time span. It is safe for concurrent use.
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

// Take reports whether the key may continue. If the clock was set back, counting starts
// anew.
func (l *Limit) Take(key string, now time.Time) bool { return l.Count(key, now) <= l.Most }

// Count returns how often the key was counted in its span, including this time.
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
